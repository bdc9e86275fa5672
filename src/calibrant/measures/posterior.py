"""Intervals from what the posterior of a map says of the true error."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.base import MapFreeFit
from calibrant.calibrators.smooth import smooth_fit
from calibrant.numerics.few_cells import few_cells
from calibrant.numerics.resampling import hold
from calibrant.numerics.smooth_scores import ORDERS, smooth_test_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import FloatMatrix, FloatVector
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.base import ErrorFit


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
        cls,
        fits: Sequence[ErrorFit],
        samples: Sequence[BinarySample],
        *,
        alpha: float,
        n_draws: int,
        seed: int,
    ) -> PosteriorDraws:
        """Draw maps of each event, and measure them as the method does."""
        errors = []
        for fit, sample in zip(fits, samples, strict=True):
            draw = partial(
                _true_errors, sample, alpha=alpha, n_draws=n_draws, seed=seed
            )
            if isinstance(fit, MapFreeFit):
                errors.append(draw(fit))
            else:
                name = f"errors of {n_draws} maps, alpha {alpha}, seed {seed}"
                errors.append(sample.once(name, draw))
            if len(samples) > 1:
                smooth_fit(sample).forget_posterior()
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
        return hold(value, low, float(high.mean()))


def _true_errors(
    sample: BinarySample,
    fit: MapFreeFit | None = None,
    *,
    alpha: float,
    n_draws: int,
    seed: int,
) -> FloatVector:
    """Return the error of each of some maps that could be the true one."""
    rng = np.random.default_rng(seed)
    maps = smooth_fit(sample).drawn_maps(sample, n_draws=n_draws, rng=rng)
    if fit is None:
        return maps.errors(sample, alpha)
    cells = few_cells(sample)
    return fit.errors_of_maps(cells.p, maps.at(cells.p).T, cells.weight)
