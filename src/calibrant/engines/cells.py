"""WeightedPoints cells: the small table that stands for all rows, wherever they live.

Tables of different days, files or machines add up, as all have the cells of one grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.few_rows import are_few
from calibrant.engines.groups import alike_keys, numbered_rows
from calibrant.exceptions import (
    EmptyInputError,
    OptionError,
    UnknownNameError,
)
from calibrant.numerics.cell_grid import CellSums

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, IntVector
    from calibrant.core.sample import BinarySample

COUNTS = ("group", "event", "cell", "rows", "happened")
"""Columns of whole numbers."""
SUMS = ("near", "low", "high")
WEIGHTED_SUMS = ("weight", "weight_happened", "weight_squared")
"""Columns that are there if rows have weights."""
SMALLEST, LARGEST = ("low",), ("high",)
KEYS = ("group", "event", "cell")


@dataclass(frozen=True)
class CellOrigin:
    """What cells were gathered from; only those of the same kind add up.

    Attributes
    ----------
    task : str
        Name of the task.
    events : tuple of (str, str)
        Model and name of each event.
    by : tuple of str
        Columns of groups.
    weighted : bool
        Whether rows have weights.
    model_column : str
        The column of groups that names the model of each row; empty without.
    """

    task: str
    events: tuple[tuple[str, str], ...]
    by: tuple[str, ...] = ()
    weighted: bool = False
    model_column: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that a table of such cells has."""
        return (*COUNTS, *SUMS, *(WEIGHTED_SUMS if self.weighted else ()))


@dataclass(frozen=True, eq=False, repr=False)
class AggregatedCells:
    """Sums over the rows of each cell, per group and event.

    Where rows are few, those of a cell are alike: nothing is lost. Where they are many,
    a cell holds all rows within it.

    Attributes
    ----------
    origin : CellOrigin
        What was gathered.
    groups : tuple of tuple
        Values of the group columns of each group.
    columns : dict of ndarray
        Equally long columns: number of the group, of the event and of the cell; number
        of rows and of those in which the event happened; sum of (weighted) distances of
        predictions to the nearer end of [0, 1], their least and largest; and where rows
        have weights their sum, that over rows in which the event happened, and that of
        squared weights.
    dropped : int
        Rows that could not be used.
    reasons : dict
        How many of these there were by reason, known until tables are added or saved.

    Examples
    --------
    >>> from calibrant.engines.aggregation_spec import AggregationSpec, WatchedModel
    >>> from calibrant.engines.memory import open_table
    >>> models = (WatchedModel("p", ("p",)),)
    >>> wanted = AggregationSpec(models=models, y="y", by=("day",))
    >>> monday = {"day": ["Mo", "Mo", "Mo"], "y": [0, 1, 1], "p": [0.2, 0.7, 0.7]}
    >>> tuesday = {"day": ["Tu", "Tu"], "y": [0, 1], "p": [0.2, 0.9]}
    >>> both = [open_table(day).aggregate(wanted) for day in (monday, tuesday)]
    >>> both[0] + both[1]
    <AggregatedCells: 5 rows in 2 groups, 4 cells>
    >>> (both[0] + both[1]).grouped_by([])
    <AggregatedCells: 5 rows, 3 cells>
    """

    origin: CellOrigin
    groups: tuple[tuple[Any, ...], ...]
    columns: dict[str, NDArray[Any]]
    dropped: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Return the number of rows that the cells stand for."""
        first = self.columns["event"] == 0
        return int(self.columns["rows"][first].sum())

    def __len__(self) -> int:
        return int(self.columns["cell"].size)

    def __repr__(self) -> str:
        told = f", {self.dropped:,} rows dropped" if self.dropped else ""
        groups = f" in {len(self.groups):,} groups" if self.origin.by else ""
        return f"<AggregatedCells: {self.n:,} rows{groups}, {len(self):,} cells{told}>"

    def __add__(self, other: AggregatedCells) -> AggregatedCells:
        return merged([self, other])

    def grouped_by(self, by: Sequence[str]) -> AggregatedCells:
        """Return the cells of larger groups, by some of the columns of groups."""
        for name in by:
            if name not in self.origin.by:
                raise UnknownNameError.among("column of groups", name, self.origin.by)
        places = [self.origin.by.index(name) for name in by]
        keys = tuple(tuple(key[i] for i in places) for key in self.groups)
        column = self.origin.model_column
        kept = column if column in by else ""
        origin = replace(self.origin, by=tuple(by), model_column=kept)
        groups, code = numbered_rows(keys)
        columns = self.columns | {"group": code[self.columns["group"]]}
        return AggregatedCells(
            origin, groups, _added(columns, len(groups)), self.dropped
        )

    def sample(self, group: int, event: int) -> BinarySample:
        """Return the rows of one group and event, or many of them as weighted cells."""
        number = self._set(group, event)
        own = slice(*np.searchsorted(self._sets, (number, number + 1)))
        names = [name for name in self.origin.columns if name != "event"]
        sums = CellSums(**{name: self.columns[name][own] for name in names})
        return sums.rows_apart() if self._few[group] else sums.sample()

    def _set(self, group: Any, event: Any) -> IntVector:
        return np.asarray(group * len(self.origin.events) + event)

    @cached_property
    def _sets(self) -> IntVector:
        """Return the number of the group and event of each cell, ascending."""
        return self._set(self.columns["group"], self.columns["event"])

    @cached_property
    def _few(self) -> BoolVector:
        """Return which groups have few rows."""
        return few_groups(self.columns, len(self.groups))


def merged(tables: Iterable[AggregatedCells]) -> AggregatedCells:
    """Return the cells of several tables as one.

    Examples
    --------
    >>> from calibrant.engines.aggregation_spec import AggregationSpec, WatchedModel
    >>> from calibrant.engines.memory import open_table
    >>> rows = {"y": np.array([0, 1]), "p": np.array([0.25, 0.5])}
    >>> wanted = AggregationSpec(models=(WatchedModel("p", ("p",)),), y="y")
    >>> day = open_table(rows).aggregate(wanted)
    >>> merged([day, day])
    <AggregatedCells: 4 rows, 2 cells>
    """
    parts = list(tables)
    if not parts:
        raise EmptyInputError("there are no aggregated predictions to add.")
    first = parts[0].origin
    for part in parts[1:]:
        if part.origin != first:
            raise OptionError(
                f"predictions add up only if they were aggregated alike; "
                f"{_told(part.origin)} differs from {_told(first)}. Aggregate all with "
                f"the same options."
            )
    keys = alike_keys([part.groups for part in parts])
    groups, code = numbered_rows([key for own in keys for key in own])
    ends = np.cumsum([len(own) for own in keys])[:-1]
    columns = {
        name: np.concatenate([part.columns[name] for part in parts])
        for name in first.columns
        if name != "group"
    }
    columns["group"] = np.concatenate(
        [
            own[part.columns["group"]]
            for part, own in zip(parts, np.split(code, ends), strict=True)
        ]
    )
    dropped = sum(part.dropped for part in parts)
    return AggregatedCells(first, groups, _added(columns, len(groups)), dropped)


def few_groups(columns: dict[str, NDArray[Any]], groups: int) -> BoolVector:
    """Return which groups have few rows: those are kept as they are."""
    first = columns["event"] == 0
    own = np.bincount(columns["group"][first], columns["rows"][first], minlength=groups)
    return are_few(own, int(columns["rows"].sum()))


def _added(columns: dict[str, NDArray[Any]], groups: int) -> dict[str, NDArray[Any]]:
    """Return one row a group, event and cell, in this order.

    Of few rows only those that are alike are added up.
    """
    if columns["cell"].size == 0:
        return columns
    alike = [columns["low"]]
    if "weight" in columns:
        alike.append(columns["weight"] / columns["rows"])
    order = np.lexsort([*reversed(alike), columns["event"], columns["group"]])
    columns = {name: values[order] for name, values in columns.items()}
    new = [np.diff(columns[name], prepend=-1) != 0 for name in KEYS]
    few = few_groups(columns, groups)[columns["group"]]
    new += [few & (np.diff(own[order], prepend=-1.0) != 0.0) for own in alike]
    starts = np.flatnonzero(reduce(np.logical_or, new))
    added = {}
    for name, values in columns.items():
        if name in KEYS:
            added[name] = values[starts]
        elif name in SMALLEST:
            added[name] = np.minimum.reduceat(values, starts)
        elif name in LARGEST:
            added[name] = np.maximum.reduceat(values, starts)
        else:
            added[name] = np.add.reduceat(values, starts)
    return added


def cell_table(
    origin: CellOrigin,
    groups: tuple[tuple[Any, ...], ...],
    columns: dict[str, NDArray[Any]],
    dropped: int = 0,
) -> AggregatedCells:
    """Return a table with its columns in their types and its rows in order."""
    typed = {
        name: np.asarray(columns[name]).astype(
            np.int64 if name in COUNTS else np.float64
        )
        for name in origin.columns
    }
    return AggregatedCells(origin, groups, _added(typed, len(groups)), dropped)


def _told(origin: CellOrigin) -> str:
    events = ", ".join(f"{model} {event}".strip() for model, event in origin.events[:3])
    by = f" by {', '.join(origin.by)}" if origin.by else ""
    weighted = " with weights" if origin.weighted else " without weights"
    return f"task {origin.task} of {events}{by}{weighted}"
