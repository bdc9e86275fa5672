"""How commands end.

======  =================================================================
0       done
1       a condition of the user's is not met: --fail-above, --fail-on
2       not done: wrong usage, data that cannot be used, or a fault of ours
130     interrupted by Ctrl-C (143: told to end)
141     nobody reads the output any more
======  =================================================================

Nothing but a condition ends with 1, so that a gate never takes a failure for a result.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_MET, NOT_DONE, INTERRUPTED = 1, 2, 130
TRACEBACK = "CALIBRANT_TRACEBACK"


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
    told = f"{type(error).__name__}: {what}" if what else type(error).__name__
    return (
        f"calibrant failed unexpectedly ({told}). Please report this; {TRACEBACK}=1 "
        f"in the environment shows where it happened."
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
