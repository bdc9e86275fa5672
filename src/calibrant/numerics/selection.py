"""Choosing complexity from cross-validated losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector


ROUNDING = 1e-12
"""Losses that differ by less are equal."""

MIN_WEIGHT = 0.2
"""What weighs less than this share of the best is left out of a mean."""

EXTRA_COST = 2.0
"""What complexity beyond that which the rows support costs in log-likelihood: as much
as two parameters, a knot and its height, by Akaike's criterion."""

RESAMPLES = 100
"""How often held-out losses are resampled."""

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


def likelihood_weights(
    losses: FloatVector, unit: FloatVector, min_weight: float = MIN_WEIGHT
) -> FloatVector:
    """Return weights proportional to exp(-loss / unit), the smallest as 0.

    Losses of several choices go along the last axis, as the weights do.

    Examples
    --------
    >>> likelihood_weights(np.array([0.3, 0.1, 0.1]), unit=np.array([0.01]))
    array([0. , 0.5, 0.5])
    """
    least = losses.min(axis=-1, keepdims=True)
    weight = np.exp((least - losses) / np.maximum(unit, ROUNDING))
    weight = np.where(weight < min_weight, 0.0, weight)
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def brier_unit(losses: FloatVector, rows: float) -> FloatVector:
    """Return by how much mean Brier scores differ for a log-likelihood ratio of 1.

    The likelihood is that of normal noise whose variance is the least score.

    Examples
    --------
    >>> brier_unit(np.array([0.2, 0.1]), rows=100)
    array([0.002])
    """
    least = losses.min(axis=-1, keepdims=True)
    return np.asarray(2.0 * np.maximum(least, 0.0) / rows)


def resampled_means(losses: FloatMatrix, rows: FloatVector) -> FloatMatrix:
    """Return the mean of each row of losses in resamples, shape (resamples, models).

    This is the Bayesian bootstrap: each of `rows` held-out rows that share a loss, the
    columns of `losses`, gets a weight from an exponential distribution.

    Examples
    --------
    >>> losses = np.array([[0.1, 0.1], [0.0, 1.0]])
    >>> means = resampled_means(losses, rows=np.array([9.0, 1.0]))
    >>> means.mean(axis=0).round(1)
    array([0.1, 0.1])
    """
    rng = np.random.default_rng(0)  # the same for the same question
    share = rng.standard_gamma(rows, (RESAMPLES, rows.size))
    means: FloatMatrix = share @ losses.T / share.sum(axis=1, keepdims=True)
    return means


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
