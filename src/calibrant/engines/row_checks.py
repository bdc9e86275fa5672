"""Which rows of a table can be used, and the error or the reason where one cannot.

The same rules, errors and words for tables in memory and for SQL. An engine has no
numbers of rows to name, so it tells how many there are and shows one.
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
    MAX_LISTED,
    NOT_NEGATIVE,
    ONE,
    ROW_SUM_TOLERANCE,
    RULES,
    RowRule,
    ValueSummary,
    class_label,
    in_range,
    list_values,
    precision_of,
    sums_to_one,
)
from calibrant.core.wording import MEASURE_WORDING, shown
from calibrant.engines.aggregation_sql import (
    MAX_EXPONENT,
    balanced_sum,
    code,
    group_columns,
    number,
    probability,
    read_columns,
)
from calibrant.exceptions import (
    DroppedRowsError,
    InputError,
    ProbabilityRangeError,
    ScaleError,
    Setting,
    Text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Scale
    from calibrant.engines.aggregation_spec import AggregationSpec, ModelColumns
    from calibrant.engines.duckdb_sources import TypedRows
    from calibrant.engines.memory import MemoryTable
    from calibrant.engines.spark import SparkTable

    Run: TypeAlias = Callable[[str], Mapping[str, NDArray[Any]]]

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
    sizes = [int(part.sum()) for part in np.split(usable, ends)]
    parts = zip(table.parts, sizes, strict=False)
    kept = replace(
        table,
        read=read,
        read_keys=lambda name: table.keys(name)[usable],
        lines_left_out=0,
        parts=tuple((name, size) for (name, _), size in parts),
    )
    return kept, reasons


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


HUGE = 1e300
MANY_COLUMNS = 16
"""More columns of predictions are checked together."""
MAX_DOUBLE = number(np.finfo(np.float64).max)
ALL_MET = -1
"""The number of the first check that a row misses which misses none."""


@dataclass(frozen=True)
class RowCheck:
    """A condition that every row must meet."""

    # a number that is not negative where the condition is met, and negative, NaN,
    # infinite or NULL where not: adding numbers up is faster than combining conditions
    margin: str
    value: str  # what to show of a row that does not meet it
    rule: RowRule
    columns: str  # what messages call the columns
    remedy: Text | None = None  # what to do, if not what the rule says
    model: str = ""  # whose values tell what to do, by what they look like
    # whether another check finds the same rows, with less to say about them
    implied: bool = False

    @property
    def reason(self) -> str:
        """Return why rows are dropped that do not meet the check."""
        return self.rule.reason_in(self.model or self.columns)


@dataclass(frozen=True)
class ScaleEvidenceQuery:
    """The predictions of a model in SQL, and the range that they must keep to."""

    name: str  # what messages call them
    columns: tuple[str, ...]  # what SQL calls them
    scale: Scale  # what they hold
    ends: tuple[float, float]  # ends of the range, with room for rounding

    def of_row(self, place: int) -> list[str]:
        """Return the least and largest value of a row, and the least above 1."""
        finite = [f"CASE WHEN 0 * {x} = 0 THEN {x} END" for x in self.columns]
        one = number(ONE)
        above = [
            f"CASE WHEN 0 * {x} = 0 AND {x} > {one} THEN {x} END" for x in self.columns
        ]
        return [
            f"{_of_any('LEAST', finite)} AS low_{place}",
            f"{_of_any('GREATEST', finite)} AS high_{place}",
            f"{_of_any('LEAST', above)} AS above_{place}",
        ]

    def of_rows(self, place: int) -> list[str]:
        """Return the sums over rows that tell the spread."""
        low, high, above = (f"{name}_{place}" for name in ("low", "high", "above"))
        bounds = [(f"{high} > ", self.ends[1]), (f"{low} < ", self.ends[0])]
        outside = " OR ".join(c + number(end) for c, end in bounds if np.isfinite(end))
        return [
            f"MIN({low}) AS least_{place}",
            f"MAX({high}) AS largest_{place}",
            f"MIN({above}) AS least_above_{place}",
            f"COUNT({low}) AS rows_{place}",
            f"COUNT({above}) AS rows_above_{place}",
            f"SUM(CASE WHEN {outside} THEN 1 ELSE 0 END) AS rows_outside_{place}",
        ]

    def read(self, place: int, result: Mapping[str, NDArray[Any]]) -> ScaleEvidence:
        """Return what predictions look like, from sums over parts of the rows."""

        def column(name: str) -> NDArray[np.float64]:
            values = np.ma.filled(result[f"{name}_{place}"].astype(np.float64), np.nan)
            return np.asarray(values[~np.isnan(values)])

        spread = ValueSummary(
            low=column("least").min(initial=np.inf),
            high=column("largest").max(initial=-np.inf),
            least_above=column("least_above").min(initial=np.inf),
            rows=int(column("rows").sum()),
            above=int(column("rows_above").sum()),
            outside=int(column("rows_outside").sum()),
        )
        return ScaleEvidence(self.name, self.scale, self.ends, spread)


def _of_any(function: str, expressions: Sequence[str]) -> str:
    """Return the least or largest of some expressions, NULL ones aside."""
    return (
        expressions[0]
        if len(expressions) == 1
        else (f"{function}({', '.join(expressions)})")
    )


def _fault(margin: str) -> str:
    """Return a number that is 0 where a margin is not negative."""
    return f"(ABS({margin}) - ({margin}))"


@dataclass(frozen=True)
class SqlRowChecks:
    """What every row must meet."""

    # the conditions, in the order in which the door of arrays checks them
    checks: tuple[RowCheck, ...]
    # what tells whether predictions are on another scale
    ranges: tuple[ScaleEvidenceQuery, ...] = ()
    # numbers like `RowCheck.margin`, of many columns at once, whose own checks are
    # implied
    together: tuple[str, ...] = ()

    def fault_sql(self) -> str:
        """Return a number that is 0 for rows that meet all checks.

        For others it is huge, NaN or NULL.
        """
        margin = [check.margin for check in self.checks if not check.implied]
        parts = [_fault(s) for s in (*self.together, *margin)]
        return f"{balanced_sum(parts)} * {number(HUGE)}"

    def _first_missed(self, source: str, *more: str) -> str:
        """Return the rows with the number of the first check that each misses."""
        missed = " ".join(
            f"WHEN NOT COALESCE({_fault(check.margin)} = 0, FALSE) THEN {place}"
            for place, check in enumerate(self.checks)
        )
        first = f"CASE {missed} ELSE {ALL_MET} END AS missed"
        return f"SELECT {', '.join(['*', first, *more])} FROM {source}"

    def count_sql(self, source: str) -> str:
        """Return the query that counts rows by the first check that they miss."""
        ranges = list(enumerate(self.ranges))
        of_row = [part for place, r in ranges for part in r.of_row(place)]
        of_rows = [part for place, r in ranges for part in r.of_rows(place)]
        parts = ["missed", "COUNT(*) AS n_rows", *of_rows]
        rows = self._first_missed(source, *of_row)
        return f"SELECT {', '.join(parts)} FROM ({rows}) GROUP BY missed"

    def shown_sql(self, source: str, place: int) -> str:
        """Return the query for a value of a row that misses a check first."""
        value = f"MIN({self.checks[place].value}) AS other_low"
        rows = self._first_missed(source)
        return f"SELECT {value} FROM ({rows}) WHERE missed = {place}"


@dataclass(frozen=True)
class RowFaults:
    """How many rows of a source miss each check."""

    rules: SqlRowChecks
    run: Run  # gives the columns of a query's result
    source: str  # what queries call the rows
    rows: int  # all rows
    # number of rows by the number of the first check that they miss
    missed: dict[int, int]
    ranges: tuple[ScaleEvidence, ...]  # what the predictions of each model look like

    @classmethod
    def count(cls, rules: SqlRowChecks, run: Run, source: str) -> RowFaults:
        """Go through the rows."""
        result = run(rules.count_sql(source))
        missed = dict(
            zip(result["missed"].tolist(), result["n_rows"].tolist(), strict=True)
        )
        rows = int(sum(missed.values()))
        missed.pop(ALL_MET, None)
        ranges = [query.read(place, result) for place, query in enumerate(rules.ranges)]
        return cls(rules, run, source, rows, missed, tuple(ranges))

    @property
    def reasons(self) -> Reasons:
        """Return how many rows cannot be used, by reason."""
        reasons: Reasons = {}
        for place, count in sorted(self.missed.items()):
            reason = self.rules.checks[place].reason
            reasons[reason] = reasons.get(reason, 0) + int(count)
        return reasons

    def raise_first(self, *, droppable: bool = True) -> None:
        """Raise the error of the first check that rows miss.

        Or, before that, the one about predictions that look like another scale.
        """
        for one in self.ranges:
            spread = one.spread
            if spread.are_many_outside() or spread.is_clearly_other(one.scale):
                raise one.error()
        if not self.missed:
            return
        place = min(self.missed)
        check, count = self.rules.checks[place], self.missed[place]
        remedies = {one.name: one.remedy for one in self.ranges}
        (value,) = self.run(self.rules.shown_sql(self.source, place))["other_low"]
        value = None if value is np.ma.masked else value
        fault = f"{count:,} of {self.rows:,} rows differ, one is {shown(value)}"
        out_of_range = check.rule.error is ProbabilityRangeError
        remedy = remedies[check.model] if out_of_range else check.remedy
        error = check.rule.broken(check.columns, fault, remedy, value=value)
        raise error.suggest_dropping() if droppable else error


def sql_row_checks(
    spec: AggregationSpec, precision: Mapping[str, float]
) -> SqlRowChecks:
    """Return what every row must meet.

    `precision` is the rounding unit of each column of predictions.
    """
    every, together = _column_checks(spec, precision)
    sums = [_sum_check(spec, m) for m in spec.models if m.labels]
    every += [check for check in sums if check is not None]
    ranges = [_range(spec, model, precision) for model in spec.models]
    return SqlRowChecks(
        (
            *every,
            *_label_checks(spec),
            *_weight_checks(spec),
            *_cluster_checks(spec),
        ),
        tuple(r for r in ranges if r is not None),
        tuple(together),
    )


def _column_checks(
    spec: AggregationSpec, precision: Mapping[str, float]
) -> tuple[list[RowCheck], list[str]]:
    """Return the checks of each column, and those of many columns together."""
    checks: dict[tuple[str, Scale], list[RowCheck]] = {}
    alike: dict[tuple[Scale, float], list[str]] = {}
    for model in spec.models:
        scale, columns = model.scale, read_columns(spec, model)
        for name, column in zip(model.columns, columns, strict=True):
            checks[name, scale] = prediction_checks(
                name, column, precision[name], scale=scale, model=str(model)
            )
            alike.setdefault((scale, precision[name]), []).append(column)
    many = {key: own for key, own in alike.items() if len(own) > MANY_COLUMNS}
    every = [
        replace(check, implied=True) if (scale, precision[name]) in many else check
        for (name, scale), own in checks.items()
        for check in own
    ]
    return every, [
        margin for key, own in many.items() for margin in _together(*key, own)
    ]


def _together(scale: Scale, precision: float, columns: Sequence[str]) -> list[str]:
    """Return numbers that are not negative where many columns meet their checks.

    Engines take long to plan a query with an expression for each column.
    """
    finite = balanced_sum([f"0 * {x}" for x in columns])
    if scale == "logit":
        return [finite]
    low, high = RULES[scale].ends(precision)
    if scale == "logprob":  # minus infinity is a probability of 0
        there = (f"COALESCE({x}, {number(HUGE)})" for x in columns)
        largest = f"LEAST({number(MAX_EXPONENT)}, GREATEST({', '.join(there)}))"
        return [f"{number(1.0 + high)} - EXP({largest})"]
    least, largest = (f"{f}({', '.join(columns)})" for f in ("LEAST", "GREATEST"))
    return [
        finite,
        f"{least} - {number(low)}",
        f"{number(high)} - {largest}",
    ]


def _range(
    spec: AggregationSpec, model: ModelColumns, precision: Mapping[str, float]
) -> ScaleEvidenceQuery | None:
    if model.scale == "logit":
        return None
    ends = RULES[model.scale].ends(max(precision[name] for name in model.columns))
    columns = tuple(read_columns(spec, model))
    return ScaleEvidenceQuery(str(model), columns, model.scale, ends)


def _sum_check(spec: AggregationSpec, model: ModelColumns) -> RowCheck | None:
    """Return the condition on the sum over classes, which logits need not meet."""
    if model.scale == "logit":
        return None
    unit = RULES[model.scale].unit
    columns = [probability(x, model.scale) for x in read_columns(spec, model)]
    total, tolerance = balanced_sum(columns), number(ROW_SUM_TOLERANCE)
    return RowCheck(
        f"{tolerance} - ABS({total} - 1)",
        f"({total}) * {number(unit)}",
        sums_to_one(model.scale),
        str(model),
        row_sum_remedy(MEASURE_WORDING),
    )


def _finite(column: str, name: str, model: str = "") -> RowCheck:
    # Not by ISNAN: statistics in files leave NaN out, and DuckDB trusts them.
    margin = f"0 * {column}"
    return RowCheck(margin, column, FINITE, f"column {name!r}", model=model)


def prediction_rules(name: str, column: str, precision: float) -> SqlRowChecks:
    """Return what a single column of probabilities must meet."""
    model, ends = f"column {name!r}", RULES["prob"].ends(precision)
    checks = prediction_checks(name, column, precision, model=model)
    return SqlRowChecks(
        tuple(checks), (ScaleEvidenceQuery(model, (column,), "prob", ends),)
    )


def prediction_checks(
    name: str, column: str, precision: float, *, model: str, scale: Scale = "prob"
) -> list[RowCheck]:
    """Return the conditions of a column of predictions."""
    finite = _finite(column, name, model)
    if scale == "logit":
        return [finite]
    low, high = RULES[scale].ends(precision)
    within = RowCheck(
        f"({column} - {number(low)}) * ({number(high)} - {column})",
        column,
        in_range(scale),
        f"column {name!r}",
        model=model,
    )
    if scale == "logprob":  # minus infinity is a probability of 0
        there = f"CASE WHEN {column} <= {MAX_DOUBLE} THEN 0 * EXP(-ABS({column})) END"
        finite = replace(finite, margin=there)
        power = f"EXP(LEAST({number(MAX_EXPONENT)}, {column}))"
        within = replace(within, margin=f"{number(1.0 + high)} - {power}")
    return [replace(finite, implied=True), within]


def _label_checks(spec: AggregationSpec) -> list[RowCheck]:
    name, first = f"column {spec.y!r}", code(0)
    there = RowCheck(f"0 * {first}", "label", HAS_LABEL, name, implied=True)
    if spec.models[0].labels:
        codes = [(code(i), model.labels) for i, model in enumerate(spec.models)]
        return [there] + [
            RowCheck(code, "label", class_label(labels), name) for code, labels in codes
        ]
    known = RowCheck(
        f"-ABS({first} * {first} - {first})",
        "label",
        BINARY_LABEL,
        name,
        (*MEASURE_WORDING.two_labels, " ", *MEASURE_WORDING.several_labels),
    )
    return [there, known]


def _weight_checks(spec: AggregationSpec) -> list[RowCheck]:
    if spec.weight is None:
        return []
    finite = _finite("w", spec.weight)
    return [finite, RowCheck("w", "w", NOT_NEGATIVE, finite.columns)]


def _cluster_checks(spec: AggregationSpec) -> list[RowCheck]:
    if spec.cluster is None:
        return []
    column = group_columns(spec)[-1]
    there = f"CASE WHEN {column} IS NULL THEN -1 ELSE 0 END"
    return [RowCheck(there, column, HAS_CLUSTER, f"column {spec.cluster!r}")]


def check_some_numbers(
    table: TypedRows | SparkTable,
    spec: AggregationSpec,
    *,
    numbers_as_text: bool = False,
) -> None:
    """Raise where a column of numbers is none, or labels need to be named.

    With `numbers_as_text`, text will do that may hold numbers.
    """
    known = "biufU" if numbers_as_text else "biuf"
    weights = [] if spec.weight is None else [spec.weight]
    for name in [*spec.columns, *weights]:
        kind = table.dtype_example(name).dtype
        if kind.kind not in known:
            raise InputError.of(
                f"column {name!r}",
                "must contain numbers",
                f"it contains {'text' if kind.kind == 'U' else kind}",
                ("Convert the values to numbers, or choose another column.",),
            )
    binary = not spec.models[0].labels and spec.pos_label is None
    if binary and table.dtype_example(spec.y).dtype.kind not in "biuf":
        values = table.distinct(spec.y, MAX_LISTED + 1)
        if numbers_as_text and not {"0", "1"}.isdisjoint(map(str, values)):
            return
        more = " and more" if len(values) > MAX_LISTED else ""
        two = len(values) <= 2  # noqa: PLR2004
        raise BINARY_LABEL.broken(
            f"column {spec.y!r}",
            f"the distinct values are {list_values(values[:MAX_LISTED])}{more}",
            MEASURE_WORDING.two_labels if two else MEASURE_WORDING.several_labels,
        )
