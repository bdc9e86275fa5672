"""One thread for small matrices: starting more costs more than they bring."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIMITED: ContextVar[bool] = ContextVar("_LIMITED", default=False)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let linear algebra use one thread: fits solve thousands of small systems.

    Within another such context nothing is done: asking for the limit takes as long as
    fitting a small sample.
    """
    if _LIMITED.get():
        yield
        return
    token = _LIMITED.set(True)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITED.reset(token)


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  (its library must be there to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
