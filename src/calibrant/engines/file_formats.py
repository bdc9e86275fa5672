"""Rows of files: read as data frames or arrays, written atomically."""

from __future__ import annotations

import csv
import io
import struct
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from calibrant.core.output_files import atomic_write
from calibrant.engines.files import (
    JSON_LINES,
    PARQUET,
    RECORDS,
    SEPARATORS,
    check_distinct_names,
    check_file,
    check_writable,
    first_line,
    is_stream,
    lacking_columns,
    load_polars,
    names_of_files,
    suffix_of,
    unknown_format,
    unreadable,
)
from calibrant.engines.text_files import read_content, read_text
from calibrant.exceptions import SourceError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import Frame

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


def read_rows(path: Path, *, leave_out: bool = False) -> tuple[Any, int]:
    """Return a file as a polars data frame, and how many lines were left out.

    Columns of CSV and TSV files stay text, so that they can be written as they were.
    With `leave_out`, lines of these files that are not rows are left out; else they
    raise an error.
    """
    check_file(path)
    pl = load_polars(f"reading {path.suffix} files")
    suffix = suffix_of(path)
    failures = (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        csv.Error,
        OSError,
    )
    try:
        if suffix in SEPARATORS:
            return read_text(path, SEPARATORS[suffix], leave_out=leave_out)
        if suffix in PARQUET:
            source = path.read_bytes() if is_stream(path) else path
            return pl.read_parquet(source, glob=False), 0
        if suffix in JSON_LINES:
            # By name, brackets and stars would be a pattern.
            with path.open("rb") as file:
                return pl.read_ndjson(file, infer_schema_length=None), 0
        if suffix == RECORDS:
            return _read_records(path), 0
    except failures as error:
        raise unreadable(path, first_line(error)) from None
    raise unknown_format(path, suffix)


def _read_records(path: Path) -> Any:
    content = read_content(path)
    if not content.lstrip().startswith(b"["):
        raise SourceError(
            f"{path} must be an array of JSON objects; a file with one object per "
            "line must be named .jsonl."
        )
    pl = load_polars("reading .json files")
    return pl.read_json(content, infer_schema_length=None)


def read_frames(
    paths: Sequence[Path], *, leave_out: bool = False, name_column: str
) -> tuple[Any, int, list[int], dict[str, str]]:
    """Return several files as one polars data frame, with the columns of all.

    A column `name_column`, unless there is one, names the file of each row.

    Also returns how many lines were left out, how many rows each file has, and for each
    column that not all files have, one that lacks it; in JSON a value that is not there
    is missing.
    """
    pl = load_polars(f"reading {paths[0].suffix} files")
    read = [read_rows(path, leave_out=leave_out) for path in paths]
    frames = [frame for frame, _ in read]
    columns = {str(p): f.columns for p, f in zip(paths, frames, strict=True)}
    if all(name_column not in names for names in columns.values()):
        frames = [
            frame.with_columns(pl.lit(name).alias(name_column))
            for frame, name in zip(frames, names_of_files(paths), strict=True)
        ]
    ragged = suffix_of(paths[0]) in (*JSON_LINES, RECORDS)
    try:
        whole = pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise SourceError(
            f"{paths[0]} and {len(paths) - 1} more have different column types: "
            f"{first_line(error)}."
        ) from None
    left_out, sizes = sum(lines for _, lines in read), [f.height for f in frames]
    return whole, left_out, sizes, {} if ragged else lacking_columns(columns)


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


def open_arrays(
    paths: Sequence[str | os.PathLike[str]],
) -> tuple[tuple[str, ...], Callable[[str], NDArray[Any]]]:
    """Return the names of the arrays in npz and npy files, and what reads one by name.

    The array of an npy file is called like the file.
    """
    names = [(name, Path(p)) for p in paths for name in _array_names(Path(p))]
    of_all = "the files together" if len(paths) > 1 else str(paths[0])
    check_distinct_names(of_all, [name for name, _ in names])
    path_of = dict(names)

    @cache  # a matrix is asked for as often as it has columns
    def read(name: str) -> NDArray[Any]:
        path = path_of[name]
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

    return tuple(path_of), read


def has_same_arrays(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Tell whether there are several npz files with arrays of the same names."""
    names = [set(_array_names(Path(path))) for path in paths]
    return len(names) > 1 and all(one == names[0] for one in names)


def _array_names(path: Path) -> list[str]:
    check_file(path)
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


def add_arrays(source: Path, new: Mapping[str, NDArray[Any]], out: Path) -> None:
    """Write an npz file with everything in another, copied as it is, and new arrays.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, more = Path(folder, "old.npz"), Path(folder, "more.npz")
    ...     np.savez(old, y=np.array([0, 1]))
    ...     add_arrays(old, {"p": np.array([0.5, 0.25])}, more)
    ...     {name: values.tolist() for name, values in np.load(more).items()}
    {'y': [0, 1], 'p': [0.5, 0.25]}
    """
    with atomic_write(out) as temporary:
        try:
            with ZipFile(source) as old, ZipFile(temporary, "w") as written:
                for member in old.infolist():
                    written.writestr(member, old.read(member))
                for name, values in new.items():
                    with written.open(f"{name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, values, allow_pickle=False)
        except BadZipFile as error:
            raise SourceError(f"{source} cannot be read: {error}") from None


def split_matrix(name: str, array: NDArray[Any], suffix: str = "") -> Frame:
    """Return a matrix as columns, with the number of the class; of a vector, itself.

    Examples
    --------
    >>> split_matrix("p", np.array([[0.25, 0.75]]), "_new")
    {'p_0_new': array([0.25]), 'p_1_new': array([0.75])}
    """
    if array.ndim == 1:
        return {f"{name}{suffix}": array}
    return {f"{name}_{k}{suffix}": array[:, k] for k in range(array.shape[1])}
