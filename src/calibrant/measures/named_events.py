"""Events in a table and whose they are: one set per model and group of rows."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from calibrant._validation.scales import MAX_DROPPED
from calibrant.engines.groups import Group, group_columns, group_rows
from calibrant.engines.memory import MemoryTable
from calibrant.engines.opening import open_cells, open_source
from calibrant.engines.usable_rows import without_bad_rows
from calibrant.exceptions import (
    InputError,
    MissingValueError,
    OptionError,
    ProbabilityRangeError,
    RowSumError,
)
from calibrant.measures.gathered import cell_events, gathering, warn_if_dropped
from calibrant.measures.groups import result_key
from calibrant.measures.table_models import TableReader, models_of_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from calibrant.engines.cells import CellTable
    from calibrant.engines.gathering import BadRows, Gathering, Table
    from calibrant.measures.events import Events, Reading
    from calibrant.measures.table_models import Columns, ModelColumns

OF_ROWS = (InputError, MissingValueError, ProbabilityRangeError, RowSumError)
"""Errors about some of the rows, which can be left out instead."""


@dataclass(frozen=True)
class NamedEvents:
    """Events of a model in a group of rows, with the names of both.

    Attributes
    ----------
    model : str
        The model.
    key : dict
        What tells these events from others: model, values of group columns.
    group : str
        The group, as text; empty for all rows.
    events : callable
        Reads them.
    """

    model: str
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
                    model,
                    name | result_key(group),
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


@contextmanager
def telling_to_drop() -> Iterator[None]:
    """Add to errors about some of the rows that these can be left out."""
    try:
        yield
    except InputError as error:
        if type(error) not in OF_ROWS or "bad_rows" in str(error):
            raise
        told = f'{error} To leave such rows out pass bad_rows="drop".'
        raise type(error)(told) from None


def _events(
    reader: TableReader, model: ModelColumns, rows: Any = slice(None)
) -> Events:
    with telling_to_drop():
        return reader.events(model, rows)


@dataclass(frozen=True, eq=False)
class ModelEvents:
    """Events of a model in all rows, and in each group of them.

    Attributes
    ----------
    name : str
        The model.
    events : Events
        Those of all rows.
    groups : dict
        Those of each group, by its name.
    """

    name: str
    events: Events
    groups: dict[str, Events]


def cell_models(
    cells: CellTable, by: tuple[str, ...] | None = None
) -> list[ModelEvents]:
    """Return the models of a table of cells, by all columns of groups or some."""
    parts = cell_sets(cells, by)
    return [
        ModelEvents(
            whole.model,
            whole.events(),
            {
                part.group: part.events()
                for part in parts
                if part.group and part.model == whole.model
            },
        )
        for whole in cell_sets(cells, ())
    ]


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
    max_dropped : float
        The largest share of rows that may be dropped.
    """

    y: str
    p: Columns | Mapping[str, Columns]
    reading: Reading
    by: tuple[str, ...] = ()
    weight: str | None = None
    bad_rows: BadRows = "raise"
    max_dropped: float = MAX_DROPPED

    def sets(self, table: Table, *, stacklevel: int) -> list[NamedEvents]:
        """Return the sets of a table: as rows where it is in memory, else as cells."""
        if isinstance(table, MemoryTable):
            return self._row_sets(table, stacklevel=stacklevel + 1)
        cells = table.gather(self.gathering(table))
        total = cells.dropped + cells.n
        warn_if_dropped(cells.reasons, total, stacklevel=stacklevel + 1)
        models = {model for model, _ in cells.origin.events}
        return cell_sets(cells, named=self._named(len(models)))

    def models(self, table: Table) -> list[ModelEvents]:
        """Return the models of a table, each in all rows and in groups."""
        if not isinstance(table, MemoryTable):
            return cell_models(table.gather(self.gathering(table)))
        reader = TableReader(table, self.y, self.weight, self.reading)
        groups = group_rows(table, self.by) if self.by else []
        return [
            ModelEvents(
                model.name,
                _events(reader, model),
                {str(group): _events(reader, model, group.rows) for group in groups},
            )
            for model in models_of_table(table, self.p, self.reading)
        ]

    def gathering(self, table: Table) -> Gathering:
        """Return what is to be gathered from a table."""
        return gathering(
            table,
            self.y,
            self.p,
            self.reading,
            by=self.by,
            weight=self.weight,
            bad_rows=self.bad_rows,
            max_dropped=self.max_dropped,
        )

    def _row_sets(self, table: MemoryTable, *, stacklevel: int) -> list[NamedEvents]:
        if self.bad_rows == "drop":
            table = drop_invalid_rows(table, self, stacklevel=stacklevel + 1)
        reader = TableReader(table, self.y, self.weight, self.reading)
        models = models_of_table(table, self.p, self.reading)
        groups = group_rows(table, self.by)
        if self.by:
            for model in models:  # bad rows are named by their place in the whole table
                _events(reader, model)
        named = self._named(len(models))
        return [
            NamedEvents(
                model.name,
                ({"model": model.name} if named else {}) | result_key(group.key),
                str(group),
                partial(_events, reader, model, group.rows),
            )
            for model in models
            for group in groups
        ]

    def _named(self, models: int) -> bool:
        return hasattr(self.p, "items") or models > 1


def drop_invalid_rows(
    table: MemoryTable, *wanted: RowsWanted, stacklevel: int
) -> MemoryTable:
    """Return the table without rows that cannot be used, and warn about them.

    What is wanted is wanted of the same rows, if it is several things.
    """
    kept, reasons = without_bad_rows(table, *(one.gathering(table) for one in wanted))
    total = table.column(wanted[0].y).size + table.lines_left_out
    warn_if_dropped(reasons, total, stacklevel=stacklevel + 1)
    return kept


def sets_of(
    source: Any,
    y: str | None,
    p: Columns | Mapping[str, Columns] | None,
    reading: Reading,
    by: Columns | None,
    weight: str | None,
) -> list[NamedEvents]:
    """Return the sets of any source: rows, or cells, which know their columns."""
    cells = open_cells(source)
    if cells is not None:
        return cell_sets(cells, None if by is None else group_columns(by))
    wanted = rows_wanted(y, p, reading, group_columns(by), weight)
    return wanted.sets(open_source(source), stacklevel=4)


def models_of(
    source: Any,
    y: str | None,
    p: Columns | Mapping[str, Columns] | None,
    reading: Reading,
    by: Columns | None,
    weight: str | None,
) -> list[ModelEvents]:
    """Return the models of any source, each in all rows and in groups."""
    cells = open_cells(source)
    if cells is not None:
        return cell_models(cells, None if by is None else group_columns(by))
    wanted = rows_wanted(y, p, reading, group_columns(by), weight)
    return wanted.models(open_source(source))


def rows_wanted(
    y: str | None,
    p: Columns | Mapping[str, Columns] | None,
    reading: Reading,
    by: tuple[str, ...] = (),
    weight: str | None = None,
    **dropping: Any,
) -> RowsWanted:
    """Return what is wanted of rows, whose columns must be named."""
    if y is None or p is None:
        raise OptionError("y and p must name columns, of labels and probabilities.")
    return RowsWanted(y, p, reading, by, weight=weight, **dropping)
