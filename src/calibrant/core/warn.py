"""Warnings that point at the user's own line, however deep the call is."""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from calibrant.exceptions import CalibrantWarning

PACKAGE = str(Path(__file__).parent.parent)
BETWEEN = (functools.__file__, contextlib.__file__)
"""Modules that call this package from within: cached properties, contexts."""


def warn(message: str, category: type[CalibrantWarning]) -> None:
    """Warn at the nearest line outside of this package.

    Python 3.12 has `skip_file_prefixes` for it.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(
        (PACKAGE, *BETWEEN)
    ):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
