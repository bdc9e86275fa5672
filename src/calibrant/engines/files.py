"""Files of rows: read as a data frame, written whole or not at all."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from calibrant._atomic import replacing
from calibrant._outputs import ROWS, check_named
from calibrant.exceptions import MissingDependencyError, OptionError, SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
PACKED = (".gz", ".zst")
READABLE = "CSV, TSV, Parquet, JSON lines (.jsonl, .ndjson) and npz"
WRITABLE = "CSV, TSV, Parquet and JSON lines (.jsonl, .ndjson)"
APPLIED = "_calibrated"
"""What ends the names of columns that ``calibrant apply`` adds."""


def read_frame(
    path: Path, *, as_text: bool = False, columns: list[str] | None = None
) -> Any:
    """Return a file, or some of its columns, as a polars data frame.

    With `as_text`, columns of CSV and TSV files stay the text that they are, so that
    what is written again is what was read.
    """
    refuse_no_file(path)
    pl = load_polars(f"reading {path.suffix} files")
    suffix = suffix_of(path)
    try:
        if suffix in SEPARATORS:
            frame = pl.read_csv(
                path,
                columns=columns,
                separator=SEPARATORS[suffix],
                infer_schema=not as_text,
                infer_schema_length=None,
                glob=False,
            )
            _refuse_renamed(path, frame.columns)
            return frame
        if suffix in PARQUET:
            return pl.read_parquet(path, columns=columns, glob=False)
        if suffix in JSON_LINES:
            # By name, brackets and stars would be a pattern.
            with path.open("rb") as file:
                return pl.read_ndjson(file, infer_schema_length=None)
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
    ) as error:
        what = _odd_line(path, suffix) or str(error).splitlines()[0]
        raise SourceError(
            f"{path} cannot be read as {suffix[1:]}: {what}. Check the separator, and "
            f"that each row has as many fields as the first."
        ) from None
    raise SourceError(
        f"{path}: files that end in {suffix or 'nothing'!r} cannot be read; "
        f"known are {READABLE}."
    )


def read_frames(paths: Sequence[Path], **how: Any) -> Any:
    """Return several files of the same columns as one polars data frame.

    `how` is as in `read_frame`.
    """
    pl = load_polars(f"reading {paths[0].suffix} files")
    frames = [read_frame(path, **how) for path in paths]
    first = frames[0].columns
    for path, frame in zip(paths, frames, strict=True):
        if set(frame.columns) != set(first):
            name = min(set(frame.columns) ^ set(first))
            raise SourceError(
                f"{paths[0]} and {path} differ in columns: one of them has no {name!r}."
            )
    try:
        same = [frame.select(first) for frame in frames]
        return pl.concat(same, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        what = str(error).splitlines()[0]
        raise SourceError(
            f"{paths[0]} and {len(paths) - 1} more differ in types of columns: {what}."
        ) from None


def _odd_line(path: Path, suffix: str) -> str:
    """Return which line of a text file is the first with too many fields, if any."""
    if suffix not in SEPARATORS or path.suffix in PACKED:
        return ""
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.reader(file, delimiter=SEPARATORS[suffix])
        fields = len(next(rows, []))
        try:
            for row in rows:
                if len(row) > fields:
                    return f"line {rows.line_num} has {len(row)} fields, not {fields}"
        except csv.Error:
            return f"line {rows.line_num} cannot be parted into fields"
    return ""


def refuse_no_file(path: Path) -> None:
    """Raise unless the path is a file that holds something."""
    if not path.is_file():
        there = "is a folder" if path.is_dir() else "does not exist"
        raise SourceError(f"{path} {there}; a file is needed.")
    if path.stat().st_size == 0:
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
    with replacing(path) as temporary:
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


def _refuse_renamed(path: Path, names: list[str]) -> None:
    for name in names:
        first, renamed, _ = name.rpartition("_duplicated_")
        if renamed and first in names:
            refuse_same_names(str(path), [first, first])


def refuse_same_names(told: str, names: list[str]) -> None:
    """Raise where two columns have the same name."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise SourceError(f"{told} has two columns {name!r}; rename one.")


def suffix_of(path: Path) -> str:
    """Return what a file's name ends in, but for compression."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in PACKED]
    return suffixes[-1].lower() if suffixes else ""


def load_polars(what: str) -> ModuleType:
    """Return polars, or say how to install it."""
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError.for_extra(what, "polars", "data") from None
    return pl
