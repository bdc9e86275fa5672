"""Progress on standard error: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
