"""Tables of any size in files, through DuckDB: one pass, in little memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.scales import precision_of
from calibrant.engines.duckdb_files import FileReader, load_duckdb, reading
from calibrant.engines.groups import plain_keys
from calibrant.engines.passes import Passes
from calibrant.engines.prepared import comparable, label_cases, prepared_columns
from calibrant.engines.row_checks import RowFaults, refuse_no_numbers, row_rules
from calibrant.engines.source_files import FileSet
from calibrant.engines.sql import Dialect
from calibrant.engines.usable_rows import check_dropped
from calibrant.exceptions import SourceError, UnknownNameError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.engines.cells import CellTable
    from calibrant.engines.gathering import BadRows, Gathering, WatchedModel
    from calibrant.engines.row_checks import RowRules
    from calibrant.engines.sql import Event

KINDS = {
    "BOOLEAN": "?",
    "FLOAT": "f4",
    "DOUBLE": "f8",
    "VARCHAR": "U1",
    "DATE": "M8[D]",
    **dict.fromkeys(["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"], "i8"),
    **dict.fromkeys(["UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"], "u8"),
}
"""NumPy's word for each type; decimals count as doubles, all else as objects."""
ROWS = "calibrant_rows"
BITS = 17
"""Of the numbers of cells, and one for nothing."""


@dataclass(frozen=True, eq=False)
class DuckDBTable:
    """Rows that DuckDB reads.

    Attributes
    ----------
    relation : DuckDBPyRelation
        The rows.
    told : str
        What errors call the source.
    reader : FileReader or None
        What reads them, if they are in files.
    own_names : tuple of str
        What columns are called in the files, where it is not what DuckDB calls them.
    """

    relation: Any
    told: str
    reader: FileReader | None = None
    own_names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        return self.own_names or tuple(self.relation.columns)

    def called(self, name: str) -> str:
        """Return what DuckDB calls a column."""
        if name not in self.names:
            raise UnknownNameError.among("column", name, self.names)
        return str(self.relation.columns[self.names.index(name)])

    def like(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type that a column holds."""
        self.called(name)
        declared = str(self.relation.types[self.names.index(name)])
        kind = "f8" if declared.startswith("DECIMAL") else KINDS.get(declared, "O")
        return np.empty(0, dtype=kind)

    def has(self, name: str, value: Any) -> bool:
        """Tell whether a column holds a value."""
        duckdb = load_duckdb()
        if not comparable([value], self.like(name)):
            return False
        column = duckdb.ColumnExpression(self.called(name))
        equal = column == duckdb.ConstantExpression(value)
        with reading(self.told):
            return bool(self.relation.filter(equal).limit(1).fetchall())

    def distinct(self, name: str, most: int) -> list[Any]:
        """Return some of the distinct values of a column, in order."""
        column = load_duckdb().ColumnExpression(self.called(name))
        with reading(self.told):
            found = self.relation.select(column).distinct().limit(most).fetchall()
        return sorted((value for (value,) in found if value is not None), key=str)

    def gather(self, wanted: Gathering) -> CellTable:
        """Go once through the rows and return their cells."""
        if self.reader is not None:
            weights = () if wanted.weight is None else (wanted.weight,)
            asked = (wanted.y, *wanted.columns, *weights, *wanted.by)
            with reading(self.told):
                self.reader.refuse_lacking([self.called(name) for name in asked])
        refuse_no_numbers(self, wanted, numbers_as_text=wanted.bad_rows == "drop")
        precision = {
            name: precision_of(self.like(name).dtype) for name in wanted.columns
        }
        rows = self._prepared(wanted)

        def run(query: str) -> dict[str, NDArray[Any]]:
            with reading(self.told):
                found = rows.query(ROWS, query).fetchnumpy()
            return {name: _days(v, name, self, wanted) for name, v in found.items()}

        passes = Passes(
            wanted=wanted,
            source=ROWS,
            rules=row_rules(wanted, precision),
            dialect=Dialect(_exploded, "HASH"),
            run=run,
            told=self.told,
        )
        cells = passes.cells()
        groups = plain_keys(cells.groups) if self._of_text else cells.groups
        return self._without_lines(replace(cells, groups=groups), wanted.max_dropped)

    @property
    def _of_text(self) -> bool:
        return self.reader is not None and self.reader.is_text

    def _prepared(self, wanted: Gathering) -> Any:
        """Return the rows with names of our own, as `sql` reads them."""
        expression = load_duckdb().ColumnExpression

        def column(name: str) -> Any:
            return expression(self.called(name))

        chosen = prepared_columns(
            wanted,
            column=column,
            number=self._number,
            label_code=partial(self._code, wanted),
        )
        return self._typed(wanted).select(*chosen)

    def _typed(self, wanted: Gathering) -> Any:
        """Return the rows; groups of text files as text, numbers with their digits.

        Types were guessed by the first rows: whole numbers may become others later.
        """
        if self.reader is None or not self.reader.is_text:
            return self.relation
        numbers = [*wanted.columns, *([wanted.weight] if wanted.weight else [])]
        types = dict.fromkeys(map(self.called, numbers), "DOUBLE")
        types |= dict.fromkeys(map(self.called, wanted.by), "VARCHAR")
        with reading(self.told):
            return self.reader.relation(types)

    def _number(self, name: str) -> Any:
        """Return a column as numbers; text that is none is missing."""
        duckdb, called = load_duckdb(), self.called(name)
        if self.like(name).dtype.kind != "U":
            return duckdb.ColumnExpression(called).cast("DOUBLE")
        escaped = called.replace('"', '""')
        return duckdb.SQLExpression(f'TRY_CAST("{escaped}" AS DOUBLE)')

    def _code(self, wanted: Gathering, model: WatchedModel) -> Any:
        """Return the number of the label's class."""
        duckdb = load_duckdb()
        label = duckdb.ColumnExpression(self.called(wanted.y))
        value = duckdb.ConstantExpression
        cases = label_cases(wanted, model, self.like(wanted.y))
        if cases is None:
            return self._number(wanted.y)
        first, *others = [
            *((label == value(v), place) for v, place in cases.known),
            (label.isnotnull(), cases.otherwise),
        ]
        case = duckdb.CaseExpression(first[0], value(first[1]))
        for condition, result in others:
            case = case.when(condition, value(result))
        return case

    def refuse_invalid(self, rows: Any, rules: RowRules) -> None:
        """Raise the error about the first check that rows miss."""

        def run(query: str) -> dict[str, NDArray[Any]]:
            with reading(self.told):
                found: dict[str, NDArray[Any]] = rows.query(ROWS, query).fetchnumpy()
                return found

        RowFaults.count(rules, run, ROWS).raise_first(droppable=False)

    def _without_lines(self, cells: CellTable, max_dropped: float) -> CellTable:
        """Count lines of a text file that are no rows among those dropped."""
        lines = self._lines_left_out()
        if not lines:
            return cells
        reasons = cells.reasons | {"in lines that cannot be read": lines}
        dropped = cells.dropped + lines
        check_dropped(reasons, cells.n + dropped, max_dropped)
        return replace(cells, dropped=dropped, reasons=reasons)

    def _lines_left_out(self) -> int:
        if self.reader is None or not self.reader.leave_out:
            return 0
        counted = "SELECT COUNT(DISTINCT (file_id, line)) FROM reject_errors"
        return int(self.reader.connection.execute(counted).fetchone()[0])


def open_duckdb(source: Any, *, bad_rows: BadRows = "raise") -> DuckDBTable:
    """Open files, a data frame or a DuckDB relation."""
    duckdb = load_duckdb()
    if isinstance(source, duckdb.DuckDBPyRelation):
        return DuckDBTable(source, "the relation")
    connection = duckdb.connect()
    # Cells have short numbers: looked up in a plain array, not in a hash table.
    connection.execute(f"SET perfect_ht_threshold = {BITS}")
    if not isinstance(source, FileSet):
        return _of_frame(connection, source)
    is_text = source.kind in ("csv", "tsv")
    reader = FileReader(connection, source, leave_out=is_text and bad_rows == "drop")
    with reading(str(source)):
        relation = reader.relation()
        names = reader.names(relation.columns)
        return DuckDBTable(relation, str(source), reader, names)


def _of_frame(connection: Any, source: Any) -> DuckDBTable:
    import narwhals as nw

    native = nw.to_native(source, pass_through=True)
    try:
        connection.register("calibrant_frame", native)
    except load_duckdb().Error:
        raise SourceError(
            f"source must be a path, a data frame or a relation; got "
            f"{type(source).__name__}."
        ) from None
    return DuckDBTable(connection.table("calibrant_frame"), "the data frame")


def _exploded(events: list[Event]) -> str:
    parts = (f"{{'event': {e.number}, 'p': {e.p}, 'y': {e.y}}}" for e in events)
    return f"UNNEST([{', '.join(parts)}], recursive := true)"


def _days(
    values: NDArray[Any], name: str, table: DuckDBTable, wanted: Gathering
) -> NDArray[Any]:
    """Return dates as dates: DuckDB gives them as times."""
    if not name.startswith("by_"):
        return values
    kind = table.like(wanted.by[int(name[3:])]).dtype
    return values.astype(kind) if kind.kind == "M" else values
