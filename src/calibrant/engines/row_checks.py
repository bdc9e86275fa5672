"""Which rows can be used, as SQL, and the error where one cannot.

The same rules, errors and words as at the door of arrays. An engine has no numbers of
rows to name, so it tells how many there are and shows one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from calibrant._validation.probabilities import PERCENT, ROW_SUM_TOLERANCE, ULPS
from calibrant._validation.wording import MEASURES, shown
from calibrant.engines.sql import added, code, number, read_columns
from calibrant.exceptions import (
    InputError,
    LabelError,
    MissingValueError,
    ProbabilityRangeError,
    RowSumError,
    WeightError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant._typing import Scale
    from calibrant.engines.gathering import Gathering

    Run: TypeAlias = Callable[[str], Mapping[str, NDArray[Any]]]

HUGE = 1e300
MANY_COLUMNS = 16
"""More columns of predictions are checked together."""
MOST_SHOWN = 6
"""How many labels an error lists."""


class TypedTable(Protocol):
    """A table that knows the types of its columns."""

    def like(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type that a column holds."""
        ...

    def distinct(self, name: str, most: int) -> list[Any]:
        """Return some of the distinct values of a column, in order."""
        ...


@dataclass(frozen=True)
class RowCheck:
    """A condition that every row must meet.

    Attributes
    ----------
    holds : str
        The condition; NULL counts as not met.
    spare : str
        A number that is not negative where the condition is met, and negative, NaN or
        NULL where not: adding numbers up is faster than combining conditions.
    value : str
        What to show of a row that does not meet it.
    error : type
        What is raised.
    must, way_out : str
        What the column must be, and what to do.
    implied : bool
        Whether a later check would find the same rows, with less to say about them.
    """

    holds: str
    spare: str
    value: str
    error: type[InputError]
    must: str
    way_out: str
    implied: bool = False


def row_checks(wanted: Gathering, precision: Mapping[str, float]) -> list[RowCheck]:
    """Return all conditions, in the order in which the door of arrays checks them.

    `precision` is the rounding unit of each column of predictions.
    """
    checks = []
    for place, column in enumerate(wanted.columns):
        checks += prediction_checks(
            column, f"x_{place}", precision[column], scale=wanted.scale
        )
    if len(wanted.columns) > MANY_COLUMNS and len(set(precision.values())) == 1:
        columns = [f"x_{place}" for place in range(len(wanted.columns))]
        checks = _found_together(checks, columns, next(iter(precision.values())))
    for model in wanted.models:
        if model.labels and wanted.scale == "prob":
            total = added(read_columns(wanted, model))
            checks.append(
                RowCheck(
                    f"ABS({total} - 1) <= {number(ROW_SUM_TOLERANCE)}",
                    f"{number(ROW_SUM_TOLERANCE)} - ABS({total} - 1)",
                    total,
                    RowSumError,
                    f"each row of {model} must sum to 1 (within {ROW_SUM_TOLERANCE:g})",
                    f"Normalise the rows, or pass all class columns. {MEASURES.logits}",
                )
            )
    return [*checks, *_label_checks(wanted), *_weight_checks(wanted)]


def _found_together(
    checks: Sequence[RowCheck], columns: Sequence[str], precision: float
) -> list[RowCheck]:
    """Return the checks of many columns, whose rows are found by few expressions.

    Engines take long to plan a query with many. Two of them stand for the range of all
    columns, and one for missing values.
    """
    spare = [f"0 * {added(columns)}"]
    if any(check.error is ProbabilityRangeError for check in checks):
        slack, every = ULPS * precision, ", ".join(columns)
        spare += [f"LEAST({every}) + {number(slack)}"]
        spare += [f"{number(1.0 + slack)} - GREATEST({every})"]
    one_by_one = [replace(check, implied=True) for check in checks]
    # Those that miss them miss a check of one column, which is told.
    together = [replace(checks[0], holds="TRUE", spare=s, implied=False) for s in spare]
    return [*one_by_one, *together]


def _finite(column: str, name: str) -> RowCheck:
    # Not by ISNAN: statistics in files leave NaN out, and DuckDB trusts them.
    return RowCheck(
        f"0 * {column} = 0",
        f"0 * {column}",
        column,
        MissingValueError,
        f"column {name!r} must not hold missing or infinite values",
        "Drop or repair these rows first.",
    )


def prediction_checks(
    name: str, column: str, precision: float, *, scale: Scale = "prob"
) -> list[RowCheck]:
    """Return the conditions of a column of predictions."""
    finite = _finite(column, name)
    if scale == "logit":
        return [finite]
    slack = ULPS * precision
    within = RowCheck(
        f"{column} >= {number(-slack)} AND {column} <= {number(1.0 + slack)}",
        f"({column} + {number(slack)}) * ({number(1.0 + slack)} - {column})",
        column,
        ProbabilityRangeError,
        f"column {name!r} must hold probabilities in [0, 1]",
        MEASURES.logits,
    )
    return [replace(finite, implied=True), within]


def _label_checks(wanted: Gathering) -> list[RowCheck]:
    name = f"column {wanted.y!r}"
    first = code(0)
    there = RowCheck(
        f"0 * {first} = 0",
        first,
        "label",
        MissingValueError,
        f"{name} must not hold missing values",
        "Drop these rows first.",
        implied=True,
    )
    if not wanted.models[0].labels:
        known = RowCheck(
            f"{first} = 0 OR {first} = 1",
            f"-ABS({first} * {first} - {first})",
            "label",
            LabelError,
            f"{name} must hold binary labels, 0 and 1",
            f"{MEASURES.two_labels} {MEASURES.several_labels}",
        )
        return [there, known]
    classes = [
        RowCheck(
            f"{code(place)} >= 0",
            code(place),
            "label",
            LabelError,
            f"{name} must hold the classes "
            f"{', '.join(map(shown, model.labels[:MOST_SHOWN]))}"
            + (" ..." if len(model.labels) > MOST_SHOWN else ""),
            "State the class of each probability column, in order: labels=[...]",
        )
        for place, model in enumerate(wanted.models)
    ]
    return [there, *classes]


def _weight_checks(wanted: Gathering) -> list[RowCheck]:
    if wanted.weight is None:
        return []
    positive = RowCheck(
        "w >= 0",
        "w",
        "w",
        WeightError,
        f"column {wanted.weight!r} must not be negative",
        "Weights are counts.",
    )
    return [_finite("w", wanted.weight), positive]


def precision_of(like: NDArray[Any]) -> float:
    """Return the rounding unit of a column; whole numbers have that of doubles."""
    return float(np.finfo(like.dtype if like.dtype.kind == "f" else np.float64).eps)


def fault_sql(checks: Sequence[RowCheck]) -> str:
    """Return a number that is 0 for rows that meet all checks.

    For others it is huge, NaN or NULL.
    """
    spare = [check.spare for check in checks if not check.implied]
    return f"{added([f'(ABS({s}) - ({s}))' for s in spare])} * {number(HUGE)}"


def _first_missed(checks: Sequence[RowCheck], source: str) -> str:
    """Return the rows with the number of the first check that each misses."""
    cases = " ".join(
        f"WHEN NOT COALESCE({check.holds}, FALSE) THEN {place}"
        for place, check in enumerate(checks)
    )
    return f"(SELECT *, CASE {cases} ELSE {len(checks)} END AS missed FROM {source})"


def raise_first(
    checks: Sequence[RowCheck], run: Run, source: str, *, droppable: bool = True
) -> None:
    """Raise the error of the first check that rows miss.

    `run` gives the columns of a query's result. Only rows that meet all checks before
    count.
    """
    rows = _first_missed(checks, source)
    found = run(f"SELECT MIN(missed) AS cell, COUNT(*) AS n_rows FROM {rows}")
    place, total = int(found["cell"][0]), int(found["n_rows"][0])
    if place == len(checks):
        return
    check = checks[place]
    shown_of = f"MIN({check.value}) AS other_low, MAX({check.value}) AS other_high"
    query = f"SELECT COUNT(*) AS n_rows, {shown_of} FROM {rows} WHERE missed = {place}"
    found = run(query)
    low, high = (_plain(found[name][0]) for name in ("other_low", "other_high"))
    leave_out = ' To leave such rows out pass bad_rows="drop".' if droppable else ""
    raise check.error(
        f"{check.must}; {int(found['n_rows'][0]):,} of {total:,} rows differ, one is "
        f"{shown(low)}. {_percent(check, low, high)}{check.way_out}{leave_out}"
    )


def _plain(value: Any) -> Any:
    return None if value is np.ma.masked else value


def _percent(check: RowCheck, low: Any, high: Any) -> str:
    if check.error is ProbabilityRangeError and low >= 0.0 and high <= PERCENT:
        return "If these are percentages, divide by 100. "
    return ""


def refuse_no_numbers(
    table: TypedTable, wanted: Gathering, *, numbers_as_text: bool = False
) -> None:
    """Raise where a column of numbers is none, or labels need to be named.

    With `numbers_as_text`, text will do that may hold numbers.
    """
    known = "biufU" if numbers_as_text else "biuf"
    weights = [] if wanted.weight is None else [wanted.weight]
    for name in [*wanted.columns, *weights]:
        kind = table.like(name).dtype
        if kind.kind not in known:
            told = "text" if kind.kind == "U" else str(kind)
            raise InputError(
                f"column {name!r} must hold numbers; it holds {told}. Convert the "
                f"column, or pass another one."
            )
    binary = not wanted.models[0].labels and wanted.pos_label is None
    if binary and table.like(wanted.y).dtype.kind not in "biuf":
        found = table.distinct(wanted.y, MOST_SHOWN + 1)
        if numbers_as_text and not {"0", "1"}.isdisjoint(map(str, found)):
            return
        listed = ", ".join(map(shown, found[:MOST_SHOWN]))
        more = " and more" if len(found) > MOST_SHOWN else ""
        two = len(found) <= 2  # noqa: PLR2004
        raise LabelError(
            f"column {wanted.y!r} must hold binary labels, 0 and 1; the distinct "
            f"values are {listed}{more}. "
            f"{MEASURES.two_labels if two else MEASURES.several_labels}"
        )
