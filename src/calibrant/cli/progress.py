"""A progress bar on standard error, where someone is looking."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give what reports (done, total), or None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task(title, total=None)

        def report(done: int, total: int) -> None:
            bar.update(job, completed=done, total=total)

        yield report
