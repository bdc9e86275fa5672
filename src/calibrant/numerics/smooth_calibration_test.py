"""A test of calibration against smooth departures of growing order.

If predictions are calibrated, the distribution of the labels is known in full. So is
that of sums of label less prediction, weighted by functions of the prediction: normal,
with known variance. Functions that are orthogonal in this variance give independent
sums. They are ordered from smooth to wiggly: constant and logit first (as in Cox's
test), then polynomials of growing order. Small departures of simple shape show in the
first few, complex ones in more.

The squared sums are added up to several orders; each total has a chi-square
distribution. The smallest of their p-values is reported, and the price of choosing it
is known exactly: totals only grow by further independent chi-squares, so the chance
that they first exceed their limits follows by integration from order to order.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.special import chdtrc, chdtri, gammaln

from calibrant.numerics.classical_tests import Outcome
from calibrant.numerics.links import clip_probability, logit
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector

ORDERS = (2, 4, 6, 8, 12, 16, 24)
"""Numbers of functions that are tried."""
MIN_FUNCTIONS = 8
"""So many functions are used even with few rows."""
VARIANCE_PER_FUNCTION = 12.0
"""Variance of labels, summed over rows, for each function beyond those: about 72 rows
at uniform predictions. With less, sums are not normal enough."""
MARGIN = 0.01
"""Added to the bounds between which a critical value is searched for."""
NODES = 128
"""Points of each integral: three digits of the chance, two of one below 1e-100."""


class MinPValue(NamedTuple):
    """The smallest p-value of nested sums of squared scores.

    Attributes
    ----------
    log_least : float
        Its logarithm.
    orders : tuple of int
        Numbers of squares that were summed.
    """

    log_least: float
    orders: tuple[int, ...]

    @property
    def outcome(self) -> Outcome:
        """Return minus the logarithm, and the p-value of the smallest p-value."""
        chance = p_value_of_min(self.orders, float(np.exp(self.log_least)))
        return Outcome(0.0 - self.log_least, chance)

    def rejects(self, level: float) -> bool:
        """Return whether that p-value is at most a level.

        Examples
        --------
        >>> MinPValue(-3.5, (2, 4)).rejects(0.05), MinPValue(-3.0, (2, 4)).rejects(0.05)
        (True, False)
        """
        return self.log_least <= critical_log_least(self.orders, level)


def smooth_test(points: WeightedPoints, max_functions: int = ORDERS[-1]) -> Outcome:
    """Return minus the logarithm of the smallest p-value, and its own p-value.

    `points` should be few, as `compress_to_at_most` returns them.
    """
    return min_p_values([points], max_functions)[0].outcome


def min_p_values(
    samples: Sequence[WeightedPoints], max_functions: int = ORDERS[-1]
) -> list[MinPValue]:
    """Return the smallest p-value of each sample; samples of one size in one step."""
    orders = []
    for points in samples:
        enough = int(_variance(points).sum() / VARIANCE_PER_FUNCTION)
        allowed = min(max_functions, max(MIN_FUNCTIONS, enough), points.p.size)
        orders.append(tuple(order for order in ORDERS if order <= allowed) or (1,))
    tails: dict[int, MinPValue] = {}
    for each in set(orders):
        places = [k for k, own in enumerate(orders) if own == each]
        batch = WeightedPoints.side_by_side([samples[k] for k in places])
        logs = least_log_tails(score_statistics(batch, each[-1]) ** 2, each).tolist()
        tails |= {k: MinPValue(log, each) for k, log in zip(places, logs, strict=True)}
    return [tails[k] for k in range(len(samples))]


def score_statistics(points: WeightedPoints, count: int) -> FloatMatrix:
    """Return independent sums, standard normal if the predictions are calibrated.

    Their last axis is that of functions: the constant, the logit and polynomials of
    the share of variance below a point. Samples side by side have one row each.
    """
    variance = _variance(points)
    spread = np.sqrt(variance)
    surplus = points.label_sum - points.weight * points.p
    surplus = np.divide(surplus, spread, out=np.zeros_like(spread), where=spread > 0.0)
    total = variance.sum(axis=-1, keepdims=True)
    share = (np.cumsum(variance, axis=-1) - 0.5 * variance) / total
    line = np.stack([np.ones_like(share), logit(points.p)], axis=-1)
    polynomials = legvander(2.0 * share - 1.0, count)[..., 2:]
    functions = np.concatenate([line, polynomials], axis=-1)[..., :count]
    basis, _ = np.linalg.qr(functions * spread[..., np.newaxis])
    return np.asarray((surplus[..., np.newaxis, :] @ basis)[..., 0, :])


def _variance(points: WeightedPoints) -> FloatMatrix:
    p = clip_probability(points.p)  # certain predictions add hardly any variance
    return np.asarray(points.weight * p * (1.0 - p))


def log_tail(order: int, value: FloatVector) -> FloatVector:
    """Return the logarithm of the chance of a chi-square above values."""
    value = np.asarray(value, dtype=np.float64)
    chance = chdtrc(order, value)
    positive = chance > 0.0
    # Where chances vanish, two terms of the series for large x.
    half, x = 0.5 * order, 0.5 * np.where(positive, 2.0 * order, value)
    tail = (half - 1.0) * np.log(x) - gammaln(half) + np.log1p((half - 1.0) / x) - x
    return np.where(positive, np.log(np.where(positive, chance, 1.0)), tail)


def least_log_tails(squares: FloatMatrix, orders: Sequence[int]) -> FloatVector:
    """Return the logarithm of the smallest p-value among sums up to some orders."""
    sums = np.cumsum(squares, axis=-1)
    tails = [log_tail(order, sums[..., order - 1]) for order in orders]
    return np.asarray(np.min(tails, axis=0))


@cache
def critical_log_least(orders: tuple[int, ...], level: float) -> float:
    """Return the logarithm of the smallest p-value whose own chance is `level`."""
    from scipy.optimize import brentq

    def surplus(log_least: float) -> float:
        return p_value_of_min(orders, float(np.exp(log_least))) - level

    # The chance is at least the smallest p-value, and at most the sum over all orders.
    high = float(np.log(level))
    low = high - float(np.log(len(orders))) - MARGIN
    return float(brentq(surplus, low, high + MARGIN)) if low < high else high


def p_value_of_min(orders: Sequence[int], least: float) -> float:
    """Return the chance that the smallest p-value is at most `least`.

    Orders ascend and are even, but for the first.
    """
    if not 0.0 < least < 1.0:
        return float(least)
    limits = [float(chdtri(order, least)) for order in orders]
    nodes, share = _unit_integral()
    sums, exceeded = limits[0] * nodes, least
    # Mass of sums that have not exceeded any limit so far.
    mass = limits[0] * share * _density(orders[0], sums)
    for k in range(1, len(orders)):
        further = orders[k] - orders[k - 1]
        exceeded += float(mass @ chdtrc(further, limits[k] - sums))
        longer = limits[k] * nodes
        reached = _density(further, longer[:, np.newaxis] - sums) @ mass
        sums, mass = longer, limits[k] * share * reached
    return min(exceeded, 1.0)


@cache
def _unit_integral() -> tuple[FloatVector, FloatVector]:
    """Return points between 0 and 1, and their shares in an integral."""
    nodes, share = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (nodes + 1.0), 0.5 * share


def _density(order: int, value: FloatMatrix) -> FloatMatrix:
    half, x = 0.5 * order, np.maximum(0.5 * value, np.finfo(float).tiny)
    density = 0.5 * np.exp((half - 1.0) * np.log(x) - x - gammaln(half))
    return np.where(value > 0.0, density, 0.0)
