"""Proper scoring rules, the plug-in calibration error, and quantiles of gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.links import clip_probability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

ROUNDING = 1e-9
"""Sums of weights that differ by this share are equal."""


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
    calibrated: FloatVector | FloatMatrix,
    p: FloatVector | FloatMatrix,
    weight: FloatVector | None,
    alpha: float,
) -> float:
    """Return the plug-in error: the mean of abs(c(p) - p) ** alpha, or of its sums.

    Of several classes it is summed over the columns of each row.

    Examples
    --------
    >>> p, calibrated = np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]])
    >>> mean_gap(calibrated, p, None, 1.0), mean_gap(calibrated[:, 0], p[:, 0], None, 1)
    (0.5, 0.25)
    """
    gaps = np.abs(calibrated - p) ** alpha
    rows = gaps.sum(axis=1) if gaps.ndim > 1 else gaps
    return float(np.average(rows, weights=weight))


def count_quantiles(
    values: FloatMatrix, weight: FloatVector, levels: Sequence[float]
) -> FloatMatrix:
    """Return quantiles of each column, shape (levels, columns).

    A value of weight w counts as w rows; between rows, quantiles are interpolated as
    by ``np.quantile``.

    Examples
    --------
    >>> values, weight = np.array([[3.0], [1.0]]), np.array([2.0, 1.0])
    >>> count_quantiles(values, weight, (0.25, 0.5))  # of 1, 3, 3
    array([[2.],
           [3.]])
    """
    order = np.argsort(values, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    ranks = np.cumsum(weight[order], axis=0) * (1.0 - ROUNDING)
    last = max(float(weight.sum()) - 1.0, 0.0)  # rows may count less than one

    def at(rank: float) -> FloatMatrix:
        """Return the row of each column that so many rows precede."""
        place = np.minimum((ranks <= rank).sum(axis=0), len(ordered) - 1)
        return np.asarray(np.take_along_axis(ordered, place[np.newaxis], axis=0)[0])

    rows = []
    for level in levels:
        below = np.floor(level * last)
        share = level * last - below
        between = (1.0 - share) * at(below) + share * at(below + 1.0)
        # The maximum may count less than one row.
        rows.append(ordered[-1] if level == 1.0 else between)
    return np.stack(rows)
