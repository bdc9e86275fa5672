"""Groups of rows that share the values of some columns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.arrays import refuse_different_lengths
from calibrant._validation.labels import is_missing
from calibrant.exceptions import OptionError, SmallSampleWarning
from calibrant.measures.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant._typing import IntVector
    from calibrant.engines.memory import MemoryTable


MOST_NAMED = 5
"""How many groups a warning names."""


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
        return ", ".join(f"{name}={value}" for name, value in self.key.items())


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
    rows = list(zip(*(_values(column) for column in columns.values()), strict=True))
    try:
        distinct = sorted(set(rows), key=_order)
    except TypeError:
        raise OptionError(f"by must name columns of plain values; got {by}.") from None
    number = {key: place for place, key in enumerate(distinct)}
    code = np.array([number[row] for row in rows], dtype=np.intp)
    order = np.argsort(code, kind="stable")
    ends = np.cumsum(np.bincount(code, minlength=len(number)))[:-1]
    return [
        Group(dict(zip(by, key, strict=True)), part)
        for key, part in zip(number, np.split(order, ends), strict=True)
    ]


def refuse_reserved(by: Sequence[str], others: Iterable[str] = ()) -> None:
    """Refuse group columns that would be overwritten by the results."""
    reserved = {"model", *(f.name for f in fields(Estimate)), *others}
    taken = [name for name in by if name in reserved]
    if taken:
        raise OptionError(
            f"by must not name a column called like a result; rename {taken[0]!r}."
        )


@dataclass
class LeftOut:
    """Groups that could not be used, for one warning about all of them.

    Attributes
    ----------
    reasons : dict
        Why, by the name of the group.
    """

    reasons: dict[str, str] = field(default_factory=dict)
    nothing_left = (
        "no group has as many rows as the methods need; use fewer bins, or larger "
        "groups."
    )

    def add(self, group: Group, reason: Exception) -> None:
        """Note a group; the same group of several models counts once."""
        self.reasons.setdefault(str(group), str(reason))

    def warn(self, *, stacklevel: int) -> None:
        """Warn once, however many groups there are."""
        names = list(self.reasons)
        if not names:
            return
        first = self.reasons[names[0]]
        if len(names) == 1:
            told = f"group {names[0]} is left out: {first}"
        else:
            more = f" and {len(names) - MOST_NAMED} more" * (len(names) > MOST_NAMED)
            told = (
                f"{len(names)} groups are left out: "
                f"{'; '.join(names[:MOST_NAMED])}{more}. Why the first: {first}"
            )
        warnings.warn(told, SmallSampleWarning, stacklevel=stacklevel)


def _values(column: NDArray[Any]) -> list[Any]:
    """Return the values of a column; whatever stands for a missing one is None."""
    return [None if is_missing(value) else value for value in column.tolist()]


def _order(key: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Sort values of one type among themselves, missing ones among their names."""
    return [(type(v).__name__, str(v) if v is None else v) for v in key]
