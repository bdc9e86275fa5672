"""Numbers as the JSON of a summary holds them: short, never NaN."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from calibrant.core.array_types import Frame
    from calibrant.measures.estimate import Estimate

DIGITS = 6
"""Significant digits of what is drawn; a screen shows three."""


def number(value: Any) -> float | None:
    """Return a finite number as it is, anything else as None.

    >>> number(np.float64(0.25)), number(float("nan"))
    (0.25, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None


def error_numbers(estimate: Estimate | None) -> dict[str, float | None]:
    """Return an estimated error and its interval; all None where it is not known."""
    if estimate is None:
        return dict.fromkeys(("error", "low", "high"))
    return plain({"error": estimate.value, "low": estimate.low, "high": estimate.high})


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return named values with numbers that are not finite as None."""
    return {k: number(v) if isinstance(v, float) else v for k, v in values.items()}


def rows_of(frame: Frame) -> list[dict[str, Any]]:
    """Return the rows of a table, numbers that are not finite as None."""
    columns = (column.tolist() for column in frame.values())
    rows = zip(*columns, strict=True)
    return [plain(dict(zip(frame, row, strict=True))) for row in rows]


def numbers(values: Iterable[Any]) -> list[float | None]:
    """Return numbers with few digits, None for those that are not finite.

    Digits count from the nearer end: 1 - 1e-9 is not the same as 1.

    >>> numbers(np.array([1 / 3, np.nan, 1.0 - 1e-9 / 3]))
    [0.333333, None, 0.999999999666667]
    """
    short: list[float | None] = []
    for value in np.asarray(values, dtype=np.float64).tolist():
        if not math.isfinite(value):
            short.append(None)
        elif 0.0 < 1.0 - value < 0.1:  # noqa: PLR2004
            digits = DIGITS - 1 - math.floor(math.log10(1.0 - value))
            short.append(round(value, digits))
        else:
            short.append(float(f"{value:.{DIGITS}g}"))
    return short


def counts(values: Iterable[Any]) -> list[float]:
    """Return numbers of rows: whole ones as they are, sums of weights to a thousandth.

    >>> counts(np.array([1234567.0, 1 / 3]))
    [1234567.0, 0.333]
    """
    return [round(value, 3) for value in np.asarray(values, dtype=np.float64).tolist()]
