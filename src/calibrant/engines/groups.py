"""Groups of rows that share the values of some columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.arrays import check_same_length
from calibrant.core.labels import is_missing
from calibrant.core.warn import warn
from calibrant.exceptions import (
    Argument,
    MissingGroupWarning,
    OptionError,
    SmallSampleWarning,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import IntVector
    from calibrant.engines.memory import MemoryTable

Keys: TypeAlias = tuple[tuple[Any, ...], ...]
"""Values of the columns of groups, one tuple per group."""
MISSING = "(missing)"
"""What rows without a value of a group are called."""
NEVER_MISSING = "biuU"
"""Kinds of columns in which no value is missing."""
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Whole numbers as Python writes them."""


@dataclass(frozen=True, eq=False)
class Group:
    """Rows with the same values."""

    # the value of each grouping column; empty for the group of all rows
    key: dict[str, Any]
    rows: IntVector | slice

    def __str__(self) -> str:
        pairs = self.key.items()
        return ", ".join(f"{name}={format_group_value(value)}" for name, value in pairs)

    @property
    def name(self) -> str:
        """Return the value of the group, with its column where there are several."""
        values = list(self.key.values())
        return format_group_value(values[0]) if len(values) == 1 else str(self)


def format_group_value(value: Any) -> str:
    """Return the value of a group as text; no text looks like a missing one.

    >>> [format_group_value(value) for value in (None, "None", "(missing)")]
    ['(missing)', 'None', "'(missing)'"]
    """
    if value is None:
        return MISSING
    return repr(value) if value == MISSING else str(value)


def warn_of_missing(rows: Iterable[tuple[Mapping[str, Any], float]]) -> None:
    """Warn once of rows without a value of their group; keys come with their rows."""
    missing = [
        ([name for name, value in key.items() if value is None], number)
        for key, number in rows
    ]
    columns = dict.fromkeys(name for names, _ in missing for name in names)
    if columns:
        total = sum(number for names, number in missing if names)
        is_one = total == 1.0
        warn(
            f"{total:,.10g} row{' has' if is_one else 's have'} no value of "
            f"{' or '.join(columns)}; {'it is' if is_one else 'they are'} in a group "
            f"called {MISSING}. Remove such rows to leave them out.",
            MissingGroupWarning,
        )


def warn_of_weightless(groups: Sequence[Group]) -> None:
    """Warn once of groups that are skipped because they have no weight."""
    if groups:
        more = f" and {len(groups) - 1} more" if groups[1:] else ""
        warn(
            f"rows of {groups[0]}{more} all have weight 0 and are skipped.",
            SmallSampleWarning,
        )


def group_columns(
    by: str | Sequence[str] | None, *, name: str = "by"
) -> tuple[str, ...]:
    """Return the columns of groups as a tuple, however many were named."""
    columns = (by,) if isinstance(by, str) else tuple(by or ())
    for column in columns:
        if columns.count(column) > 1:
            raise OptionError(
                Argument(name), f" names the column {column!r} twice; name it once."
            )
    return columns


def group_rows(table: MemoryTable, by: Sequence[str]) -> list[Group]:
    """Return the groups in order of their values; one of all rows without columns."""
    if not by:
        return [Group({}, slice(None))]
    columns = {name: table.keys(name) for name in by}
    check_same_length(**columns)
    keys, code = numbered_keys([key_values(column) for column in columns.values()], by)
    if table.is_text:
        keys = plain_keys(keys)
    order = np.argsort(code, kind="stable")
    boundaries = np.cumsum(np.bincount(code, minlength=len(keys)))[:-1]
    return [
        Group(dict(zip(by, key, strict=True)), part)
        for key, part in zip(keys, np.split(order, boundaries), strict=True)
    ]


def numbered_keys(
    columns: Sequence[list[Any]], by: Sequence[str], n_rows: int = 0
) -> tuple[Keys, IntVector]:
    """Return the distinct rows of some columns, in order, and the number of each row.

    Without columns all `n_rows` rows are one group.
    """
    if not columns:
        return ((),), np.zeros(n_rows, dtype=np.intp)
    try:
        return numbered_rows(list(zip(*columns, strict=True)))
    except TypeError:
        raise OptionError(
            "groups must be named by simple values (text, numbers, dates); those of "
            f"{', '.join(map(repr, by))} are not."
        ) from None


def numbered_rows(rows: Sequence[tuple[Any, ...]]) -> tuple[Keys, IntVector]:
    """Return the distinct rows in order, and the number of each row.

    >>> numbered_rows([("b",), ("a",), ("b",)])
    ((('a',), ('b',)), array([1, 0, 1]))
    """
    first: dict[tuple[Any, ...], int] = {}
    code = np.array([first.setdefault(row, len(first)) for row in rows], dtype=np.intp)
    distinct = sorted(first, key=lambda key: [_sort_key(value) for value in key])
    place = np.empty(len(first), dtype=np.intp)
    place[[first[key] for key in distinct]] = np.arange(len(first))
    return tuple(distinct), place[code]


def key_values(column: NDArray[Any]) -> list[Any]:
    """Return the values of a column; whatever stands for a missing one is None.

    Engines return bytes as arrays, which name neither group nor label.
    """
    values: list[Any] = column.tolist()
    if column.dtype.kind in NEVER_MISSING:
        return values
    plain = (bytes(v) if isinstance(v, bytearray) else v for v in values)
    return [None if is_missing(value) else value for value in plain]


def plain_keys(keys: Keys) -> Keys:
    """Return text as whole numbers where a column of a text file has nothing else.

    >>> plain_keys((("2023", "7"), ("2024", "007")))
    ((2023, '7'), (2024, '007'))
    """
    columns = [list(column) for column in zip(*keys, strict=True)]
    for place, column in enumerate(columns):
        if all(value is None or _is_whole(value) for value in column):
            columns[place] = [None if v is None else int(v) for v in column]
    return tuple(zip(*columns, strict=True)) if columns else keys


def alike_keys(parts: Sequence[Keys]) -> list[list[tuple[Any, ...]]]:
    """Return the keys of parts; whole numbers are text where other parts have text.

    Whether text can be read as whole numbers may differ from file to file.

    >>> alike_keys([((7,), (8,)), (("007",), ("7",))])
    [[('7',), ('8',)], [('007',), ('7',)]]
    """
    columns = zip(*(key for keys in parts for key in keys), strict=True)
    text = [any(isinstance(v, str) for v in column) for column in columns]
    return [
        [
            tuple(
                str(v) if is_text and type(v) is int else v
                for v, is_text in zip(key, text, strict=True)
            )
            for key in keys
        ]
        for keys in parts
    ]


def _is_whole(value: Any) -> bool:
    return isinstance(value, str) and WHOLE_NUMBER.fullmatch(value) is not None


def _sort_key(value: Any) -> tuple[str, Any]:
    """Return what sorts values of one type among themselves, missing ones by name."""
    if value is None:
        return "NoneType", "None"
    if _is_whole(value):  # 9 comes before 10, be it text or not
        return "int", int(value)
    return type(value).__name__, value
