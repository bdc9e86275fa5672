"""One method on the events of one task: value and interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

import numpy as np

from calibrant._validation.options import (
    check_choice,
    check_count,
    check_fraction,
    check_positive,
    generator,
)
from calibrant.calibrators.registry import find_evaluator
from calibrant.exceptions import OptionError
from calibrant.numerics.resampling import (
    IntervalKind,
    RowGroups,
    calibrated_weights,
    gather,
    interval,
    multinomial_weights,
    squared_interval,
)

if TYPE_CHECKING:
    from calibrant._typing import Debias, FloatMatrix, FloatVector, Seed
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.base import ErrorFit
    from calibrant.measures.events import Events
    from calibrant.numerics.resampling import Cells


MOST_AT_ONCE = 2**21
"""Most weights of cells that are drawn at once."""


@dataclass(frozen=True)
class Estimate:
    """A calibration error as one method estimates it.

    Attributes
    ----------
    method, task : str
        What was asked.
    value : float
        The estimate. Debiased values may lie a little below 0.
    low, high : float
        Ends of the interval, not below 0; NaN where none was asked for.
    n : int
        Number of rows.
    debiased : bool
        Whether the bias was taken out.
    bins : int
        Number of bins or pieces of the map; the mean over classes for classwise; 0
        where the method has no map.
    """

    method: str
    task: str
    value: float
    low: float
    high: float
    n: int
    debiased: bool
    bins: float

    def __str__(self) -> str:
        ends = "" if np.isnan(self.low) else f" [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.method} ({self.task}): {self.value:.4f}{ends}, n = {self.n}"


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """How errors are to be estimated, whatever the method.

    Attributes
    ----------
    alpha : float
        Exponent of the distance to the diagonal.
    debias : {"auto", True, False}
        "auto" takes out the bias where a method knows it.
    confidence : float or None
        Level of the interval; None for no interval.
    interval : {"basic", "percentile"}
        Kind of bootstrap interval.
    n_resamples : int
        Number of bootstrap resamples.
    random_state : int, generator or None
        Seeds folds and resamples.
    """

    alpha: float = 1.0
    debias: Debias = "auto"
    confidence: float | None = None
    interval: IntervalKind = "basic"
    n_resamples: int = 1000
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_positive(self.alpha, name="alpha")
        check_choice(self.debias, ["auto", True, False], name="debias")
        check_choice(self.interval, get_args(IntervalKind), name="interval")
        check_count(self.n_resamples, name="n_resamples", least=2)
        if self.confidence is not None:
            check_fraction(self.confidence, name="confidence")

    def estimate(self, events: Events, method: str) -> tuple[Estimate, ...]:
        """Return the estimate for the task, then one for each class if it has any."""
        fits = [self._fit(sample, method) for sample in events.samples]
        debias = self._debias(fits[0], method)
        values = self._errors(fits, events, debias=debias)
        draws = self._draws(fits, events, debias=debias)
        needed = debias and draws is not None
        plain = self._errors(fits, events, debias=False) if needed else values
        bins = np.array([float(fit.pieces) for fit in fits])

        def row(task: str, which: slice) -> Estimate:
            value, truth, size = (
                float(np.mean(v[which])) for v in (values, plain, bins)
            )
            low, high = self._ends(method, value, truth, draws, which)
            n = events.samples[0].n_data
            return Estimate(method, task, value, low, high, n, debias, size)

        whole = row(events.task, slice(None))
        if len(fits) == 1:
            return (whole,)
        each = (row(name, slice(i, i + 1)) for i, name in enumerate(events.names))
        return (whole, *each)

    def _errors(
        self, fits: list[ErrorFit], events: Events, *, debias: bool
    ) -> FloatVector:
        return np.array(
            [
                fit.error(sample, alpha=self.alpha, debias=debias)
                for fit, sample in zip(fits, events.samples, strict=True)
            ]
        )

    def _fit(self, sample: BinarySample, method: str) -> ErrorFit:
        found = find_evaluator(method)
        seeded = "random_state" in found.defaults()
        params = {"random_state": self.random_state} if seeded else {}
        return found.build(**params).fit(sample)

    def _debias(self, fit: ErrorFit, method: str) -> bool:
        known = fit.debiases(float(self.alpha))
        if self.debias is True and not known:
            raise OptionError(
                f"debias=True is not possible for method {method!r} with "
                f'alpha={self.alpha:g}; pass debias="auto" or False.'
            )
        return known and bool(self.debias)

    def _draws(
        self, fits: list[ErrorFit], events: Events, *, debias: bool
    ) -> _Draws | None:
        if self.confidence is None:
            return None
        rng = generator(self.random_state)
        first = events.samples[0]
        # Of cells nobody knows which classes share rows: each is resampled by itself.
        together = len(fits) > 1 and first.gathered is None
        shared = RowGroups.draw(first.n, self.n_resamples, rng) if together else None
        errors, noise = [], []
        for fit, sample in zip(fits, events.samples, strict=True):
            cells = gather(sample.p, sample.y, sample.weight, fit.edges)
            measure = partial(fit.resampled_errors, alpha=self.alpha, debias=debias)
            if shared is None:
                draw = partial(multinomial_weights, cells, rng=rng)
                parts = [measure(cells, draw(n)) for n in self._parts(cells)]
            else:
                parts = [measure(cells, shared.weights(cells, sample.weight))]
            errors.append(np.concatenate(parts))
            calibrated = (calibrated_weights(cells, n, rng) for n in self._parts(cells))
            noise.append(np.concatenate([measure(*drawn) for drawn in calibrated]))
        # How noise of different classes goes together is not drawn; sorted draws
        # take it as going together fully, which errs towards a lower end of 0.
        return _Draws(np.stack(errors), np.sort(np.stack(noise), axis=1))

    def _parts(self, cells: Cells) -> list[int]:
        """Part the resamples so that those drawn at once fit into little memory."""
        most = max(MOST_AT_ONCE // cells.weight.size, 1)
        whole, rest = divmod(self.n_resamples, most)
        return [most] * whole + [rest] * (rest > 0)

    def _ends(
        self,
        method: str,
        value: float,
        truth: float,
        draws: _Draws | None,
        which: slice,
    ) -> tuple[float, float]:
        if draws is None or self.confidence is None:
            return float("nan"), float("nan")
        ends = squared_interval if find_evaluator(method).squared else interval
        return ends(
            value,
            draws.errors[which].mean(axis=0),
            truth=truth,
            noise=draws.noise[which].mean(axis=0),
            confidence=self.confidence,
            kind=self.interval,
        )


@dataclass(frozen=True, eq=False)
class _Draws:
    """Errors of resamples, and of perfectly calibrated ones; one row an event."""

    errors: FloatMatrix
    noise: FloatMatrix
