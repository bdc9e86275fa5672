"""Intervals from what the posterior of a map says of its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.few_cells import few_cells
from calibrant.numerics.smooth_scores import LeastTail, least_tails

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import FloatVector, Seed
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.base import PosteriorFit


@dataclass(frozen=True, eq=False)
class PosteriorLimits:
    """Quantiles of errors of drawn maps, and how surprising labels are without error.

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
    def of(  # noqa: PLR0913
        cls,
        fits: Sequence[PosteriorFit],
        samples: Sequence[BinarySample],
        *,
        confidence: float,
        alpha: float,
        n_draws: int,
        random_state: Seed,
    ) -> PosteriorLimits:
        """Draw maps of each event."""
        tail = 0.5 * (1.0 - confidence)
        levels = tail, 1.0 - tail
        ends = [
            fit.error_quantiles(
                levels, n_draws=n_draws, random_state=random_state, alpha=alpha
            )
            for fit in fits
        ]
        low, high = np.transpose(ends)
        return cls(confidence, low, high, [smooth_test_once(s) for s in samples])

    def ends(self, value: float, which: slice) -> tuple[float, float]:
        """Return the interval for the mean error of some events.

        Its ends are quantiles of the drawn errors, and such that they hold the
        estimate. No drawn error is 0; so the lower end is 0 for an event unless the
        test, at the level of one end, rejects calibration. How errors of different
        classes go together is not drawn: they are taken as going together fully, which
        errs towards wide intervals.
        """
        tests = self.tests[which]
        level = 0.5 * (1.0 - self.confidence) / len(tests)
        clear = np.array([test.rejects(level) for test in tests])
        low = float(np.where(clear, self.low[which], 0.0).mean())
        high = float(self.high[which].mean())
        return max(min(low, value), 0.0), max(high, value)


def smooth_test_once(sample: BinarySample) -> LeastTail:
    """Return what the smooth test finds in a sample, made once."""
    return sample.once("smooth test", lambda: least_tails([few_cells(sample)])[0])
