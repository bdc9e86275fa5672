"""Choosing complexity from cross-validated losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant._typing import FloatVector


ROUNDING = 1e-12
"""Losses that differ by less are equal."""

LEAST_WEIGHT = 0.2
"""What weighs less than this share of the best is left out of a mean."""

RISES = 4
CLEARLY_WORSE = 1.001
"""So many in a row that lose more than 0.1 percent and weigh nothing end a search."""


def is_past_the_best(losses: FloatVector, weights: FloatVector) -> bool:
    """Tell whether losses, from simple to complex, have left the least one behind.

    Examples
    --------
    >>> losses = np.array([0.2, 0.1, 0.11, 0.12, 0.11, 0.12])
    >>> is_past_the_best(losses, simplest_weight(losses, 0.001))
    True
    """
    worse = (losses > CLEARLY_WORSE * losses.min() + ROUNDING) & (weights == 0.0)
    return bool(losses.size > RISES and worse[-RISES:].all())


def likelihood_weights(losses: FloatVector, unit: float) -> FloatVector:
    """Return weights proportional to exp(-loss / unit), the smallest as 0.

    Examples
    --------
    >>> likelihood_weights(np.array([0.3, 0.1, 0.1]), unit=0.01)
    array([0. , 0.5, 0.5])
    """
    weight = np.exp((losses.min() - losses) / max(unit, ROUNDING))
    weight = np.where(weight < LEAST_WEIGHT, 0.0, weight)
    return np.asarray(weight / weight.sum())


def brier_weights(losses: FloatVector, rows: float) -> FloatVector:
    """Return the weights of mean Brier scores over so many rows.

    The likelihood is that of normal noise whose variance is the least score.

    Examples
    --------
    >>> brier_weights(np.array([0.2, 0.2]), rows=100)
    array([0.5, 0.5])
    """
    return likelihood_weights(losses, 2.0 * max(float(losses.min()), 0.0) / rows)


def simplest_weight(losses: FloatVector, tolerance: float) -> FloatVector:
    """Return all weight on the one that `simplest_within` chooses.

    Examples
    --------
    >>> simplest_weight(np.array([0.2, 0.1]), tolerance=0.001)
    array([0., 1.])
    """
    weight = np.zeros(losses.size)
    weight[simplest_within(losses, tolerance)] = 1.0
    return weight


def simplest_within(losses: FloatVector, tolerance: float) -> int:
    """Return the first index whose loss is within `tolerance` of the least.

    Losses are ordered from simple to complex, so with a tolerance of 0.001 this is
    the paper's rule (appendix C.2): prefer fewer bins whenever they cost less than
    0.1 percent.

    Examples
    --------
    >>> simplest_within(np.array([0.2, 0.10005, 0.11, 0.1]), tolerance=0.001)
    1
    """
    # A perfect fit may come out a rounding error below 0.
    least = max(float(losses.min()), 0.0)
    return int(np.argmax(losses <= least * (1.0 + tolerance) + ROUNDING))
