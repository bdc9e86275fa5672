"""Which engine reads a source."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from calibrant.engines.cell_files import holds_cells, load_cells
from calibrant.engines.cells import AggregatedCells
from calibrant.engines.file_formats import read_frames
from calibrant.engines.files import (
    FILE_COLUMN,
    FileSet,
    array_files,
    check_in_every_file,
    find_files,
    is_arrays,
    names_of_files,
)
from calibrant.engines.memory import EQUAL, MemoryTable, open_table, table_of_file
from calibrant.exceptions import OptionError, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import BadRows
    from calibrant.engines.duckdb import DuckDBTable
    from calibrant.engines.memory import Reader
    from calibrant.engines.spark import SparkTable

    SqlTable: TypeAlias = DuckDBTable | SparkTable
    Table: TypeAlias = MemoryTable | SqlTable

Engine: TypeAlias = Literal["auto", "memory", "duckdb", "spark"]

MAX_FILE_IN_MEMORY = 2**28
"""A single file of at most so many bytes is read into memory."""
MAX_FILES_IN_MEMORY = 2**31
"""Several files are read into memory where that is asked for, up to so many bytes."""


def needs_memory(columns: Iterable[str | None]) -> bool:
    """Tell whether some columns are computed from others, which is done in memory."""
    return any(name == FILE_COLUMN or (name and EQUAL in name) for name in columns)


def with_file_column(table: MemoryTable, columns: Iterable[str]) -> MemoryTable:
    """Return a table of one file with the column of its name, if columns need it.

    Tables of several files have it.
    """
    if FILE_COLUMN not in columns or FILE_COLUMN in table.names or not table.files:
        return table
    path = (
        table.files[0] if is_arrays(table.files) else find_files(table.files).paths[0]
    )
    stem = np.full(len(table.read(table.names[0])), names_of_files([Path(path)])[0])

    def added(read: Reader | None) -> Any:
        return read and (lambda name: stem if name == FILE_COLUMN else read(name))

    return replace(
        table,
        names=(*table.names, FILE_COLUMN),
        read=added(table.read),
        read_keys=added(table.read_keys),
    )


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
    if type(source).__module__.startswith("calibrant."):  # opened already
        return cast("Table", source)
    source = array_files(source) or source
    files = _files(source)
    if engine == "auto":
        engine = (
            _usual_engine(source) if files is None else engine_of_files(source, files)
        )
    if engine == "memory":
        if files is not None:
            table = open_files(files, bad_rows=bad_rows)
        else:
            table = open_table(source, bad_rows=bad_rows)
            if not is_arrays(source):
                return table
        given = source if isinstance(source, list | tuple) else [source]
        return replace(table, files=tuple(map(os.fspath, given)))
    if is_arrays(source):
        raise OptionError(
            f"{source} is read in memory, not by the {engine} engine; pass ",
            Setting("engine", "memory"),
            ".",
        )
    if files is not None and files.has_streams:
        raise OptionError(
            f"{files} can be read only once, from beginning to end, which the "
            f"{engine} engine cannot do; pass ",
            Setting("engine", "memory"),
            ", or write the rows to a file first.",
        )
    if engine == "spark":
        from calibrant.engines.spark import open_spark

        return open_spark(source if files is None else files)
    from calibrant.engines.duckdb import open_duckdb

    return open_duckdb(source if files is None else files, bad_rows=bad_rows)


def engine_of_files(
    source: Any, files: FileSet, *, max_size: int = MAX_FILE_IN_MEMORY
) -> Engine:
    """Return "memory" for one file that was named and is small, or a pipe.

    Else return "duckdb".
    """
    one = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    small = files.paths == (one,) and files.size <= max_size
    return "memory" if small or files.has_streams else "duckdb"


def _usual_engine(source: Any) -> Engine:
    module = type(source).__module__.partition(".")[0]
    if module == "pyspark":
        return "spark"
    return "duckdb" if module in ("duckdb", "_duckdb") else "memory"


def open_files(
    files: FileSet,
    *,
    bad_rows: BadRows = "error",
    max_size: int = MAX_FILES_IN_MEMORY,
) -> MemoryTable:
    """Read files into memory, several of them as one table of at most so many bytes."""
    if len(files.paths) == 1:
        return open_table(files.paths[0], bad_rows=bad_rows)
    return read_files(files, bad_rows=bad_rows, max_size=max_size)[1]


def read_files(
    files: FileSet,
    *,
    bad_rows: BadRows = "error",
    max_size: int = MAX_FILES_IN_MEMORY,
) -> tuple[Any, MemoryTable]:
    """Return the rows of several files as a polars data frame, and as a table."""
    if files.size > max_size:
        raise OptionError(
            f"{files}: {len(files.paths)} files of {files.size / 2**30:.1f} GiB "
            "are too large for memory. Aggregate their rows with 'calibrant "
            "aggregate', or pass fewer files."
        )
    paths = [Path(path) for path in files.paths]
    frame, lines, sizes, lacking = read_frames(
        paths, leave_out=bad_rows == "drop", name_column=FILE_COLUMN
    )
    table = table_of_file(frame, paths[0])

    def read(name: str) -> NDArray[Any]:
        check_in_every_file(name, lacking)
        return table.read(name)

    parts = tuple(zip(files.paths, sizes, strict=True))
    return frame, replace(table, read=read, lines_left_out=lines, parts=parts)


def _files(source: Any) -> FileSet | None:
    """Return the files that a source names; None where it is rows or arrays."""
    given = source if isinstance(source, list | tuple) else [source]
    named = bool(given) and all(isinstance(p, str | os.PathLike) for p in given)
    return find_files(source) if named and array_files(source) is None else None
