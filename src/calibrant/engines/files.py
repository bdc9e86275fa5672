"""Files by path, pattern or folder, and their formats by name."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from glob import escape, glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.core.output_files import ROWS, check_named
from calibrant.exceptions import (
    InputError,
    MissingDependencyError,
    OptionError,
    Setting,
    SourceError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import ModuleType

SEPARATORS = {".csv": ",", ".tsv": "\t"}
WRONG_ENCODING = "is not UTF-8"
REMEDIES = {
    ".csv": " Separate fields by commas, write decimals with a point, and give all "
    "rows the same number of fields.",
    ".tsv": " Separate fields by tabs, and give all rows the same number of fields.",
    ".json": " The file must be an array of objects.",
}
"""What to do about a file that cannot be read."""
PARQUET = (".parquet", ".pq")
JSON_LINES = (".jsonl", ".ndjson")
RECORDS = ".json"
"""An array of objects."""
ARRAYS = (".npz", ".npy")
PACKED = ".gz"
KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    RECORDS: "records",
    **dict.fromkeys(PARQUET, "parquet"),
    **dict.fromkeys(JSON_LINES, "json"),
    **dict.fromkeys(ARRAYS, "arrays"),
}
MEMORY_ONLY = ("records", "json", "arrays")
"""Kinds of files that are read in memory; large ones can be converted to Parquet."""
FILE_COLUMN = "filename"
"""The column of several files that names the file of each row, without its ending."""
ROW_COLUMN = "row"
"""The number of each row in its file, by which rows of models are paired as `id`."""
READABLE = "CSV, TSV, Parquet, JSON (.json, .jsonl, .ndjson), npz and npy"
WRITABLE = "CSV, TSV, Parquet and JSON lines (.jsonl, .ndjson)"
STANDARD_INPUT = "/dev/stdin"
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
"""How addresses such as s3://... begin."""


@dataclass(frozen=True)
class FileSet:
    """Files of one format, which is one of the values of `KINDS`."""

    paths: tuple[str, ...]
    kind: str
    given: tuple[str, ...]  # what the user named

    @property
    def patterns(self) -> list[str]:
        """Return the paths for readers that take patterns."""
        return [escape(path) for path in self.paths]

    @property
    def is_text(self) -> bool:
        """Tell whether they are CSV or TSV files, whose values are text."""
        return f".{self.kind}" in SEPARATORS

    @property
    def separator(self) -> str:
        """Return what separates the fields of CSV or TSV files."""
        return SEPARATORS[f".{self.kind}"]

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(Path(path).stat().st_size for path in self.paths)

    @property
    def has_streams(self) -> bool:
        """Tell whether one of them is a pipe or a device."""
        return any(is_stream(Path(path)) for path in self.paths)

    @property
    def memory_only(self) -> bool:
        """Tell whether only the memory engine reads them."""
        return self.kind in MEMORY_ONLY or self.has_streams

    @property
    def partitions(self) -> set[str]:
        """Return the columns that names of folders give, as in year=2024/."""
        folders = (Path(path).parts[:-1] for path in self.paths)
        return {
            part.split("=")[0] for parts in folders for part in parts if "=" in part
        }

    def __str__(self) -> str:
        return _name_all(self.given)


def names_files(source: Any) -> bool:
    """Tell whether a source is a path, or a list of them."""
    given = source if isinstance(source, list | tuple) else [source]
    return bool(given) and all(isinstance(path, str | os.PathLike) for path in given)


def find_files(source: str | os.PathLike[str] | Iterable[Any]) -> FileSet:
    """Return the files that a path, a pattern, a folder or a list of them means.

    A path that exists is taken as it is, whatever characters it contains. ``-`` is the
    standard input. A folder means npz and npy files if it contains no others.
    """
    entries = [source] if isinstance(source, str | os.PathLike) else source
    given = tuple(map(os.fspath, entries))
    paths = [path for entry in given for path in _paths(entry)]
    _check_named_once(paths)
    kinds = dict.fromkeys(_kind(path) for path in paths)
    if len(kinds) > 1:
        formats = ", ".join(kinds)
        raise SourceError(f"{_name_all(given)} mixes files of formats {formats}.")
    return FileSet(tuple(paths), next(iter(kinds)), given)


def _name_all(given: Sequence[str]) -> str:
    return given[0] + (f" and {len(given) - 1} more" if given[1:] else "")


def check_no_lists(names: list[str]) -> None:
    """Raise where columns contain lists, which only memory tables read."""
    if names:
        raise OptionError(
            f"column {names[0]!r} contains lists, which are read in memory; pass ",
            Setting("engine", "memory"),
            ".",
        )


def check_no_objects(names: Sequence[str]) -> None:
    """Raise where columns contain objects with fields."""
    if names:
        raise InputError.of(
            f"column {names[0]!r}",
            "must contain simple values",
            "it contains objects with fields",
            ("Write the value of one field to a column of its own.",),
        )


def _check_named_once(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise where a file is named twice, so that its rows would count twice."""
    seen: set[str] = set()
    for path in paths:
        if (real := os.path.realpath(path)) in seen:
            raise SourceError(
                f"{path} is named twice, and its rows would count twice; name it once."
            )
        seen.add(real)


def _paths(entry: str) -> list[str]:
    _check_local(entry)
    if entry == "-" and not Path(entry).exists():
        entry = STANDARD_INPUT
    path = Path(entry)
    if path.is_dir():
        found = [p for p in sorted(path.rglob("*")) if _is_data(p, path)]
        rows = [p for p in found if p.suffix.lower() not in ARRAYS]
        paths = list(map(str, rows or found))
        nothing = f"folder {entry} contains no readable file"
    elif path.exists() or not has_magic(entry):
        paths, nothing = [entry], ""
    else:
        names = glob(entry, recursive=True)  # noqa: PTH207  (patterns may be absolute)
        paths = sorted(name for name in names if Path(name).is_file())
        nothing = f"no file matches {entry}"
    if not paths:
        raise SourceError(f"{nothing}; supported are {READABLE}.")
    for one in map(Path, paths):
        if not one.exists():
            raise SourceError(f"{one} does not exist.")
        if one.is_file() and one.stat().st_size == 0:
            raise SourceError(f"{one} is empty.")
    return paths


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part[0] in "._" for part in path.relative_to(folder).parts)
    return not hidden and suffix_of(path) in KINDS and path.is_file()


def _check_local(entry: str) -> None:
    if not entry:
        raise SourceError(
            "the file name is empty; pass a file, a folder ('.' is the current "
            "one) or a pattern such as 'lake/*.parquet'."
        )
    if ADDRESS.match(entry):
        raise SourceError(
            f"{entry} is a URL, but only local files can be read. Download the "
            "file first, or pass a data frame, a DuckDB relation or a Spark data "
            "frame that reads it."
        )


def _kind(path: str) -> str:
    suffix = suffix_of(Path(path))
    if suffix not in KINDS:
        raise SourceError(
            f"{path}: files that end in {suffix or 'nothing'!r} cannot be read; "
            f"supported are {READABLE}."
        )
    return KINDS[suffix]


def names_of_files(paths: Sequence[str]) -> list[str]:
    """Return what to call files: without folder and ending, if that tells them apart.

    >>> names_of_files(["runs/ant.csv", "runs/bee.csv"])
    ['ant', 'bee']
    """
    stems = [Path(path).name.split(".")[0] for path in paths]
    return stems if len(set(stems)) == len(stems) else list(paths)


def check_writable(path: Path) -> None:
    """Raise where a data frame cannot be written under that name."""
    if path.suffix.lower() not in (*SEPARATORS, *PARQUET, *JSON_LINES):
        raise OptionError(
            f"{path}: files that end in {path.suffix or 'nothing'!r} cannot be "
            f"written; supported are {WRITABLE}."
        )
    check_named(path, ROWS)


def suffix_of(path: Path) -> str:
    """Return what a file's name ends in, except for compression.

    A stream without a name, such as ``/dev/stdin``, is taken for CSV.
    """
    suffix = _own_suffix(path)
    if suffix or not is_stream(path):
        return suffix
    linked = _own_suffix(path.resolve())
    return linked if linked in KINDS else ".csv"


def _own_suffix(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix != PACKED]
    return suffixes[-1].lower() if suffixes else ""


def is_stream(path: Path) -> bool:
    """Tell whether a path is a pipe or a device, which can be read only once."""
    of_device = path.parts[:2] == ("/", "dev")
    return path.exists() and not path.is_dir() and (of_device or not path.is_file())


def check_in_every_file(name: str, columns: Mapping[str, Iterable[str]]) -> None:
    """Raise where one of several files lacks a column that others have.

    Its rows would be rows without a value.
    """
    lacking = next((file for file, own in columns.items() if name not in own), None)
    if lacking is not None:
        raise SourceError(
            f"{lacking} has no column {name!r}, which other files have. "
            "Remove the file, or add the column."
        )


def check_distinct_names(has: str, names: Sequence[str]) -> None:
    """Raise where two columns have the same name; `has` says what has them."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SourceError(f"{has} two columns {name!r}; rename one.")
        seen.add(name)


def same_ignoring_case(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that differ only in case, if there are any.

    >>> same_ignoring_case(["y", "P", "p"])
    ('P', 'p')
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            return other, name
    return None


def unreadable(path: Path, what: str, header: str = "") -> SourceError:
    """Return the error about a file that is not what its name says.

    `header` is the first line of a text file, where it is known.
    """
    suffix = suffix_of(path)
    hint = REMEDIES.get(suffix, "")
    if suffix == ".csv" and ";" in header and "," not in header:
        hint = f" Its header is separated by semicolons.{hint}"
    if what.endswith(WRONG_ENCODING):
        hint = " Save the file as UTF-8."
    return SourceError(f"{path} cannot be read as {suffix[1:].upper()}: {what}.{hint}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def load_polars(what: str) -> ModuleType:
    """Return polars, or say how to install it."""
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError.for_extra(what, "polars", "data") from None
    return pl
