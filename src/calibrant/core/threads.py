"""One thread for small matrices: starting more costs more than it saves."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAKEN = threading.Lock()
"""Held while the limit is in force."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let linear algebra use one thread: fits solve thousands of small systems.

    Functions that users call enter it; the mathematics below them relies on that. The
    limit holds for the whole process. Only the first caller sets it and restores the
    previous setting; a second one, in this Python thread or another, would mistake the
    limit of the first for the user's setting and restore that.
    """
    if not _TAKEN.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _TAKEN.release()


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (its library must be there to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
