"""Text files (CSV, TSV): which lines are rows, and what the values of a column are.

One rule for every engine. Rows have as many fields as the header: polars fills rows
that are too short, which may be a file that was cut in the middle of a number, and
takes empty lines for rows; here neither is a row, as in DuckDB. A column contains true
and false, whole numbers or numbers if all of its values do; else text. Values that are
missing or blank do not count.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant.engines.files import (
    FileSet,
    check_distinct_names,
    is_stream,
    load_polars,
    unreadable,
)
from calibrant.exceptions import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["?", "i8", "f8", "U1"]
"""NumPy's word for true and false, whole numbers, numbers, text."""
BLANKS = " \t\n\r\v\f"
NUMBERS = {
    "whole": "[+-]?(0|[1-9][0-9]{0,17})",  # fits into 64 bits
    "code": "[+-]?0[0-9]{1,17}",  # loses digits as a whole number, 007
    "long": r"[+-]?(0[0-9]+\..*|[0-9]{19,})",  # other numbers that may lose digits
}
"""Kinds of numbers that matter; other numbers are "number", and other values are
"truth" (true or false) or "text"."""
DAMAGED = (csv.Error, OSError, EOFError, zlib.error)
"""What damaged files raise, packed or not."""


def read_text(path: Path, separator: str, *, leave_out: bool) -> tuple[Any, int]:
    """Return the lines of a file that are rows, as text, and how many are not.

    Without `leave_out`, lines that are not rows raise an error.
    """
    if not is_stream(path):
        return _read(path, path, separator, leave_out=leave_out)
    with NamedTemporaryFile(suffix=path.suffix) as copy:  # it may be read twice
        copy.write(path.read_bytes())
        copy.flush()
        return _read(Path(copy.name), path, separator, leave_out=leave_out)


def _read(
    file: Path, path: Path, separator: str, *, leave_out: bool
) -> tuple[Any, int]:
    """Return the rows of a file, which errors call `path`, and the number of others."""
    pl = load_polars("reading text files")
    # Unlike polars, Python notices archives that were cut.
    source = read_content(file) if file.suffix == ".gz" else file
    try:
        frame = _parsed(path, source, separator)
    except pl.exceptions.PolarsError:
        return _read_by_duckdb(file, path, separator, leave_out=leave_out)
    if frame.width == 1 or not frame[:, -1].null_count():
        return frame, 0
    if has_all_fields(
        read_content(file), separator, fields=frame.width, lines=frame.height + 1
    ):
        return frame, 0
    return _read_by_duckdb(file, path, separator, leave_out=leave_out)


def _read_by_duckdb(
    file: Path, path: Path, separator: str, *, leave_out: bool
) -> tuple[Any, int]:
    """Return what `_read` does, where polars cannot be sure which lines are rows."""
    from calibrant.engines.duckdb_files import SeparatedFiles
    from calibrant.engines.duckdb_sources import connect

    pl = load_polars("reading text files")
    kind = "csv" if separator == "," else "tsv"
    files = FileSet((str(file),), kind, (str(path),))
    table = SeparatedFiles(connect(), files, leave_out)
    names, _ = read_header(file, separator)
    try:
        columns = table.run(table.select([(name, "U1") for name in names]))
    except SourceError as error:
        fault = str(error).partition("cannot be read: ")[2]
        raise unreadable(path, fault, separator.join(names)) from None
    text = (pl.Series(values.tolist(), dtype=pl.String) for values in columns.values())
    return pl.DataFrame(dict(zip(names, text, strict=True))), table.lines_left_out()


def _parsed(path: Path, source: Path | bytes, separator: str) -> Any:
    """Return text as a data frame, unless polars renamed a column that occurs twice."""
    pl = load_polars("reading text files")
    frame = pl.read_csv(source, separator=separator, infer_schema=False, glob=False)
    names = set(frame.columns)
    for name in frame.columns:
        first, renamed, _ = name.rpartition("_duplicated_")
        if renamed and first in names:
            check_distinct_names(f"{path} has", [first, first])
    return frame


def read_content(path: Path) -> bytes:
    """Return the bytes of a file, unpacked."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                return file.read()
        return path.read_bytes()
    except DAMAGED as error:
        raise SourceError(f"{path} cannot be read: {error}.") from None


def read_header(path: Path, separator: str) -> tuple[list[str], int]:
    """Return the columns that a text file names, and the empty lines before them."""
    for skipped, names in enumerate(_fields(path, separator)):
        if names:
            return names, skipped
    raise SourceError(f"{path} has no rows.")


def _fields(path: Path, separator: str) -> Iterator[list[str]]:
    """Yield the fields of each line of a text file."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    how = {"newline": "", "encoding": "utf-8-sig", "errors": "replace"}
    try:
        with opened(path, "rt", **how) as file:
            yield from csv.reader(file, delimiter=separator)
    except DAMAGED as error:
        raise SourceError(f"{path} cannot be read: {error}.") from None


def has_all_fields(content: bytes, separator: str, *, fields: int, lines: int) -> bool:
    r"""Return whether every line must have all fields, given the number of separators.

    >>> has_all_fields(b"a,b\n1,\n", ",", fields=2, lines=2)
    True
    """
    expected = (fields - 1) * lines
    return b'"' not in content and content.count(separator.encode()) == expected


def kind_of(classes: set[str]) -> Kind:
    """Return what a column contains; numbers, where it contains nothing.

    >>> kind_of({"whole", "number"}), kind_of({"whole", "text"}), kind_of({"truth"})
    ('f8', 'U1', '?')
    """
    if "text" in classes or ("truth" in classes and len(classes) > 1):
        return "U1"
    if "truth" in classes:
        return "?"
    return "i8" if classes and classes <= {"whole", "code"} else "f8"


def kind_kept(classes: set[str]) -> Kind:
    """Return the type in which no value of a column loses anything."""
    return "U1" if classes & {"code", "long"} or not classes else kind_of(classes)


def class_sql(token: str, number: str) -> str:
    """Return DuckDB's expression for what a value is; NULL where it is missing.

    `token` is the value as text; `number` as a number, NULL where it is not one.
    """
    blanks = f"'{BLANKS}'"
    numbers = " ".join(
        rf"WHEN REGEXP_FULL_MATCH({token}, '\s*{pattern}\s*') THEN '{name}'"
        for name, pattern in NUMBERS.items()
    )
    return f"""
        CASE WHEN ({number}) IS NULL THEN
            CASE WHEN TRIM({token}, {blanks}) = '' OR {token} IS NULL THEN NULL
            WHEN LOWER(TRIM({token}, {blanks})) IN ('true', 'false') THEN 'truth'
            ELSE 'text' END
        {numbers} ELSE 'number' END"""


def truth_sql(token: str) -> str:
    """Return DuckDB's expression of a column as true and false, else NULL."""
    cases = "WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE"
    return f"CASE LOWER(TRIM({token}, '{BLANKS}')) {cases} END"


def _classes(column: Any) -> set[str]:
    """Return which kinds of values there are in a polars column of text."""
    pl = load_polars("reading text files")
    text = column.str.strip_chars(BLANKS)
    text = text.filter(text != "")
    is_number = text.cast(pl.Float64, strict=False).is_not_null()
    numbers, others = text.filter(is_number), text.filter(~is_number)
    truth = others.str.to_lowercase().is_in(["true", "false"])
    which = {n: numbers.str.contains(f"^{own}$") for n, own in NUMBERS.items()}
    rest = ~(which["whole"] | which["code"] | which["long"])
    which |= {"truth": truth, "text": ~truth, "number": rest}
    return {name for name, rows in which.items() if rows.any()}


def _as_kind(column: Any, kind: Kind) -> Any:
    """Return a polars column of text in a type that all of its values have."""
    pl = load_polars("reading text files")
    if kind == "U1":
        return column
    text = column.str.strip_chars(BLANKS)
    if kind == "?":
        truth = {"true": True, "false": False}
        lower = text.str.to_lowercase()
        return lower.replace_strict(truth, default=None, return_dtype=pl.Boolean)
    return text.cast(pl.Int64 if kind == "i8" else pl.Float64, strict=False)


def typed_column(column: Any) -> Any:
    """Return a polars column of text in the type that its values have."""
    return _as_kind(column, kind_of(_classes(column)))


def typed_frame(frame: Any) -> Any:
    """Return a polars data frame of text with types in which no value loses anything.

    >>> import polars as pl
    >>> typed_frame(pl.DataFrame({"id": ["007"], "p": ["0.50"]})).rows()
    [('007', 0.5)]
    """
    kept = (_as_kind(column, kind_kept(_classes(column))) for column in frame)
    return frame.with_columns(*kept)
