"""Applying maps to files of any size by DuckDB: one pass, in little memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant.core.output_files import atomic_write
from calibrant.engines.aggregation_query import MAX_INVALID_VALUES
from calibrant.engines.aggregation_spec import ModelColumns
from calibrant.engines.aggregation_sql import number
from calibrant.engines.duckdb_files import open_files
from calibrant.engines.duckdb_sources import literal, quoted
from calibrant.engines.files import (
    PARQUET,
    SEPARATORS,
    check_writable,
    same_ignoring_case,
)
from calibrant.engines.memory import MemoryTable
from calibrant.engines.row_checks import (
    ScaleEvidence,
    prediction_faults,
    raise_first,
)
from calibrant.exceptions import InputError, OptionError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from calibrant.engines.duckdb_files import FileTable
    from calibrant.engines.files import FileSet

NO_PROBABILITY = "no probability"
SCORE = "calibrant_score"


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
    source = open_files(files)
    names = source.names
    source.check_columns([column])
    if name in names:
        raise OptionError(f"{files} already has a column {name!r}; choose another.")
    if alike := same_ignoring_case([*names, name]):
        raise OptionError(
            f"columns {alike[0]!r} and {alike[1]!r} differ only in case, which "
            "DuckDB cannot write; use --engine memory, or rename one."
        )
    # Read as a number, what is none would seem to be missing.
    kinds = source.kinds([column]) if allow_missing else source.guess(column, [])
    _check_numbers(source, column, kinds)
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


def _count(source: FileTable, column: str, condition: str) -> int:
    """Return in how many rows a condition on the column, c_0, is true."""
    query = f"SELECT COUNT(*) AS n FROM ({source.select([(column, 'f8')])})"
    return int(source.run(f"{query} WHERE {condition}")["n"][0])


def _check_numbers(source: FileTable, column: str, kinds: Mapping[str, str]) -> None:
    known = "iuf" if source.is_text else "biuf"  # as text, true is no number
    if np.dtype(kinds[column]).kind not in known:
        raise InputError(f"column {column!r} must contain numbers; it contains text.")


def _write(source: FileTable, query: str, path: Path) -> int:
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
    source: FileTable, column: str, *, allow_missing: bool
) -> None:
    """Raise the error about predictions that are not probabilities."""
    kinds = source.kinds([column])
    _check_numbers(source, column, kinds)
    condition = "NOT COALESCE(c_0 BETWEEN 0 AND 1, FALSE)"
    if allow_missing:
        condition += f" AND {_known('c_0')}"
    rows = f"SELECT c_0 FROM ({source.select([(column, 'f8')])}) WHERE {condition}"
    found = source.run(
        f"SELECT CAST(c_0 AS DOUBLE) AS p, COUNT(*) AS n_rows "
        f"FROM ({rows} LIMIT {MAX_INVALID_VALUES}) GROUP BY p"
    )
    dtype = np.dtype(kinds[column])
    p = np.ma.filled(found["p"], np.nan).astype(dtype if dtype.kind == "f" else float)
    table = MemoryTable((column,), {column: p}.__getitem__)
    counts, ranges = found["n_rows"], list[ScaleEvidence]()
    model = ModelColumns(column, (column,))
    faults = list(prediction_faults(table, model, ranges, counts))
    total, invalid = (_count(source, column, which) for which in ("TRUE", condition))
    ranges = [replace(r, summary=replace(r.summary, rows=total)) for r in ranges]
    raise_first(faults, ranges, counts, invalid=invalid, total=total, droppable=False)
    raise InputError(
        f"column {column!r} is outside [0, 1] because of rounding; apply the map "
        "with --engine memory."
    )
