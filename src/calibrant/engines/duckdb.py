"""Tables of any size in files, through DuckDB: one pass, in little memory."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.passes import Passes
from calibrant.engines.prepared import comparable, label_cases, prepared_columns
from calibrant.engines.row_checks import (
    diagnosis_sql,
    precision_of,
    raise_first,
    refuse_no_numbers,
    row_checks,
)
from calibrant.engines.source_files import FileSet
from calibrant.engines.sql import Dialect
from calibrant.exceptions import MissingDependencyError, SourceError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from numpy.typing import NDArray

    from calibrant.engines.cells import CellTable
    from calibrant.engines.gathering import BadRows, Gathering, WatchedModel
    from calibrant.engines.row_checks import RowCheck
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
READERS = {
    "csv": "read_csv($files, header = true, delim = ',', comment = '')",
    "tsv": "read_csv($files, header = true, delim = '\t', comment = '')",
    "parquet": "read_parquet($files, union_by_name = true)",
    "json": "read_json($files, format = 'newline_delimited')",
}
"""How files are read. Columns of several Parquet files get a type that holds all their
values: that of the first file would round those of the others."""
ROWS = "calibrant_rows"


@dataclass(frozen=True, eq=False)
class DuckDBTable:
    """Rows that DuckDB reads.

    Attributes
    ----------
    relation : DuckDBPyRelation
        The rows.
    told : str
        What errors call the source.
    lines : connection or None
        Where lines of text files that are no rows are noted, if they are left out.
    """

    relation: Any
    told: str
    lines: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        return tuple(self.relation.columns)

    def like(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type that a column holds."""
        if name not in self.names:
            raise UnknownNameError.among("column", name, self.names)
        declared = str(self.relation.types[self.names.index(name)])
        kind = "f8" if declared.startswith("DECIMAL") else KINDS.get(declared, "O")
        return np.empty(0, dtype=kind)

    def has(self, name: str, value: Any) -> bool:
        """Tell whether a column holds a value."""
        duckdb = load_duckdb()
        if not comparable([value], self.like(name)):
            return False
        equal = duckdb.ColumnExpression(name) == duckdb.ConstantExpression(value)
        with reading(self.told):
            return bool(self.relation.filter(equal).limit(1).fetchall())

    def distinct(self, name: str, most: int) -> list[Any]:
        """Return some of the distinct values of a column, in order."""
        column = load_duckdb().ColumnExpression(name)
        with reading(self.told):
            found = self.relation.select(column).distinct().limit(most).fetchall()
        return sorted(value for (value,) in found if value is not None)

    def gather(self, wanted: Gathering) -> CellTable:
        """Go once through the rows and return their cells."""
        refuse_no_numbers(self, wanted)
        precision = {name: precision_of(self.like(name)) for name in wanted.columns}
        checks = row_checks(wanted, precision)
        rows = self._prepared(wanted)

        def run(query: str) -> dict[str, NDArray[Any]]:
            with reading(self.told):
                found = rows.query(ROWS, query).fetchnumpy()
            return {name: _days(v, name, self, wanted) for name, v in found.items()}

        passes = Passes(
            wanted=wanted,
            source=ROWS,
            checks=checks,
            dialect=Dialect(_exploded, "HASH"),
            run=run,
            diagnose=lambda: self.diagnose(rows, checks),
            told=self.told,
        )
        cells = passes.cells()
        return replace(cells, dropped=cells.dropped + self._lines_left_out())

    def _prepared(self, wanted: Gathering) -> Any:
        """Return the rows with names of our own, as `sql` reads them."""
        column = load_duckdb().ColumnExpression
        chosen = prepared_columns(
            wanted,
            column=column,
            number=lambda name: column(name).cast("DOUBLE"),
            label_code=partial(self._code, wanted),
        )
        return self.relation.select(*chosen)

    def _code(self, wanted: Gathering, model: WatchedModel) -> Any:
        """Return the number of the label's class."""
        duckdb = load_duckdb()
        label, value = duckdb.ColumnExpression(wanted.y), duckdb.ConstantExpression
        cases = label_cases(wanted, model, self.like(wanted.y))
        if cases is None:
            return label.cast("DOUBLE")
        first, *others = [
            *((label == value(v), place) for v, place in cases.known),
            (label.isnotnull(), cases.otherwise),
        ]
        case = duckdb.CaseExpression(first[0], value(first[1]))
        for condition, result in others:
            case = case.when(condition, value(result))
        return case

    def diagnose(self, rows: Any, checks: list[RowCheck]) -> None:
        """Raise the error about the first check that rows miss."""
        with reading(self.told):
            found = rows.query(ROWS, diagnosis_sql(checks, ROWS))
            row = dict(zip(found.columns, found.fetchall()[0], strict=True))
        raise_first(checks, row)

    def _lines_left_out(self) -> int:
        if self.lines is None:
            return 0
        counted = "SELECT COUNT(DISTINCT (file_id, line)) FROM reject_errors"
        return int(self.lines.execute(counted).fetchone()[0])


def open_duckdb(source: Any, *, bad_rows: BadRows = "raise") -> DuckDBTable:
    """Open files, a data frame or a DuckDB relation."""
    duckdb = load_duckdb()
    if isinstance(source, duckdb.DuckDBPyRelation):
        return DuckDBTable(source, "the relation")
    connection = duckdb.connect()
    if not isinstance(source, FileSet):
        return _of_frame(connection, source)
    reader = READERS[source.kind]
    noted = source.kind in ("csv", "tsv") and bad_rows == "drop"
    if noted:
        reader = reader.replace(")", ", store_rejects = true)")
    with reading(str(source)):
        relation = connection.sql(
            f"SELECT * FROM {reader}",
            params={"files": source.patterns},
        )
        return DuckDBTable(relation, str(source), connection if noted else None)


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


@contextmanager
def reading(told: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours."""
    try:
        yield
    except load_duckdb().Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise SourceError(f"{told} cannot be read: {'; '.join(lines[:3])}") from None


def load_duckdb() -> ModuleType:
    """Return DuckDB, or say how to install it."""
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError.for_extra(
            "reading in place", "duckdb", "data"
        ) from None
    return duckdb
