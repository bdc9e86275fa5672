"""Maps applied to files by DuckDB, in little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.output_files import atomic_write
from calibrant.core.scales import precision_of
from calibrant.engines.duckdb import open_in_place
from calibrant.engines.duckdb_sources import literal, quoted, reading
from calibrant.engines.files import PARQUET, SEPARATORS, check_writable
from calibrant.engines.row_checks import RowFaults, prediction_rules
from calibrant.exceptions import InputError, OptionError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from calibrant.engines.duckdb import SourceOfFiles
    from calibrant.engines.source_files import FileSet

NO_PROBABILITY = "no probability"
SCORE = "calibrant_score"


def apply_in_duckdb(
    to_sql: Callable[[str], str], files: FileSet, column: str, name: str, out: Path
) -> int:
    """Write all rows with a new column of calibrated probabilities; return how many.

    The file appears whole or not at all.

    Parameters
    ----------
    to_sql : callable
        Gives the expression of a map for a column, as `to_sql` of maps.
    files : FileSet
        The rows.
    column, name : str
        Column of probabilities, and what the new one is called.
    out : path
        Where to write: CSV, TSV or Parquet.

    Returns
    -------
    int
        Number of rows.
    """
    _check_out(out)
    with reading(str(files)):
        source = open_in_place(files)
        names = source.all_names
        source.check_columns([column])
    if name in names:
        raise OptionError(f"{files} has a column {name!r} already; choose another.")
    _check_distinct_ignoring_case([*names, name])
    with reading(source.told):
        _check_numbers(column, source.guess(column, []))
    try:
        with atomic_write(out) as temporary, reading(str(files)):
            # From text to text nothing is read and written anew.
            kept = source.kept_columns(as_text=out.suffix.lower() in SEPARATORS)
            rows = source.select([*kept, (column, "f8")])
            query = _query(rows, names, name, to_sql(SCORE))
            return _write(source, query, temporary)
    except SourceError as error:
        if NO_PROBABILITY in str(error):
            _raise_no_probability(source, column)
        told = str(error).partition("cannot be read: ")[2]
        if "write" in told.lower():
            raise SourceError(f"{out} cannot be written: {told}") from None
        raise


def _check_numbers(column: str, kinds: Mapping[str, str]) -> None:
    if np.dtype(kinds[column]).kind not in "biuf":
        raise InputError(f"column {column!r} must hold numbers; it holds text.")


def _query(rows: str, names: Sequence[str], name: str, calibrated: str) -> str:
    """Return the query for all columns and the new one."""
    kept = [f"c_{place} AS {quoted(own)}" for place, own in enumerate(names)]
    new = f"COALESCE({calibrated}, ERROR('{NO_PROBABILITY}')) AS {quoted(name)}"
    score = f"SELECT *, CAST(c_{len(names)} AS DOUBLE) AS {SCORE} FROM ({rows})"
    return f"SELECT {', '.join([*kept, new])} FROM ({score})"


def _check_distinct_ignoring_case(names: list[str]) -> None:
    there: dict[str, str] = {}
    for name in names:
        other = there.setdefault(name.lower(), name)
        if other != name:
            raise OptionError(
                f"columns {other!r} and {name!r} differ by case alone, which DuckDB "
                f"does not write; use --engine memory, or rename one."
            )


def _check_out(out: Path) -> None:
    check_writable(out)
    if out.suffix.lower() not in (*SEPARATORS, *PARQUET):
        raise OptionError(f"{out}: DuckDB writes .csv, .tsv and .parquet here.")


def _write(source: SourceOfFiles, query: str, path: Path) -> int:
    """Write the rows of a query and return how many there are."""
    suffix = path.suffix.lower()
    options = "FORMAT parquet"
    if suffix in SEPARATORS:
        options = f"FORMAT csv, HEADER, DELIMITER {literal(SEPARATORS[suffix])}"
    written = f"COPY ({query}) TO {literal(str(path))} ({options})"
    (count,) = source.run(written).values()
    return int(count[0])


def _raise_no_probability(source: SourceOfFiles, column: str) -> None:
    """Raise the error about predictions that are none."""
    with reading(source.told):
        kinds = source.kinds([column])
    _check_numbers(column, kinds)
    rules = prediction_rules(column, "x_0", precision_of(np.dtype(kinds[column])))
    column_read = source.select([(column, "f8")])
    rows = f"(SELECT CAST(c_0 AS DOUBLE) AS x_0 FROM ({column_read}))"
    with reading(source.told):
        RowFaults.count(rules, source.run, rows).raise_first(droppable=False)
    raise InputError(
        f"column {column!r} passes 0 or 1 by rounding; apply the map in memory."
    )
