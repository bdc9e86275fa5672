"""The smooth test of calibration where rows of a cluster depend on each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

from calibrant.numerics.classical_tests import Outcome
from calibrant.numerics.cluster_dependence import check_two_clusters, dependence_of
from calibrant.numerics.links import logit
from calibrant.numerics.smooth_calibration_test import (
    LINES,
    MAX_FUNCTIONS,
    SmoothPValue,
    bent_line,
    count_for,
    label_variance,
    log_tail,
    outcome_of_scores,
    score_functions,
    score_statistics,
    smooth_p_values,
    spiegelhalter_line,
)
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.cluster_dependence import Dependence
    from calibrant.numerics.weighted_points import WeightedPoints

NODES, SHARES = np.polynomial.hermite_e.hermegauss(16)
SHARES = SHARES / SHARES.sum()
MIN_ROOT = 0.1
"""Variances between clusters are averaged over; none is larger than so much allows."""


VARIANCE_OF_FEW = 3.0
"""Variance of labels for each of the first functions, as if rows were independent."""
MIN_ADDED = -0.5
"""The least that dependence may add to a variance of 1."""
MIN_FACTOR = 1.01
"""The least dependence from which it is found in which directions it adds variance."""
TINY = 1e-300


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
    sample: BinarySample, max_functions: int = MAX_FUNCTIONS
) -> SmoothPValue:
    """Return the p-value of the smooth test, with clusters where there are any."""
    points, dependence = compress_to_at_most(sample), dependence_of(sample)
    if dependence is None:
        return smooth_p_values([points], max_functions)[0]
    count = _count(points, dependence, min(max_functions, points.p.size))
    return clustered_p_value(points, dependence, count)


def _count(points: WeightedPoints, dependence: Dependence, max_functions: int) -> int:
    """Return the number of functions that dependent rows allow for."""
    variance = label_variance(points)
    information = float(variance.sum())
    basis = score_functions(points, count_for(information, max_functions), bent_line)
    null = replace(dependence, rates=dependence.sums.p)
    shared = null.shared(points.p, _functions(points, basis), dependence.factor)
    information /= 1.0 + max(float(np.mean(shared.diagonal())), 0.0)
    few = max(int(information / VARIANCE_OF_FEW), LINES)
    return count_for(information, min(max_functions, few))


def _functions(points: WeightedPoints, basis: FloatMatrix) -> FloatMatrix:
    spread = np.sqrt(np.maximum(label_variance(points), TINY))
    return np.asarray(basis / spread[:, np.newaxis])


def clustered_p_value(
    points: WeightedPoints,
    dependence: Dependence,
    count: int,
    line: Callable[[FloatVector], FloatVector] = bent_line,
    test: Callable[[FloatVector, FloatVector], SmoothPValue] = outcome_of_scores,
) -> SmoothPValue:
    """Return the p-value of the smooth test, rows of a cluster correlated.

    Sums of label less prediction are made independent by their covariance within
    clusters. Their variance is known by few degrees of freedom: if it were that of one
    sum only, the mean of p-values over what it may be would be that of Student's t.
    What dependence adds to variances rises and falls with it, in every direction by
    the same factor.
    """
    null = replace(dependence, rates=dependence.sums.p)
    basis = score_functions(points, count, line)
    scores, alone = score_statistics(points, basis), spiegelhalter_line(points, basis)
    shaped = max(dependence.factor, MIN_FACTOR)
    functions = _functions(points, basis)
    added, axes = np.linalg.eigh(null.shared(points.p, functions, shaped))

    def at(factor: float) -> SmoothPValue:
        further = added * max(factor - 1.0, 0.0) / (shaped - 1.0)
        covariance = (axes * (1.0 + np.maximum(further, MIN_ADDED))) @ axes.T
        factors = np.linalg.cholesky(covariance)
        independent = np.asarray(np.linalg.solve(factors, scores), np.float64)
        turned = alone @ factors[: alone.size, : alone.size]
        return test(independent, turned / np.linalg.norm(turned))

    # The cube root of a chi-square is nearly normal (Wilson and Hilferty 1931).
    spread = 2.0 / (9.0 * dependence.freedom)
    below = np.maximum(1.0 - spread + np.sqrt(spread) * NODES, MIN_ROOT) ** 3.0
    pvalues = [at(dependence.factor / one).pvalue for one in below.tolist()]
    return at(dependence.factor)._replace(pvalue=float(SHARES @ pvalues))


def clustered_cox(points: WeightedPoints, dependence: Dependence) -> Outcome:
    """Return the score test of intercept 0 and slope 1, rows of a cluster correlated.

    The statistic is minus the logarithm of the p-value at the estimated dependence.
    """
    count = min(LINES, points.p.size)
    return clustered_p_value(points, dependence, count, logit, _sum_of_squares).outcome


def _sum_of_squares(scores: FloatVector, _line: FloatVector) -> SmoothPValue:
    log = float(log_tail(scores.size, np.square(scores).sum()))
    return SmoothPValue(0.0 - log, float(np.exp(log)))
