"""Intervals from what the posterior of a map says of the true error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.smooth import smooth_fit
from calibrant.numerics.few_cells import few_cells
from calibrant.numerics.resampling import hold
from calibrant.numerics.smooth_scores import ORDERS, smooth_test_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import FloatMatrix, FloatVector
    from calibrant._validation.sample import BinarySample


@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Errors of drawn maps, and how surprising the labels are without any error.

    There is one true error, whichever method estimates it. So maps are always drawn
    from the posterior of `smooth`, and their errors say where the true one may lie.

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
        cls, samples: Sequence[BinarySample], *, alpha: float, n_draws: int, seed: int
    ) -> PosteriorDraws:
        """Draw maps of each event, the same for all methods."""
        errors, pvalues = [], []
        for sample in samples:
            draw = partial(_drawn_errors, sample, alpha, n_draws, seed)
            name = f"errors of {n_draws} maps, alpha {alpha}, seed {seed}"
            errors.append(sample.once(name, draw))
            pvalues.append(smooth_test_of(few_cells(sample), ORDERS[-1]).pvalue)
            if len(samples) > 1:
                smooth_fit(sample).forget_posterior()
        return cls(np.stack(errors), np.array(pvalues))

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
        return hold(value, low, float(high.mean()))


def _drawn_errors(
    sample: BinarySample, alpha: float, n_draws: int, seed: int
) -> FloatVector:
    """Return the error of each of some maps that could be the true one."""
    rng = np.random.default_rng(seed)
    fit = smooth_fit(sample)
    return fit.posterior_errors(sample, n_draws=n_draws, rng=rng, alpha=alpha)
