"""Files appear whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

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

    The suffix is kept, for writers that go by it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "notes.txt")
    ...     with atomic_write(target) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     target.read_text()
    'whole'
    """
    target = check_place(path)
    temporary = _temporary(target)
    _try_to_write(temporary, target)
    try:
        yield temporary
        temporary.replace(target)
    except Exception as error:
        found = FULL.search(str(error))
        if found is None:
            raise
        told = f"{target} cannot be written: {found.group().lower()}. Nothing was "
        told += "left half-written; make room, or choose another place."
        raise OSError(told) from None
    finally:
        temporary.unlink(missing_ok=True)


def check_place(path: str | os.PathLike[str]) -> Path:
    """Return the file that is written under a name, or raise where it cannot be.

    Of a link that is what it points to: that changes, the link stays.
    """
    try:
        target = _end_of(Path(path))
        what = _obstacle(target)
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


def _end_of(path: Path) -> Path:
    if not path.is_symlink():
        return path
    try:
        return path.resolve()
    except RuntimeError:
        raise OSError("a circular symbolic link") from None


def _temporary(target: Path) -> Path:
    """Return a name beside a file, no longer than names may be."""
    unique = secrets.token_hex(6)  # several may write the same file at once
    return target.with_name(f".{target.stem[:STEM_KEPT]}-{unique}{target.suffix}")


def _try_to_write(temporary: Path, target: Path) -> None:
    """Raise where nothing can be written: writers take that for many other things."""
    try:
        temporary.touch()
    except OSError as error:
        raise OSError(f"{target} cannot be written: {_reason(error)}.") from None
    temporary.unlink()


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
