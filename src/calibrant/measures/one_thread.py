"""One thread for small matrices: starting more costs more than they bring."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let linear algebra use one thread: fits solve thousands of small systems."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (its library must be there to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
