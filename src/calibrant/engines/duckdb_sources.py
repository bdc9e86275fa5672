"""Where DuckDB finds rows whose columns have types: relations and Parquet files."""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant.engines.files import (
    check_distinct_names,
    check_in_every_file,
    lacking_columns,
)
from calibrant.engines.sql import number
from calibrant.exceptions import MissingDependencyError, SourceError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from calibrant.engines.source_files import FileSet

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
KEY = "key"
"""What columns of groups are read as."""
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


class Source(Protocol):
    """Rows that DuckDB reads.

    Attributes
    ----------
    told : str
        What errors call them.
    is_text : bool
        Whether values of groups are text, be they numbers or not.
    """

    @property
    def told(self) -> str: ...  # noqa: D102

    @property
    def is_text(self) -> bool: ...  # noqa: D102

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        ...

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows, if that takes a look at all of them."""
        ...

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there, or lacks in some of the files."""
        ...

    def guess(self, label: str, numbers: Sequence[str]) -> dict[str, str]:
        """Return what columns of labels, predictions and weights hold.

        Where files do not tell it is a guess, which is never for whole numbers. It may
        be wrong: then some rows have no value when they are read as that.
        """
        ...

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what whole columns hold, in NumPy's words."""
        ...

    def kind_of_few(self, name: str) -> str:
        """Return what a whole column of few distinct values holds."""
        ...

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., each read as a kind."""
        ...

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""
        ...

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of groups, of what a column read as `KEY` gave."""
        ...

    def lines_left_out(self) -> int:
        """Return the number of lines that are no rows."""
        ...


class TypedSource(ABC):
    """What sources have in common whose columns have types."""

    is_text = False

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns of all rows."""
        return self.names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there."""
        check_known(names, self.names)

    def guess(self, label: str, numbers: Sequence[str]) -> dict[str, str]:
        """Return what columns of labels, predictions and weights hold."""
        return self.kinds(list(dict.fromkeys([label, *numbers])))

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what columns hold, in NumPy's words."""
        described = self.run(f"DESCRIBE {self.select([(name, '') for name in names])}")
        declared = described["column_type"].tolist()
        return {
            name: "f8" if kind.startswith("DECIMAL") else KINDS.get(kind, "O")
            for name, kind in zip(names, declared, strict=True)
        }

    def kind_of_few(self, name: str) -> str:
        """Return what a column holds."""
        return self.kinds([name])[name]

    @abstractmethod
    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., in their types."""

    @abstractmethod
    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Return dates as dates: DuckDB gives them as times."""
        kind = np.dtype(self.kinds([name])[name])
        return values.astype(kind) if kind.kind == "M" else values

    def lines_left_out(self) -> int:
        """Return 0: all there is are rows."""
        return 0


@dataclass(frozen=True, eq=False)
class RelationSource(TypedSource):
    """A relation of the user's, or a data frame that was registered.

    Attributes
    ----------
    relation : DuckDBPyRelation
        The rows.
    told : str
        What errors call them.
    connection : DuckDBPyConnection or None
        One of our own that must stay open.
    own_names : tuple of str
        What columns are called in a data frame: DuckDB renames those that differ by
        case alone.
    """

    relation: Any
    told: str
    connection: Any = None
    own_names: tuple[str, ...] = ()
    _view: str = field(default_factory=lambda: f"calibrant_{secrets.token_hex(6)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        return self.own_names or tuple(self.relation.columns)

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., in their types."""
        called = dict(zip(self.names, self.relation.columns, strict=True))
        chosen = numbered([quoted(called[name]) for name, _ in columns])
        return f"SELECT {chosen} FROM {self._view}"

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result, and leave no view behind."""
        try:
            found: dict[str, NDArray[Any]] = self.relation.query(
                self._view, query
            ).fetchnumpy()
        finally:
            self.relation.query(self._view, f"DROP VIEW IF EXISTS {self._view}")
        return found


@dataclass(frozen=True, eq=False)
class ParquetFiles(TypedSource):
    """Parquet files, several of them as one table with the columns of all.

    A column gets a type that holds the values of all files.

    Attributes
    ----------
    connection : DuckDBPyConnection
        Of our own.
    files : FileSet
        What to read.
    """

    connection: Any
    files: FileSet

    @property
    def told(self) -> str:
        """Return what errors call the files."""
        return str(self.files)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        every = (name for names in self._columns.values() for name in names)
        return (*dict.fromkeys(every), *self._partitions)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there, or lacks in some of the files."""
        check_known(names, self.names)
        lacking = lacking_columns(self._columns)
        for name in names:
            if name not in self._partitions:
                check_in_every_file(name, lacking)

    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:  # noqa: ARG002
        """Return all columns: those of types stay what they are."""
        return [(name, "") for name in self.names]

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., in their types."""
        called = [quoted(self._called.get(name, name)) for name, _ in columns]
        return f"SELECT {numbered(called)} FROM {self._reader}"

    def run(self, query: str) -> dict[str, NDArray[Any]]:
        """Return the columns of a query's result."""
        return fetched(self.connection, query)

    @property
    def _reader(self) -> str:
        return f"read_parquet({listed(self.files.patterns)}, union_by_name = true)"

    @cached_property
    def _columns(self) -> dict[str, list[str]]:
        """Return the columns of each file."""
        schema = f"parquet_schema({listed(self.files.patterns)})"
        query = f"SELECT file_name, name, num_children FROM {schema}"
        found: dict[str, list[str]] = {}
        inner = 0  # parts of a column that are to come
        for file, name, children in self.connection.execute(query).fetchall():
            if file not in found:
                found[file] = []
            elif inner:
                inner += (children or 0) - 1
            else:
                found[file].append(name)
                inner = children or 0
        for file, names in found.items():
            check_distinct_names(file, names)
        return found

    @cached_property
    def _partitions(self) -> list[str]:
        """Return the columns that names of folders give, as in year=2024/."""
        if not in_partitions(self.files.paths):
            return []
        own = {name for names in self._columns.values() for name in names}
        columns = self.connection.sql(f"SELECT * FROM {self._reader}").columns
        return [name for name in columns if name not in own]

    @cached_property
    def _called(self) -> dict[str, str]:
        """Return what DuckDB calls columns that differ by case alone."""
        if len({name.lower() for name in self.names}) == len(self.names):
            return {}
        called = self.connection.sql(f"SELECT * FROM {self._reader}").columns
        return dict(zip(self.names, called, strict=False))


def check_known(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise where a column is not there."""
    there = set(known)
    for name in names:
        if name not in there:
            raise UnknownNameError.among("column", name, known)


def numbered(expressions: Sequence[str]) -> str:
    """Return expressions of columns, called c_0, c_1, ..."""
    return ", ".join(f"{e} AS c_{place}" for place, e in enumerate(expressions))


def quoted(name: str) -> str:
    """Return the name of a column as DuckDB reads it, whatever characters it holds.

    Examples
    --------
    >>> quoted('odd "name" here')
    '"odd ""name"" here"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a value as DuckDB reads it; what is no number and no text, as text.

    Examples
    --------
    >>> literal("it's"), literal(True), literal(0.5)
    ("'it''s'", 'TRUE', '5.0000000000000000e-01')
    """
    if isinstance(value, bool | int):
        return str(value).upper()
    if isinstance(value, float) and math.isfinite(value):
        return number(value)
    escaped = str(value).replace("'", "''").replace("\0", "' || CHR(0) || '")
    return f"('{escaped}')" if "\0" in str(value) else f"'{escaped}'"


def listed(texts: Sequence[str]) -> str:
    """Return several texts as a list in SQL."""
    return f"[{', '.join(map(literal, texts))}]"


def fetched(connection: Any, query: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a query's result."""
    found: dict[str, NDArray[Any]] = connection.execute(query).fetchnumpy()
    return found


def in_partitions(paths: Sequence[str]) -> bool:
    """Tell whether names of folders give columns, as in year=2024/."""
    return any("=" in part for path in paths for part in Path(path).parts[:-1])


def connect() -> Any:
    """Return a connection of our own."""
    connection = load_duckdb().connect()
    for name, value in SETTINGS.items():
        connection.execute(f"SET {name} = {value}")
    return connection


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
