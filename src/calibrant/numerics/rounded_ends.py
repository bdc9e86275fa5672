"""What predictions of exactly 0 and 1 count as on the logit scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector

NEAREST = 1e-9
"""No prediction counts as nearer to 0 or 1 than this; those that are count as exact."""
ROUNDED = 16.0
"""Exact predictions count as this part of how near to the end the data can tell."""
UNSEEN = 128.0
"""The same, where the data hold no exact ones."""


def rounded_ends(
    p: FloatMatrix, weight: FloatMatrix
) -> tuple[FloatVector, FloatVector]:
    """Return the least and the largest that predictions of a sample count as.

    A prediction of exactly 0 or 1 was rounded to it. By how much nobody knows; but the
    prediction next to it tells how fine the data are, and n rows cannot tell shares
    apart that are far below 1 / n.

    Parameters
    ----------
    p, weight : ndarray of shape (..., m)
        Predictions of a sample and their weights, those with weight 0 not counting;
        any axes before the last are samples.

    Examples
    --------
    >>> low, high = rounded_ends(np.array([0.0, 0.5, 0.8]), np.array([2.0, 1.0, 1.0]))
    >>> float(low), float(high)
    (0.015625, 0.9984375)
    """
    return _end(p, weight), 1.0 - _end(1.0 - p, weight)


def _end(near: FloatMatrix, weight: FloatMatrix) -> FloatVector:
    inside = (weight > 0.0) & (near > NEAREST)
    exact = ((weight > 0.0) & ~inside).any(axis=-1)
    finest = np.where(inside, near, 0.5).min(axis=-1)
    finest = np.minimum(finest, 1.0 / weight.sum(axis=-1))
    part = np.where(exact, ROUNDED, UNSEEN)
    return np.asarray(np.maximum(finest / part, NEAREST))
