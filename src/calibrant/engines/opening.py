"""Which engine reads a source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from calibrant.engines.cell_files import holds_cells, load_cells
from calibrant.engines.cells import AggregatedCells
from calibrant.engines.files import (
    FILE_COLUMN,
    ROW_COLUMN,
    FileSet,
    find_files,
    names_files,
)
from calibrant.engines.memory import EQUAL, MemoryTable, open_table
from calibrant.exceptions import OptionError, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.engines.aggregation_spec import BadRows
    from calibrant.engines.sql_tables import SqlTable

    Table: TypeAlias = MemoryTable | SqlTable

Engine: TypeAlias = Literal["auto", "memory", "duckdb", "spark"]

MAX_FILE_IN_MEMORY = 2**28
"""A single file of at most so many bytes is read into memory."""


def needs_memory(columns: Iterable[str | None]) -> bool:
    """Tell whether some columns are computed from others, which is done in memory."""
    computed = (FILE_COLUMN, ROW_COLUMN)
    return any(name in computed or (name and EQUAL in name) for name in columns)


def open_cells(source: Any) -> AggregatedCells | None:
    """Return the cells that a source is or contains; None where it contains rows."""
    if isinstance(source, AggregatedCells):
        return source
    files = _files(source)
    if files is None or files.kind != "parquet" or files.has_streams:
        return None
    return load_cells(*files.paths) if holds_cells(files.paths[0]) else None


def open_source(
    source: Any, engine: Engine = "auto", *, bad_rows: BadRows = "error"
) -> Table:
    """Open a source by an engine.

    "auto" takes "spark" for a Spark data frame; "duckdb" for a DuckDB relation, a
    pattern, a folder, several files, or one larger than 256 MiB; and "memory" for
    everything else.
    """
    files = _files(source)
    if files is None and type(source).__module__.startswith("calibrant."):
        return cast("Table", source)  # opened already
    if engine == "auto":
        engine = _usual_engine(source) if files is None else engine_of_files(files)
    opened = source if files is None else files
    if engine == "memory":
        return open_table(opened, bad_rows=bad_rows)
    if files is not None:
        check_engine(files, engine)
    if engine == "spark":
        from calibrant.engines.spark import open_spark

        return open_spark(opened)
    if files is not None:
        from calibrant.engines.duckdb_files import open_files

        return open_files(files, bad_rows=bad_rows)
    from calibrant.engines.duckdb_sources import open_relation

    return open_relation(source)


def check_engine(files: FileSet, engine: Engine) -> None:
    """Raise an error if only the memory engine reads files, but another was named."""
    if engine == "memory" or not files.memory_only:
        return
    why = "can be read only once, so" if files.has_streams else "is read in memory,"
    raise OptionError(
        f"{files} {why} not by the {engine} engine; pass ",
        Setting("engine", "memory"),
        ".",
    )


def engine_of_files(files: FileSet, *, max_size: int = MAX_FILE_IN_MEMORY) -> Engine:
    """Return the engine that is used for files if the user names none.

    "memory" for a single small file that was named, and for what only memory reads.
    """
    one = len(files.paths) == 1 and files.paths == files.given
    small = one and files.size <= max_size
    return "memory" if small or files.memory_only else "duckdb"


def _usual_engine(source: Any) -> Engine:
    module = type(source).__module__.partition(".")[0]
    if module == "pyspark":
        return "spark"
    return "duckdb" if module in ("duckdb", "_duckdb") else "memory"


def _files(source: Any) -> FileSet | None:
    """Return the files that a source names or is; None where it is rows."""
    if isinstance(source, FileSet):
        return source
    return find_files(source) if names_files(source) else None
