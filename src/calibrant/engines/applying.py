"""Maps applied to files by DuckDB, in little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant._atomic import replacing
from calibrant._validation.scales import precision_of
from calibrant.engines.duckdb import ROWS, DuckDBTable, open_duckdb
from calibrant.engines.duckdb_files import load_duckdb, reading
from calibrant.engines.files import PARQUET, SEPARATORS, check_writable
from calibrant.engines.row_checks import prediction_rules
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
    _refuse_same_but_for_case([*table.names, name])
    rows = _rows(table, out)
    try:
        with replacing(out) as temporary, reading(str(files)):
            _write(rows.query(ROWS, _query(table, to_sql, column, name)), temporary)
            count = table.relation.aggregate("COUNT(*)").fetchall()[0][0]
    except SourceError as error:
        if NO_PROBABILITY in str(error):
            _raise_no_probability(table, column)
        told = str(error).partition("cannot be read: ")[2]
        if "write" in told.lower():
            raise SourceError(f"{out} cannot be written: {told}") from None
        raise
    return int(count)


def _rows(table: DuckDBTable, out: Path) -> Any:
    """Return the rows; from text to text nothing is read and written anew."""
    reader = table.reader
    if reader is None or not reader.is_text or out.suffix.lower() not in SEPARATORS:
        return table.relation
    with reading(table.told):
        return reader.text()


def _query(
    table: DuckDBTable, to_sql: Callable[[str], str], column: str, name: str
) -> str:
    """Return the query for all columns and the new one."""
    score = "calibrant_score"
    while score in {there.lower() for there in table.names}:
        score += "_"
    kept = (f"{_quoted(table.called(own))} AS {_quoted(own)}" for own in table.names)
    new = f"COALESCE({to_sql(score)}, ERROR('{NO_PROBABILITY}')) AS {_quoted(name)}"
    number = f"CAST({_quoted(table.called(column))} AS DOUBLE) AS {score}"
    return f"SELECT {', '.join(kept)}, {new} FROM (SELECT *, {number} FROM {ROWS})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _refuse_same_but_for_case(names: list[str]) -> None:
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


def _write(rows: Any, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        rows.write_parquet(str(path))
    else:
        rows.write_csv(str(path), sep=SEPARATORS[suffix], header=True)


def _raise_no_probability(table: DuckDBTable, column: str) -> None:
    """Raise the error about predictions that are none."""
    called = load_duckdb().ColumnExpression(table.called(column))
    read = called.cast("DOUBLE").alias("x_0")
    rules = prediction_rules(column, "x_0", precision_of(table.like(column).dtype))
    table.refuse_invalid(table.relation.select(read), rules)
    raise InputError(
        f"column {column!r} passes 0 or 1 by rounding; apply the map in memory."
    )
