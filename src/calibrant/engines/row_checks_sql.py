"""Which rows can be used, as SQL, and the error where one cannot.

The same rules, errors and words as at the door of arrays. An engine has no numbers of
rows to name, so it tells how many there are and shows one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.probabilities import row_sum_remedy
from calibrant.core.row_rules import (
    BINARY_LABEL,
    FINITE,
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
    sums_to_one,
)
from calibrant.core.wording import MEASURE_WORDING, shown
from calibrant.engines.aggregation_sql import (
    MAX_EXPONENT,
    balanced_sum,
    code,
    number,
    probability,
    read_columns,
)
from calibrant.engines.dropped_rows import Reasons, ScaleEvidence
from calibrant.exceptions import InputError, ProbabilityRangeError, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import Scale
    from calibrant.engines.aggregation_spec import AggregationSpec, ModelColumns
    from calibrant.engines.duckdb import TypedRows
    from calibrant.engines.spark import SparkTable

    Run: TypeAlias = Callable[[str], Mapping[str, NDArray[Any]]]

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
        (*every, *_label_checks(spec), *_weight_checks(spec)),
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
