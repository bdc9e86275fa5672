"""The recalibration line: labels regressed on the logits of predictions.

The line is intercept + slope * logit(p); the intercept with the slope fixed at 1 is the
calibration in the large. Predictions of exactly 0 and 1 are treated as rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from calibrant.numerics.linearised_statistics import Linearised
from calibrant.numerics.links import logit_within, regression_ends
from calibrant.numerics.logistic import fit_logistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.numerics.weighted_points import WeightedPoints

MAX_STEPS = 100
MIN_DISTANCE = 1e-5
"""Of logits, relative to their size; those nearer to each other count as equal."""
MIN_ROOT = 0.1
"""Nearer to the estimate, the saddlepoint formula divides rounding errors."""
PRECISION = 1e-10
"""Newton's steps end where they are shorter, as a share of the standard error."""
ROUNDING = 4.0 * np.finfo(float).eps
"""Log-likelihoods are known no better than this, as a share of their size."""


@dataclass(frozen=True, eq=False)
class LogitPoints:
    """Logits of predictions with weights and labels.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Logits.
    weight, label_sum : ndarray of shape (m,)
        Sum of weights and of weighted labels.
    """

    x: FloatVector
    weight: FloatVector
    label_sum: FloatVector

    @classmethod
    def of(cls, points: WeightedPoints) -> LogitPoints:
        """Return the logits of points, those of exactly 0 and 1 as rounded."""
        ends = regression_ends(points.p, points.weight)
        return cls(logit_within(points.p, ends), points.weight, points.label_sum)

    @cached_property
    def events(self) -> float:
        """Return the number of events."""
        return float(self.label_sum.sum())

    @cached_property
    def total(self) -> float:
        """Return the number of rows."""
        return float(self.weight.sum())

    @cached_property
    def close(self) -> float:
        """Return the distance of logits below which rounding decides about a slope."""
        return float(MIN_DISTANCE * max(1.0, np.abs(self.x).max()))

    @cached_property
    def constant(self) -> bool:
        """Tell whether all logits are equal, or nearly so."""
        return bool(np.ptp(self.x) <= self.close)

    @cached_property
    def has_line(self) -> bool:
        """Tell whether a line exists: events and others overlap in both directions."""
        yes, no = self.label_sum > 0.0, self.label_sum < self.weight
        if not (yes.any() and no.any()):
            return False
        ahead = self.x[no].max() - self.x[yes].min() > self.close
        return bool(ahead and self.x[yes].max() - self.x[no].min() > self.close)

    def shift_to(self, logits: FloatVector, events: float) -> float:
        """Return what to add to logits so that so many events are expected.

        Infinite for no event, and for as many events as rows.
        """
        if not 0.0 < events < self.total:
            return float(np.copysign(np.inf, events - 0.5 * self.total))
        rate = np.log(events) - np.log(self.total - events)

        def excess(shift: float) -> float:
            return float(self.weight @ expit(logits + shift)) - events

        low, high = rate - logits.max() - 1e-6, rate - logits.min() + 1e-6
        return float(brentq(excess, low, high, xtol=1e-12, rtol=1e-14))

    def log_likelihood(self, f: FloatVector) -> float:
        """Return the log-likelihood of logits."""
        return float(self.label_sum @ f - self.weight @ np.logaddexp(0.0, f))

    def shift_from(self, logits: FloatVector) -> Linearised:
        """Return the shift of logits at which the observed events are expected.

        There are from 1 to n - 1 events. For the points' own logits, it is the
        intercept with the slope fixed at 1: the calibration-in-the-large.
        """
        shift = self.shift_to(logits, self.events)
        q = expit(logits + shift)
        information = float(self.weight @ (q * (1.0 - q)))
        return Linearised(shift, -q / information, (1.0 - q) / information)


@dataclass(frozen=True, eq=False)
class RecalibrationLine:
    """The line with the largest likelihood.

    Attributes
    ----------
    points : LogitPoints
        What it was fitted to.
    coefficients : ndarray of shape (2,)
        Intercept and slope.
    """

    points: LogitPoints
    coefficients: FloatVector

    @classmethod
    def of(cls, points: LogitPoints) -> RecalibrationLine:
        """Fit the line, which must exist."""
        columns = points.weight[np.newaxis], points.label_sum[np.newaxis]
        fit = fit_logistic(points.x[:, np.newaxis], *columns)
        return cls(points, np.array([fit.intercepts[0], fit.slopes[0, 0]]))

    @cached_property
    def logits(self) -> FloatVector:
        """Return the line at each point."""
        return np.asarray(self.coefficients[0] + self.coefficients[1] * self.points.x)

    @cached_property
    def covariance(self) -> FloatMatrix:
        """Return the inverse of the information, shape (2, 2)."""
        c = expit(self.logits)
        spread = self.points.weight * c * (1.0 - c)
        sums = [float(spread @ self.points.x**power) for power in range(3)]
        inverse = np.linalg.inv([[sums[0], sums[1]], [sums[1], sums[2]]])
        return np.asarray(inverse, dtype=np.float64)

    def linearised(self) -> tuple[Linearised, Linearised]:
        """Return intercept and slope with their linear parts."""
        x, c = self.points.x, expit(self.logits)
        parts = self.covariance @ np.stack([np.ones_like(x), x])
        intercept, slope = (
            Linearised(float(value), -c * part, (1.0 - c) * part)
            for value, part in zip(self.coefficients, parts, strict=True)
        )
        return intercept, slope

    def profile_limits(self, which: int, confidence: float) -> tuple[float, float]:
        """Return the profile likelihood interval of intercept (0) or slope (1).

        It has all values that a likelihood-ratio test does not reject.

        Examples
        --------
        >>> x, n = np.array([-1.0, 1.0]), np.array([40.0, 40.0])
        >>> line = RecalibrationLine.of(LogitPoints(x, n, np.array([10.0, 30.0])))
        >>> np.round(line.profile_limits(1, 0.95), 4)
        array([0.6111, 1.6291])
        """
        error = float(np.sqrt(self.covariance[which, which]))
        reach = float(ndtri(0.5 + 0.5 * confidence))
        low, high = (self._profile_limit(which, s * reach, error) for s in (-1.0, 1.0))
        return low, high

    def _profile_limit(self, which: int, reach: float, error: float) -> float:
        """Return where the likelihood has dropped as a normal one at `reach` has.

        The drop is convex along the profile. So Newton's steps overshoot at most once
        and then come back to the limit from one side.
        """
        points, covariance = self.points, self.covariance
        design = np.stack([np.ones_like(points.x), points.x])
        best = points.log_likelihood(self.logits)
        value = self.coefficients[which] + reach * error
        tilt = covariance[1 - which, which] / covariance[which, which]
        other = self.coefficients[1 - which] + reach * error * tilt
        shortest = max(PRECISION, ROUNDING * abs(best)) * error
        for _ in range(MAX_STEPS):
            other = _maximise(points, value * design[which], design[1 - which], other)
            f = value * design[which] + other * design[1 - which]
            excess = 2.0 * (best - points.log_likelihood(f)) - reach**2
            score = design[which] @ (points.label_sum - points.weight * expit(f))
            step = excess / (2.0 * float(score))
            value += step
            if abs(step) <= shortest:
                break
        return float(value)


def _maximise(
    points: LogitPoints, offset: FloatVector, direction: FloatVector, start: float
) -> float:
    """Return the multiple of a direction with the largest likelihood.

    Newton's steps, kept between values from which the score is known to point inwards:
    far from the maximum, all chances are 0 or 1, and steps would be endless.
    """
    value, low, high = start, -np.inf, np.inf
    for _ in range(MAX_STEPS):
        c = expit(offset + value * direction)
        score = float(direction @ (points.label_sum - points.weight * c))
        curvature = float(direction**2 @ (points.weight * c * (1.0 - c)))
        if score**2 <= PRECISION**2 * curvature:
            break
        low, high = (value, high) if score > 0.0 else (low, value)
        longest = 2.0 * max(1.0, abs(value))
        value += score / max(curvature, abs(score) / longest)
        if not low < value < high:
            value = 0.5 * (low + high)
    return value


def event_limits(
    points: LogitPoints, logits: FloatVector, confidence: float
) -> tuple[float, float]:
    """Return the exact interval (mid-P) of the number of events that are expected.

    Labels are independent with the logits given, all moved by one shift; their sum has
    a Poisson-binomial distribution. Limits are the means at which the observed
    number, counted half, has probability (1 - confidence) / 2 in either tail. For equal
    logits this is the mid-P version of Clopper and Pearson's interval. Tails are
    found by the saddlepoint formula for the signed root of the likelihood ratio.

    References
    ----------
    O. E. Barndorff-Nielsen (1986). Inference on full or partial parameters based on the
    standardized signed log likelihood ratio. Biometrika 73.
    doi:10.1093/biomet/73.2.307

    A. Agresti, A. Gottard (2007). Nonconservative exact small-sample inference for
    discrete data. CSDA 51. doi:10.1016/j.csda.2006.12.009

    Examples
    --------
    >>> points = LogitPoints(np.zeros(1), np.array([100.0]), np.array([8.0]))
    >>> np.round(event_limits(points, points.x, 0.95), 2)  # exactly 3.78 and 14.62
    array([ 3.79, 14.63])
    """
    tail = 0.5 * (1.0 - confidence)
    total, events = points.total, points.events
    if events == 0.0:
        return 0.0, _limit_of_none(points.weight, logits, tail)
    if events == total:
        return total - _limit_of_none(points.weight, -logits, tail), total
    centred = logits + points.shift_to(logits, events)
    reach = float(ndtri(1.0 - tail))
    low, high = (_tail_shift(points, centred, s * reach) for s in (-1.0, 1.0))
    expected = [float(points.weight @ expit(centred + shift)) for shift in (low, high)]
    return expected[0], expected[1]


def _limit_of_none(weight: FloatVector, logits: FloatVector, tail: float) -> float:
    """Return how many events are expected where none has probability 2 * tail."""

    def excess(shift: float) -> float:
        return float(weight @ np.logaddexp(0.0, logits + shift) + np.log(2.0 * tail))

    around = np.log(-np.log(2.0 * tail) / weight.sum())
    low, high = around - logits.max() - 10.0, around - logits.min() + 40.0
    shift = brentq(excess, low, high, xtol=1e-12)
    return float(weight @ expit(logits + shift))


def _tail_shift(points: LogitPoints, centred: FloatVector, reach: float) -> float:
    """Return the shift at which the observed number lies `reach` off its mean."""
    c = expit(centred)
    root_information = float(np.sqrt(points.weight @ (c * (1.0 - c))))
    best = points.log_likelihood(centred)

    def root(shift: float) -> float:
        drop = best - points.log_likelihood(centred + shift)
        return float(np.copysign(np.sqrt(max(2.0 * drop, 0.0)), shift))

    def excess(shift: float) -> float:
        wald = 2.0 * np.tanh(0.5 * shift) * root_information
        return float(root(shift) + np.log(wald / root(shift)) / root(shift)) - reach

    sign = np.sign(reach)
    near = far = brentq(lambda shift: root(shift) - reach, 0.0, _beyond(root, reach))
    while sign * excess(near) > 0.0 and abs(root(near)) > MIN_ROOT:
        near *= 0.5
    while sign * excess(far) < 0.0:
        far *= 1.5
    if near == far or sign * excess(near) > 0.0:
        return float(far)  # predictions are nearly certain
    return float(brentq(excess, near, far, rtol=1e-12))


def _beyond(root: Callable[[float], float], reach: float) -> float:
    """Return a shift at which the signed root is beyond `reach`."""
    shift = reach
    while abs(root(shift)) < abs(reach):
        shift *= 2.0
    return shift
