"""Which rows are invalid in SQL, and the error or the reason where one is.

The rules, errors and words are those of tables in memory. An engine has no numbers of
rows to name, so it tells how many there are and shows one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

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
from calibrant.engines.row_checks import ScaleEvidence
from calibrant.exceptions import InputError, ProbabilityRangeError, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import Scale
    from calibrant.engines.aggregation_spec import AggregationSpec
    from calibrant.engines.row_checks import Reasons
    from calibrant.engines.sql_tables import TypedRows

    Run: TypeAlias = Callable[[str], Mapping[str, NDArray[Any]]]

HUGE = 1e300
MAX_DOUBLE = number(np.finfo(np.float64).max)
ALL_MET = -1
"""The number of the first check that a row misses which misses none."""


@dataclass(frozen=True)
class RowCheck:
    """A condition that every row must meet.

    `margin` is a number that is not negative where the condition is met, and negative,
    NaN, infinite or NULL where not: adding numbers up is faster than combining
    conditions.
    """

    margin: str
    value: str  # what to show of a row that does not meet it
    rule: RowRule
    columns: str  # what messages call the columns
    remedy: Text | None = None  # what to do, if not what the rule says
    model: str = ""  # whose values tell what to do, by what they look like


@dataclass(frozen=True)
class ScaleQuery:
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
    several = len(expressions) > 1
    return f"{function}({', '.join(expressions)})" if several else expressions[0]


def _fault(margin: str) -> str:
    """Return a number that is 0 where a margin is not negative."""
    return f"(ABS({margin}) - ({margin}))"


@dataclass(frozen=True)
class SqlRowChecks:
    """What every row must meet."""

    # in the order in which the door of arrays checks it
    checks: tuple[RowCheck, ...]
    # what tells whether predictions are on another scale
    ranges: tuple[ScaleQuery, ...]
    # numbers like `RowCheck.margin` of all conditions, of many columns at once
    margins: tuple[str, ...] = ()

    def fault_sql(self) -> str:
        """Return a number that is 0 for rows that meet all checks.

        For others it is huge, NaN or NULL.
        """
        return f"{balanced_sum(list(map(_fault, self.margins)))} * {number(HUGE)}"

    def first_missed(self, source: str, *more: str) -> str:
        """Return the rows with the number of the first check that each misses."""
        missed = " ".join(
            f"WHEN NOT COALESCE({_fault(check.margin)} = 0, FALSE) THEN {place}"
            for place, check in enumerate(self.checks)
        )
        first = f"CASE {missed} ELSE {ALL_MET} END AS missed"
        return f"SELECT {', '.join(['*', first, *more])} FROM {source}"


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
        ranges = list(enumerate(rules.ranges))
        of_row = [part for place, query in ranges for part in query.of_row(place)]
        of_rows = [part for place, query in ranges for part in query.of_rows(place)]
        counted = ", ".join(["missed", "COUNT(*) AS n_rows", *of_rows])
        rows = rules.first_missed(source, *of_row)
        result = run(f"SELECT {counted} FROM ({rows}) GROUP BY missed")
        places, counts = result["missed"].tolist(), result["n_rows"].tolist()
        missed = dict(zip(places, map(int, counts), strict=True))
        total = sum(missed.values())
        missed.pop(ALL_MET, None)
        seen = tuple(query.read(place, result) for place, query in ranges)
        return cls(rules, run, source, total, missed, seen)

    @property
    def reasons(self) -> Reasons:
        """Return how many rows cannot be used, by reason."""
        reasons: Reasons = {}
        for place, count in sorted(self.missed.items()):
            check = self.rules.checks[place]
            reason = check.rule.reason_in(check.model or check.columns)
            reasons[reason] = reasons.get(reason, 0) + count
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
        rows = self.rules.first_missed(self.source)
        found = f"SELECT MIN({check.value}) AS other_low FROM ({rows})"
        (value,) = self.run(f"{found} WHERE missed = {place}")["other_low"]
        value = None if value is np.ma.masked else value
        fault = f"{count:,} of {self.rows:,} rows differ, one is {shown(value)}"
        out_of_range = check.rule.error is ProbabilityRangeError
        remedies = {one.name: one.remedy for one in self.ranges}
        remedy = remedies[check.model] if out_of_range else check.remedy
        error = check.rule.broken(check.columns, fault, remedy, value=value)
        raise error.suggest_dropping() if droppable else error


def sql_row_checks(
    spec: AggregationSpec, precision: Mapping[str, float]
) -> SqlRowChecks:
    """Return what every row must meet.

    `precision` is the rounding unit of each column of predictions.
    """
    of_columns: dict[tuple[str, Scale], list[RowCheck]] = {}
    alike: dict[tuple[Scale, float], dict[str, None]] = {}
    sums, ranges = [], []
    for model in spec.models:
        scale, columns = model.scale, read_columns(spec, model)
        for name, column in zip(model.columns, columns, strict=True):
            of_columns[name, scale] = prediction_checks(
                name, column, precision[name], scale=scale, model=str(model)
            )
            alike.setdefault((scale, precision[name]), {})[column] = None
        if scale == "logit":  # which may be any number
            continue
        ends = RULES[scale].ends(max(precision[name] for name in model.columns))
        ranges.append(ScaleQuery(str(model), tuple(columns), scale, ends))
        if model.labels:
            sums.append(_sum_check(str(model), columns, scale))
    there, *labels = _label_checks(spec)
    others = [*labels, *_weight_and_cluster_checks(spec)]
    predictions = [check for own in of_columns.values() for check in own]
    together = [m for key, own in alike.items() for m in _together(*key, list(own))]
    return SqlRowChecks(
        (*predictions, *sums, there, *others),
        tuple(ranges),
        (*together, *(check.margin for check in (*sums, *others))),
    )


def _together(scale: Scale, precision: float, columns: list[str]) -> list[str]:
    """Return numbers that are not negative where columns meet their checks.

    Engines take long to plan a query with an expression for each of many columns.
    """
    finite = balanced_sum([f"0 * {x}" for x in columns])
    if scale == "logit":
        return [finite]
    low, high = RULES[scale].ends(precision)
    if scale == "logprob":  # minus infinity is a probability of 0
        there = [f"COALESCE({x}, {number(HUGE)})" for x in columns]
        largest = f"LEAST({number(MAX_EXPONENT)}, {_of_any('GREATEST', there)})"
        return [f"{number(1.0 + high)} - EXP({largest})"]
    if len(columns) == 1:
        return [_within(columns[0], low, high)]
    least, largest = _of_any("LEAST", columns), _of_any("GREATEST", columns)
    return [finite, f"{least} - {number(low)}", f"{number(high)} - {largest}"]


def _within(column: str, low: float, high: float) -> str:
    return f"({column} - {number(low)}) * ({number(high)} - {column})"


def _sum_check(model: str, columns: list[str], scale: Scale) -> RowCheck:
    """Return the condition on the sum over classes."""
    total = balanced_sum([probability(x, scale) for x in columns])
    return RowCheck(
        f"{number(ROW_SUM_TOLERANCE)} - ABS({total} - 1)",
        f"({total}) * {number(RULES[scale].unit)}",
        sums_to_one(scale),
        model,
        row_sum_remedy(MEASURE_WORDING),
    )


def prediction_rules(name: str, column: str, precision: float) -> SqlRowChecks:
    """Return what a single column of probabilities must meet."""
    model, ends = f"column {name!r}", RULES["prob"].ends(precision)
    checks = prediction_checks(name, column, precision, model=model)
    return SqlRowChecks(tuple(checks), (ScaleQuery(model, (column,), "prob", ends),))


def prediction_checks(
    name: str, column: str, precision: float, *, model: str, scale: Scale = "prob"
) -> list[RowCheck]:
    """Return the conditions of a column of predictions."""
    columns = f"column {name!r}"
    # Not by ISNAN: statistics in files leave NaN out, and DuckDB trusts them.
    there = f"0 * {column}"
    if scale == "logit":
        return [RowCheck(there, column, FINITE, columns, model=model)]
    low, high = RULES[scale].ends(precision)
    within = _within(column, low, high)
    if scale == "logprob":  # minus infinity is a probability of 0
        there = f"CASE WHEN {column} <= {MAX_DOUBLE} THEN 0 * EXP(-ABS({column})) END"
        power = f"EXP(LEAST({number(MAX_EXPONENT)}, {column}))"
        within = f"{number(1.0 + high)} - {power}"
    return [
        RowCheck(there, column, FINITE, columns, model=model),
        RowCheck(within, column, in_range(scale), columns, model=model),
    ]


def _label_checks(spec: AggregationSpec) -> list[RowCheck]:
    """Return that there is a label, which the others imply, and that it is known."""
    name, first = f"column {spec.y!r}", code(0)
    there = RowCheck(f"0 * {first}", "label", HAS_LABEL, name)
    if spec.models[0].labels:
        return [there] + [
            RowCheck(code(i), "label", class_label(model.labels), name)
            for i, model in enumerate(spec.models)
        ]
    known = RowCheck(
        f"-ABS({first} * {first} - {first})",
        "label",
        BINARY_LABEL,
        name,
        (*MEASURE_WORDING.two_labels, " ", *MEASURE_WORDING.several_labels),
    )
    return [there, known]


def _weight_and_cluster_checks(spec: AggregationSpec) -> list[RowCheck]:
    checks = []
    if spec.weight is not None:
        name = f"column {spec.weight!r}"
        checks += [
            RowCheck("0 * w", "w", FINITE, name),
            RowCheck("w", "w", NOT_NEGATIVE, name),
        ]
    if spec.cluster is not None:
        column = group_columns(spec)[-1]
        there = f"CASE WHEN {column} IS NULL THEN -1 ELSE 0 END"
        checks.append(RowCheck(there, column, HAS_CLUSTER, f"column {spec.cluster!r}"))
    return checks


def check_some_numbers(
    table: TypedRows,
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
