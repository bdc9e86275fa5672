"""The smooth test of calibration where rows of a cluster depend on each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.special import roots_genlaguerre

from calibrant.numerics.classical_tests import Outcome
from calibrant.numerics.clustered import dependence_of
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
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.clustered import Dependence
    from calibrant.numerics.weighted_points import WeightedPoints

NODES = 16
"""Variances between clusters over which p-values are averaged."""


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
        independent = np.linalg.solve(np.linalg.cholesky(covariance), scores)
        return MinPValue(float(least_log_tails(independent**2, orders)), orders)

    half = 0.5 * dependence.freedom
    nodes, shares = roots_genlaguerre(NODES, half - 1.0)
    pvalues = [at(dependence.factor * half / node).outcome.pvalue for node in nodes]
    chance = float(shares @ pvalues / shares.sum())
    return MeanPValue(at(dependence.factor).outcome.statistic, chance)
