"""The temperature of least log-loss: one convex problem in one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

FLATTEST = 1e-6
"""Least inverse temperature, in units of one over the spread of the logits."""
MAX_STEPS = 200
STEEPNESS = 1e-11
"""Slope of the loss by the logarithm of the temperature that counts as 0."""


def inverse_temperature(
    logits: FloatMatrix, column: IntVector, share: FloatVector
) -> float:
    """Return the b > 0 for which softmax(b * logits) has the least log-loss.

    Newton steps on the slope of the loss, which rises with b, kept within a bracket.
    Where all rows are right with room to spare the loss falls for ever; the search
    then ends where it is flat. Where no b above 0 helps, b is as good as 0, but
    keeps the order of the classes.

    Parameters
    ----------
    logits : ndarray of shape (n, k)
        Logits or log-probabilities.
    column : ndarray of shape (n,)
        The class that happened.
    share : ndarray of shape (n,)
        Each row's share of the weight.
    """
    spread = logits - logits.max(axis=1, keepdims=True)
    size = float(np.sqrt(share @ np.square(spread).mean(axis=1)))
    if size == 0.0:
        return 1.0
    spread /= size
    own = float(share @ spread[np.arange(column.size), column])
    low, high, b = FLATTEST, np.inf, size
    for _ in range(MAX_STEPS):
        slope, bend = _slope_and_bend(spread, own, share, b)
        if slope > 0.0:
            high = b
        else:
            low = b
        if abs(slope) * b <= STEEPNESS or high <= low * (1.0 + 1e-15):
            break
        step = b - slope / bend if bend > 0.0 else np.inf
        if not low < step < high:
            step = 4.0 * b if np.isinf(high) else np.sqrt(low * high)
        b = step
    return float(b / size)


def _slope_and_bend(
    spread: FloatMatrix, own: float, share: FloatVector, b: float
) -> tuple[float, float]:
    """Return the first two derivatives of the mean log-loss by b."""
    raised = b * spread
    np.exp(raised, out=raised)
    total = raised.sum(axis=1)
    raised *= spread
    mean = raised.sum(axis=1) / total
    square = np.einsum("ij,ij->i", raised, spread) / total
    return float(share @ mean) - own, float(share @ (square - mean**2))
