"""Files by path, pattern or folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from glob import escape, glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.engines.files import (
    JSON_LINES,
    PARQUET,
    READABLE,
    refuse_no_file,
    suffix_of,
)
from calibrant.exceptions import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        The files; addresses such as ``s3://...`` as they were given.
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
        return [path if _is_address(path) else escape(path) for path in self.paths]

    @property
    def local_paths(self) -> tuple[str, ...]:
        """Return the files that are no addresses."""
        return tuple(path for path in self.paths if not _is_address(path))

    @property
    def size(self) -> int:
        """Return the bytes of all local files."""
        return sum(Path(path).stat().st_size for path in self.local_paths)

    def __str__(self) -> str:
        return self.told


def find_files(source: str | os.PathLike[str] | Iterable[Any]) -> FileSet:
    """Return the files that a path, a pattern, a folder or a list of them means.

    A path that exists is taken as it is, whatever characters it holds.
    """
    given = [source] if isinstance(source, str | os.PathLike) else list(source)
    told = os.fspath(given[0]) + (f" and {len(given) - 1} more" if given[1:] else "")
    paths = [path for entry in given for path in _paths(os.fspath(entry))]
    kinds = dict.fromkeys(_kind(path) for path in paths)
    if len(kinds) > 1:
        raise SourceError(f"{told} mixes files of formats {', '.join(kinds)}.")
    return FileSet(tuple(paths), next(iter(kinds)), told)


def _paths(entry: str) -> list[str]:
    if _is_address(entry):
        return [entry]
    path = Path(entry)
    if path.is_dir():
        found = [p for p in sorted(path.rglob("*")) if _is_data(p, path)]
        return _some([str(p) for p in found], f"folder {entry} holds no file to read")
    if path.exists() or not has_magic(entry):
        refuse_no_file(path)
        return [entry]
    names = glob(entry, recursive=True)  # noqa: PTH207  (patterns may be absolute)
    matching = sorted(name for name in names if Path(name).is_file())
    return _some(matching, f"no file matches {entry}")


def _some(paths: list[str], nothing: str) -> list[str]:
    if not paths:
        raise SourceError(f"{nothing}; known are {READABLE}.")
    for path in paths:
        refuse_no_file(Path(path))
    return paths


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part[0] in "._" for part in path.relative_to(folder).parts)
    return path.is_file() and not hidden and suffix_of(path) in KINDS


def _is_address(entry: str) -> bool:
    return "://" in entry


def _kind(path: str) -> str:
    suffix = suffix_of(Path(path))
    if suffix not in KINDS:
        raise SourceError(
            f"{path}: files that end in {suffix or 'nothing'!r} cannot be read; "
            f"known are {READABLE}."
        )
    return KINDS[suffix]
