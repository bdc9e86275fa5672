"""Intervals of a calibration error: by the posterior of `smooth`, or by bootstrap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

from calibrant.calibrators.smooth import smooth_fit
from calibrant.core.parameters import generator
from calibrant.numerics.clustered_test import smooth_p_value
from calibrant.numerics.resampling import (
    IntervalKind,
    RowGroups,
    bootstrap_cells,
    calibrated_weights,
    interval,
    multinomial_weights,
    widen_to,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.calibrators.fits import ErrorFit
    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.measures.estimate import ErrorSettings
    from calibrant.numerics.clustered_test import SmoothPValue
    from calibrant.numerics.resampling import BootstrapCells

EVENTS_PER_REJECTION = 20
"""For each so many events, one more must be rejected for any to count."""
MAX_AT_ONCE = 2**21
"""The maximum number of weights of cells that are drawn at once."""
NOISE_AHEAD, FAR = 125, 2.0
"""An error this many times larger than the largest of so many errors of pure noise is
not noise, whatever more draws would give."""


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
    tests : sequence of MinPValue or MeanPValue
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
    ) -> PosteriorLimits:
        """Draw maps of each event."""
        tail = 0.5 * (1.0 - confidence)
        ends, tests = [], []
        for sample in samples:
            fit = smooth_fit(sample)
            quantiles = fit.error_quantiles(
                (tail, 1.0 - tail), n_draws=n_draws, random_state=seed, alpha=alpha
            )
            ends.append(quantiles)
            tests.append(sample.cached("smooth test", partial(smooth_p_value, sample)))
            if len(samples) > 1:
                fit.forget_posterior()
        low, high = np.transpose(ends)
        return cls(confidence, low, high, tests)

    def ends(self, value: float, which: slice) -> tuple[float, float]:
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


@dataclass(frozen=True, eq=False)
class BootstrapLimits:
    """Errors of resamples, and of perfectly calibrated ones, one row per event.

    Attributes
    ----------
    errors, noise : ndarray of shape (events, resamples)
        Errors of bootstrap resamples, and of resamples with calibrated labels.
    plain : ndarray of shape (events,)
        Errors of the sample itself without debiasing.
    confidence : float
        Level of the interval.
    kind : {"basic", "percentile"}
        Which bootstrap interval.
    squared : bool
        Whether errors are squared norms.
    """

    errors: FloatMatrix
    noise: FloatMatrix
    plain: FloatVector
    confidence: float
    kind: IntervalKind
    squared: bool

    def ends(self, value: float, which: slice) -> tuple[float, float]:
        """Return the bootstrap interval for the mean error of some events."""
        return interval(
            value,
            self.errors[which].mean(axis=0),
            truth=float(np.mean(self.plain[which])),
            noise=self.noise[which].mean(axis=0),
            confidence=self.confidence,
            kind=self.kind,
            squared=self.squared,
        )


def bootstrap_limits(  # noqa: PLR0913
    fits: Sequence[ErrorFit],
    tasks: BinaryTasks,
    settings: ErrorSettings,
    values: FloatVector,
    *,
    debias: bool,
    squared: bool,
    max_at_once: int = MAX_AT_ONCE,
    far: float = FAR,
) -> BootstrapLimits:
    """Resample the rows of each event; events on the same rows share the resamples."""
    count, rng = settings.n_resamples, generator(settings.random_state)
    samples, several = tasks.samples, len(fits) > 1
    shared, first = None, samples[0]
    if first.clusters is not None or (several and tasks.same_rows):
        shared = RowGroups.draw(first.n, count, rng, first.weight, first.clusters)
    raw = replace(settings, debias=False)
    errors, noise = [], []
    for fit, sample in zip(fits, samples, strict=True):
        cells = bootstrap_cells(sample.p, sample.y, sample.weight, fit.edges)
        measure = partial(fit.resampled_errors, alpha=settings.alpha, debias=debias)
        draws = _Draws(cells, measure, rng, max(max_at_once // cells.weight.size, 1))
        if shared is None:
            errors.append(draws.errors(count))
        else:
            errors.append(measure(cells, shared.weights(cells)))
        if sample.clusters is not None:
            noise.append(_noise_of_clusters(sample, settings))
            continue
        # The noise of several events is averaged draw by draw: none may have fewer.
        noise.append(draws.noise(count, np.inf if several else far, values[0]))
    # How noise of different classes goes together is not drawn; sorted draws take it
    # as going together fully, which errs towards a lower end of 0.
    return BootstrapLimits(
        errors=np.stack(errors),
        noise=np.sort(np.stack(noise), axis=1),
        plain=raw.errors(fits, samples, "")[0] if debias else values,
        confidence=settings.confidence or 0.0,
        kind="percentile" if settings.interval == "percentile" else "basic",
        squared=squared,
    )


def _noise_of_clusters(sample: BinarySample, settings: ErrorSettings) -> FloatVector:
    """Return errors by chance alone: any, or none where the test rejects calibration.

    Labels that depend on each other within clusters cannot be drawn from predictions.
    """
    test = sample.cached("smooth test", partial(smooth_p_value, sample))
    rejected = test.rejects(0.5 * (1.0 - float(settings.confidence or 0.0)))
    return np.full(settings.n_resamples, 0.0 if rejected else np.inf)


@dataclass(frozen=True, eq=False)
class _Draws:
    """Errors of resamples of one event, drawn in parts that need little memory."""

    cells: BootstrapCells
    measure: Callable[[BootstrapCells, FloatMatrix], FloatVector]
    rng: np.random.Generator
    at_once: int

    def errors(self, count: int) -> FloatVector:
        """Return errors of bootstrap resamples."""
        weights = partial(multinomial_weights, self.cells, rng=self.rng)
        parts = self._parts(count)
        return np.concatenate([self.measure(self.cells, weights(n)) for n in parts])

    def noise(self, count: int, far: float, value: float) -> FloatVector:
        """Return errors of calibrated resamples; few if `value` is far above them."""
        ahead = min(NOISE_AHEAD, count)
        first = np.concatenate(self._noise(ahead))
        if value > far * max(float(first.max()), 0.0):
            return first
        return np.concatenate([first, *self._noise(count - ahead)])

    def _noise(self, count: int) -> list[FloatVector]:
        weights = partial(calibrated_weights, self.cells, rng=self.rng)
        return [self.measure(*weights(n)) for n in self._parts(count)]

    def _parts(self, count: int) -> list[int]:
        whole, rest = divmod(count, self.at_once)
        return [self.at_once] * whole + [rest] * (rest > 0)
