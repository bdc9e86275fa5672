"""Which rows are invalid, the error or the reason, and how many may be dropped.

Engines find invalid rows by SQL (`sql_row_checks`). Why they are invalid is
determined here, by the same rules as for tables in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.arrays import check_same_length
from calibrant.core.labels import check_single_labels, is_missing
from calibrant.core.probabilities import row_sum_remedy
from calibrant.core.row_rules import (
    BINARY_LABEL,
    FINITE,
    HAS_CLUSTER,
    HAS_LABEL,
    NOT_NEGATIVE,
    RowRule,
    class_label,
    in_range,
    sums_to_one,
)
from calibrant.core.scales import (
    ROW_SUM_TOLERANCE,
    SCALE_RULES,
    ValueSummary,
    precision_of_columns,
)
from calibrant.core.wording import MEASURE_WORDING, shown
from calibrant.exceptions import (
    DroppedRowsError,
    InputError,
    ProbabilityRangeError,
    ScaleError,
    Setting,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Scale
    from calibrant.engines.aggregation_spec import AggregationSpec, ModelColumns
    from calibrant.engines.memory import MemoryTable

Reasons: TypeAlias = dict[str, int]
"""How many rows cannot be used, by the first reason that each has."""


LINES_REASON = "in lines that cannot be read"
"""Why lines of text files are dropped that are no rows."""


def listed_reasons(reasons: Mapping[str, int]) -> str:
    """Return reasons as a message tells them.

    >>> listed_reasons({"missing or infinite in column 'p'": 3})
    "3 missing or infinite in column 'p'"
    """
    return ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())


def check_dropped(
    reasons: Mapping[str, int],
    total: int,
    limit: float,
    ranges: Iterable[ScaleEvidence] = (),
) -> None:
    """Raise where more than a share of all rows would be dropped.

    Or where the predictions of a model are clearly on another scale.
    """
    ranges = list(ranges)
    for one in ranges:
        if one.summary.is_clearly_other(one.scale, limit):
            raise one.error()
    dropped = sum(reasons.values())
    if dropped <= limit * total:
        return
    enough = round(float(np.ceil(10.0 * dropped / total) / 10.0), 1)
    many = [one for one in ranges if one.summary.are_many_outside(limit)]
    more: Text = (", or allow more to be dropped: ", Setting("max_dropped", enough))
    raise DroppedRowsError(
        f"{dropped:,} of {total:,} rows are invalid, but at most {100 * limit:g} % may "
        f"be dropped: {listed_reasons(reasons)}. ",
        *(part for one in many for part in (*one.remedy, " ")),
        "Repair these rows",
        *(more if enough < 1.0 else ()),
        ".",
    )


@dataclass(frozen=True, eq=False)
class RowFault:
    """Rows that break a rule."""

    rule: RowRule
    bad: BoolVector  # which rows
    where: str  # what reasons call the columns
    # what errors are about: the first column, which rows are bad there, and its values
    column: str
    there: BoolVector
    values: NDArray[Any]
    remedy: Text | None = None  # what to do, if not what the rule says

    @classmethod
    def of(
        cls,
        rule: RowRule,
        column: str,
        bad: BoolVector,
        values: NDArray[Any],
        remedy: Text | None = None,
    ) -> RowFault:
        """Return the fault of the values of a single column."""
        return cls(rule, bad, column, column, bad, values, remedy)

    @property
    def example(self) -> Any:
        """Return the smallest of the wrong values, or None if all are missing."""
        wrong = (v for v in self.values[self.there].tolist() if not is_missing(v))
        return min(wrong, key=lambda v: (type(v).__name__, v), default=None)

    @property
    def reason(self) -> str:
        """Return why the rows are dropped."""
        return self.rule.reason_in(self.where)


def count_reasons(
    faults: Iterable[RowFault], counts: NDArray[Any]
) -> tuple[Reasons, BoolVector]:
    """Return how many rows have which fault first, and which have none.

    `counts` says how many rows each row stands for.
    """
    usable = np.ones(counts.size, dtype=bool)
    reasons: Reasons = {}
    for fault in faults:
        number = int(counts[usable & fault.bad].sum())
        if number:
            reasons[fault.reason] = reasons.get(fault.reason, 0) + number
        usable &= ~fault.bad
    return reasons, usable


def raise_first(
    faults: Iterable[RowFault],
    ranges: Iterable[ScaleEvidence],
    counts: NDArray[Any],
    *,
    invalid: int,
    total: int,
    droppable: bool = True,
) -> None:
    """Raise the error of the first fault that rows of an engine have.

    Or, before that, the one about predictions that look like another scale. Rows have
    no numbers to name, so it says how many of the `total` there are and shows one. Of
    more than a million `invalid` rows, not all may be known.
    """
    at_least = "at least " if counts.sum() < invalid else ""
    remedies = {one.name: one.remedy for one in ranges}
    for one in ranges:
        summary = one.summary
        if summary.are_many_outside() or summary.is_clearly_other(one.scale):
            raise one.error()
    for fault in faults:
        number, value = int(counts[fault.there].sum()), fault.example
        if number:
            how_many = f"{at_least}{number:,} of {total:,} rows differ"
            what = f"{how_many}, one is {shown(value)}"
            out_of_range = fault.rule.error is ProbabilityRangeError
            remedy = remedies[fault.where] if out_of_range else fault.remedy
            error = fault.rule.broken(fault.column, what, remedy, value=value)
            raise error.suggest_dropping() if droppable else error


@dataclass(frozen=True)
class ScaleEvidence:
    """The predictions of a model at a glance, and the range that they must keep to."""

    name: str  # what messages call them
    scale: Scale  # what they are to hold
    allowed: tuple[float, float]  # the range, with room for rounding
    summary: ValueSummary

    @property
    def remedy(self) -> Text:
        """Return what the values look like, and the way out."""
        return self.summary.remedy(self.scale, MEASURE_WORDING)

    def error(self) -> InputError:
        """Return the error about predictions that look like another scale."""
        summary = self.summary
        value = float(summary.high if summary.high > self.allowed[1] else summary.low)
        count = f"{summary.outside:,} of {summary.rows:,} rows do not"
        fault = f"{count}, one is {shown(value)}"
        rule = replace(in_range(self.scale), error=ScaleError)
        return rule.broken(self.name, fault, self.remedy, value=value)


def drop_invalid_rows(
    table: MemoryTable, *specs: AggregationSpec
) -> tuple[MemoryTable, Reasons]:
    """Return the table without rows that cannot be used, and how many there were.

    Columns of text with numbers among it are numbers afterwards. Several specs
    are about the same rows, which must be usable for all of them.
    """
    ranges: list[ScaleEvidence] = []
    faults = [fault for one in specs for fault in row_faults(table, one, ranges)]
    if len({fault.bad.size for fault in faults}) > 1:
        _check_same_length(table, specs)
    reasons, usable = count_reasons(faults, np.ones(faults[0].bad.size, dtype=int))
    if table.lines_left_out:
        reasons[LINES_REASON] = table.lines_left_out
    total = usable.size + table.lines_left_out
    check_dropped(reasons, total, specs[0].max_dropped, ranges)
    numbers = {name for one in specs for name in (*one.columns, one.weight)}
    numbers |= {one.y for one in specs if _wants_numbers(one)}

    @cache
    def read(name: str) -> NDArray[Any]:
        column = table.column(name)[usable]
        return _numbers(column) if name in numbers and _is_text(column) else column

    boundaries = np.cumsum([size for _, size in table.parts])[:-1]
    sizes = (int(part.sum()) for part in np.split(usable, boundaries))
    parts = tuple((n, size) for (n, _), size in zip(table.parts, sizes, strict=False))
    return replace(table.take(usable), read=read, parts=parts), reasons


def _check_same_length(table: MemoryTable, specs: Iterable[AggregationSpec]) -> None:
    every = (
        name
        for one in specs
        for name in (one.y, *one.columns, one.weight, one.cluster)
        if name is not None
    )
    check_same_length(**{f"column {name!r}": table.column(name) for name in every})


def row_faults(
    table: MemoryTable,
    spec: AggregationSpec,
    ranges: list[ScaleEvidence],
    counts: NDArray[Any] | None = None,
) -> Iterator[RowFault]:
    """Give the faults of rows in order, including those that no row has.

    Evidence about the scale of predictions out of range is added to `ranges`; `counts`
    says how many rows each row stands for.
    """
    for model in spec.models:
        yield from prediction_faults(table, model, ranges, counts)
    for model in spec.models:
        if model.labels and model.scale != "logit":
            rule = SCALE_RULES[model.scale]
            total = rule.to_prob(_scores(table, model)).sum(axis=1)
            yield RowFault.of(
                sums_to_one(model.scale),
                str(model),
                np.abs(total - 1.0) > ROW_SUM_TOLERANCE,
                total * rule.unit,
                row_sum_remedy(MEASURE_WORDING),
            )
    yield from _label_faults(table.column(spec.y), spec)
    if spec.weight is not None:
        column, weight = f"column {spec.weight!r}", _numbers(table.column(spec.weight))
        yield RowFault.of(FINITE, column, ~np.isfinite(weight), weight)
        yield RowFault.of(NOT_NEGATIVE, column, weight < 0.0, weight)
    if spec.cluster is not None:
        keys = table.keys(spec.cluster)
        without = np.array([is_missing(value) for value in keys.tolist()], dtype=bool)
        yield RowFault.of(HAS_CLUSTER, f"column {spec.cluster!r}", without, keys)


def _scores(table: MemoryTable, model: ModelColumns) -> FloatMatrix:
    return np.stack([_numbers(table.column(name)) for name in model.columns], axis=1)


def prediction_faults(
    table: MemoryTable,
    model: ModelColumns,
    ranges: list[ScaleEvidence],
    counts: NDArray[Any] | None = None,
) -> Iterator[RowFault]:
    """Give the faults of the predictions of a model, as `row_faults` does."""
    scores, scale = _scores(table, model), model.scale

    def fault(rule: RowRule, which: BoolVector) -> RowFault:
        bad, first = np.asarray(which.any(axis=1)), int(which.any(axis=0).argmax())
        name = f"column {model.columns[first]!r}"
        own = which[:, first], scores[:, first]
        return RowFault(rule, bad, str(model), name, *own)

    for name in model.columns:
        column = table.column(name)
        text, example = _text_without_number(column)
        if text.any():
            way = " (remove the percent sign)" if _is_percentage(example) else ""
            such = f"not numbers, such as {shown(example)}{way},"
            rule = RowRule(InputError, "must contain numbers", such)
            yield RowFault.of(rule, f"column {name!r}", text, column)
    missing: BoolVector = ~np.isfinite(scores)
    if scale == "logprob":  # minus infinity is a probability of 0
        missing &= scores != SCALE_RULES[scale].low
    yield fault(FINITE, missing)
    if scale == "logit":
        return
    precision = precision_of_columns(table.column(name).dtype for name in model.columns)
    low, high = allowed = SCALE_RULES[scale].allowed_range(precision)
    outside = (scores < low) | (scores > high)
    if outside.any():
        summary = ValueSummary.of(scores, allowed, counts)
        ranges.append(ScaleEvidence(str(model), scale, allowed, summary))
    yield fault(in_range(scale), outside)


def _wants_numbers(spec: AggregationSpec) -> bool:
    """Tell whether labels are 0 and 1."""
    return spec.pos_label is None and not spec.models[0].labels


def _is_text(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "O":
        return any(isinstance(value, str) for value in column.tolist())
    return column.dtype.kind == "U"


def _label_faults(label: NDArray[Any], spec: AggregationSpec) -> Iterator[RowFault]:
    column = f"column {spec.y!r}"
    remedy = (*MEASURE_WORDING.two_labels, " ", *MEASURE_WORDING.several_labels)
    check_single_labels(label, name=column)
    if _wants_numbers(spec) and _is_text(label):
        text = _text_without_number(label)[0]
        yield RowFault.of(BINARY_LABEL, column, text, label, remedy)
        label = _numbers(label)
    if label.dtype.kind in "fO":
        missing = np.array([is_missing(value) for value in label.tolist()], bool)
        yield RowFault.of(HAS_LABEL, column, missing, label)
    rules = [(class_label(model.labels), set(model.labels)) for model in spec.models]
    if _wants_numbers(spec):
        rules = [(BINARY_LABEL, {0, 1})]
    for rule, known in rules if spec.pos_label is None else ():
        unknown = np.array([value not in known for value in label.tolist()], dtype=bool)
        own = remedy if rule is BINARY_LABEL else None
        yield RowFault.of(rule, column, unknown, label, own)


def _text_without_number(column: NDArray[Any]) -> tuple[BoolVector, Any]:
    """Tell which values are text that is no number, and return one of them.

    One with a percent sign, if there is any.
    """

    def is_other(value: Any) -> bool:
        if not isinstance(value, str) or not value.strip():
            return False
        try:
            float(value)
        except ValueError:
            return True
        return False

    if column.dtype.kind not in "OU":
        return np.zeros(len(column), dtype=bool), None
    values = column.tolist()
    other = np.array([is_other(value) for value in values], dtype=bool)
    examples = [values[row] for row in np.flatnonzero(other)]
    first = examples[0] if examples else None
    return other, next(filter(_is_percentage, examples), first)


def _is_percentage(text: str) -> bool:
    return text.rstrip().endswith("%")


def _numbers(column: NDArray[Any]) -> FloatVector:
    """Return a column as doubles; what is no number is NaN."""

    def as_number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return np.nan

    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return np.array([as_number(value) for value in column.tolist()], dtype=np.float64)
