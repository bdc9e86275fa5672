"""Whether the event happens less often where predictions are higher."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

LEVEL = 0.01
"""Models without skill are taken to be upside down this often."""
MIN_ROWS = 30


class Reversal(NamedTuple):
    """How strongly predictions and labels contradict each other."""

    correlation: float
    pvalue: float


def find_reversal(
    p: FloatVector, y: FloatVector, weight: FloatVector, level: float = LEVEL
) -> Reversal | None:
    """Return the reversal if predictions and labels are negatively correlated.

    That is tested at `level`, one-sided; None where it is not significant. A label may
    be the mean label of the rows that a weight counts.

    Examples
    --------
    >>> p = np.linspace(0.0, 1.0, 40)
    >>> round(find_reversal(p, (p < 0.5).astype(float), np.ones(40)).correlation, 2)
    -0.87
    >>> find_reversal(p, (p > 0.5).astype(float), np.ones(40)) is None
    True
    """
    total = float(weight.sum())
    rate = float(weight @ y) / total
    centred = p - float(weight @ p) / total
    scale = float(weight @ centred**2) * total * rate * (1.0 - rate)
    if total < MIN_ROWS or scale <= 0.0:
        return None
    correlation = float(weight @ (centred * (y - rate))) / np.sqrt(scale)
    pvalue = float(ndtr(correlation * np.sqrt(total)))
    if pvalue >= level:
        return None
    return Reversal(float(correlation), pvalue)
