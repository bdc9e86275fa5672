"""Which rows of a table in memory are invalid, and how many may be dropped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.arrays import check_same_length
from calibrant.core.labels import check_single_labels, is_missing
from calibrant.core.row_rules import (
    BINARY_LABEL,
    FINITE,
    HAS_CLUSTER,
    HAS_LABEL,
    NOT_NEGATIVE,
    ROW_SUM_TOLERANCE,
    RULES,
    ValueSummary,
    in_range,
    precision_of,
    sums_to_one,
)
from calibrant.core.wording import MEASURE_WORDING, shown
from calibrant.exceptions import (
    DroppedRowsError,
    InputError,
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
        if one.spread.is_clearly_other(one.scale, limit):
            raise one.error()
    dropped = sum(reasons.values())
    if dropped <= limit * total:
        return
    enough = round(float(np.ceil(10.0 * dropped / total) / 10.0), 1)
    many = [one for one in ranges if one.spread.are_many_outside(limit)]
    more: Text = (", or allow more to be dropped: ", Setting("max_dropped", enough))
    raise DroppedRowsError(
        f"{dropped:,} of {total:,} rows are invalid, but at most {100 * limit:g} % may "
        f"be dropped: {listed_reasons(reasons)}. ",
        *(part for one in many for part in (*one.remedy, " ")),
        "Repair these rows",
        *(more if enough < 1.0 else ()),
        ".",
    )


@dataclass(frozen=True)
class ScaleEvidence:
    """The predictions of a model at a glance, and the range that they must keep to."""

    name: str  # what messages call them
    scale: Scale  # what they are to hold
    ends: tuple[float, float]  # ends of the range, with room for rounding
    spread: ValueSummary

    @property
    def remedy(self) -> Text:
        """Return what the values look like, and the way out."""
        return self.spread.remedy(self.scale, MEASURE_WORDING)

    def error(self) -> InputError:
        """Return the error about predictions that look like another scale."""
        spread = self.spread
        value = float(spread.high if spread.high > self.ends[1] else spread.low)
        count = f"{spread.outside:,} of {spread.rows:,} rows do not"
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
    faults = [fault for one in specs for fault in _faults(table, one, ranges)]
    if len({bad.size for _, bad in faults}) > 1:
        _check_same_length(table, specs)
    usable = np.ones(faults[0][1].size, dtype=bool)
    reasons: Reasons = {}
    for reason, bad in faults:
        count = int(np.count_nonzero(usable & bad))
        if count:
            reasons[reason] = reasons.get(reason, 0) + count
        usable &= ~bad
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

    ends = np.cumsum([size for _, size in table.parts])[:-1]
    sizes = (int(part.sum()) for part in np.split(usable, ends))
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


def _faults(
    table: MemoryTable, spec: AggregationSpec, ranges: list[ScaleEvidence]
) -> Iterator[tuple[str, BoolVector]]:
    """Give each reason not to use rows, and which have it, in the order of engines.

    What predictions that are out of range look like is added to `ranges`.
    """
    for model in spec.models:
        yield from _prediction_faults(table, model, ranges)
    for model in spec.models:
        if model.labels and model.scale != "logit":
            prob = RULES[model.scale].to_prob(_scores(table, model))
            off = np.abs(prob.sum(axis=1) - 1.0) > ROW_SUM_TOLERANCE
            yield sums_to_one(model.scale).reason_in(str(model)), off
    yield from _label_faults(table.column(spec.y), spec)
    if spec.weight is not None:
        column = f"column {spec.weight!r}"
        weight = _numbers(table.column(spec.weight))
        yield FINITE.reason_in(column), ~np.isfinite(weight)
        yield NOT_NEGATIVE.reason_in(column), weight < 0.0
    if spec.cluster is not None:
        clusters = table.keys(spec.cluster).tolist()
        without = np.array([is_missing(value) for value in clusters], dtype=bool)
        yield HAS_CLUSTER.reason_in(f"column {spec.cluster!r}"), without


def _scores(table: MemoryTable, model: ModelColumns) -> FloatMatrix:
    return np.stack([_numbers(table.column(name)) for name in model.columns], axis=1)


def _prediction_faults(
    table: MemoryTable, model: ModelColumns, ranges: list[ScaleEvidence]
) -> Iterator[tuple[str, BoolVector]]:
    scores, scale = _scores(table, model), model.scale
    for name in model.columns:
        text, example = _text_without_number(table.column(name))
        if text.any():
            way = " (remove the percent sign)" if _is_percentage(example) else ""
            such = f"such as {shown(example)}{way}"
            yield f"not numbers, {such}, in column {name!r}", text
    missing: BoolVector = ~np.isfinite(scores)
    if scale == "logprob":  # minus infinity is a probability of 0
        missing &= scores != RULES[scale].low
    yield FINITE.reason_in(str(model)), _in_row(missing)
    if scale == "logit":
        return
    precision = max(precision_of(table.column(name).dtype) for name in model.columns)
    low, high = ends = RULES[scale].ends(precision)
    outside = (scores < low) | (scores > high)
    if outside.any():
        ranges.append(
            ScaleEvidence(str(model), scale, ends, ValueSummary.of(scores, ends))
        )
    yield in_range(scale).reason_in(str(model)), _in_row(outside)


def _in_row(which: BoolVector) -> BoolVector:
    return np.asarray(which.any(axis=1))


def _wants_numbers(spec: AggregationSpec) -> bool:
    """Tell whether labels are 0 and 1."""
    return spec.pos_label is None and not spec.models[0].labels


def _is_text(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "O":
        return any(isinstance(value, str) for value in column.tolist())
    return column.dtype.kind == "U"


def _label_faults(
    label: NDArray[Any], spec: AggregationSpec
) -> Iterator[tuple[str, BoolVector]]:
    column = f"column {spec.y!r}"
    check_single_labels(label, name=column)
    if _wants_numbers(spec) and _is_text(label):
        yield BINARY_LABEL.reason_in(column), _text_without_number(label)[0]
        label = _numbers(label)
    if label.dtype.kind in "fO":
        missing = np.array([is_missing(value) for value in label.tolist()], bool)
        yield HAS_LABEL.reason_in(column), missing
    known: set[Any] | None = None
    if spec.models[0].labels:
        known = set.intersection(*(set(model.labels) for model in spec.models))
    elif spec.pos_label is None:
        known = {0, 1}
    if known is not None:
        unknown = [value not in known for value in label.tolist()]
        yield BINARY_LABEL.reason_in(column), np.array(unknown, dtype=bool)


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
