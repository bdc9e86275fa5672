"""Numbers as a summary holds them: plain, short, never NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

DIGITS = 6
"""Significant digits of what is drawn; a screen shows three."""


def number(value: Any) -> float | None:
    """Return a finite number as it is, anything else as None.

    Examples
    --------
    >>> number(np.float64(0.25)), number(float("nan"))
    (0.25, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None


def numbers(values: Iterable[Any]) -> list[float | None]:
    """Return numbers with few digits, None for those that are not finite.

    Examples
    --------
    >>> numbers(np.array([1 / 3, np.nan]))
    [0.333333, None]
    """
    return [
        float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
        for value in np.asarray(values, dtype=np.float64).tolist()
    ]
