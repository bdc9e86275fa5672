"""The calibration error by one method: its settings, fits, value and interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.calibrators.kernel_error import KernelFit
from calibrant.calibrators.registry import find_evaluator, method_name
from calibrant.core.parameters import (
    check_choice,
    check_count,
    check_fraction,
    check_positive,
    whole_seed,
)
from calibrant.exceptions import OptionError
from calibrant.numerics.posterior_limits import PosteriorLimits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.base import Kind
    from calibrant.calibrators.fits import ErrorFit
    from calibrant.core.array_types import Debias, FloatVector, Seed
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.numerics.kernel_error import ErrorKernel


MIN_DECIMALS, MAX_DECIMALS = 4, 12
"""Of printed estimates."""


@dataclass(frozen=True)
class Estimate:
    """A calibration error as one method estimates it.

    Attributes
    ----------
    method, task : str
        Name of the method and of the task.
    value : float
        The estimate; 0 where the debiased number is negative. `calibration_error`
        returns the number itself, which averages out over many data sets.
    low, high : float
        Ends of the interval of the true error: within [0, 1], and the estimate lies
        between them. NaN where no interval was asked for, and for the task
        "canonical".
    n : int
        Number of rows.
    debiased : bool
        Whether the estimated bias was subtracted.
    bins : float
        Number of bins or pieces of the map; the mean over classes for classwise; 0
        for "smooth", and where the method has no map.
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
        """Return the estimate in four decimals, more if its interval is narrow."""
        width, places = self.high - self.low, MIN_DECIMALS
        if width > 0.0:  # two digits of the width
            needed = 1 - int(np.floor(np.log10(width)))
            places = min(max(needed, MIN_DECIMALS), MAX_DECIMALS)
        interval = f" [{self.low:.{places}f}, {self.high:.{places}f}]"
        interval = "" if np.isnan(self.low) else interval
        return (
            f"{self.method} ({self.task}): {self.value:.{places}f}{interval}, "
            f"n = {self.n}"
        )


class Measured(NamedTuple):
    """What the fits of a method say about each event."""

    method: str  # its name
    errors: FloatVector
    debiased: bool
    pieces: FloatVector


@dataclass(frozen=True, kw_only=True)
class ErrorSettings:
    """How errors are to be estimated, whatever the method: parameters of `evaluate`."""

    alpha: float = 1.0
    debias: Debias = "auto"
    confidence: float | None = None
    n_resamples: int = 1000
    random_state: Seed = 0
    _evaluators: dict[str | int, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_positive(self.alpha, name="alpha")
        check_choice(self.debias, ["auto", True, False], name="debias")
        check_count(self.n_resamples, name="n_resamples", least=2)
        if self.confidence is not None:
            check_fraction(self.confidence, name="confidence")

    def evaluator(self, method: Any, kind: Kind = "binary") -> Any:
        """Return what fits by a method, found once for all groups and models."""
        key = _key(method)
        if key not in self._evaluators:
            found = find_evaluator(method, kind)
            self._evaluators[key] = found.measuring(self.random_state)
        return self._evaluators[key]

    def measured(
        self,
        fits: Sequence[Any],
        samples: Sequence[BinarySample | ClassSample],
        method: Any,
    ) -> Measured:
        """Return the error of each event; raise if it must be debiased but cannot."""
        alpha = float(self.alpha)
        debias = bool(self.debias) and fits[0].debiases(alpha)
        if self.debias is True and not debias:
            raise OptionError(
                f"debias=True is not possible for method {method!r} with "
                f'alpha={alpha:g}; pass debias="auto" or False.'
            )
        name, pieces = method_name(method), [float(fit.n_pieces) for fit in fits]
        pairs = zip(fits, samples, strict=True)
        errors = [fit.error(one, alpha=alpha, debias=debias) for fit, one in pairs]
        return Measured(name, np.array(errors), debias, np.array(pieces))


@dataclass(frozen=True, eq=False)
class FittedTasks:
    """Binary tasks, with fits and estimates that are made on demand and kept.

    Fits and draws solve many small systems: whoever asks for them enters
    `one_blas_thread` first.

    Attributes
    ----------
    tasks : BinaryTasks
        The binary tasks of one set of predictions.
    settings : ErrorSettings
        How errors are estimated.
    """

    tasks: BinaryTasks
    settings: ErrorSettings
    _fits: dict[str | int, list[ErrorFit]] = field(
        default_factory=dict, init=False, repr=False
    )
    _estimates: dict[str | int, tuple[Estimate, ...]] = field(
        default_factory=dict, init=False, repr=False
    )
    _drawn: dict[tuple[ErrorKernel, ...], PosteriorLimits] = field(
        default_factory=dict, init=False, repr=False
    )

    def fits(self, method: str) -> list[ErrorFit]:
        """Return the fits of a method to all events."""
        key = _key(method)
        if key not in self._fits:
            tasks = self.tasks
            one_event = tasks.whole is None
            kind: Kind = "binary" if one_event else "multi-class"
            evaluator = self.settings.evaluator(method, kind)
            fit = evaluator.fit_event if one_event else evaluator.fit_classes
            self._fits[key] = [fit(sample) for sample in tasks.measured]
        return self._fits[key]

    def estimates(self, method: str) -> tuple[Estimate, ...]:
        """Return the estimate for the task, then one for each class if it has any."""
        key, tasks = _key(method), self.tasks
        if key in self._estimates:
            return self._estimates[key]
        fits = self.fits(method)
        name, errors, debiased, pieces = self.settings.measured(
            fits, tasks.measured, method
        )
        n, limits = tasks.samples[0].n_data, self._limits(fits)

        def row(task: str, which: slice) -> Estimate:
            value = max(float(np.mean(errors[which])), 0.0)
            interval = (np.nan, np.nan)
            if limits is not None:
                interval = limits.interval(value, which)
            size = float(np.mean(pieces[which]))
            return Estimate(name, task, value, *interval, n, debiased, size)

        rows = [row(tasks.task, slice(None))]
        if len(fits) > 1:
            rows += [row(event, slice(i, i + 1)) for i, event in enumerate(tasks.names)]
        self._estimates[key] = tuple(rows)
        return self._estimates[key]

    def _limits(self, fits: list[ErrorFit]) -> PosteriorLimits | None:
        """Return between which limits the errors of the events lie.

        They are the same for all methods with a map, and drawn once. There are none for
        the whole vector: in simulations, quantiles of drawn errors held the true error
        too seldom.
        """
        settings = self.settings
        if settings.confidence is None or self.tasks.whole is not None:
            return None
        kernels = tuple(fit.kernel for fit in fits if isinstance(fit, KernelFit))
        if kernels not in self._drawn:
            self._drawn[kernels] = PosteriorLimits.of(
                self.tasks.samples,
                confidence=settings.confidence,
                alpha=settings.alpha,
                n_draws=settings.n_resamples,
                seed=whole_seed(settings.random_state),
                kernels=kernels,
            )
        return self._drawn[kernels]


def _key(method: Any) -> str | int:
    """Return the identity of a method; calibrators of users may not be hashable."""
    return method if isinstance(method, str) else id(method)
