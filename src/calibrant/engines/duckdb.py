"""Tables of any size through DuckDB: one pass, in little memory."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.core.output_files import atomic_write
from calibrant.core.row_rules import precision_of
from calibrant.engines.aggregation_sql import number
from calibrant.engines.duckdb_sources import (
    ParquetFiles,
    RelationSource,
    connect,
    literal,
    load_duckdb,
    quoted,
)
from calibrant.engines.duckdb_text import JsonFiles, SeparatedFiles
from calibrant.engines.files import PARQUET, SEPARATORS, FileSet, check_writable
from calibrant.engines.row_checks import RowFaults, prediction_rules
from calibrant.exceptions import (
    InputError,
    MissingDependencyError,
    OptionError,
    Setting,
    SourceError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from calibrant.engines.aggregation_spec import BadRows
    from calibrant.engines.duckdb_sources import FileSource, Source

NO_PROBABILITY = "no probability"
SCORE = "calibrant_score"


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


class Applied(NamedTuple):
    """How many rows were written, without a prediction, and outside of limits."""

    rows: int
    empty: int = 0
    outside: int = 0


def apply_in_duckdb(
    to_sql: Callable[[str], str],
    files: FileSet,
    column: str,
    name: str,
    out: Path,
    *,
    limits: tuple[float, float] | None = None,
    allow_missing: bool = False,
) -> Applied:
    """Write all rows of files with a new column of calibrated probabilities.

    The file `out` is written atomically. `to_sql` returns the expression of a map
    for a column; the new column is called `name`. With `allow_missing` it is NULL
    where there is no prediction.
    """
    check_writable(out)
    suffix = out.suffix.lower()
    if suffix not in (*SEPARATORS, *PARQUET):
        raise OptionError(
            f"{out}: the duckdb engine can only write .csv, .tsv and .parquet."
        )
    source = open_in_place(files)
    names = source.all_names
    source.check_columns([column])
    if name in names:
        raise OptionError(f"{files} already has a column {name!r}; choose another.")
    _check_distinct_ignoring_case([*names, name])
    _check_numbers(column, source.guess(column, []))
    try:
        with atomic_write(out) as temporary:
            # From text to text nothing is parsed and formatted again.
            kept = source.kept_columns(as_text=suffix in SEPARATORS)
            read = source.select([*kept, (column, "f8")])
            chosen = [f"c_{place} AS {quoted(own)}" for place, own in enumerate(names)]
            calibrated = f"COALESCE({to_sql(SCORE)}, ERROR('{NO_PROBABILITY}'))"
            if allow_missing:
                calibrated = f"CASE WHEN {_known(SCORE)} THEN {calibrated} END"
            chosen.append(f"{calibrated} AS {quoted(name)}")
            score = f"SELECT *, CAST(c_{len(names)} AS DOUBLE) AS {SCORE} FROM ({read})"
            query = f"SELECT {', '.join(chosen)} FROM ({score})"
            rows = _write(source, query, temporary)
    except SourceError as error:
        if NO_PROBABILITY in str(error):
            _raise_no_probability(source, column, allow_missing=allow_missing)
        what = str(error).partition("cannot be read: ")[2]
        if "write" in what.lower():
            raise SourceError(f"{out} cannot be written: {what}") from None
        raise
    empty, outside = 0, 0
    if allow_missing:
        empty = _count(source, column, f"NOT ({_known('c_0')})")
    if limits is not None:
        low, high = map(number, limits)
        beyond = f"(c_0 < {low} OR c_0 > {high}) AND {_known('c_0')}"
        outside = _count(source, column, beyond)
    return Applied(rows, empty, outside)


def _count(source: FileSource, column: str, condition: str) -> int:
    """Return in how many rows a condition on the column, c_0, is true."""
    query = f"SELECT COUNT(*) AS n FROM ({source.select([(column, 'f8')])})"
    return int(source.run(f"{query} WHERE {condition}")["n"][0])


def _check_numbers(column: str, kinds: Mapping[str, str]) -> None:
    if np.dtype(kinds[column]).kind not in "biuf":
        raise InputError(f"column {column!r} must contain numbers; it contains text.")


def _check_distinct_ignoring_case(names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise OptionError(
                f"columns {other!r} and {name!r} differ only in case, which "
                "DuckDB cannot write; use --engine memory, or rename one."
            )


def _write(source: FileSource, query: str, path: Path) -> int:
    """Write the rows of a query and return how many there are."""
    suffix = path.suffix.lower()
    options = "FORMAT parquet"
    if suffix in SEPARATORS:
        options = f"FORMAT csv, HEADER, DELIMITER {literal(SEPARATORS[suffix])}"
    written = f"COPY ({query}) TO {literal(str(path))} ({options})"
    (count,) = source.run(written).values()
    return int(count[0])


def _known(value: str) -> str:
    """Return the condition that a number is there."""
    return f"({value} IS NOT NULL AND NOT ISNAN({value}))"


def _raise_no_probability(
    source: FileSource, column: str, *, allow_missing: bool
) -> None:
    """Raise the error about predictions that are not probabilities."""
    kinds = source.kinds([column])
    _check_numbers(column, kinds)
    rules = prediction_rules(column, "x_0", precision_of(np.dtype(kinds[column])))
    read = source.select([(column, "f8")])
    rows = f"(SELECT CAST(c_0 AS DOUBLE) AS x_0 FROM ({read}))"
    if allow_missing:
        filled = f"CASE WHEN {_known('x_0')} THEN x_0 ELSE 0 END"
        rows = f"(SELECT {filled} AS x_0 FROM {rows})"
    RowFaults.count(rules, source.run, rows).raise_first(droppable=False)
    raise InputError(
        f"column {column!r} is outside [0, 1] because of rounding; apply the map "
        "with --engine memory."
    )
