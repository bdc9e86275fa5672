"""The smooth test of calibration where rows of a cluster depend on each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.special import stdtr

from calibrant.numerics.classical_tests import Outcome
from calibrant.numerics.clustered import check_two_clusters, dependence_of
from calibrant.numerics.smooth_calibration_test import (
    ORDERS,
    MinPValue,
    label_variance,
    least_log_tails,
    min_p_values,
    orders_for,
    score_functions,
    score_statistics,
)
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.clustered import Dependence
    from calibrant.numerics.weighted_points import WeightedPoints

NODES, SHARES = np.polynomial.hermite_e.hermegauss(16)
SHARES = SHARES / SHARES.sum()
MIN_ROOT = 0.1
"""Variances between clusters are averaged over; none is larger than so much allows."""


VARIANCE_OF_FEW = 3.0
"""Variance of labels for each of the first functions, as if rows were independent."""
MIN_ADDED = -0.5
TINY = 1e-300


class MeanPValue(NamedTuple):
    """The p-value of a test, averaged over what the variance between clusters may be.

    Attributes
    ----------
    statistic, pvalue : float
        Minus the logarithm of the smallest p-value, and the mean of p-values.
    """

    statistic: float
    pvalue: float

    @property
    def outcome(self) -> Outcome:
        """Return statistic and p-value."""
        return Outcome(self.statistic, self.pvalue)

    def rejects(self, level: float) -> bool:
        """Return whether the p-value is at most a level."""
        return self.pvalue <= level


SmoothPValue: TypeAlias = MinPValue | MeanPValue


def cluster_t(scores: FloatVector, clusters: IntVector) -> Outcome:
    """Return Student's t of the sum of scores over clusters, and its p-value.

    Scores are 0 on average if the predictions are calibrated.

    Examples
    --------
    >>> statistic, pvalue = cluster_t(np.array([1.0, 1.0, 3.0]), np.array([5, 5, 7]))
    >>> round(statistic, 3), round(pvalue, 3)
    (5.0, 0.126)
    """
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], scores)
    check_two_clusters(sums.size)
    error = float(sums.std(ddof=1) * np.sqrt(sums.size))
    if error == 0.0:
        return Outcome(np.inf, 0.0) if sums.any() else Outcome(0.0, 1.0)
    t = float(sums.sum()) / error
    return Outcome(t, float(2.0 * stdtr(sums.size - 1, -abs(t))))


def smooth_p_value(
    sample: BinarySample, max_functions: int = ORDERS[-1]
) -> SmoothPValue:
    """Return the p-value of the smooth test, with clusters where there are any."""
    points, dependence = compress_to_at_most(sample), dependence_of(sample)
    if dependence is None:
        return min_p_values([points], max_functions)[0]
    return clustered_min_p_value(points, dependence, max_functions)


def clustered_min_p_value(
    points: WeightedPoints, dependence: Dependence, max_functions: int = ORDERS[-1]
) -> MeanPValue:
    """Return the p-value of the smooth test, rows of a cluster correlated.

    Sums of label less prediction are made independent by their covariance within
    clusters. Their variance is known by few degrees of freedom: if it were that of one
    sum only, the mean of p-values over what it may be would be that of Student's t.
    """
    null = replace(dependence, rates=dependence.sums.p)
    variance = label_variance(points)
    information, most = float(variance.sum()), min(max_functions, points.p.size)
    basis = score_functions(points, orders_for(information, most)[-1])
    functions = basis / np.sqrt(np.maximum(variance, TINY))[:, np.newaxis]
    shared = null.shared(points.p, functions, dependence.factor)
    mean_factor = 1.0 + max(float(np.mean(shared.diagonal())), 0.0)
    orders = orders_for(information / mean_factor, most)
    few = int(information / mean_factor / VARIANCE_OF_FEW)
    orders = tuple(order for order in orders if order <= max(few, orders[0]))
    functions = functions[:, : orders[-1]]
    scores = score_statistics(points, orders[-1])

    def at(factor: float) -> MinPValue:
        shared = null.shared(points.p, functions, factor)
        added, axes = np.linalg.eigh(shared)
        covariance = (axes * (1.0 + np.maximum(added, MIN_ADDED))) @ axes.T
        factors = np.linalg.cholesky(covariance)
        independent = np.asarray(np.linalg.solve(factors, scores), np.float64)
        return MinPValue(float(least_log_tails(independent**2, orders)), orders)

    # The cube root of a chi-square is nearly normal (Wilson and Hilferty 1931).
    spread = 2.0 / (9.0 * dependence.freedom)
    below = np.maximum(1.0 - spread + np.sqrt(spread) * NODES, MIN_ROOT) ** 3.0
    pvalues = [at(dependence.factor / one).outcome.pvalue for one in below.tolist()]
    chance = float(SHARES @ pvalues)
    return MeanPValue(at(dependence.factor).outcome.statistic, chance)
