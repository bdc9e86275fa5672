"""What an engine's query reads, and from what it gave to a table of cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.labels import refuse_other_labels
from calibrant._validation.wording import MEASURES
from calibrant.engines.cells import CellOrigin, CellTable, cell_table
from calibrant.engines.groups import key_values, numbered_keys
from calibrant.engines.sql import UNUSABLE, WEIGHTLESS, code, compares_labels
from calibrant.exceptions import EmptyInputError, InputError, WeightError
from calibrant.numerics.cell_grid import ROOTS, cell_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from calibrant.engines.gathering import Gathering, WatchedModel


def collected_cells(
    wanted: Gathering,
    found: Mapping[str, NDArray[Any]],
    *,
    told: str,
    diagnose: Callable[[], None],
) -> CellTable:
    """Return the cells that a query found.

    Parameters
    ----------
    wanted : Gathering
        What was asked for.
    found : mapping of arrays
        The columns of the query's result.
    told : str
        What errors call the source.
    diagnose : callable
        Raises the error about rows that cannot be used.

    Returns
    -------
    CellTable
        Without rows that cannot be used or have no weight.
    """
    cell, rows = np.asarray(found["cell"]), np.asarray(found["n_rows"])
    first = np.asarray(found["event"]) == 0
    unusable = int(rows[first & (cell == UNUSABLE)].sum())
    if unusable and wanted.bad_rows == "raise":
        diagnose()
        raise InputError(
            f'{told}: {unusable:,} rows cannot be used; pass bad_rows="drop".'
        )
    used = (cell != UNUSABLE) & (cell != WEIGHTLESS)
    if not used.any():
        _raise_empty(wanted, told, unusable, int(rows[first].sum()))
    if compares_labels(wanted):
        _refuse_third_label(wanted, found, used)
    columns = {name: np.asarray(values)[used] for name, values in found.items()}
    interval, root = np.divmod(columns["cell"].astype(np.int64), ROOTS)
    columns["cell"] = cell_of(interval, root)
    columns["rows"], columns["near"] = columns.pop("n_rows"), columns.pop("near_end")
    groups: tuple[tuple[Any, ...], ...] = ((),)
    columns["group"] = np.zeros(columns["cell"].size, dtype=np.int64)
    if wanted.by:
        by = [key_values(found[f"by_{i}"][used]) for i in range(len(wanted.by))]
        groups, columns["group"] = numbered_keys(by, wanted.by)
    weighted = wanted.weight is not None
    origin = CellOrigin(wanted.task, wanted.events, wanted.by, weighted)
    return cell_table(origin, groups, columns, unusable)


def _raise_empty(wanted: Gathering, told: str, unusable: int, rows: int) -> None:
    if rows > unusable:
        raise WeightError(
            f"column {wanted.weight!r} must be positive somewhere; all {rows:,} "
            f"weights are 0."
        )
    left = (
        f"none of its {unusable:,} rows can be used" if unusable else "it has no rows"
    )
    raise EmptyInputError(f"{told}: {left}.")


def _refuse_third_label(
    wanted: Gathering, found: Mapping[str, NDArray[Any]], used: NDArray[np.bool_]
) -> None:
    others = {
        value
        for name in ("other_low", "other_high")
        for value in key_values(found[name][used])
        if value is not None
    }
    happened = np.asarray(found["happened"])[used].sum() > 0
    there = [wanted.pos_label] if happened else []
    refuse_other_labels(
        [*sorted(others), *there],
        pos_label=wanted.pos_label,
        wording=replace(MEASURES, label=f"column {wanted.y!r}"),
    )


def comparable(labels: Iterable[Any], like: NDArray[Any]) -> list[tuple[int, Any]]:
    """Return number and value of the labels that a column of that type can hold.

    Text is not a number, whatever it looks like.

    Examples
    --------
    >>> comparable(["1", 1], np.empty(0, dtype=int))
    [(1, 1)]
    """
    text = like.dtype.kind == "U"
    anything = like.dtype.kind in "OM"
    plain = (v.item() if isinstance(v, np.generic) else v for v in labels)
    return [
        (place, value)
        for place, value in enumerate(plain)
        if anything or isinstance(value, str) == text
    ]


@dataclass(frozen=True)
class LabelCases:
    """The number of a label's class, as the cases that a query tells apart.

    Attributes
    ----------
    known : tuple of (value, float)
        Labels and their numbers.
    otherwise : float
        The number of any other label that is there; one that is missing has none.
    """

    known: tuple[tuple[Any, float], ...]
    otherwise: float


def label_cases(
    wanted: Gathering, model: WatchedModel, like: NDArray[Any]
) -> LabelCases | None:
    """Return the cases for a model; None where labels are numbers themselves.

    The event is 1 and all else 0; or classes have their places, and all else -1.
    """
    if model.labels:
        places = comparable(model.labels, like)
        return LabelCases(tuple((v, float(place)) for place, v in places), -1.0)
    if wanted.pos_label is None:
        return None
    event = comparable([wanted.pos_label], like)
    return LabelCases(tuple((v, 1.0) for _, v in event), 0.0)


def prepared_columns(
    wanted: Gathering,
    *,
    column: Callable[[str], Any],
    number: Callable[[str], Any],
    label_code: Callable[[WatchedModel], Any],
) -> list[Any]:
    """Return the columns that the query of `sql` reads, with names of our own.

    Parameters
    ----------
    wanted : Gathering
        What is to be gathered.
    column, number : callable
        From a name to the engine's expression of a column, as it is or as a number.
    label_code : callable
        From a model to the expression of its `label_cases`.

    Returns
    -------
    list
        Expressions of the engine.
    """
    chosen = [column(name).alias(f"by_{i}") for i, name in enumerate(wanted.by)]
    chosen += [number(name).alias(f"x_{i}") for i, name in enumerate(wanted.columns)]
    chosen += [label_code(m).alias(code(i)) for i, m in enumerate(wanted.models)]
    chosen.append(column(wanted.y).alias("label"))
    if wanted.weight is not None:
        chosen.append(number(wanted.weight).alias("w"))
    return chosen
