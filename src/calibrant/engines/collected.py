"""From what an engine's queries gave to the columns of a table of cells."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.labels import check_label_values
from calibrant.core.weights import check_total
from calibrant.core.wording import MEASURES
from calibrant.engines.few_rows import kept_columns
from calibrant.engines.groups import key_values
from calibrant.engines.sql import UNUSABLE, WEIGHTLESS, compares_labels
from calibrant.exceptions import EmptyInputError, WeightError
from calibrant.numerics.cell_grid import cell_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector
    from calibrant.engines.aggregation_spec import AggregationSpec


def check_usable(
    wanted: AggregationSpec, found: Mapping[str, NDArray[Any]], *, told: str
) -> BoolVector:
    """Return which cells hold rows that can be used; raise where there are none.

    Parameters
    ----------
    wanted : AggregationSpec
        What was asked for.
    found : mapping of arrays
        The columns of the query's result.
    told : str
        What errors call the source.

    Returns
    -------
    ndarray of bool
    """
    cell = np.asarray(found["cell"])
    used = np.asarray((cell != UNUSABLE) & (cell != WEIGHTLESS))
    if not used.any():
        rows = np.asarray(found["n_rows"])[_of_first_event(found)]
        _raise_empty(wanted, told, count_unusable(found), int(rows.sum()))
    if compares_labels(wanted):
        _check_two_labels(wanted, found, used)
    if wanted.weight is not None:
        weight, rows = found["weight"][used], found["n_rows"][used]
        check_total(
            float(weight[_of_first_event(found)[used]].sum()),
            float(np.max(weight / rows)),
            name=f"column {wanted.weight!r}",
        )
    return used


def count_unusable(found: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of rows that cannot be used."""
    bad = np.asarray(found["cell"]) == UNUSABLE
    return int(np.asarray(found["n_rows"])[bad & _of_first_event(found)].sum())


def _of_first_event(found: Mapping[str, NDArray[Any]]) -> BoolVector:
    return np.asarray(event_of(found) == 0)


def event_of(found: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the number of the event; where there is one, no query tells it."""
    return np.asarray(found.get("event", np.zeros(len(found["n_rows"]), np.int64)))


def grid_columns(
    found: Mapping[str, NDArray[Any]], used: BoolVector
) -> dict[str, NDArray[Any]]:
    """Return the columns of the cells of a query of `gather_sql`."""
    names = {"n_rows": "rows", "near_end": "near"}
    columns = {
        names.get(name, name): np.asarray(values)[used]
        for name, values in found.items()
        if name not in ("cell", "hashed") and not name.startswith(("by_", "other_"))
    }
    columns["event"] = event_of(found)[used]
    columns["cell"] = cell_numbers(columns["low"])
    return columns


def distinct_columns(
    found: Mapping[str, NDArray[Any]], used: BoolVector
) -> dict[str, NDArray[Any]]:
    """Return the columns of the cells of a query of `distinct_sql`."""
    weight = np.asarray(found["w"])[used] if "w" in found else None
    rows = np.asarray(found["n_rows"])[used].astype(np.int64)
    happened = np.asarray(found["happened"])[used].astype(np.int64)
    kept = kept_columns(np.asarray(found["p"])[used], rows, happened, weight)
    return kept | {"event": event_of(found)[used]}


def _raise_empty(wanted: AggregationSpec, told: str, unusable: int, rows: int) -> None:
    if rows > unusable:
        raise WeightError(
            f"column {wanted.weight!r} must be positive somewhere; all {rows:,} "
            f"weights are 0."
        )
    left = (
        f"none of its {unusable:,} rows can be used" if unusable else "it has no rows"
    )
    raise EmptyInputError(f"{told}: {left}.")


def _check_two_labels(
    wanted: AggregationSpec, found: Mapping[str, NDArray[Any]], used: NDArray[np.bool_]
) -> None:
    others = {
        bytes(value) if isinstance(value, bytearray) else value
        for name in ("other_low", "other_high")
        for value in key_values(found[name][used])
        if value is not None
    }
    happened = np.asarray(found["happened"])[used].sum() > 0
    there = [wanted.pos_label] if happened else []
    check_label_values(
        [*sorted(others), *there],
        pos_label=wanted.pos_label,
        wording=replace(MEASURES, label=f"column {wanted.y!r}"),
    )
