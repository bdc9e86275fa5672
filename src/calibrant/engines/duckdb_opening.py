"""Opening files, data frames and relations in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from calibrant.engines.duckdb_sources import (
    ParquetFiles,
    RelationSource,
    connect,
    load_duckdb,
)
from calibrant.engines.duckdb_text import JsonFiles, SeparatedFiles
from calibrant.engines.files import FileSet
from calibrant.exceptions import MissingDependencyError, Setting, SourceError

if TYPE_CHECKING:
    from calibrant.engines.aggregation_spec import BadRows
    from calibrant.engines.duckdb_sources import FileSource, Source


def open_duckdb(source: Any, *, bad_rows: BadRows = "error") -> Source:
    """Open files, a data frame or a DuckDB relation."""
    if isinstance(source, load_duckdb().DuckDBPyRelation):
        return RelationSource(source, "the relation")
    if isinstance(source, FileSet):
        return open_in_place(source, bad_rows=bad_rows)
    return _of_frame(source)


def open_in_place(files: FileSet, *, bad_rows: BadRows = "error") -> FileSource:
    """Open files by a connection of our own."""
    connection = connect()
    if files.kind == "parquet":
        return ParquetFiles(connection, files)
    if files.kind in ("json", "records"):
        return JsonFiles(connection, files)
    return SeparatedFiles(connection, files, bad_rows == "drop")


def _of_frame(source: Any) -> RelationSource:
    import narwhals as nw

    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    is_polars = isinstance(frame, nw.DataFrame) and frame.implementation.is_polars()
    native = nw.to_native(frame, pass_through=True)
    without_pyarrow = is_polars and find_spec("pyarrow") is None
    connection = connect()
    try:
        connection.register(
            "calibrant_frame", ArrowStream(native) if without_pyarrow else native
        )
    except load_duckdb().Error:
        if without_pyarrow:
            raise MissingDependencyError(
                "this version of DuckDB needs pyarrow to read a polars data frame; "
                "install it with: pip install pyarrow, or pass ",
                Setting("engine", "memory"),
                ".",
            ) from None
        raise SourceError(
            f"source must be a path, a data frame or a relation; got "
            f"{type(source).__name__}."
        ) from None
    relation = connection.table("calibrant_frame")
    names = tuple(frame.columns) if isinstance(frame, nw.DataFrame) else ()
    return RelationSource(relation, "the data frame", connection, names)


@dataclass(frozen=True, eq=False)
class ArrowStream:
    """A data frame of which only the Arrow interface is visible."""

    frame: Any

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.frame.__arrow_c_stream__(requested_schema)
