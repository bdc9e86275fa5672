"""Aggregated cells: the small table that stands for all rows, wherever they live.

Tables of different days, files or machines add up, since all use the cells of one grid.
Few rows are kept exactly: only equal ones share a cell. What counts as few depends on
numbers of rows alone, and more rows never turn many into few. So parts that were
aggregated one by one and added end as the whole does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.groups import alike_keys, numbered_rows
from calibrant.exceptions import EmptyInputError, OptionError, UnknownNameError
from calibrant.numerics.cell_grid import CellSums, cell_numbers, sum_cells
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, FloatVector, IntVector
    from calibrant.core.sample import BinarySample
    from calibrant.engines.aggregation_spec import AggregationSpec
    from calibrant.engines.groups import Group, Keys

COUNTS = ("group", "event", "cell", "rows", "event_rows")
"""Columns of whole numbers."""
SUMS = ("near", "low", "high")
WEIGHTED_SUMS = ("weight", "event_weight", "weight_squared")
"""Columns of tables whose rows have weights."""
KEYS = ("group", "event", "cell")
ADDED_BY = {"low": np.minimum, "high": np.maximum}
"""How columns are combined that are not sums."""


@dataclass(frozen=True)
class ExactLimits:
    """How many rows are few, and kept exactly."""

    # a table of at most so many rows, counted once per event, is kept
    in_table: int = 2**21
    # a group of at most so many rows is kept: methods look at its rows one by one
    in_group: int = MAX_EXACT_ROWS
    # kept groups have at most so many rows together, however many groups there are
    in_all_groups: int = 2**21

    def keeps(self, rows: IntVector, total: int) -> BoolVector:
        """Tell of each group, given its number of rows, whether they are kept exactly.

        `total` counts the rows of the table once per event.

        >>> ExactLimits().keeps(np.array([3_000_000, 500]), 3_000_500)
        array([False,  True])
        >>> ExactLimits().keeps(np.full(10_000, 50_000), 500_000_000).any()  # too many
        np.False_
        """
        if total <= self.in_table:
            return np.ones(rows.size, dtype=bool)
        # The more groups, the fewer rows of each: neither falls when tables add up.
        n_events = total / rows.sum()
        share = self.in_all_groups / (rows.size * n_events)
        return np.asarray(rows <= min(self.in_group, share))

    def groups(self, columns: dict[str, NDArray[Any]], n_groups: int) -> BoolVector:
        """Return the groups of a table of cells whose rows are kept exactly."""
        first = columns["event"] == 0
        rows = np.bincount(
            columns["group"][first], columns["rows"][first], minlength=n_groups
        )
        return self.keeps(rows, int(columns["rows"].sum()))


USUAL_LIMITS = ExactLimits()


@dataclass(frozen=True)
class CellOrigin:
    """What was aggregated; only cells of the same origin add up."""

    task: str
    events: tuple[tuple[str, str], ...]  # model and name of each event
    by: tuple[str, ...] = ()  # columns of groups
    weighted: bool = False  # whether rows have weights
    # the column of groups that names the model of each row; empty if there is none
    model_column: str = ""
    # the label that counts as the event; None where labels are 0 and 1, or there are
    # several events
    event: str | None = None
    limits: ExactLimits = USUAL_LIMITS  # how many rows are kept exactly
    # the last column of groups, if it names clusters; else empty
    cluster_column: str = ""

    @classmethod
    def of(cls, spec: AggregationSpec) -> CellOrigin:
        """Return the origin of the cells that a spec asks for."""
        return cls(
            spec.task,
            spec.events,
            spec.by,
            weighted=spec.weight is not None,
            limits=spec.limits,
            cluster_column=spec.cluster or "",
        )

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Return the columns of groups but that of clusters."""
        return self.by[:-1] if self.cluster_column else self.by

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that a table of such cells has."""
        return (*COUNTS, *SUMS, *(WEIGHTED_SUMS if self.weighted else ()))

    def __str__(self) -> str:
        events = ", ".join(f"{m} {event}".strip() for m, event in self.events[:3])
        columns, cluster = self.group_columns, self.cluster_column
        by = f" by {', '.join(columns)}" if columns else ""
        by += f" in clusters by {cluster}" if cluster else ""
        weights = "with weights" if self.weighted else "without weights"
        event = "" if self.event is None else f" (event {self.event!r})"
        return f"task {self.task}{event} of {events}{by} {weights}"


@dataclass(frozen=True, eq=False, repr=False)
class AggregatedCells:
    """Sums over the rows of each cell, per group and event.

    >>> import calibrant as cb
    >>> rows = {"Mo": ([0, 1, 1], [0.2, 0.7, 0.7]), "Tu": ([0, 1], [0.2, 0.9])}
    >>> days = [
    ...     cb.Predictions.from_arrays(y, p, groups=[day] * len(y)).store.aggregate()
    ...     for day, (y, p) in rows.items()
    ... ]
    >>> merge_cells(days)
    <AggregatedCells: 5 rows in 2 groups, 4 cells>
    >>> merge_cells(days).grouped_by([])
    <AggregatedCells: 5 rows, 3 cells>
    """

    origin: CellOrigin
    groups: Keys  # values of the group columns of each group
    # equally long columns: number of the group, of the event and of the cell; number of
    # rows and of those with the event; sum of (weighted) distances of predictions to
    # the nearer end of [0, 1], and their minimum and maximum; and where rows have
    # weights their sum, that over rows with the event, and that of squared weights
    columns: dict[str, NDArray[Any]]
    dropped: int = 0  # number of invalid rows
    # their number by reason, known until tables are added or saved
    reasons: dict[str, int] = field(default_factory=dict)
    weightless: int = 0  # number of valid rows of weight 0, known until then as well

    @classmethod
    def of_columns(
        cls,
        origin: CellOrigin,
        groups: Keys,
        columns: dict[str, NDArray[Any]],
        dropped: int = 0,
    ) -> AggregatedCells:
        """Return cells with columns in their types and rows in order."""
        typed = {
            name: np.asarray(columns[name]).astype(
                np.int64 if name in COUNTS else np.float64
            )
            for name in origin.columns
        }
        typed = _add_equal_cells(typed, len(groups), origin.limits)
        return cls(origin, groups, typed, dropped)

    @property
    def n(self) -> int:
        """Return the number of rows that the cells stand for."""
        first = self.columns["event"] == 0
        return int(self.columns["rows"][first].sum())

    @property
    def n_read(self) -> int:
        """Return the number of all rows that were read."""
        return self.n + self.dropped + self.weightless

    def __len__(self) -> int:
        return int(self.columns["cell"].size)

    def __repr__(self) -> str:
        dropped = f", {self.dropped:,} rows dropped" if self.dropped else ""
        word = "clusters" if self.origin.cluster_column else "groups"
        groups = f" in {len(self.groups):,} {word}" if self.origin.by else ""
        return (
            f"<AggregatedCells: {self.n:,} rows{groups}, {len(self):,} cells{dropped}>"
        )

    def grouped_by(self, by: Sequence[str]) -> AggregatedCells:
        """Return the cells of larger groups, by some of the columns of groups.

        Clusters stay apart.
        """
        origin = self.origin
        for name in by:
            if name not in origin.group_columns:
                known = origin.group_columns
                raise UnknownNameError.among("column of groups", name, known)
        places = [origin.by.index(name) for name in by]
        if origin.cluster_column:
            places.append(len(origin.by) - 1)
        keys = tuple(tuple(key[i] for i in places) for key in self.groups)
        origin = replace(
            origin,
            by=tuple(origin.by[i] for i in places),
            model_column=origin.model_column if origin.model_column in by else "",
        )
        groups, code = numbered_rows(keys)
        columns = self.columns | {"group": code[self.columns["group"]]}
        columns = _add_equal_cells(columns, len(groups), origin.limits)
        return AggregatedCells(origin, groups, columns, self.dropped)

    @property
    def unit_keys(self) -> Keys:
        """Return the values of the columns of groups, clusters of a group as one."""
        width = len(self.origin.group_columns)
        return tuple(self.groups[start][:width] for start in self._starts.tolist())

    def sample(self, unit: int, event: int) -> BinarySample:
        """Return the rows of one unit and event, many of them as weighted cells."""
        order, numbers = self._in_order
        number = unit * len(self.origin.events) + event
        own = order[slice(*np.searchsorted(numbers, (number, number + 1)))]
        names = [name for name in self.origin.columns if name != "event"]
        sums = CellSums(**{name: self.columns[name][own] for name in names})
        make = sums.rows_apart if self._exact[self._starts[unit]] else sums.sample
        return make(clustered=bool(self.origin.cluster_column))

    @cached_property
    def _starts(self) -> IntVector:
        """Return the first group of each unit; clusters of a group are neighbours."""
        width = len(self.origin.group_columns)
        keys = [key[:width] for key in self.groups]
        pairs = zip(keys, [None, *keys], strict=False)
        return np.flatnonzero([one != before for one, before in pairs])

    @cached_property
    def _in_order(self) -> tuple[IntVector, IntVector]:
        """Return an order of cells by unit and event, and the number of both."""
        unit = np.searchsorted(self._starts, self.columns["group"], side="right") - 1
        number = unit * len(self.origin.events) + self.columns["event"]
        order = np.argsort(number, kind="stable")
        return order, number[order]

    @cached_property
    def _exact(self) -> BoolVector:
        return self.origin.limits.groups(self.columns, len(self.groups))


def cells_of_rows(
    origin: CellOrigin,
    groups: Sequence[Group],
    events: Sequence[tuple[FloatVector, FloatVector]],
    weight: FloatVector | None,
) -> AggregatedCells:
    """Return the cells of rows, given predictions and outcomes of each event."""
    group = np.zeros(events[0][0].size, dtype=np.int64)
    for number, one in enumerate(groups):
        group[one.rows] = number
    used = np.ones(group.size, bool) if weight is None else weight > 0.0
    own = np.bincount(group[used], minlength=len(groups))
    exact = origin.limits.keeps(own, int(own.sum()) * len(events))[group]
    parts: list[dict[str, NDArray[Any]]] = []
    for kept, chosen in ((True, used & exact), (False, used & ~exact)):
        if not chosen.any():
            continue
        rows = slice(None) if chosen.all() else chosen
        own_weight = None if weight is None else weight[rows]
        for number, (p, y) in enumerate(events):
            part = _cell_columns(p[rows], y[rows], own_weight, group[rows], exact=kept)
            parts.append(part | {"event": np.full(part["cell"].size, number)})
    columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
    keys = tuple(tuple(one.key.values()) for one in groups)
    return AggregatedCells.of_columns(origin, keys, columns)


def _cell_columns(
    p: FloatVector,
    y: FloatVector,
    weight: FloatVector | None,
    group: IntVector,
    *,
    exact: bool,
) -> dict[str, NDArray[Any]]:
    """Return the columns of one cell per row, or of sums over each group and cell."""
    if exact:
        one = np.ones(p.size, dtype=np.int64)
        return exact_columns(p, one, y.astype(np.int64), weight) | {"group": group}
    sums = vars(sum_cells(p, y, weight, group))
    return {name: values for name, values in sums.items() if values is not None}


def merge_cells(tables: Iterable[AggregatedCells]) -> AggregatedCells:
    """Return the cells of several tables as one."""
    parts = list(tables)
    if not parts:
        raise EmptyInputError("there are no aggregated predictions to add.")
    first = parts[0].origin
    for part in parts[1:]:
        if part.origin != first:
            raise OptionError(
                "predictions can be combined only if they were aggregated in the "
                f"same way; {part.origin} differs from {first}. Aggregate all "
                "with the same options."
            )
    keys = alike_keys([part.groups for part in parts])
    groups, code = numbered_rows([key for own in keys for key in own])
    codes = np.split(code, np.cumsum([len(own) for own in keys])[:-1])
    columns = {
        name: np.concatenate([part.columns[name] for part in parts])
        for name in first.columns
        if name != "group"
    }
    columns["group"] = np.concatenate(
        [own[part.columns["group"]] for part, own in zip(parts, codes, strict=True)]
    )
    dropped = sum(part.dropped for part in parts)
    columns = _add_equal_cells(columns, len(groups), first.limits)
    return AggregatedCells(first, groups, columns, dropped)


def _add_equal_cells(
    columns: dict[str, NDArray[Any]], n_groups: int, limits: ExactLimits
) -> dict[str, NDArray[Any]]:
    """Return one row per group, event and cell, in order; exact rows add if equal."""
    if columns["cell"].size == 0:
        return columns
    exact = [columns["low"]]
    if "weight" in columns:
        exact.append(columns["weight"] / columns["rows"])
    order = np.lexsort([*reversed(exact), columns["event"], columns["group"]])
    columns = {name: values[order] for name, values in columns.items()}
    new = [np.diff(columns[name], prepend=-1) != 0 for name in KEYS]
    kept = limits.groups(columns, n_groups)[columns["group"]]
    new += [kept & (np.diff(own[order], prepend=-1.0) != 0.0) for own in exact]
    starts = np.flatnonzero(reduce(np.logical_or, new))
    return {
        name: values[starts]
        if name in KEYS
        else ADDED_BY.get(name, np.add).reduceat(values, starts)
        for name, values in columns.items()
    }


def exact_columns(
    p: FloatVector, rows: IntVector, event_rows: IntVector, weight: FloatVector | None
) -> dict[str, NDArray[Any]]:
    """Return the columns of cells that each contain equal rows.

    The rows of a cell are predicted `p` and have weight `weight` each; `event_rows` of
    them have the label 1.
    """
    near = rows * np.minimum(p, 1.0 - p)
    columns = {
        "cell": cell_numbers(p),
        "rows": rows,
        "event_rows": event_rows,
        "near": near if weight is None else weight * near,
        "low": p,
        "high": p,
    }
    if weight is not None:
        columns["weight"] = weight * rows
        columns["event_weight"] = weight * event_rows
        columns["weight_squared"] = weight**2 * rows
    return columns
