"""A test of calibration against smooth departures of growing order.

If predictions are calibrated, the distribution of the labels is known in full. So is
that of sums of label less prediction, weighted by functions of the prediction: normal,
with known variance. Functions that are orthogonal in this variance give independent
sums. They are ordered from smooth to wiggly: lines, then polynomials of growing order.
Small departures of simple shape show in the first few, complex ones in more.

Among lines, two directions are also tried alone: the constant, which finds predictions
that are too low or too high throughout, and the line that comes nearest to
Spiegelhalter's function, for those that are too extreme or too moderate. A line is one
of arcsin(2 p - 1), between lines of the prediction, as in Spiegelhalter's test, and
lines of its logit, as in Cox's.

The squared sums are added up to several orders; each total has a chi-square
distribution. The p-value of each is divided by its share of the level, and the smallest
quotient counts. The price of choosing it is known exactly. The first two sums stay
within both strips around the directions on a known part of each circle, the first three
on a known part of each sphere. Totals only grow by further independent chi-squares, so
the chance that they first exceed their limits follows by integration from order to
order.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.special import chdtrc, chdtri, gammaln, xlogy

from calibrant.numerics.classical_tests import Outcome
from calibrant.numerics.links import clip_probability
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector

LEVEL_SHARES = {1: 1.0, 2: 1.0, 3: 1 / 4, 6: 1 / 8, 12: 1 / 32, 24: 1 / 64}
"""Numbers of functions that are tried, and the level of each, if that of two is 1: most
faults are lines, or bend once. Chosen with seeds 7,000 and 7,100, on the paper's shapes
and on others."""
CONSTANT_SHARE = 9 / 10
"""The same for the constant alone; the first of the others is Spiegelhalter's line."""
ORDERS = tuple(LEVEL_SHARES)
LINES = 2
"""Functions that are lines: the constant and one other."""
MIN_FUNCTIONS = 8
"""So many functions are used even with few rows."""
VARIANCE_PER_FUNCTION = 12.0
"""Variance of labels, summed over rows, for each function beyond those: about 72 rows
at uniform predictions. With less, sums are not normal enough."""
NODES = 64
"""Points of each integral: four digits of the chance, even of one below 1e-100."""
TINY, EPSILON = np.finfo(float).tiny, np.finfo(float).eps


class MinPValue(NamedTuple):
    """The smallest p-value of nested sums of squared scores, each by its share.

    Attributes
    ----------
    log_least : float
        The logarithm of the smallest p-value after division by its level share.
    orders : tuple of int
        Numbers of squares that were summed.
    cosine : float
        Of the angle between the two directions that are tried alone.
    log_chance : float
        The logarithm of how probable the labels themselves are, if the predictions are
        calibrated. No p-value is smaller; with a few rows, the normal one may be.
    """

    log_least: float
    orders: tuple[int, ...]
    cosine: float = 0.0
    log_chance: float = -np.inf

    @property
    def outcome(self) -> Outcome:
        """Return minus the logarithm, and the p-value of the smallest quotient."""
        least = float(np.exp(self.log_least))
        chance = p_value_of_min(self.orders, least, self.cosine)
        chance = max(chance, float(np.exp(self.log_chance)))
        return Outcome(0.0 - self.log_least, chance)

    def rejects(self, level: float) -> bool:
        """Return whether that p-value is at most a level.

        Examples
        --------
        >>> MinPValue(-4.0, (1, 2)).rejects(0.05), MinPValue(-3.5, (1, 2)).rejects(0.05)
        (True, False)
        """
        if max(self.log_least, self.log_chance) > np.log(level):
            return False  # the chance is at least the smallest quotient
        most = CONSTANT_SHARE + sum(LEVEL_SHARES[order] for order in self.orders)
        if self.log_least + np.log(most) <= np.log(level):
            return True  # and at most the sum over all
        return self.outcome.pvalue <= level


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
        basis = score_functions(batch, each[-1], angle)
        scores, line = score_statistics(batch, basis), spiegelhalter_line(batch, basis)
        logs = least_log_tails(scores, line, each).tolist()
        for k, log, cosine in zip(places, logs, line[..., 0].tolist(), strict=True):
            tails[k] = MinPValue(log, each, cosine, _log_chance(samples[k]))
    return [tails[k] for k in range(len(samples))]


def orders_for(information: float, most: int) -> tuple[int, ...]:
    """Return the numbers of functions that so much variance of labels allows for."""
    enough = int(information / VARIANCE_PER_FUNCTION)
    allowed = min(most, max(MIN_FUNCTIONS, enough))
    return tuple(order for order in ORDERS if order <= allowed)


def angle(p: FloatVector) -> FloatVector:
    """Return arcsin(2 p - 1), whose estimates vary equally at all rates."""
    return np.asarray(np.arcsin(2.0 * p - 1.0))


def score_statistics(points: WeightedPoints, basis: FloatMatrix) -> FloatMatrix:
    """Return independent sums, standard normal if the predictions are calibrated.

    Their last axis is that of functions. Samples side by side have one row each.
    """
    spread = np.sqrt(label_variance(points))
    surplus = points.label_sum - points.weight * points.p
    surplus = np.divide(surplus, spread, out=np.zeros_like(spread), where=spread > 0.0)
    return np.asarray((surplus[..., np.newaxis, :] @ basis)[..., 0, :])


def score_functions(
    points: WeightedPoints, count: int, line: Callable[[FloatVector], FloatVector]
) -> FloatMatrix:
    """Return orthonormal functions of the points, times the spread of labels.

    They are the constant, a line of a function of the prediction, and polynomials of
    the share of variance below a point.
    """
    variance = label_variance(points)
    total = variance.sum(axis=-1, keepdims=True)
    share = (np.cumsum(variance, axis=-1) - 0.5 * variance) / total
    lines = np.stack([np.ones_like(share), line(points.p)], axis=-1)
    polynomials = legvander(2.0 * share - 1.0, count)[..., 2:]
    functions = np.concatenate([lines, polynomials], axis=-1)[..., :count]
    basis, _ = np.linalg.qr(functions * np.sqrt(variance)[..., np.newaxis])
    return np.asarray(basis)


def spiegelhalter_line(points: WeightedPoints, basis: FloatMatrix) -> FloatMatrix:
    """Return the direction, among the first two functions, nearest to 1 - 2 p."""
    target = np.sqrt(label_variance(points)) * (1.0 - 2.0 * points.p)
    line = (target[..., np.newaxis, :] @ basis[..., :LINES])[..., 0, :]
    length = np.linalg.norm(line, axis=-1, keepdims=True)
    last = np.eye(line.shape[-1])[-1]  # where all predictions are 1/2
    flat = length <= EPSILON
    return np.where(flat, last, line / np.where(flat, 1.0, length))


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


def least_log_tails(
    scores: FloatMatrix, line: FloatMatrix, orders: Sequence[int]
) -> FloatVector:
    """Return the smallest log p-value less log share, among sums up to some orders.

    Order 1 is that of the two directions alone: the constant and a line.
    """
    sums = np.cumsum(scores**2, axis=-1)
    alone = np.sum(scores[..., :LINES] * line, axis=-1) ** 2
    squares = [alone if order == 1 else sums[..., order - 1] for order in orders]
    tails = [
        log_tail(order, square) - np.log(LEVEL_SHARES[order])
        for order, square in zip(orders, squares, strict=True)
    ]
    if orders[0] == 1:
        tails.append(log_tail(1, sums[..., 0]) - np.log(CONSTANT_SHARE))
    return np.asarray(np.min(np.stack(tails), axis=0))


def p_value_of_min(orders: Sequence[int], least: float, cosine: float) -> float:
    """Return the chance that the smallest quotient is at most `least`.

    Orders are the first few of `ORDERS`; the cosine is that between the constant and
    the line that are tried alone.
    """
    if not 0.0 < least < 1.0 or len(orders) == 1:
        return float(least)
    limits = [float(chdtri(order, LEVEL_SHARES[order] * least)) for order in orders]
    constant = float(chdtri(1, CONSTANT_SHARE * least))
    strips = constant, limits[0]
    exceeded, sums, mass = _first_two(strips, cosine, limits[1])
    for k in range(2, len(orders)):
        further = orders[k] - orders[k - 1]
        exceeded += float(mass @ chdtrc(further, limits[k] - sums))
        nodes, share = _unit_integral(NODES)
        longer = limits[k] * nodes
        if k == LINES:
            reached = _first_three(longer, strips, cosine, limits[1])
        else:
            reached = _density(further, longer[:, np.newaxis] - sums) @ mass
        sums, mass = longer, limits[k] * share * reached
    return min(exceeded, 1.0)


def _first_two(
    strips: tuple[float, float], cosine: float, limit: float
) -> tuple[float, FloatVector, FloatVector]:
    """Return the chance that two scores leave one of two strips, or a disc.

    Strips are given by the largest squares within, the disc by the largest sum of
    squares. Then come points between 0 and that, and the mass of sums of squares there
    of scores within both strips.
    """
    one, two = strips
    # Parts of circles within have kinks where circles leave a strip, and at corners.
    both, cross = one + two, 2.0 * np.sqrt(one * two) * abs(cosine)
    corners = np.array([both - cross, both + cross]) / max(1.0 - cosine**2, EPSILON)
    edges = np.clip([0.0, one, two, *corners, limit], 0.0, limit)
    edges.sort()
    nodes, share = _unit_integral(NODES // 4)
    width = np.sqrt(np.diff(edges))[:, np.newaxis]
    sums = edges[:-1, np.newaxis] + (width * nodes) ** 2
    mass = width**2 * share * nodes * np.exp(-0.5 * sums)
    outside = _outside(sums, strips, cosine)
    exceeded = float(chdtrc(2, limit) + np.sum(mass * outside))
    return exceeded, sums.ravel(), np.ravel(mass * (1.0 - outside))


def _first_three(
    sums: FloatVector, strips: tuple[float, float], cosine: float, limit: float
) -> FloatVector:
    """Return the density of sums of three squares, the first two within their limits.

    On a sphere, all values of the third score are equally likely.
    """
    nodes, share = _unit_integral(NODES // 4)
    least = np.sqrt(np.maximum(1.0 - limit / sums, 0.0))[:, np.newaxis]
    third = least + (1.0 - least) * nodes
    first_two = sums[:, np.newaxis] * (1.0 - third**2)
    inside = (1.0 - least) * (1.0 - _outside(first_two, strips, cosine))
    return _density(LINES + 1, sums) * (inside @ share)


def _outside(
    sums: FloatMatrix, strips: tuple[float, float], cosine: float
) -> FloatMatrix:
    """Return the parts of circles that lie outside of either of two strips.

    A circle leaves a strip in two arcs, to both sides of its direction and opposite.
    """
    square = np.maximum(sums, TINY)
    first, second = (np.arccos(np.sqrt(np.minimum(s / square, 1.0))) for s in strips)
    most, apart = 2.0 * np.minimum(first, second), np.arccos(min(abs(cosine), 1.0))
    shared = [np.clip(first + second - a, 0.0, most) for a in (apart, np.pi - apart)]
    return np.asarray((2.0 * (first + second) - shared[0] - shared[1]) / np.pi)


@cache
def _unit_integral(count: int) -> tuple[FloatVector, FloatVector]:
    """Return points between 0 and 1, and their shares in an integral."""
    nodes, share = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * share


def _density(order: int, value: FloatMatrix) -> FloatMatrix:
    half, x = 0.5 * order, np.maximum(0.5 * value, TINY)
    density = 0.5 * np.exp((half - 1.0) * np.log(x) - x - gammaln(half))
    return np.where(value > 0.0, density, 0.0)
