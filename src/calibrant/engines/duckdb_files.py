"""Files as DuckDB reads them: Parquet, and text, whose values say what columns are."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from calibrant.engines.duckdb_sources import (
    DuckDBTable,
    connect,
    listed,
    numbered,
    quoted,
    reading,
)
from calibrant.engines.files import (
    check_distinct_names,
    check_in_every_file,
    same_ignoring_case,
)
from calibrant.engines.text_files import (
    class_sql,
    kind_kept,
    kind_of,
    read_header,
    truth_sql,
)
from calibrant.exceptions import Setting, SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import BadRows
    from calibrant.engines.files import FileSet
    from calibrant.engines.text_files import Kind

FIRST_ROWS = 1000
"""How many rows of a text file are examined for a first guess."""
LINE_SIZE = 2**21
"""Bytes of a line, at most; of a file with very many columns, more."""
VALUE_SIZE = 40


def open_files(files: FileSet, *, bad_rows: BadRows = "error") -> FileTable:
    """Open files by a connection of our own."""
    if files.kind == "parquet":
        return ParquetFiles(connect(), files)
    return SeparatedFiles(connect(), files, bad_rows == "drop")


@dataclass(frozen=True, eq=False)
class FileTable(DuckDBTable):
    """Files, several of them as one table with the columns of all."""

    connection: Any
    files: FileSet

    @property
    def display_name(self) -> str:
        """Return what errors call the files."""
        return str(self.files)

    def _query(self, query: str) -> Any:
        return self.connection.execute(query)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query's result."""
        with reading(self.display_name):
            rows: list[tuple[Any, ...]] = self._query(query).fetchall()
        return rows

    @abstractmethod
    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:
        """Return all columns, and the kinds in which no value loses anything."""

    @property
    @abstractmethod
    def _columns(self) -> Mapping[str, Sequence[str]]:
        """Return the columns of each file, or of files with the same columns."""

    @property
    def _partitions(self) -> list[str]:
        """Return the columns given by names of folders, as in year=2024/."""
        return []

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        every = (name for names in self._columns.values() for name in names)
        return (*dict.fromkeys(every), *self._partitions)

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist, or is missing from some of the files."""
        super().check_columns(names)
        for name in names:
            if name not in self._partitions:
                check_in_every_file(name, self._columns)


@dataclass(frozen=True, eq=False)
class ParquetFiles(FileTable):
    """Parquet files; a column gets a type that fits the values of all files."""

    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:  # noqa: ARG002
        """Return all columns, which keep their types."""
        return [(name, "") for name in self.names]

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., in their types."""
        called = [quoted(self._called.get(name, name)) for name, _ in columns]
        return f"SELECT {self._typed(columns, called)} FROM {self._reader}"

    @cached_property
    def _reader(self) -> str:
        options = [listed(self.files.patterns), "union_by_name = true"]
        if not self._has_partitions:
            options.append("hive_partitioning = false")
        return f"read_parquet({', '.join(options)})"

    @cached_property
    def _has_partitions(self) -> bool:
        """Tell whether names of folders give columns.

        They do not where files have such a column, which DuckDB would hide.
        """
        own = {name.lower() for names in self._columns.values() for name in names}
        given = self.files.partitions
        return bool(given) and own.isdisjoint(name.lower() for name in given)

    @cached_property
    def _columns(self) -> dict[str, list[str]]:
        schema = f"parquet_schema({listed(self.files.patterns)})"
        query = f"SELECT file_name, name, num_children FROM {schema}"
        columns: dict[str, list[str]] = {}
        inner = 0  # parts of a column that are to come
        for file, name, children in self._rows(query):
            if file not in columns:
                columns[file] = []
            elif inner:
                inner += (children or 0) - 1
            else:
                columns[file].append(name)
                inner = children or 0
        for file, names in columns.items():
            check_distinct_names(f"{file} has", names)
        return columns

    @cached_property
    def _partitions(self) -> list[str]:
        if not self._has_partitions:
            return []
        own = {name for names in self._columns.values() for name in names}
        return [name for name in self._all_columns if name not in own]

    @cached_property
    def _all_columns(self) -> list[str]:
        """Return what DuckDB calls the columns."""
        described = self._rows(f"DESCRIBE SELECT * FROM {self._reader}")
        return [name for name, *_ in described]

    @cached_property
    def _called(self) -> dict[str, str]:
        """Return what DuckDB calls columns that differ by case alone."""
        alike = same_ignoring_case(self.names)
        if alike is None:
            return {}
        if len(set(map(tuple, self._columns.values()))) > 1:
            raise SourceError(
                f"{self.files}: columns {alike[0]!r} and {alike[1]!r} differ only in "
                "case, and DuckDB cannot tell them apart where files have different "
                "columns. Rename one, or pass ",
                Setting("engine", "memory"),
                ".",
            )
        return dict(zip(self.names, self._all_columns, strict=False))


class Header(NamedTuple):
    """Files with the same first line: columns, empty lines before, paths."""

    names: list[str]
    skipped: int
    paths: list[str]


@dataclass(frozen=True, eq=False)
class SeparatedFiles(FileTable):
    """CSV or TSV files; with `leave_out`, lines that are not rows are left out."""

    leave_out: bool = False
    _whole: dict[str, Kind] = field(default_factory=dict, init=False, repr=False)

    is_text = True

    def guess(self, label: str, numbers: Sequence[str]) -> dict[str, str]:
        """Return what columns of labels, predictions and weights seem to contain.

        The first labels are looked at, and all else must be numbers.
        """
        kinds: dict[str, str] = dict.fromkeys(numbers, "f8")
        first = self._whole.get(label)
        if first is None:
            rows = f"SELECT * FROM ({self._tokens([label])}) LIMIT {FIRST_ROWS}"
            first = kind_of(self._classes([label], rows)[label])
        return kinds | {label: first}

    def kinds(self, names: Sequence[str]) -> dict[str, str]:
        """Return what whole columns contain, in NumPy's words."""
        unknown = [name for name in names if name not in self._whole]
        classes = self._classes(unknown, self._tokens(unknown))
        self._whole.update({name: kind_of(own) for name, own in classes.items()})
        return {name: self._whole[name] for name in names}

    def kind_of_few(self, name: str) -> str:
        """Return what a column of few distinct values contains, sooner than `kinds`."""
        if name not in self._whole:
            distinct = f"SELECT DISTINCT c_0 FROM ({self._tokens([name])})"
            self._whole[name] = kind_of(self._classes([name], distinct)[name])
        return self._whole[name]

    def kept_columns(self, *, as_text: bool) -> list[tuple[str, str]]:
        """Return all columns, and the kinds in which no value loses anything."""
        names = self.names
        if as_text:
            return [(name, "U1") for name in names]
        classes = self._classes(names, self._tokens(names))
        return [(name, kind_kept(own)) for name, own in classes.items()]

    def key_values(self, name: str, values: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        """Return the values, which are the text of the file."""
        return values

    def lines_left_out(self) -> int:
        """Return the number of lines that are not rows."""
        if not self.leave_out:
            return 0
        lines = "SELECT DISTINCT file_path, line FROM reject_errors JOIN reject_scans "
        counted = f"SELECT COUNT(*) FROM ({lines} USING (scan_id, file_id))"
        return int(self._rows(counted)[0][0])

    def select(self, columns: Sequence[tuple[str, str]]) -> str:
        """Return the query for columns called c_0, c_1, ..., each read as a kind."""
        read = [_as_kind(f"c_{k}", kind) for k, (_, kind) in enumerate(columns)]
        tokens = self._tokens([name for name, _ in columns])
        return f"SELECT {numbered(read)} FROM ({tokens})"

    def _classes(self, names: Sequence[str], query: str) -> dict[str, set[str]]:
        """Return which kinds of values there are in each column of a query."""
        classes: dict[str, set[str]] = {name: set() for name in names}
        if not names:
            return classes
        numbers = ", ".join(map(str, range(len(names))))
        tokens = ", ".join(f"c_{place}" for place in range(len(names)))
        # One row per value: many columns need no more expressions than one.
        rows = f"SELECT UNNEST([{numbers}]) AS k, UNNEST([{tokens}]) AS token"
        own_class = class_sql("token", _number("token"))
        found = self._rows(
            f"SELECT DISTINCT k, {own_class} AS class FROM ({rows} FROM ({query}))"
        )
        for place, one in found:
            classes[names[place]].update([] if one is None else [one])
        return classes

    def _tokens(self, names: Sequence[str]) -> str:
        """Return the query for columns c_0, c_1, ... as they stand in the files."""
        parts = []
        for header in self._headers:
            own = {name: f"k_{place}" for place, name in enumerate(header.names)}
            columns = [own.get(name, "CAST(NULL AS VARCHAR)") for name in names]
            parts.append(f"SELECT {numbered(columns)} FROM {self._reader(header)}")
        return " UNION ALL ".join(parts)

    def _reader(self, header: Header) -> str:
        size = max(LINE_SIZE, VALUE_SIZE * len(header.names))
        columns = ", ".join(f"k_{k}: 'VARCHAR'" for k in range(len(header.names)))
        options = [
            listed([escape(path) for path in header.paths]),
            f"columns = {{{columns}}}",
            f"delim = '{self.files.separator}'",
            f"skip = {header.skipped}",
            f"max_line_size = {size}",
            """quote = '"', escape = '"', comment = '', header = true""",
            "auto_detect = false, allow_quoted_nulls = false",
            "hive_partitioning = false",
            f"store_rejects = {self.leave_out}",
        ]
        return f"read_csv({', '.join(options)})"

    @cached_property
    def _headers(self) -> list[Header]:
        """Return files that follow each other with the same first line."""
        headers: list[Header] = []
        for path in self.files.paths:
            names, skipped = read_header(Path(path), self.files.separator)
            check_distinct_names(f"{path} has", names)
            if headers and headers[-1][:2] == (names, skipped):
                headers[-1].paths.append(path)
            else:
                headers.append(Header(names, skipped, [path]))
        return headers

    @property
    def _columns(self) -> dict[str, list[str]]:
        return {header.paths[0]: header.names for header in self._headers}


def _number(token: str) -> str:
    """Return text as a number, NULL where it is not one; for DuckDB, 1_000 is one."""
    return f"CASE WHEN NOT CONTAINS({token}, '_') THEN TRY_CAST({token} AS DOUBLE) END"


def _as_kind(token: str, kind: str) -> str:
    if kind == "?":
        return truth_sql(token)
    if kind == "f8":
        return _number(token)
    if kind == "i8":  # DuckDB would round others
        whole = f"TRY_CAST({token} AS BIGINT)"
        return f"CASE WHEN {whole} = {_number(token)} THEN {whole} END"
    return token
