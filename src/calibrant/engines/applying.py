"""Maps applied to files by DuckDB, in little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant._atomic import replacing
from calibrant.engines.duckdb import (
    ROWS,
    DuckDBTable,
    load_duckdb,
    open_duckdb,
    reading,
)
from calibrant.engines.files import PARQUET, SEPARATORS, check_writable
from calibrant.engines.row_checks import precision_of, prediction_checks
from calibrant.exceptions import InputError, OptionError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from calibrant.engines.source_files import FileSet

NO_PROBABILITY = "no probability"


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
    table = open_duckdb(files)
    if table.like(column).dtype.kind not in "biuf":
        raise InputError(f"column {column!r} must hold numbers; it holds text.")
    if name in table.names:
        raise OptionError(f"{files} has a column {name!r} already; choose another.")
    calibrated = f"COALESCE({to_sql(column)}, ERROR('{NO_PROBABILITY}'))"
    new = '"' + name.replace('"', '""') + '"'
    try:
        with replacing(out) as temporary, reading(str(files)):
            rows = table.relation.query(
                ROWS, f"SELECT *, {calibrated} AS {new} FROM {ROWS}"
            )
            _write(rows, temporary)
            count = table.relation.aggregate("COUNT(*)").fetchall()[0][0]
    except SourceError as error:
        if NO_PROBABILITY in str(error):
            _raise_no_probability(table, column)
        told = str(error).partition("cannot be read: ")[2]
        if "write" in told.lower():
            raise SourceError(f"{out} cannot be written: {told}") from None
        raise
    return int(count)


def _check_out(out: Path) -> None:
    check_writable(out)
    if out.suffix.lower() not in (*SEPARATORS, *PARQUET):
        raise OptionError(f"{out}: DuckDB writes .csv, .tsv and .parquet here.")


def _write(rows: Any, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        rows.write_parquet(str(path))
    else:
        rows.write_csv(str(path), sep=SEPARATORS[suffix], header=True)


def _raise_no_probability(table: DuckDBTable, column: str) -> None:
    """Raise the error about predictions that are none."""
    read = load_duckdb().ColumnExpression(column).cast("DOUBLE").alias("x_0")
    checks = prediction_checks(column, "x_0", precision_of(table.like(column)))
    table.diagnose(table.relation.select(read), checks)
    raise InputError(
        f"column {column!r} passes 0 or 1 by rounding; apply the map in memory."
    )
