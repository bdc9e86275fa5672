"""Proper scoring rules, and the plug-in calibration error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.links import clip_probability

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector


def squared_errors(p: FloatVector, y: FloatVector) -> FloatVector:
    """Return (p - y)^2 of each row; their mean is the Brier score."""
    return np.asarray((p - y) ** 2)


def log_losses(p: FloatVector, y: FloatVector) -> FloatVector:
    """Return minus the log-probability of the label of each row.

    A wrong prediction of exactly 0 or 1 is clipped by machine precision and counts
    36.04, as in scikit-learn.
    """
    q = clip_probability(p)
    return np.asarray(-(y * np.log(q) + (1.0 - y) * np.log1p(-q)))


def brier_score(p: FloatVector, y: FloatVector, weight: FloatVector | None) -> float:
    """Return the mean of (p - y)^2."""
    return float(np.average(squared_errors(p, y), weights=weight))


def log_loss(p: FloatVector, y: FloatVector, weight: FloatVector | None) -> float:
    """Return the mean of minus the log-probability of the label."""
    return float(np.average(log_losses(p, y), weights=weight))


def log_loss_of_classes(
    p: FloatMatrix, column: IntVector, weight: FloatVector | None
) -> float:
    """Return the mean of minus the log-probability of the true class.

    Examples
    --------
    >>> log_loss_of_classes(np.array([[0.5, 0.5]]), np.array([1]), None)
    0.693...
    """
    own = p[np.arange(column.size), column]
    return float(np.average(-np.log(clip_probability(own)), weights=weight))


def mean_gap(
    calibrated: FloatVector,
    p: FloatVector,
    weight: FloatVector | None,
    alpha: float,
) -> float:
    """Return the plug-in error, the mean of abs(c(p) - p) ** alpha."""
    return float(np.average(np.abs(calibrated - p) ** alpha, weights=weight))
