"""Intervals from what the posterior of a map says of the true error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from calibrant.calibrators.smooth import smooth_fit
from calibrant.numerics.resampling import widen_to
from calibrant.numerics.smooth_test import LeastTail, least_tails
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import BoolVector, FloatVector
    from calibrant.core.sample import BinarySample

EVENTS_A_REJECTION = 20
"""For each so many events, one more must be rejected for any to count."""


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
    tests : sequence of LeastTail
        What the smooth test of calibration finds for each event.
    """

    confidence: float
    low: FloatVector
    high: FloatVector
    tests: Sequence[LeastTail]

    @classmethod
    def of(
        cls,
        samples: Sequence[BinarySample],
        *,
        confidence: float,
        alpha: float,
        n_draws: int,
        seed: int,
    ) -> PosteriorLimits:
        """Draw maps of each event, the same for all methods."""
        tail = 0.5 * (1.0 - confidence)
        wanted = ErrorQuantiles((tail, 1.0 - tail), alpha, n_draws, seed)
        ends, tests = [], []
        for sample in samples:
            ends.append(sample.cached(str(wanted), partial(wanted.of, sample)))
            tests.append(smooth_test_once(sample))
            if len(samples) > 1:
                smooth_fit(sample).forget_posterior()
        low, high = np.transpose(ends)
        return cls(confidence, low, high, tests)

    def ends(self, value: float, which: slice) -> tuple[float, float]:
        """Return the interval for the mean error of some events.

        Its ends are quantiles of the drawn errors, and such that they widen_to the
        estimate. No drawn error is 0; so the lower end is 0 for an event unless the
        test rejects calibration. How errors of different classes go together is not
        drawn: they are taken as going together fully, which errs towards wide
        intervals.
        """
        clear = self._rejected(self.tests[which])
        low = float(np.where(clear, self.low[which], 0.0).mean())
        return widen_to(value, low, float(self.high[which].mean()))

    def _rejected(self, tests: Sequence[LeastTail]) -> BoolVector:
        """Tell which events are not calibrated; none unless there are enough of them.

        Where all are calibrated, any is rejected as seldom as the lower end may miss.
        One p-value of very many says little: those of a few positives have heavier
        tails than they promise.
        """
        needed = 1 + len(tests) // EVENTS_A_REJECTION
        tail = 0.5 * (1.0 - self.confidence)
        level = float(betaincinv(needed, len(tests) - needed + 1, tail))
        clear = np.array([test.rejects(level) for test in tests])
        return clear if clear.sum() >= needed else np.zeros_like(clear)


@dataclass(frozen=True)
class ErrorQuantiles:
    """Which quantiles of the errors of drawn maps are wanted.

    Attributes
    ----------
    levels : tuple of float
        Of the quantiles.
    alpha : float
        Exponent of the distance to the diagonal.
    n_draws, seed : int
        How many maps are drawn, and what seeds them.
    """

    levels: tuple[float, ...]
    alpha: float
    n_draws: int
    seed: int

    def of(self, sample: BinarySample) -> FloatVector:
        """Return the quantiles for a sample."""
        return smooth_fit(sample).error_quantiles(
            self.levels,
            n_draws=self.n_draws,
            random_state=self.seed,
            alpha=self.alpha,
        )


def smooth_test_once(sample: BinarySample) -> LeastTail:
    """Return what the smooth test finds in a sample, made once."""
    return sample.cached(
        "smooth test", lambda: least_tails([compress_to_at_most(sample)])[0]
    )
