"""Logits and back; the only place where probabilities are kept off 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import logit as _logit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector

CLIP = float(np.finfo(np.float64).eps)
"""Logarithms treat no probability as nearer to 0 or 1, as in scikit-learn."""
NEAREST = 1e-9
"""Predictions nearer to 0 or 1 than this are treated as exactly 0 or 1."""
SIXTEENTH, HALF, INNER_PART = 16.0, 2.0, 128.0
"""`rounded_ends` divides the resolution of the data by one of the first two if any
prediction is exactly 0 or 1, and by the last if none is."""
Ends: TypeAlias = "tuple[float, float] | Sequence[FloatVector]"
"""Lowest and highest value that predictions are clipped to: for all, or for each."""
WIDEST_ENDS = (CLIP, 1.0 - CLIP)
"""Ends of a fit that takes predictions as they are."""


def clip_probability(p: FloatVector, clip: float = CLIP) -> FloatVector:
    """Return probabilities clipped to the interval from `clip` to 1 - `clip`."""
    return np.clip(p, clip, 1.0 - clip)


def logit(p: FloatVector, clip: float = CLIP) -> FloatVector:
    """Return log(p / (1 - p)) of the clipped probabilities.

    Examples
    --------
    >>> logit(np.array([0.5, 1.0])).round(2)
    array([ 0.  , 36.04])
    """
    return np.asarray(_logit(clip_probability(p, clip)), dtype=np.float64)


def logit_within(p: FloatVector, ends: Ends) -> FloatVector:
    """Return logits of predictions, those beyond the ends as at the ends.

    Examples
    --------
    >>> logit_within(np.array([0.0, 0.5, 1.0]), (0.1, 0.9)).round(2)
    array([-2.2,  0. ,  2.2])
    """
    return logit(np.clip(p, *ends))


def log_odds_parts(
    p: FloatVector, ends: Ends = WIDEST_ENDS
) -> tuple[FloatVector, FloatVector]:
    """Return log(p) and -log(1 - p) of p within the ends; they add to logits."""
    p = np.clip(p, *ends)
    return np.log(p), -np.log1p(-p)


def regression_ends(p: FloatVector, weight: FloatVector) -> tuple[float, float]:
    """Return the ends within which a regression on logits takes predictions.

    Half of the resolution of the data, as rounding has it: at the logit of machine
    precision, 36, few predictions of exactly 0 and 1 would decide about all others.
    Of fits to real predictions, those at halves had the least log-loss on other rows.

    Examples
    --------
    >>> regression_ends(np.array([0.0, 0.5, 0.8]), np.array([2.0, 1.0, 1.0]))
    (0.125, 0.9984375)
    """
    low, high = rounded_ends(p, weight, HALF)
    return float(low), float(high)


def rounded_ends(
    p: FloatMatrix, weight: FloatMatrix, part: float = SIXTEENTH
) -> tuple[FloatVector, FloatVector]:
    """Return the smallest and the largest value that predictions are treated as.

    A prediction of exactly 0 or 1 was rounded to it. The rounding is unknown; but
    the prediction next to it shows how fine the data are, and n rows cannot distinguish
    rates that are far below 1 / n.

    Parameters
    ----------
    p, weight : ndarray of shape (..., m)
        Predictions of a sample and their weights; weights of 0 do not count, and axes
        before the last are samples.
    part : float
        The resolution is divided by this for predictions of exactly 0 and 1. Maps
        that are drawn to the identity start from a value near them, a sixteenth.

    Examples
    --------
    >>> low, high = rounded_ends(np.array([0.0, 0.5, 0.8]), np.array([2.0, 1.0, 1.0]))
    >>> float(low), float(high)
    (0.015625, 0.9984375)
    """
    return _lower_end(p, weight, part), 1.0 - _lower_end(1.0 - p, weight, part)


def _lower_end(near: FloatMatrix, weight: FloatMatrix, part: float) -> FloatVector:
    inside = (weight > 0.0) & (near > NEAREST)
    exact = ((weight > 0.0) & ~inside).any(axis=-1)
    finest = np.where(inside, near, 0.5).min(axis=-1)
    finest = np.minimum(finest, 1.0 / weight.sum(axis=-1))
    parts = np.where(exact, part, INNER_PART)
    return np.asarray(np.maximum(finest / parts, NEAREST))
