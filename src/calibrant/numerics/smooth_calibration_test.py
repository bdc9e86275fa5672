"""A test of calibration against smooth departures of growing order.

If predictions are calibrated, the distribution of the labels is known in full. So is
that of sums of label less prediction, weighted by functions of the prediction: normal,
with known variance. Functions that are orthogonal in this variance give independent
sums. They are ordered from smooth to wiggly: the line that comes nearest to
Spiegelhalter's function; with it, all lines of the logit, as in Cox's test; then
polynomials of growing order. Small departures of simple shape show in the first few,
complex ones in more.

The squared sums are added up to several orders; each total has a chi-square
distribution. The p-value of each is divided by its share of the level, and the smallest
quotient counts. The price of choosing it is known exactly: totals only grow by further
independent chi-squares, so the chance that they first exceed their limits follows by
integration from order to order.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.special import chdtrc, chdtri, gammaln, xlogy

from calibrant.numerics.classical_tests import Outcome
from calibrant.numerics.links import clip_probability, logit
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector

LEVEL_SHARES = {1: 1 / 2, 2: 1.0, 4: 1 / 4, 6: 1 / 8, 8: 1 / 16}
LEVEL_SHARES |= dict.fromkeys((12, 16, 24), 1 / 32)
"""Numbers of functions that are tried, and the level of each, if that of two is 1: most
faults are lines. Chosen on the paper's shapes with seed 7,000."""
ORDERS = tuple(LEVEL_SHARES)
MIN_FUNCTIONS = 8
"""So many functions are used even with few rows."""
VARIANCE_PER_FUNCTION = 12.0
"""Variance of labels, summed over rows, for each function beyond those: about 72 rows
at uniform predictions. With less, sums are not normal enough."""
MARGIN = 0.01
"""Added to the bounds between which a critical value is searched for."""
NODES = 128
"""Points of each integral: three digits of the chance, two of one below 1e-100."""
FAR = 12.0
"""A normal variable this far out leaves nothing beyond."""


class MinPValue(NamedTuple):
    """The smallest p-value of nested sums of squared scores, each by its share.

    Attributes
    ----------
    log_least : float
        The logarithm of the smallest p-value after division by its level share.
    orders : tuple of int
        Numbers of squares that were summed.
    log_chance : float
        The logarithm of how probable the labels themselves are, if the predictions are
        calibrated. No p-value is smaller; with a few rows, the normal one may be.
    """

    log_least: float
    orders: tuple[int, ...]
    log_chance: float = -np.inf

    @property
    def outcome(self) -> Outcome:
        """Return minus the logarithm, and the p-value of the smallest quotient."""
        chance = p_value_of_min(self.orders, float(np.exp(self.log_least)))
        chance = max(chance, float(np.exp(self.log_chance)))
        return Outcome(0.0 - self.log_least, chance)

    def rejects(self, level: float) -> bool:
        """Return whether that p-value is at most a level.

        Examples
        --------
        >>> MinPValue(-3.5, (1, 2)).rejects(0.05), MinPValue(-3.0, (1, 2)).rejects(0.05)
        (True, False)
        """
        possible = self.log_chance <= np.log(level)
        return possible and self.log_least <= critical_log_least(self.orders, level)


def min_p_values(
    samples: Sequence[WeightedPoints], max_functions: int = ORDERS[-1]
) -> list[MinPValue]:
    """Return the smallest p-value of each sample; samples of one size in one step."""
    orders = []
    for points in samples:
        information = float(label_variance(points).sum())
        orders.append(orders_for(information, min(max_functions, points.p.size)))
    tails: dict[int, MinPValue] = {}
    for each in set(orders):
        places = [k for k, own in enumerate(orders) if own == each]
        batch = WeightedPoints.side_by_side([samples[k] for k in places])
        logs = least_log_tails(score_statistics(batch, each[-1]) ** 2, each).tolist()
        for k, log in zip(places, logs, strict=True):
            tails[k] = MinPValue(log, each, _log_chance(samples[k]))
    return [tails[k] for k in range(len(samples))]


def orders_for(information: float, most: int) -> tuple[int, ...]:
    """Return the numbers of functions that so much variance of labels allows for."""
    enough = int(information / VARIANCE_PER_FUNCTION)
    allowed = min(most, max(MIN_FUNCTIONS, enough))
    return tuple(order for order in ORDERS if order <= allowed)


def score_statistics(points: WeightedPoints, count: int) -> FloatMatrix:
    """Return independent sums, standard normal if the predictions are calibrated.

    Their last axis is that of functions. Samples side by side have one row each.
    """
    spread = np.sqrt(label_variance(points))
    surplus = points.label_sum - points.weight * points.p
    surplus = np.divide(surplus, spread, out=np.zeros_like(spread), where=spread > 0.0)
    basis = score_functions(points, count)
    return np.asarray((surplus[..., np.newaxis, :] @ basis)[..., 0, :])


def score_functions(points: WeightedPoints, count: int) -> FloatMatrix:
    """Return orthonormal functions of the points, times the spread of labels.

    The first two are lines of the logit, the first of them that nearest to 1 - 2 p;
    then come polynomials of the share of variance below a point.
    """
    variance = label_variance(points)
    spread = np.sqrt(variance)
    total = variance.sum(axis=-1, keepdims=True)
    share = (np.cumsum(variance, axis=-1) - 0.5 * variance) / total
    line = np.stack([np.ones_like(share), logit(points.p)], axis=-1)
    polynomials = legvander(2.0 * share - 1.0, count)[..., 2:]
    functions = np.concatenate([line, polynomials], axis=-1)[..., :count]
    basis, _ = np.linalg.qr(functions * spread[..., np.newaxis])
    basis[..., :2] = _turned(basis[..., :2], spread * (1.0 - 2.0 * points.p))
    return np.asarray(basis)


def _turned(plane: FloatMatrix, target: FloatMatrix) -> FloatMatrix:
    """Return two orthonormal functions of a plane, the first nearest to a target."""
    if plane.shape[-1] == 1:
        return plane
    cosine, sine = np.moveaxis(target[..., np.newaxis, :] @ plane, -1, 0)
    length = np.hypot(cosine, sine)
    flat = length <= np.finfo(float).eps  # all predictions are 1/2
    cosine = np.divide(cosine, length, out=np.ones_like(length), where=~flat)
    sine = np.divide(sine, length, out=np.zeros_like(length), where=~flat)
    first, second = plane[..., 0], plane[..., 1]
    lead, rest = cosine * first + sine * second, cosine * second - sine * first
    return np.stack([lead, rest], axis=-1)


def _log_chance(points: WeightedPoints) -> float:
    chance = xlogy(points.label_sum, points.p)
    chance += xlogy(points.weight - points.label_sum, 1.0 - points.p)
    return float(chance.sum())


def label_variance(points: WeightedPoints) -> FloatMatrix:
    """Return the variance of the sum of labels of each point, were p calibrated."""
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
    """Return the smallest log p-value less log share, among sums up to some orders."""
    sums = np.cumsum(squares, axis=-1)
    tails = [log_tail(order, sums[..., order - 1]) for order in orders]
    return np.asarray(np.min(np.stack(tails, axis=-1) - np.log(_shares(orders)), -1))


def _shares(orders: Sequence[int]) -> FloatVector:
    """Return the level share of each order, the largest of them 1."""
    shares = np.array([LEVEL_SHARES[order] for order in orders])
    return np.asarray(shares / shares.max())


@cache
def critical_log_least(orders: tuple[int, ...], level: float) -> float:
    """Return the logarithm of the smallest quotient whose own chance is `level`."""
    from scipy.optimize import brentq

    def surplus(log_least: float) -> float:
        return p_value_of_min(orders, float(np.exp(log_least))) - level

    # The chance is at least the smallest quotient, and at most the sum over all orders.
    high = float(np.log(level))
    low = high - float(np.log(_shares(orders).sum())) - MARGIN
    return float(brentq(surplus, low, high + MARGIN)) if len(orders) > 1 else high


def p_value_of_min(orders: Sequence[int], least: float) -> float:
    """Return the chance that the smallest quotient is at most `least`.

    Orders are the first few of `ORDERS`.
    """
    if not 0.0 < least < 1.0 or len(orders) == 1:
        return float(least)
    pairs = zip(orders, _shares(orders), strict=True)
    limits = [float(chdtri(order, share * least)) for order, share in pairs]
    exceeded, sums, mass = _first_two(*limits[:2])
    nodes, share = _unit_integral(NODES)
    for k in range(2, len(orders)):
        further = orders[k] - orders[k - 1]
        exceeded += float(mass @ chdtrc(further, limits[k] - sums))
        longer = limits[k] * nodes
        reached = _density(further, longer[:, np.newaxis] - sums) @ mass
        sums, mass = longer, limits[k] * share * reached
    return min(exceeded, 1.0)


def _first_two(one: float, two: float) -> tuple[float, FloatVector, FloatVector]:
    """Return the chance that the first square or the sum of two exceeds its limit.

    Then points between 0 and the second limit, and the mass of sums there of which
    neither has been exceeded.
    """
    nodes, share = _unit_integral(NODES // 2)
    within = min(one, two) * nodes
    mass = 0.5 * min(one, two) * share * np.exp(-0.5 * within)
    if two <= one:
        return float(chdtrc(2, two)), within, mass
    edge = float(np.sqrt(two - one))
    ring, ring_mass = _ring(one, 0.0, edge)
    exceeded = float(chdtrc(1, one)) + float(_ring(one, edge, edge + FAR)[1].sum())
    return exceeded, np.append(within, ring), np.append(mass, ring_mass)


def _ring(limit: float, start: float, stop: float) -> tuple[FloatVector, FloatVector]:
    """Return sums of two squares, limit + start ** 2 to limit + stop ** 2, and masses.

    The mass is that where the first square is within the limit: a known part of the
    circle.
    """
    nodes, share = _unit_integral(NODES // 2)
    root = start + (stop - start) * nodes
    sums = limit + root**2
    part = np.arcsin(np.sqrt(limit / sums)) / (0.5 * np.pi)
    return sums, (stop - start) * share * root * np.exp(-0.5 * sums) * part


@cache
def _unit_integral(count: int) -> tuple[FloatVector, FloatVector]:
    """Return points between 0 and 1, and their shares in an integral."""
    nodes, share = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * share


def _density(order: int, value: FloatMatrix) -> FloatMatrix:
    half, x = 0.5 * order, np.maximum(0.5 * value, np.finfo(float).tiny)
    density = 0.5 * np.exp((half - 1.0) * np.log(x) - x - gammaln(half))
    return np.where(value > 0.0, density, 0.0)
