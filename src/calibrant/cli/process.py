"""How a command runs as a process: exit code, output streams, progress.

======  =================================================================
0       done
1       a condition of the user's is not met: --fail-above, --fail-on
2       not done: wrong usage, data that cannot be used, or a fault of calibrant
130     interrupted by Ctrl-C (143: terminated)
141     the reader of a pipe closed it
======  =================================================================

Only a condition that is not met gives 1, so a gate never takes a failure for a result.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOT_MET, NOT_DONE, INTERRUPTED = 1, 2, 130
TRACEBACK = "CALIBRANT_TRACEBACK"
BROKEN_PIPE = 141
"""The exit code of a program whose reader went away, as shells show SIGPIPE."""
NAMES = {1: "standard output", 2: "standard error"}


class ConditionNotMet(Exception):  # noqa: N818  (nothing went wrong)
    """A condition that the user gave is not met."""


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn whatever ends a command into an exit code, and at most one line."""
    with _interrupts() as interrupts:
        try:
            yield
        except ConditionNotMet:
            sys.exit(NOT_MET)
        except SystemExit as ended:
            # Not a condition: other libraries end with 1 where a connection breaks.
            sys.exit(NOT_DONE if ended.code == NOT_MET else ended.code)
        except BaseException as error:  # noqa: BLE001  (also those that are no Exception)
            if interrupts or isinstance(error, KeyboardInterrupt):
                sys.exit(INTERRUPTED)
            end_with(error, _unexpected(error))


def end_with(error: BaseException, message: str) -> None:
    """Say what went wrong in one line, or as asked also where, and leave."""
    with suppress(OSError):
        if os.environ.get(TRACEBACK):
            import traceback

            traceback.print_exception(error)
        sys.stderr.write(f"error: {message}\n")
        sys.stderr.flush()
    sys.exit(NOT_DONE)


def _unexpected(error: BaseException) -> str:
    what = (str(error).splitlines() or [""])[0]
    if isinstance(error, MemoryError):
        return f"not enough memory. {what}".rstrip()
    if isinstance(error, OSError):
        return what
    kind = f"{type(error).__name__}: {what}" if what else type(error).__name__
    return (
        f"calibrant failed unexpectedly ({kind}). Please report this, with the "
        f"traceback that the same command prints after 'export {TRACEBACK}=1'."
    )


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Give a list of the interrupts so far.

    Libraries in other languages may turn an interrupt into an error of their own.
    """
    seen: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield seen
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def prepare_streams() -> None:
    """Make standard output and error safe to write to, whatever they lead to."""
    # Closed streams lead nowhere; else the next file opened would take their numbers.
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdout = _guarded(sys.stdout, 1)
    sys.stderr = _guarded(sys.stderr, 2)


def flush_streams() -> None:
    """Write what is still held back, while errors can be shown."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def _guarded(stream: Any, number: int) -> Any:
    """Return a stream that can be written to; one that is captured stays."""
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
    """A file that ends the program quietly once its reader has closed it."""

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


FIRST_LINE, LONGEST_WAIT = 2.0, 60.0
"""Seconds before the first line; each waits twice as long as the one before, at most
so long."""


@contextmanager
def progress_bar(
    title: str, *, first_line: float = FIRST_LINE
) -> Iterator[Callable[[int, int], None]]:
    """Give what reports (done, total); without a terminal, in lines now and then."""
    if not sys.stderr.isatty():
        with _lines(title, first_line) as report:
            yield report
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task(title, total=None)

        def report(done: int, total: int) -> None:
            bar.update(job, completed=done, total=total)

        yield report


@contextmanager
def _lines(title: str, first_line: float) -> Iterator[Callable[[int, int], None]]:
    """Write lines from a thread of its own, so that long stages are not silent."""
    stream, started = sys.stderr, time.monotonic()
    reached = ""
    over = threading.Event()

    def report(done: int, total: int) -> None:
        nonlocal reached
        reached = f", {done} of {total} parts done" if total > 1 else ""

    def tell() -> None:
        wait = first_line
        while not over.wait(wait):
            seconds = time.monotonic() - started
            with suppress(OSError):  # a failed progress message must not stop the work
                stream.write(f"still {title} after {seconds:.0f} s{reached}\n")
                stream.flush()
            wait = min(max(seconds, first_line), LONGEST_WAIT)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield report
    finally:
        over.set()
        thread.join()
