"""Differences of errors that were estimated on the same rows, and Holm's correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from calibrant.numerics.cross_validation import ROUNDING

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        ArrayLike,
        BoolMatrix,
        FloatMatrix,
        FloatVector,
        IntVector,
    )


@dataclass(frozen=True, eq=False)
class PairedDifferences:
    """Every model's error less every other's; row a, column b.

    Attributes
    ----------
    difference, low, high : ndarray of shape (k, k)
        Error of a less error of b, and the ends of its interval.
    probability : ndarray of shape (k, k)
        How probable it is that the error of a is the smaller one.
    """

    difference: FloatMatrix
    low: FloatMatrix
    high: FloatMatrix
    probability: FloatMatrix


def paired_differences(
    value: FloatVector,
    low: FloatVector,
    high: FloatVector,
    draws: FloatMatrix,
    confidence: float,
    freedom: float = np.inf,
) -> PairedDifferences:
    """Return the differences of errors with intervals, from resamples of all at once.

    A difference is taken as normal, with the standard deviation that it has over the
    resamples. An error whose own interval begins at 0 could be 0: then the side of the
    interval of a difference on which that error is smaller is widened by as much as its
    own lower side is wider than its resamples suggest. So no error is found to be
    larger than another where noise alone can explain it. An error that is the same in
    all resamples is not certain for that reason: both sides of its own interval count.

    Parameters
    ----------
    value, low, high : ndarray of shape (k,)
        Estimates, and the ends of their intervals.
    draws : ndarray of shape (k, replicates)
        Errors of resamples, the same resamples for all.
    confidence : float
        Level of the intervals.
    freedom : float
        Degrees of freedom of standard deviations: clusters that were drawn, less 1.
    """
    few, level = np.isfinite(freedom), 0.5 + 0.5 * confidence
    z = float(stdtrit(freedom, level) if few else ndtri(level))
    if few:  # a resample varies less than the clusters do, by one in so many
        draws = draws * np.sqrt((freedom + 1.0) / freedom)
    error = np.maximum(value, 0.0)
    difference = error[:, np.newaxis] - error
    spread = z * np.array([(draws - one).std(axis=1) for one in draws])
    own = z * draws.std(axis=1)
    stuck = own <= ROUNDING
    below = np.maximum(np.square(error - low) - own**2, 0.0)
    below[(low > 0.0) & ~stuck] = 0.0
    above = np.where(stuck, np.square(high - error), 0.0)
    down = np.sqrt(spread**2 + below[:, np.newaxis] + above)
    up = np.sqrt(spread**2 + below + above[:, np.newaxis])
    towards_zero = np.where(difference < 0.0, up, down)
    score = np.zeros_like(difference)
    with np.errstate(divide="ignore"):  # no spread at all: certain
        np.divide(z * difference, towards_zero, out=score, where=difference != 0.0)
    lowest, highest = np.clip([difference - down, difference + up], -1.0, 1.0)
    chance = stdtr(freedom, -score) if few else ndtr(-score)
    return PairedDifferences(difference, lowest, highest, np.asarray(chance))


def holm(pvalues: ArrayLike) -> FloatVector:
    """Return adjusted p-values: any false rejection is as rare as the level.

    References
    ----------
    S. Holm (1979). A simple sequentially rejective multiple test procedure.
    Scandinavian Journal of Statistics 6.
    """
    given = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(given, kind="stable")
    steps = given[order] * np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def significantly_different(probability: FloatMatrix, level: float) -> BoolMatrix:
    """Return which pairs differ, by Holm's procedure over all pairs.

    The chance that any pair of equal errors is found different is at most `level`.
    """
    k = len(probability)
    pairs = np.triu_indices(k, 1)
    pvalue = 2.0 * np.minimum(probability, 1.0 - probability)[pairs]
    apart = np.zeros((k, k), dtype=bool)
    apart[pairs] = holm(pvalue) <= level
    return apart | apart.T


def ranks(difference: FloatMatrix, apart: BoolMatrix) -> IntVector:
    """Return 1 plus the number of models with a significantly smaller error.

    That is well defined even where a does not differ from b, nor b from c, but a from
    c: then a and b have rank 1, and c has rank 2.

    Examples
    --------
    >>> value = np.array([0.1, 0.2, 0.3])
    >>> apart = np.zeros((3, 3), dtype=bool)
    >>> apart[0, 2] = apart[2, 0] = True
    >>> ranks(value[:, np.newaxis] - value, apart)
    array([1, 1, 2])
    """
    return np.asarray(1 + np.sum(apart & (difference > 0.0), axis=1))
