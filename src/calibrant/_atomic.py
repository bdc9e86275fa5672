"""Files appear whole or not at all."""

from __future__ import annotations

import re
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator


FULL = re.compile(
    "no space left on device|file too large|disk quota exceeded", re.IGNORECASE
)
"""How systems say that a disk is full; writers wrap it in words of their own."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside `path`; rename it to `path` if all went well.

    The suffix is kept, for writers that go by it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "notes.txt")
    ...     with replacing(target) as temporary:
    ...         _ = temporary.write_text("whole")
    ...     target.read_text()
    'whole'
    """
    target = Path(path)
    if target.is_symlink():  # the file that it points to changes, the link stays
        target = _end_of(target)
    if target.exists() and not target.is_file():
        raise OSError(f"{target} cannot be written: it is no regular file.")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"{target} cannot be written: the folder {target.parent} does not exist."
        )
    unique = secrets.token_hex(6)  # several may write the same file at once
    temporary = target.with_name(f".{target.stem}-{unique}{target.suffix}")
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


def _end_of(link: Path) -> Path:
    try:
        return link.resolve()
    except RuntimeError:
        raise OSError(f"{link} cannot be written: its links go in a circle.") from None
