"""Groups of rows that share the values of some columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.arrays import refuse_different_lengths
from calibrant._validation.labels import is_missing
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant._typing import IntVector
    from calibrant.engines.memory import MemoryTable


MISSING = "(missing)"
"""What rows without a value of a group are called."""


@dataclass(frozen=True, eq=False)
class Group:
    """Rows with the same values.

    Attributes
    ----------
    key : dict
        The value of each grouping column; empty for the group of all rows.
    rows : ndarray or slice
        Which rows.
    """

    key: dict[str, Any]
    rows: IntVector | slice

    def __str__(self) -> str:
        return ", ".join(f"{name}={told(value)}" for name, value in self.key.items())

    @property
    def name(self) -> str:
        """Return the value of the group, with its column where there are several."""
        values = list(self.key.values())
        return told(values[0]) if len(values) == 1 else str(self)


def told(value: Any) -> str:
    """Return the value of a group as text; a missing one is like no text.

    Examples
    --------
    >>> told(None), told("None"), told("(missing)")
    ('(missing)', 'None', "'(missing)'")
    """
    if value is None:
        return MISSING
    return repr(value) if value == MISSING else str(value)


def group_columns(by: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns of groups as a tuple, however many were named.

    Examples
    --------
    >>> group_columns("region"), group_columns(["region", "day"]), group_columns(None)
    (('region',), ('region', 'day'), ())
    """
    return (by,) if isinstance(by, str) else tuple(by or ())


def group_rows(table: MemoryTable, by: Sequence[str]) -> list[Group]:
    """Return the groups in order of their values; one of all rows without columns.

    Examples
    --------
    >>> from calibrant.engines.memory import open_table
    >>> table = open_table({"region": np.array(["b", "a", "b"])})
    >>> [str(group) for group in group_rows(table, ["region"])]
    ['region=a', 'region=b']
    """
    if not by:
        return [Group({}, slice(None))]
    columns = {name: table.column(name) for name in by}
    refuse_different_lengths(**columns)
    keys, code = numbered_keys([key_values(column) for column in columns.values()], by)
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(keys)))[:-1]
    return [
        Group(dict(zip(by, key, strict=True)), part)
        for key, part in zip(keys, np.split(order, ends), strict=True)
    ]


def numbered_keys(
    columns: Sequence[list[Any]], by: Sequence[str]
) -> tuple[tuple[tuple[Any, ...], ...], IntVector]:
    """Return the distinct rows of some columns, in order, and the number of each row.

    Examples
    --------
    >>> numbered_keys([["b", "a", "b"]], ["region"])
    ((('a',), ('b',)), array([1, 0, 1]))
    """
    rows = list(zip(*columns, strict=True))
    try:
        distinct = sorted(set(rows), key=_order)
    except TypeError:
        raise OptionError(f"by must name columns of plain values; got {by}.") from None
    number = {key: place for place, key in enumerate(distinct)}
    return tuple(distinct), np.array([number[row] for row in rows], dtype=np.intp)


def key_values(column: NDArray[Any]) -> list[Any]:
    """Return the values of a column; whatever stands for a missing one is None."""
    return [None if is_missing(value) else value for value in column.tolist()]


def _order(key: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Sort values of one type among themselves, missing ones among their names."""
    return [(type(v).__name__, str(v) if v is None else v) for v in key]
