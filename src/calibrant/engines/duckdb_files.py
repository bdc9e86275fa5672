"""Files as DuckDB reads them: columns of text files are what they are in memory."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from calibrant.engines.files import load_polars, refuse_same_names
from calibrant.exceptions import MissingDependencyError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType

    from calibrant.engines.source_files import FileSet

SEPARATORS = {"csv": ",", "tsv": "\t"}
READERS = {
    "parquet": "read_parquet($files, union_by_name = true)",
    "json": "read_json($files, format = 'newline_delimited')",
}
"""How files are read. Columns of several Parquet files get a type that holds all their
values: that of the first file would round those of the others."""
GUESSED = "auto_type_candidates = ['BIGINT', 'DOUBLE', 'VARCHAR']"
"""What columns of text files may be; DuckDB would take yes and t for truth values, and
text that looks like a day for a day."""
LOOKED_AT = 100
"""So many rows tell whether text is true or false."""


@dataclass(frozen=True, eq=False)
class FileReader:
    """Files, and a connection that reads them.

    Attributes
    ----------
    connection : DuckDBPyConnection
        Of our own.
    files : FileSet
        What to read.
    leave_out : bool
        Whether lines of text files that are no rows are noted and left out.
    """

    connection: Any
    files: FileSet
    leave_out: bool = False

    @property
    def is_text(self) -> bool:
        """Tell whether files hold text, whose types must be guessed."""
        return self.files.kind in SEPARATORS

    def relation(self, types: Mapping[str, str] | None = None) -> Any:
        """Return the rows; columns of text files can be given a type."""
        if not self.is_text:
            return self._read(READERS[self.files.kind])
        chosen = self._truth_values | dict(types or {})
        if not chosen:
            return self._read_text(GUESSED)
        return self._read_text(GUESSED, "types = $types", types=chosen)

    def text(self) -> Any:
        """Return the rows of text files, every column as the text that it is."""
        return self._read_text("all_varchar = true", "allow_quoted_nulls = false")

    def names(self, columns: list[str]) -> tuple[str, ...]:
        """Return the names that stand in the files, for the columns of a relation.

        DuckDB takes blanks away, and renames columns that differ by case alone.
        """
        there = self._header(columns)
        refuse_same_names(str(self.files), there)
        pairs = zip(there, columns, strict=False)
        if len(there) > len(columns) or not all(_is_called(*pair) for pair in pairs):
            return tuple(columns)
        return (*there, *columns[len(there) :])

    def refuse_lacking(self, columns: list[str]) -> None:
        """Raise where one of several Parquet files lacks a column that others have.

        DuckDB would take its rows for rows without a value.
        """
        if self.files.kind != "parquet":
            return
        read = "parquet_schema($files)"
        query = f"SELECT DISTINCT file_name, name FROM {read} ORDER BY ALL"
        params = {"files": self.files.patterns}
        pairs = self.connection.execute(query, params).fetchall()
        files = dict.fromkeys(file for file, _ in pairs)
        for column in columns:
            having = {file for file, name in pairs if name == column}
            if having and len(having) < len(files):
                lacking = next(file for file in files if file not in having)
                raise SourceError(
                    f"{lacking} has no column {column!r}, which other files have. "
                    f"Leave the file out, or add the column."
                )

    def _header(self, columns: list[str]) -> list[str]:
        first = self.files.paths[0]
        if self.is_text:
            options = ("all_varchar = true", "ignore_errors = true")
            row = self._read_text(*options, header=False, first=True)
            found = row.limit(1).fetchall()
            return ["" if name is None else name for name in found[0]] if found else []
        renamed = any(name.rpartition("_")[2].isdecimal() for name in columns)
        if self.files.kind == "parquet" and renamed and self.files.local_paths:
            return list(
                load_polars("reading .parquet files").read_parquet_schema(first)
            )
        return list(columns)

    @cached_property
    def _truth_values(self) -> dict[str, str]:
        """Return the type of columns that hold true and false."""
        rows = self._read_text(GUESSED)
        text = [place for place, kind in enumerate(rows.types) if kind == "VARCHAR"]
        some = rows.limit(LOOKED_AT).fetchall() if text else []
        found = {}
        for place in text:
            values = {row[place].lower() for row in some if row[place] is not None}
            if values and values <= {"true", "false"}:
                found[rows.columns[place]] = "BOOLEAN"
        return found

    def _read_text(
        self, *options: str, header: bool = True, first: bool = False, **params: Any
    ) -> Any:
        separator = SEPARATORS[self.files.kind]
        usual = [f"header = {header}", f"delim = '{separator}'", "comment = ''"]
        if self.leave_out and header:
            usual.append("store_rejects = true")
        options = (*usual, *options)
        files = self.files.patterns[:1] if first else None
        return self._read(f"read_csv($files, {', '.join(options)})", files, **params)

    def _read(self, reader: str, files: list[str] | None = None, **params: Any) -> Any:
        given = {"files": files or self.files.patterns} | params
        return self.connection.sql(f"SELECT * FROM {reader}", params=given)


def _is_called(name: str, column: str) -> bool:
    """Tell whether DuckDB may call a column so: without blanks, with a number."""
    plain = name.strip()
    return not plain or re.fullmatch(re.escape(plain) + r"(_\d+)?", column) is not None


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
