"""Files of rows: read as a data frame, written whole or not at all."""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING, Any

from calibrant.core.output_files import ROWS, atomic_write, check_named
from calibrant.engines.text_lines import (
    UNREADABLE,
    has_all_fields,
    read_content,
    whole_lines,
)
from calibrant.exceptions import MissingDependencyError, OptionError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
PACKED = (".gz", ".zst")
FIRST_ROWS, FIRST_SIZE = 1000, 2**20
"""So many rows, or characters, of a text file are looked at for a guess."""
AS_TEXT: dict[str, Any] = {
    "newline": "",
    "encoding": "utf-8-sig",
    "errors": "replace",
}
"""How text files are opened to look at some of their lines."""
READABLE = "CSV, TSV, Parquet, JSON lines (.jsonl, .ndjson) and npz"
WRITABLE = "CSV, TSV, Parquet and JSON lines (.jsonl, .ndjson)"
APPLIED = "_calibrated"
"""What ends the names of columns that ``calibrant apply`` adds."""


def read_frame(path: Path) -> Any:
    """Return a file as a polars data frame.

    Columns of CSV and TSV files are the text that stands there, so that what is written
    again is what was read.
    """
    return read_rows(path)[0]


def read_rows(path: Path, *, leave_out: bool = False) -> tuple[Any, int]:
    """Return a file as a polars data frame, and how many lines were left out.

    With `leave_out` these are the lines of text files that are no rows; else they are
    refused.
    """
    check_file(path)
    pl = load_polars(f"reading {path.suffix} files")
    suffix = suffix_of(path)
    try:
        if suffix in SEPARATORS:
            return _read_text(path, SEPARATORS[suffix], leave_out=leave_out)
        if suffix in PARQUET:
            return pl.read_parquet(_content(path), glob=False), 0
        if suffix in JSON_LINES:
            # By name, brackets and stars would be a pattern.
            with path.open("rb") as file:
                return pl.read_ndjson(file, infer_schema_length=None), 0
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        csv.Error,
        OSError,
    ) as error:
        raise _unreadable(path, str(error).splitlines()[0]) from None
    raise SourceError(
        f"{path}: files that end in {suffix or 'nothing'!r} cannot be read; "
        f"known are {READABLE}."
    )


def _read_text(path: Path, separator: str, *, leave_out: bool) -> tuple[Any, int]:
    """Return the lines of a text file that are rows, and how many are none."""
    pl = load_polars("reading text files")
    # Unlike polars, Python notices archives that were cut or damaged.
    source = read_content(path) if path.suffix == ".gz" else _content(path)
    try:
        frame = _parsed(source, separator)
    except pl.exceptions.PolarsError:
        frame = None
    if frame is not None and (frame.width == 1 or not frame[:, -1].null_count()):
        return _named_once(path, frame), 0
    content = source if isinstance(source, bytes) else read_content(path)
    if frame is not None and has_all_fields(
        content, separator, fields=frame.width, lines=frame.height + 1
    ):
        return _named_once(path, frame), 0
    lines = whole_lines(content, separator)
    if lines.left_out and (lines.unsure or not leave_out):
        raise _unreadable(path, lines.first_fault)
    whole = _parsed(lines.text.encode(), separator)
    if whole.height != lines.rows:
        raise _unreadable(path, "it is unclear where rows end, check the quotes")
    return _named_once(path, whole), lines.left_out


def _parsed(source: Path | bytes, separator: str) -> Any:
    pl = load_polars("reading text files")
    return pl.read_csv(source, separator=separator, infer_schema=False, glob=False)


def _unreadable(path: Path, what: str) -> SourceError:
    return SourceError(
        f"{path} cannot be read as {suffix_of(path)[1:]}: {what}. Check the separator, "
        f"and that each row has as many fields as the first."
    )


def _content(path: Path) -> Path | bytes:
    """Return a path, or what comes out of a pipe, which can be read once only."""
    return path.read_bytes() if is_stream(path) else path


def read_frames(
    paths: Sequence[Path], *, leave_out: bool = False
) -> tuple[Any, int, dict[str, str]]:
    """Return several files as one polars data frame, with the columns of all.

    Also returns how many lines were left out, and for each column that not all files
    have, one that lacks it; in JSON lines a value that is not there is missing.
    """
    pl = load_polars(f"reading {paths[0].suffix} files")
    read = [read_rows(path, leave_out=leave_out) for path in paths]
    frames = [frame for frame, _ in read]
    columns = {str(p): f.columns for p, f in zip(paths, frames, strict=True)}
    ragged = suffix_of(paths[0]) in JSON_LINES
    try:
        whole = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        what = str(error).splitlines()[0]
        raise SourceError(
            f"{paths[0]} and {len(paths) - 1} more differ in types of columns: {what}."
        ) from None
    left_out = sum(lines for _, lines in read)
    return whole, left_out, {} if ragged else lacking_columns(columns)


def lacking_columns(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return a file that lacks a column, for each column that not all files have.

    Examples
    --------
    >>> lacking_columns({"a.csv": ["p", "y"], "b.csv": ["y"]})
    {'p': 'b.csv'}
    """
    own = {file: set(names) for file, names in columns.items()}
    every = dict.fromkeys(name for names in columns.values() for name in names)
    lacking = {
        name: next((file for file, names in own.items() if name not in names), None)
        for name in every
    }
    return {name: file for name, file in lacking.items() if file is not None}


def check_in_every_file(name: str, lacking: Mapping[str, str]) -> None:
    """Raise where one of several files lacks a column that others have.

    Its rows would be rows without a value.
    """
    if name in lacking:
        raise SourceError(
            f"{lacking[name]} has no column {name!r}, which other files have. Leave "
            f"the file out, or add the column."
        )


def read_header(path: Path, separator: str) -> tuple[list[str], int]:
    """Return the columns that a text file names, and the empty lines before them."""
    for skipped, names in enumerate(_fields(path, separator)):
        if names:
            return names, skipped
    raise SourceError(f"{path} has no rows.")


def read_first_rows(path: Path, separator: str) -> list[list[str]]:
    """Return the first rows of a text file below its header."""
    found: list[list[str]] = []
    size = 0
    for fields in filter(None, _fields(path, separator)):
        found.append(fields)
        size += sum(map(len, fields))
        if len(found) > FIRST_ROWS or size > FIRST_SIZE:
            break
    return found[1:]


def _fields(path: Path, separator: str) -> Iterator[list[str]]:
    """Give the fields of each line of a text file."""
    if path.suffix == ".zst":
        pl = load_polars("reading .zst files")
        options = {"separator": separator, "infer_schema": False, "glob": False}
        first = pl.read_csv(path, has_header=False, n_rows=FIRST_ROWS, **options)
        yield from ([text or "" for text in row] for row in first.iter_rows())
        return
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", **AS_TEXT) as file:
            yield from csv.reader(file, delimiter=separator)
    except UNREADABLE as error:
        raise SourceError(f"{path} cannot be read: {error}.") from None


def check_file(path: Path) -> None:
    """Raise unless the path is a file that holds something, or a pipe."""
    if path.is_dir() or not path.exists():
        there = "is a folder" if path.is_dir() else "does not exist"
        raise SourceError(f"{path} {there}; a file is needed.")
    if path.is_file() and path.stat().st_size == 0:
        raise SourceError(f"{path} is empty.")


def check_writable(path: Path) -> None:
    """Raise where a data frame cannot be written under that name."""
    if path.suffix.lower() not in (*SEPARATORS, *PARQUET, *JSON_LINES):
        raise OptionError(
            f"{path}: files that end in {path.suffix or 'nothing'!r} cannot be "
            f"written; known are {WRITABLE}."
        )
    check_named(path, ROWS)


def write_frame(frame: Any, path: Path) -> None:
    """Write a polars data frame in the format of the path's suffix, atomically."""
    check_writable(path)
    suffix = path.suffix.lower()
    pl = load_polars(f"writing {suffix} files")
    with atomic_write(path) as temporary:
        try:
            if suffix in SEPARATORS:
                frame.write_csv(temporary, separator=SEPARATORS[suffix])
            elif suffix in PARQUET:
                frame.write_parquet(temporary)
            else:
                frame.write_ndjson(temporary)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            what = str(error).splitlines()[0]
            raise SourceError(
                f"{path} cannot be written as {suffix[1:]}: {what}. Parquet takes "
                f"columns of every type."
            ) from None


def _named_once(path: Path, frame: Any) -> Any:
    """Return a data frame, unless polars renamed a column that is there twice."""
    there = set(frame.columns)
    for name in frame.columns:
        first, renamed, _ = name.rpartition("_duplicated_")
        if renamed and first in there:
            check_distinct_names(str(path), [first, first])
    return frame


def check_distinct_names(told: str, names: list[str]) -> None:
    """Raise where two columns have the same name."""
    there: set[str] = set()
    for name in names:
        if name in there:
            raise SourceError(f"{told} has two columns {name!r}; rename one.")
        there.add(name)


def suffix_of(path: Path) -> str:
    """Return what a file's name ends in, but for compression.

    A stream without a name, such as ``/dev/stdin``, is taken for CSV.
    """
    suffix = _own_suffix(path)
    if suffix or not is_stream(path):
        return suffix
    linked = _own_suffix(path.resolve())
    return linked if linked in (*SEPARATORS, *PARQUET, *JSON_LINES) else ".csv"


def _own_suffix(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix not in PACKED]
    return suffixes[-1].lower() if suffixes else ""


def is_stream(path: Path) -> bool:
    """Tell whether a path is a pipe or a device, which is read once only."""
    of_device = path.parts[:2] == ("/", "dev")
    return path.exists() and not path.is_dir() and (of_device or not path.is_file())


def load_polars(what: str) -> ModuleType:
    """Return polars, or say how to install it."""
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError.for_extra(what, "polars", "data") from None
    return pl
