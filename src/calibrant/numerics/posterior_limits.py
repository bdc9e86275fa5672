"""Intervals of a calibration error, by the posterior of `smooth`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from calibrant.numerics.clustered_test import smooth_p_value
from calibrant.numerics.resampling import widen_to
from calibrant.numerics.sample_cache import cached_on_sample
from calibrant.numerics.smooth_curve_fits import smooth_curve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import BoolVector, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.kernel_error import ErrorKernel
    from calibrant.numerics.smooth_calibration_test import SmoothPValue

EVENTS_PER_REJECTION = 10
"""For each so many events, one more must be rejected for any to count."""
UPPER_TAIL_OF_NORMS = 0.5
"""Few rows shrink drawn maps, and a norm adds up errors of one direction: it exceeds a
quantile of the norms of drawn maps about twice as often as it should."""
REACHES = (0.0, 1.0 / 32.0, 1.0 / 8.0)
"""How near to 0 and 1 all errors may be, where exact 0 or 1 are wrong."""
cached_p_value = cached_on_sample("smooth test")(smooth_p_value)


@dataclass(frozen=True, eq=False)
class PosteriorLimits:
    """Quantiles of errors of drawn maps, and how surprising labels are without error.

    There is one true error, whichever method estimates it. So maps are always drawn
    from the posterior of `smooth`, and their errors say where the true one may lie.

    Attributes
    ----------
    confidence : float
        Level of the interval.
    low, high : ndarray of shape (events,)
        Quantiles of the errors of maps drawn from the posterior of each event.
    tests : sequence of SmoothPValue
        The smooth test of calibration of each event.
    """

    confidence: float
    low: FloatVector
    high: FloatVector
    tests: Sequence[SmoothPValue]

    @classmethod
    def of(
        cls,
        samples: Sequence[BinarySample],
        *,
        confidence: float,
        alpha: float,
        n_draws: int,
        seed: int,
        kernels: Sequence[ErrorKernel] = (),
    ) -> PosteriorLimits:
        """Draw maps of each event; measure them by kernels, if there are any."""
        tail = 0.5 * (1.0 - confidence)
        levels = tail, 1.0 - tail
        quantiles_of_events, tests = [], []
        for sample, kernel in zip_longest(samples, kernels):
            curve = smooth_curve(sample)
            if kernel is None:
                quantiles = curve.error_quantiles(
                    levels, n_draws=n_draws, random_state=seed, alpha=alpha
                )
            else:
                p, weight = curve.cells.p, curve.cells.weight
                maps = np.ascontiguousarray(curve.drawn_curves(p, n_draws, seed).T)
                errors = kernel.errors(p, maps, weight, debias=False)
                upper = 1.0 - UPPER_TAIL_OF_NORMS * tail
                quantiles = np.asarray(np.quantile(errors, (tail, upper)))
            if (reach := _reach_of_errors(sample, tail)) is not None:
                part = 0.0 if kernel else _least_error(sample, reach, tail, alpha)
                quantiles[0] = min(quantiles[0], part)
            quantiles_of_events.append(quantiles)
            tests.append(cached_p_value(sample))
            if len(samples) > 1:
                curve.forget_posterior()
        low, high = np.transpose(quantiles_of_events)
        return cls(confidence, low, high, tests)

    def interval(self, value: float, which: slice) -> tuple[float, float]:
        """Return the interval for the mean error of some events.

        Its ends are quantiles of the drawn errors, moved so that the estimate lies
        between them. No drawn error is 0; so the lower end is 0 for an event unless the
        test rejects calibration. How errors of different classes go together is not
        drawn: they are taken as going together fully, which errs towards wide
        intervals.
        """
        rejected = self._rejected(self.tests[which])
        low = float(np.where(rejected, self.low[which], 0.0).mean())
        return widen_to(value, low, float(self.high[which].mean()))

    def _rejected(self, tests: Sequence[SmoothPValue]) -> BoolVector:
        """Tell which events are not calibrated; none unless there are enough of them.

        Where all are calibrated, any is rejected as seldom as the lower end may miss.
        One p-value of very many says little: those of a few positives have heavier
        tails than they promise.
        """
        needed = 1 + len(tests) // EVENTS_PER_REJECTION
        tail = 0.5 * (1.0 - self.confidence)
        level = float(betaincinv(needed, len(tests) - needed + 1, tail))
        rejected = np.array([test.rejects(level) for test in tests])
        return rejected if rejected.sum() >= needed else np.zeros_like(rejected)


def _reach_of_errors(sample: BinarySample, level: float) -> float | None:
    """Return how near to 0 and 1 predictions are that alone refute calibration.

    None unless predictions of exactly 0 or 1 are wrong, or where others farther inside
    are, too. A map that bends near the ends may bend everywhere: so errors of drawn
    maps are too large if predictions farther inside are calibrated.
    """
    at_end = (sample.p == 0.0) | (sample.p == 1.0)
    if (sample.p[at_end] == sample.y[at_end]).all():
        return None
    near = np.minimum(sample.p, 1.0 - sample.p)
    for reach in REACHES:
        inside = near > reach
        if not (inside.any() and smooth_p_value(sample.take(inside)).rejects(level)):
            return reach
    return None


def _least_error(
    sample: BinarySample, reach: float, level: float, alpha: float
) -> float:
    """Return the exact lower bound of the error of predictions so near to 0 and 1."""
    weight, error = sample.weights, 0.0
    for p, y in ((sample.p, sample.y), (1.0 - sample.p, 1.0 - sample.y)):
        at = p <= reach
        rows, wrong, expected = (float((weight * x)[at].sum()) for x in (1.0, y, p))
        if wrong > 0.0:
            rate = float(betaincinv(wrong, rows - wrong + 1.0, level))
            error += rows * max(rate - expected / rows, 0.0) ** alpha
    return error / sample.total
