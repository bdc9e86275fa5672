"""A test of calibration against smooth departures of growing order.

If predictions are calibrated, the distribution of the labels is known in full. So is
that of sums of label less prediction, weighted by functions of the prediction: normal,
with known variance. Functions that are orthogonal in this variance give independent
sums, the scores. They are ordered from smooth to wiggly: the constant, a line, then
polynomials of growing order. Departures of simple shape show in the first few scores,
complex ones in later ones.

The first score alone finds predictions that are too low or too high throughout. Among
lines, the one that comes nearest to Spiegelhalter's function is also tried alone, for
predictions that are too extreme or too moderate. Lines lie between those of the
prediction, as in Spiegelhalter's test, and those of arcsin(2 p - 1), which are nearer
to Cox's. Squared scores are also added up to several orders; each total has a
chi-square distribution.

The p-values of all of these are combined in one mean: that of their powers with a
negative exponent, in which small p-values count most. Several that are rather small
count more than one alone. The combined p-value is this mean times a price for looking
at several, which hardly depends on the level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander
from scipy.special import chdtrc, gammaln, logsumexp, xlogy

from calibrant.numerics.classical_tests import Outcome
from calibrant.numerics.links import clip_probability
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector

SHARES = {1: 0.15, 2: 0.565, 3: 0.06, 6: 0.012, 12: 0.004, 24: 0.004}
"""How many squared scores are added up, and the share of each p-value in the mean:
most faults are lines, or bend once. Chosen with seeds 7,000 to 7,999, on the paper's
shapes."""
LINE_SHARE = 0.205
"""The same for Spiegelhalter's line alone; the first of the others is the constant."""
EXPONENT = 1.25
"""P-values are averaged after raising them to minus this power: the one for which the
price is nearly the same at all levels."""
PRICES = {1: 1.0, 2: 1.1, 3: 1.12, 6: 1.135, 12: 1.14, 24: 1.15}
"""By number of scores, the chance that the mean is below a level, divided by the level.
It hardly depends on the angle of the line; `benchmarks/price_of_smooth_test.py`
computes it."""
MAX_FUNCTIONS = max(PRICES)
LINES = 2
"""Functions that are lines: the constant and one other."""
MIN_FUNCTIONS = 6
"""This many functions are allowed even with few rows."""
VARIANCE_PER_FUNCTION = 12.0
"""Variance of labels, summed over rows, for each function beyond those: about 72 rows
at uniform predictions. With less, sums are not normal enough."""
EPSILON = np.finfo(float).eps


class SmoothPValue(NamedTuple):
    """The smooth test of a sample.

    Attributes
    ----------
    statistic, pvalue : float
        Minus the logarithm of the mean of p-values, and the combined p-value.
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


def smooth_p_values(
    samples: Sequence[WeightedPoints], max_functions: int = MAX_FUNCTIONS
) -> list[SmoothPValue]:
    """Return the test of each sample; samples of one size in one step.

    No p-value is smaller than the chance of the labels themselves; with a few rows,
    the normal one may be.
    """
    counts = []
    for points in samples:
        information = float(label_variance(points).sum())
        counts.append(count_for(information, min(max_functions, points.p.size)))
    found: dict[int, SmoothPValue] = {}
    for count in set(counts):
        places = [k for k, own in enumerate(counts) if own == count]
        batch = WeightedPoints.side_by_side([samples[k] for k in places])
        basis = score_functions(batch, count, bent_line)
        scores, line = score_statistics(batch, basis), spiegelhalter_line(batch, basis)
        logs = log_mean_p(scores, line).tolist()
        for k, log in zip(places, logs, strict=True):
            test = _test_of(log, count)
            pvalue = max(test.pvalue, _chance(samples[k]))
            found[k] = test._replace(pvalue=pvalue)
    return [found[k] for k in range(len(samples))]


def count_for(information: float, max_functions: int) -> int:
    """Return the number of functions that so much variance of labels allows for."""
    enough = int(information / VARIANCE_PER_FUNCTION)
    allowed = min(max_functions, max(MIN_FUNCTIONS, enough))
    return max(count for count in PRICES if count <= allowed)


def bent_line(p: FloatVector) -> FloatVector:
    """Return the sum of arcsin(2 p - 1) and 2 p - 1, of which lines are tried."""
    centred = 2.0 * p - 1.0
    return np.asarray(np.arcsin(centred) + centred)


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


def _chance(points: WeightedPoints) -> float:
    chance = xlogy(points.label_sum, points.p)
    chance += xlogy(points.weight - points.label_sum, 1.0 - points.p)
    return float(np.exp(chance.sum()))


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


def log_mean_p(scores: FloatMatrix, line: FloatMatrix) -> FloatVector:
    """Return the logarithm of the mean of p-values of a line and of sums of squares."""
    alone = np.sum(scores[..., :LINES] * line, axis=-1) ** 2
    sums = np.cumsum(scores**2, axis=-1)
    orders = [order for order in SHARES if order <= scores.shape[-1]]
    tails = [log_tail(order, sums[..., order - 1]) for order in orders]
    tails.append(log_tail(1, alone))
    shares = np.array([*(SHARES[order] for order in orders), LINE_SHARE])
    powers = -EXPONENT * np.stack(tails, axis=-1)
    return np.asarray(-logsumexp(powers, axis=-1, b=shares / shares.sum()) / EXPONENT)


def outcome_of_scores(scores: FloatVector, line: FloatVector) -> SmoothPValue:
    """Return the test of the scores of one sample."""
    return _test_of(float(log_mean_p(scores, line)), scores.size)


def _test_of(log_mean: float, count: int) -> SmoothPValue:
    mean = float(np.exp(log_mean))
    # Means near 1 cost less: none is above 1.
    pvalue = min(PRICES[count] * mean, 0.5 * (1.0 + mean))
    return SmoothPValue(0.0 - log_mean, pvalue)
