"""Files by path, pattern or folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from glob import escape, glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.engines.files import (
    JSON_LINES,
    PARQUET,
    READABLE,
    check_file,
    is_stream,
    suffix_of,
)
from calibrant.exceptions import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable

STANDARD_INPUT = "/dev/stdin"
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
"""How addresses such as s3://... begin."""
KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    **dict.fromkeys(PARQUET, "parquet"),
    **dict.fromkeys(JSON_LINES, "json"),
}


@dataclass(frozen=True)
class FileSet:
    """Files of one format.

    Attributes
    ----------
    paths : tuple of str
        The files.
    kind : str
        Their format.
    told : str
        What errors call them.
    """

    paths: tuple[str, ...]
    kind: str
    told: str

    @property
    def patterns(self) -> list[str]:
        """Return the paths as readers take them that know patterns."""
        return [escape(path) for path in self.paths]

    @property
    def size(self) -> int:
        """Return the bytes of all files."""
        return sum(Path(path).stat().st_size for path in self.paths)

    @property
    def has_streams(self) -> bool:
        """Tell whether one of them is a pipe or a device."""
        return any(is_stream(Path(path)) for path in self.paths)

    def __str__(self) -> str:
        return self.told


def find_files(source: str | os.PathLike[str] | Iterable[Any]) -> FileSet:
    """Return the files that a path, a pattern, a folder or a list of them means.

    A path that exists is taken as it is, whatever characters it holds. ``-`` is the
    standard input.
    """
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    told = os.fspath(given[0]) + (f" and {len(given) - 1} more" if given[1:] else "")
    paths = [path for entry in given for path in _paths(os.fspath(entry))]
    kinds = dict.fromkeys(_kind(path) for path in paths)
    if len(kinds) > 1:
        raise SourceError(f"{told} mixes files of formats {', '.join(kinds)}.")
    return FileSet(tuple(paths), next(iter(kinds)), told)


def _paths(entry: str) -> list[str]:
    _check_local(entry)
    if entry == "-" and not Path(entry).exists():
        entry = STANDARD_INPUT
    path = Path(entry)
    if path.is_dir():
        found = [p for p in sorted(path.rglob("*")) if _is_data(p, path)]
        return _some([str(p) for p in found], f"folder {entry} holds no file to read")
    if path.exists() or not has_magic(entry):
        check_file(path)
        return [entry]
    names = glob(entry, recursive=True)  # noqa: PTH207  (patterns may be absolute)
    matching = sorted(name for name in names if Path(name).is_file())
    return _some(matching, f"no file matches {entry}")


def _some(paths: list[str], nothing: str) -> list[str]:
    if not paths:
        raise SourceError(f"{nothing}; known are {READABLE}.")
    for path in paths:
        check_file(Path(path))
    return paths


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part[0] in "._" for part in path.relative_to(folder).parts)
    return path.is_file() and not hidden and suffix_of(path) in KINDS


def _check_local(entry: str) -> None:
    if not entry:
        raise SourceError(
            "the name of a file is empty; name a file, a folder ('.' is this one) or a "
            "pattern such as 'lake/*.parquet'."
        )
    if ADDRESS.match(entry):
        raise SourceError(
            f"{entry} is an address, and files are read from this machine only. "
            f"Download the file first, or pass a data frame, a DuckDB relation or a "
            f"Spark data frame that reads it."
        )


def _kind(path: str) -> str:
    suffix = suffix_of(Path(path))
    if suffix not in KINDS:
        raise SourceError(
            f"{path}: files that end in {suffix or 'nothing'!r} cannot be read; "
            f"known are {READABLE}."
        )
    return KINDS[suffix]
