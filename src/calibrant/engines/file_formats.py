"""Rows of files: read as data frames or arrays, written atomically."""

from __future__ import annotations

import csv
import io
import json
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np

from calibrant.core.output_files import MAP, REPORT_DATA, atomic_write
from calibrant.engines.files import (
    PARQUET,
    SEPARATORS,
    check_writable,
    first_line,
    is_stream,
    load_polars,
    unreadable,
)
from calibrant.engines.text_files import read_content, read_text
from calibrant.exceptions import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from calibrant.engines.files import FileSet

APPLIED = "_calibrated"
"""What ends the names of columns that ``calibrant apply`` adds."""
DAMAGED = (
    ValueError,
    OSError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    struct.error,
    zlib.error,
    BadZipFile,
)
"""What reading a damaged file of arrays may raise."""


def read_frames(files: FileSet, *, leave_out: bool) -> tuple[Any, list[Any], int]:
    """Return files as one polars data frame with the columns of all, and as several.

    Columns of CSV and TSV files stay text, so that they can be written as they were.
    With `leave_out`, lines of these files that are not rows are left out and counted;
    else they raise an error.
    """
    pl = load_polars(f"reading {Path(files.paths[0]).suffix} files")
    read = [_read_rows(Path(p), files, leave_out=leave_out) for p in files.paths]
    frames = [frame for frame, _ in read]
    try:
        whole = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise SourceError(
            f"{files.paths[0]} and {len(frames) - 1} more have different column types: "
            f"{first_line(error)}."
        ) from None
    return whole, frames, sum(lines for _, lines in read)


def _read_rows(path: Path, files: FileSet, *, leave_out: bool) -> tuple[Any, int]:
    pl = load_polars(f"reading {path.suffix} files")
    failures = (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        csv.Error,
        OSError,
    )
    try:
        if files.is_text:
            return read_text(path, files.separator, leave_out=leave_out)
        if files.kind == "parquet":
            source = path.read_bytes() if is_stream(path) else path
            return pl.read_parquet(source, glob=False), 0
        if files.kind == "json":
            # By name, brackets and stars would be a pattern.
            with path.open("rb") as file:
                return pl.read_ndjson(file, infer_schema_length=None), 0
        content = read_content(path)
        if content.lstrip().startswith(b"["):
            return pl.read_json(content, infer_schema_length=None), 0
    except failures as error:
        what = first_line(error)
        if files.kind == "json" and not is_stream(path):
            what = _invalid_line(path) or what
        raise unreadable(path, what) from None
    for kind in (MAP, REPORT_DATA):
        if kind.matches(content, b""):
            raise SourceError(f"{path} is {kind.name}; pass a file of predictions.")
    raise SourceError(
        f"{path} must be an array of JSON objects; a file with one object per "
        "line must be named .jsonl."
    )


def _invalid_line(path: Path) -> str | None:
    """Return which line of a file of JSON lines is no JSON, and why."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                json.loads(line.strip() or b"{}")
            except json.JSONDecodeError as error:
                return f"line {number}, character {error.colno}: {error.msg}"
            except UnicodeDecodeError:
                return None  # which the reader of the whole file says as well
    return None


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
                buffer = io.BytesIO()  # polars hides that a disk is full
                frame.write_parquet(buffer)
                temporary.write_bytes(buffer.getbuffer())
            else:
                frame.write_ndjson(temporary)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise SourceError(
                f"{path} cannot be written as {suffix[1:]}: {first_line(error)}. "
                f"Parquet takes columns of every type."
            ) from None


def array_names(path: Path) -> list[str]:
    """Return the names of the arrays in an npz file, or the name of an npy file."""
    if path.suffix.lower() == ".npy":
        return [path.stem]
    try:
        with path.open("rb") as file:
            arrays = np.load(file, allow_pickle=False)
    except DAMAGED as error:
        raise SourceError(f"{path} cannot be read: {error}") from None
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise SourceError(
            f"{path} contains a single array; several named arrays (npz) are needed."
        )
    return list(arrays.files)


def read_array(path: Path, name: str) -> NDArray[Any]:
    """Return an array of an npz or npy file."""
    try:
        # Opened each time, so that no file stays open; it closes in any case.
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            packed = isinstance(stored, np.lib.npyio.NpzFile)
            return np.asarray(stored[name] if packed else stored)
    except DAMAGED as error:
        hint = "; save text as text, array.astype(str)"
        pickled = isinstance(error, ValueError) and "pickle" in str(error)
        raise SourceError(
            f"{path}, array {name!r}: {error}{hint if pickled else ''}."
        ) from None


def add_arrays(source: Path, new: Mapping[str, NDArray[Any]], out: Path) -> None:
    """Write an npz file with everything in another, copied as it is, and new arrays.

    Of an npy file, its array is written under the name of the file.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, more = Path(folder, "old.npz"), Path(folder, "more.npz")
    ...     np.savez(old, y=np.array([0, 1]))
    ...     add_arrays(old, {"p": np.array([0.5, 0.25])}, more)
    ...     {name: values.tolist() for name, values in np.load(more).items()}
    {'y': [0, 1], 'p': [0.5, 0.25]}
    """
    packed = is_zipfile(source)
    arrays = dict(new) if packed else {source.stem: np.load(source)} | dict(new)
    with atomic_write(out) as temporary, ZipFile(temporary, "w") as written:
        if packed:
            with ZipFile(source) as old:
                for member in old.infolist():
                    written.writestr(member, old.read(member))
        for name, values in arrays.items():
            with written.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, values, allow_pickle=False)
