"""Standard output and error that are closed, full or no longer read."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

BROKEN_PIPE = 141
"""The exit code of a program whose reader went away, as shells show SIGPIPE."""
NAMES = {1: "standard output", 2: "standard error"}


def prepare_streams() -> None:
    """Make standard output and error safe to write to, whatever they lead to."""
    _open_closed()
    sys.stdout = _guarded(sys.stdout, 1)
    sys.stderr = _guarded(sys.stderr, 2)


def flush_streams() -> None:
    """Write what is still held back, while errors can be told."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _open_closed() -> None:
    """Let closed streams lead nowhere; else the next file opened would take them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def _guarded(stream: Any, number: int) -> Any:
    """Return a stream that can be written to; one that somebody captures stays."""
    if stream is not None and not _leads_to(stream, number):
        return stream
    if stream is not None:
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Guarded(number, "w", closefd=False)),
        encoding=getattr(stream, "encoding", "utf-8"),
        # Names may hold what no file can, as half a surrogate pair.
        errors="backslashreplace",
        line_buffering=getattr(stream, "line_buffering", True),
        write_through=getattr(stream, "write_through", False),
    )


def _leads_to(stream: Any, number: int) -> bool:
    """Tell whether a stream is the process's own, and no terminal."""
    try:
        return stream.fileno() == number and not stream.isatty()
    except (OSError, ValueError, AttributeError):
        return False


class _Guarded(io.FileIO):
    """A file that ends the program quietly once nobody reads it any more."""

    def write(self, data: Any, /) -> int:
        """Write, or lead nowhere from now on and raise."""
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if isinstance(error, BrokenPipeError):
                raise SystemExit(BROKEN_PIPE) from None
            what = f"{NAMES[self.fileno()]} cannot be written: {error.strerror}"
            raise OSError(what) from None
