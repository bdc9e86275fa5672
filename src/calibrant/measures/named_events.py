"""Events in a table and whose they are: one set per model and group of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from calibrant.engines.groups import Group, group_rows
from calibrant.engines.memory import MemoryTable
from calibrant.engines.usable_rows import usable_rows
from calibrant.exceptions import OptionError
from calibrant.measures.gathered import cell_events, gathering, warn_if_dropped
from calibrant.measures.table_models import TableReader, model_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from calibrant.engines.cells import CellTable
    from calibrant.engines.gathering import BadRows, Table
    from calibrant.measures.events import Events, Reading
    from calibrant.measures.table_models import Columns


@dataclass(frozen=True)
class NamedEvents:
    """Events of a model in a group of rows, with the names of both.

    Attributes
    ----------
    key : dict
        What tells these events from others: model, values of group columns.
    group : str
        The group, as text; empty for all rows.
    events : callable
        Reads them.
    """

    key: dict[str, Any]
    group: str
    events: Callable[[], Events]


def cell_sets(
    cells: CellTable, by: tuple[str, ...] | None = None, *, named: bool = False
) -> list[NamedEvents]:
    """Return the sets of a table of cells, by all columns of groups or some."""
    if by is not None and by != cells.origin.by:
        cells = cells.grouped_by(by)
    models = list(dict.fromkeys(model for model, _ in cells.origin.events))
    sets = []
    for model in models:
        name = {"model": model} if named or len(models) > 1 else {}
        for place, values in enumerate(cells.groups):
            group = dict(zip(cells.origin.by, values, strict=True))
            sets.append(
                NamedEvents(
                    name | group,
                    str(Group(group, slice(None))),
                    partial(cell_events, cells, model, place),
                )
            )
    return sets


def refuse_with_cells(**given: Any) -> None:
    """Raise where something is said that cells know since they were gathered."""
    for name, value in given.items():
        if value is not None:
            raise OptionError(
                f"cells know their columns, labels and scale, and are read one way, "
                f"since they were gathered; leave out {name}."
            )


@dataclass(frozen=True, eq=False)
class RowsWanted:
    """Which columns of a table of rows are to be read, and how.

    Attributes
    ----------
    y : str
        Column of labels.
    p : str, list or dict
        Columns of probabilities.
    reading : Reading
        Task, labels and scale.
    by : tuple of str
        Columns of groups.
    weight : str or None
        Column of weights.
    bad_rows : {"raise", "drop"}
        What to do with rows that cannot be used.
    """

    y: str
    p: Columns | Mapping[str, Columns]
    reading: Reading
    by: tuple[str, ...] = ()
    weight: str | None = None
    bad_rows: BadRows = "raise"

    def sets(self, table: Table, *, stacklevel: int) -> list[NamedEvents]:
        """Return the sets of a table: as rows where it is in memory, else as cells."""
        if isinstance(table, MemoryTable):
            return self._row_sets(table, stacklevel=stacklevel + 1)
        cells = table.gather(self._gathering(table))
        total = cells.dropped + cells.n
        warn_if_dropped(cells.dropped, total, stacklevel=stacklevel + 1)
        models = {model for model, _ in cells.origin.events}
        return cell_sets(cells, named=self._named(len(models)))

    def _gathering(self, table: Table) -> Any:
        return gathering(
            table,
            self.y,
            self.p,
            self.reading,
            by=self.by,
            weight=self.weight,
            bad_rows=self.bad_rows,
        )

    def _row_sets(self, table: MemoryTable, *, stacklevel: int) -> list[NamedEvents]:
        if self.bad_rows == "drop":
            usable = usable_rows(table, self._gathering(table))
            bad = int((~usable).sum())
            warn_if_dropped(bad, usable.size, stacklevel=stacklevel + 1)
            table = table.where(usable)
        reader = TableReader(table, self.y, self.weight, self.reading)
        models = model_columns(self.p, task=self.reading.task, names=table.names)
        groups = group_rows(table, self.by)
        if self.by:
            for model in models:  # bad rows are named by their place in the whole table
                reader.events(model)
        named = self._named(len(models))
        return [
            NamedEvents(
                ({"model": model.name} if named else {}) | group.key,
                str(group),
                partial(reader.events, model, group.rows),
            )
            for model in models
            for group in groups
        ]

    def _named(self, models: int) -> bool:
        return hasattr(self.p, "items") or models > 1
