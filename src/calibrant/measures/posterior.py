"""Intervals from what the posterior of a map says of its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.few_cells import few_cells
from calibrant.numerics.smooth_scores import ORDERS, smooth_test_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import FloatMatrix, FloatVector
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.base import PosteriorFit


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Errors of drawn maps, and how surprising the labels are without any error.

    Attributes
    ----------
    errors : ndarray of shape (events, draws)
        Errors of maps drawn from the posterior.
    pvalues : ndarray of shape (events,)
        Those of the smooth test of calibration.
    """

    errors: FloatMatrix
    pvalues: FloatVector

    @classmethod
    def of(
        cls,
        fits: Sequence[PosteriorFit],
        samples: Sequence[BinarySample],
        *,
        alpha: float,
        n_draws: int,
        rng: np.random.Generator,
    ) -> PosteriorDraws:
        """Draw maps of each event."""
        errors = [
            fit.posterior_errors(sample, n_draws=n_draws, rng=rng, alpha=alpha)
            for fit, sample in zip(fits, samples, strict=True)
        ]
        tests = [smooth_test_of(few_cells(s), ORDERS[-1]) for s in samples]
        return cls(np.stack(errors), np.array([test.pvalue for test in tests]))

    def ends(
        self, value: float, which: slice, confidence: float
    ) -> tuple[float, float]:
        """Return the interval for the mean error of some events.

        Its ends are quantiles of the drawn errors, and such that they hold the
        estimate. No drawn error is 0; so the lower end is 0 for an event unless the
        test, at the level of one end, rejects calibration. How errors of different
        classes go together is not drawn: they are taken as going together fully, which
        errs towards wide intervals.
        """
        tail = 0.5 * (1.0 - confidence)
        low, high = np.quantile(self.errors[which], [tail, 1.0 - tail], axis=1)
        unclear = self.pvalues[which] > tail / low.size
        low = float(np.where(unclear, 0.0, low).mean())
        return max(min(low, value), 0.0), max(float(high.mean()), value)
