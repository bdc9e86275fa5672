"""Where DuckDB reads rows: what all of its tables can do; relations and data frames."""

from __future__ import annotations

import math
import re
import secrets
from abc import abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.aggregation_sql import Dialect, Event, number
from calibrant.engines.files import WRONG_ENCODING, check_no_lists, check_no_objects
from calibrant.engines.sql_tables import KEY, SqlTable
from calibrant.exceptions import MissingDependencyError, Setting, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

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
BAD_LINE = re.compile(r"CSV Error on Line: (\d+)")
BAD_WIDTH = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
BITS = 17
"""Of the numbers of cells, and one for nothing."""
SETTINGS = {
    # Cells have short numbers: looked up in a plain array, not in a hash table.
    "perfect_ht_threshold": BITS,
    # Nothing is fetched from anywhere.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    # Nothing is printed that was not asked for.
    "enable_progress_bar": "false",
}


def quoted(name: str) -> str:
    """Return the name of a column as DuckDB reads it, whatever characters it contains.

    >>> quoted('odd "name" here')
    '"odd ""name"" here"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a value as DuckDB reads it; neither number, bytes nor text becomes text.

    >>> literal("it's"), literal(True), literal(0.5), literal(b"it")
    ("'it''s'", 'TRUE', '5.0000000000000000e-01', "UNHEX('6974')")
    """
    if isinstance(value, bytes):
        return f"UNHEX('{value.hex()}')"
    if isinstance(value, bool | int):
        return str(value).upper()
    if isinstance(value, float) and math.isfinite(value):
        return number(value)
    escaped = str(value).replace("'", "''").replace("\0", "' || CHR(0) || '")
    return f"('{escaped}')" if "\0" in str(value) else f"'{escaped}'"


def _unnest(events: list[Event]) -> str:
    parts = (f"{{'event': {e.number}, 'p': {e.p}, 'y': {e.y}}}" for e in events)
    return f"UNNEST([{', '.join(parts)}], recursive := true)"


DIALECT = Dialect(_unnest, literal, "HASH")


class DuckDBTable(SqlTable):
    """Rows that DuckDB reads; by default from columns that have types."""

    dialect = DIALECT

    @abstractmethod
    def _query(self, query: str) -> Any:
        """Return the relation of a query."""

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""
        with reading(self.display_name):
            columns: dict[str, NDArray[Any]] = self._query(query).fetchnumpy()
        return columns

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what whole columns contain, in NumPy's words."""
        declared = self.declared(names)
        check_no_lists([name for name, kind in declared.items() if kind.endswith("]")])
        fields = ("STRUCT(", "MAP(", "UNION(")
        check_no_objects([n for n, kind in declared.items() if kind.startswith(fields)])
        return {
            name: "f8" if is_decimal(kind) else KINDS.get(kind, "O")
            for name, kind in declared.items()
        }

    def declared(self, names: Sequence[str]) -> dict[str, str]:
        """Return DuckDB's types of columns."""
        if not names:
            return {}
        described = self.run(f"DESCRIBE {self.select([(name, '') for name in names])}")
        return dict(zip(names, described["column_type"].tolist(), strict=True))

    def _typed(self, columns: Sequence[tuple[str, str]], called: Sequence[str]) -> str:
        """Return columns in their types, called c_0, c_1, ...; decimal keys as text."""
        declared = self.declared([name for name, kind in columns if kind == KEY])
        return numbered(
            [
                f"CAST({own} AS VARCHAR)"
                if kind == KEY and is_decimal(declared[name])
                else own
                for (name, kind), own in zip(columns, called, strict=True)
            ]
        )

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of groups from those of a column read as `KEY`."""
        declared = self.declared([name])[name]
        if is_decimal(declared):  # as doubles they would lose digits
            keys = [None if v is None else Decimal(v) for v in values.tolist()]
            return np.array(keys, dtype=object)
        # DuckDB returns dates as times.
        return values.astype(KINDS[declared]) if declared == "DATE" else values


@dataclass(frozen=True, eq=False)
class RelationTable(DuckDBTable):
    """A relation of the user's, or a data frame that was registered.

    DuckDB renames columns of a data frame that differ by case alone; `own_names` are
    those of the data frame. `connection` is one of our own that must stay open.
    """

    relation: Any
    display_name: str = ""
    connection: Any = None
    own_names: tuple[str, ...] = ()
    _view: str = field(default_factory=lambda: f"calibrant_{secrets.token_hex(6)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        return self.own_names or tuple(self.relation.columns)

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., in their types."""
        called = dict(zip(self.names, self.relation.columns, strict=True))
        chosen = self._typed(columns, [quoted(called[name]) for name, _ in columns])
        return f"SELECT {chosen} FROM {self._view}"

    def _query(self, query: str) -> Any:
        return self.relation.query(self._view, query)

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result, and leave no view behind."""
        try:
            return super().run(query)
        finally:
            self.relation.query(self._view, f"DROP VIEW IF EXISTS {self._view}")


def open_relation(source: Any) -> RelationTable:
    """Open a DuckDB relation or a data frame."""
    import narwhals as nw

    duckdb = load_duckdb()
    if isinstance(source, duckdb.DuckDBPyRelation):
        return RelationTable(source, "the relation")
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    connection = connect()
    try:
        connection.register("calibrant_frame", nw.to_native(frame, pass_through=True))
    except duckdb.Error as error:
        if isinstance(frame, nw.DataFrame) and find_spec("pyarrow") is None:
            raise MissingDependencyError(
                "DuckDB needs pyarrow to read this data frame; install it with: pip "
                "install pyarrow, or pass ",
                Setting("engine", "memory"),
                ".",
            ) from None
        if isinstance(frame, nw.DataFrame):
            raise SourceError(
                f"the data frame cannot be read by DuckDB: "
                f"{_describe_fault(str(error))}; pass ",
                Setting("engine", "memory"),
                ".",
            ) from None
        raise SourceError(
            f"source must be a path, a data frame or a relation; got "
            f"{type(source).__name__}."
        ) from None
    relation = connection.table("calibrant_frame")
    names = tuple(frame.columns) if isinstance(frame, nw.DataFrame) else ()
    return RelationTable(relation, "the data frame", connection, names)


def is_decimal(declared: str) -> bool:
    """Tell whether a type of DuckDB's is that of decimals."""
    return declared.startswith("DECIMAL")


def numbered(expressions: Sequence[str]) -> str:
    """Return expressions of columns, called c_0, c_1, ..."""
    return ", ".join(f"{e} AS c_{place}" for place, e in enumerate(expressions))


def listed(texts: Sequence[str]) -> str:
    """Return several texts as a list in SQL."""
    return f"[{', '.join(map(literal, texts))}]"


def connect() -> Any:
    """Return a connection of our own."""
    connection = load_duckdb().connect()
    for name, value in SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    return connection


@contextmanager
def reading(display_name: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours."""
    try:
        yield
    except load_duckdb().Error as error:
        fault = _describe_fault(str(error))
        raise SourceError(f"{display_name} cannot be read: {fault}") from None


def _describe_fault(message: str) -> str:
    """Return what is wrong with a line of a text file, or DuckDB's own words."""
    line, fields = BAD_LINE.search(message), BAD_WIDTH.search(message)
    if line and "not utf-8" in message:
        return f"line {line[1]} {WRONG_ENCODING}"
    if line and fields:
        width, count = map(int, fields.groups())
        has = "more than " if count > width else ""
        fewer = min(count, width)
        word = "field" if fewer == 1 else "fields"
        return f"line {line[1]} has {has}{fewer} {word}, the header has {width}"
    if line and "unterminated quote" in message:
        return f"line {line[1]} has a quote that does not end"
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return "; ".join(lines[:3]).rstrip(".")


def load_duckdb() -> ModuleType:
    """Return DuckDB, or say how to install it."""
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError.for_extra(
            "reading in place", "duckdb", "data"
        ) from None
    return duckdb
