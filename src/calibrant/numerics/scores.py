"""Proper scoring rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.links import clipped

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector, IntVector


def brier_score(p: FloatVector, y: FloatVector, weight: FloatVector | None) -> float:
    """Return the mean of (p - y)^2."""
    return float(np.average((p - y) ** 2, weights=weight))


def log_loss(p: FloatVector, y: FloatVector, weight: FloatVector | None) -> float:
    """Return the mean of -log of the probability given to what happened.

    A prediction of exactly 0 or 1 that failed counts as if it had been off by
    machine precision, 36.04, as in scikit-learn.
    """
    q = clipped(p)
    return float(
        np.average(-(y * np.log(q) + (1.0 - y) * np.log1p(-q)), weights=weight)
    )


def log_loss_of_classes(
    p: FloatMatrix, column: IntVector, weight: FloatVector | None
) -> float:
    """Return the mean of -log of the probability given to the class that happened.

    Examples
    --------
    >>> log_loss_of_classes(np.array([[0.5, 0.5]]), np.array([1]), None)
    0.693...
    """
    happened = p[np.arange(column.size), column]
    return float(np.average(-np.log(clipped(happened)), weights=weight))
