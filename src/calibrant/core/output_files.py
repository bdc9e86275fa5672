"""Files that are written atomically, and never over something else.

A file that the user names is replaced, unless it holds another kind of thing that
calibrant wrote (a map, say, where a report is to be written), or has an ending that
belongs to something else. A file that the user did not name, such as the data next to a
page, is replaced only if it is of the same kind.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL = re.compile(
    "no space left on device|file too large|disk quota exceeded", re.IGNORECASE
)
"""How systems say that a disk is full; writers wrap it in words of their own."""
STEM_KEPT = 40
"""Letters of a file's name that its temporary one keeps."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside `path`; rename it to `path` if all went well.

    The suffix is kept, because some writers infer the format from it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "notes.txt")
    ...     with atomic_write(target) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     target.read_text()
    'whole'
    """
    target = check_place(path)
    unique = secrets.token_hex(6)  # several may write the same file at once
    name = f".{target.stem[:STEM_KEPT]}-{unique}{target.suffix}"
    temporary = target.with_name(name)
    _try_to_write(temporary, target)
    try:
        yield temporary
        temporary.replace(target)
    except Exception as error:
        full = FULL.search(str(error))
        if full is None:
            raise
        raise OSError(
            f"{target} cannot be written: {full.group().lower()}. No partial file "
            "was left behind; free some space, or choose another place."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return the file that is written under a name, or raise where it cannot be.

    Of a link that is what it points to: that changes, the link stays.
    """
    target = Path(path)
    try:
        target = target.resolve() if target.is_symlink() else target
        what = _obstacle(target)
    except RuntimeError:
        what = "a circular symbolic link"
    except OSError as error:  # such as a name that is too long
        what = _reason(error)
    if what:
        raise OSError(f"{path} cannot be written: {what}.")
    return target


def _obstacle(target: Path) -> str:
    """Return why a file cannot be written, empty where it can."""
    if not target.parent.is_dir():
        return f"the folder {target.parent} does not exist"
    changed = [target.parent]
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode
        if stat.S_ISDIR(mode):
            return "it is a folder; name a file in it"
        if not stat.S_ISREG(mode):
            return "it is not a regular file"
        changed.append(target)
    writable = all(os.access(place, os.W_OK) for place in changed)
    return "" if writable else "permission denied"


def _try_to_write(temporary: Path, target: Path) -> None:
    """Raise where nothing can be written: writers take that for many other things."""
    try:
        temporary.touch()
    except OSError as error:
        raise OSError(f"{target} cannot be written: {_reason(error)}.") from None
    temporary.unlink()


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


LOOKED_AT = 2**16
"""Marks stand within so many bytes of the start or the end of a file."""


@dataclass(frozen=True)
class OutputKind:
    """A kind of file that calibrant writes, and the mark by which it is recognised."""

    name: str  # what messages call such a file
    suffixes: tuple[str, ...]  # how its name may end
    # patterns of marks, at the start and at the end of a file; one of these pairs is
    # enough. Files of a kind without any cannot be recognised
    marks: tuple[tuple[str, str], ...] = ()

    def matches(self, start: bytes, end: bytes) -> bool:
        """Tell whether a file that starts and ends so is of this kind."""
        return any(
            re.search(first.encode(), start, re.DOTALL)
            and re.search(last.encode(), end, re.DOTALL)
            for first, last in self.marks
        )


MAP = OutputKind(
    "a calibration map",
    (".json",),
    ((r'\A\s*\{\s*"format":\s*"calibrant-map"', ""),),
)
REPORT_DATA = OutputKind(
    "the data of a report",
    (".json",),
    ((r'\A\s*\{\s*"format":\s*"calibrant-report"', ""),),
)
REPORT_PAGE = OutputKind(
    "a report",
    (".html", ".htm"),
    ((r'\A\s*<!doctype html>.*<meta name="generator" content="calibrant ', ""),),
)
REPORT_TEXT = OutputKind("a report", (".md",), ((r"\A# Calibration report", ""),))
REPORT_PRINT = OutputKind("a report", (".pdf",))
AGGREGATES = OutputKind(
    "aggregated predictions", (".parquet", ".pq"), ((r"\APAR1", "calibrant_cells"),)
)
FIGURE = OutputKind(
    "a figure",
    (".png", ".svg", ".pdf"),
    (
        (r"\A(\x89PNG|<\?xml).{0,4000}calibrant ", ""),
        (r"\A%PDF", r"/Creator \(calibrant "),
    ),
)
ROWS = OutputKind("rows of predictions", ())
KINDS = (MAP, REPORT_DATA, REPORT_PAGE, REPORT_TEXT, AGGREGATES, FIGURE)


def kind_of(path: str | os.PathLike[str]) -> OutputKind | None:
    """Return the kind of a file that calibrant wrote, or None if it did not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "map.json")
    ...     _ = path.write_text('{"format": "calibrant-map", "version": 1}')
    ...     kind_of(path).name
    'a calibration map'
    """
    with Path(path).open("rb") as file:
        start = file.read(LOOKED_AT)
        file.seek(max(file.seek(0, os.SEEK_END) - LOOKED_AT, 0))
        end = file.read()
    return next((kind for kind in KINDS if kind.matches(start, end)), None)


def check_named(path: str | os.PathLike[str], kind: OutputKind) -> None:
    """Raise where a file that the user named must not be replaced by this kind."""
    target = check_place(path)
    if not _holds_something(target):
        return
    there = kind_of(target)
    strange = kind.suffixes and target.suffix.lower() not in kind.suffixes
    if there is kind or (there is None and not strange):
        return
    what = f"another {target.suffix} file" if there is None else there.name
    raise OptionError(
        f"{path} would be overwritten by {kind.name}, but is {what}. Choose another "
        f"name, or move {path} away."
    )


def check_derived(
    path: str | os.PathLike[str], kind: OutputKind, *, beside: str = ""
) -> None:
    """Raise if a file that the user did not name exists and is of another kind.

    `beside` says beside which file it is written, if the user named that one.
    """
    target = check_place(path)
    if not _holds_something(target) or kind_of(target) is kind:
        return
    where = f", which goes beside {beside}" if beside else ""
    raise OptionError(
        f"{path} would be overwritten by {kind.name}{where}, but is something else. "
        f"Choose another name{f' for {beside}' if beside else ''}, or move {path} away."
    )


def _holds_something(target: Path) -> bool:
    return target.is_file() and target.stat().st_size > 0
