"""One method on the events of one task: value and interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.registry import find_evaluator, method_name
from calibrant.calibrators.smooth import Smooth, smooth_fit
from calibrant.core.options import (
    check_choice,
    check_count,
    check_fraction,
    check_positive,
    generator,
    whole_seed,
)
from calibrant.core.threads import one_blas_thread
from calibrant.exceptions import OptionError
from calibrant.measures.posterior import PosteriorLimits
from calibrant.numerics.resampling import (
    IntervalKind,
    RowGroups,
    bootstrap_cells,
    calibrated_weights,
    interval,
    multinomial_weights,
    squared_interval,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.calibrators.base import ErrorFit
    from calibrant.core.array_types import Debias, FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import BootstrapCells
    from calibrant.predictions.input_spec import BinaryTasks


Interval: TypeAlias = Literal["auto", "posterior", "basic", "percentile"]

MAX_AT_ONCE = 2**21
"""Most weights of cells that are drawn at once."""
LEAST_DECIMALS, MAX_DECIMALS = 4, 12
"""Of printed estimates."""
NOISE_AHEAD, FAR = 125, 2.0
"""An error that is so many times larger than the largest of so many that noise alone
gave is no noise, whatever more draws would give."""


@dataclass(frozen=True)
class Estimate:
    """A calibration error as one method estimates it.

    Attributes
    ----------
    method, task : str
        What was asked.
    value : float
        The estimate; 0 where debiasing took it below. The debiased number as it is,
        which averages out over many data sets, is what `calibration_error` gives.
    low, high : float
        Ends of the interval of the true error: within [0, 1], and the estimate lies
        between them. NaN where no interval was asked for, or where resampling finds
        none.
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
        places = _decimals(self.high - self.low)
        value, low, high = (
            f"{number:.{places}f}" for number in (self.value, self.low, self.high)
        )
        ends = "" if np.isnan(self.low) else f" [{low}, {high}]"
        return f"{self.method} ({self.task}): {value}{ends}, n = {self.n}"


def _decimals(width: float) -> int:
    """Return four decimals, or so many that a narrow interval has two digits.

    Examples
    --------
    >>> _decimals(0.02), _decimals(0.00009), _decimals(float("nan"))
    (4, 6, 4)
    """
    if not width > 0.0:
        return LEAST_DECIMALS
    needed = 1 - int(np.floor(np.log10(width)))
    return min(max(needed, LEAST_DECIMALS), MAX_DECIMALS)


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
    interval : {"auto", "posterior", "basic", "percentile"}
        Kind of interval: by the posterior of `smooth`, or by bootstrap of the method
        itself; "auto" is "posterior", but "basic" for "kce", which measures no map.
    n_resamples : int
        Number of bootstrap resamples, or of draws from the posterior.
    random_state : int, generator or None
        Seeds folds and resamples.
    """

    alpha: float = 1.0
    debias: Debias = "auto"
    confidence: float | None = None
    interval: Interval = "auto"
    n_resamples: int = 1000
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_positive(self.alpha, name="alpha")
        check_choice(self.debias, ["auto", True, False], name="debias")
        check_choice(self.interval, get_args(Interval), name="interval")
        check_count(self.n_resamples, name="n_resamples", least=2)
        if self.confidence is not None:
            check_fraction(self.confidence, name="confidence")

    def estimate(self, events: BinaryTasks, method: str) -> tuple[Estimate, ...]:
        """Return the estimate for the task, then one for each class if it has any."""
        return self.estimate_by(self.fit(events, method), events, method)

    def fit(self, events: BinaryTasks, method: str) -> list[ErrorFit]:
        """Fit the method to each event."""
        return [self.fit_one(sample, method) for sample in events.samples]

    def fit_one(self, sample: BinarySample, method: str) -> ErrorFit:
        """Fit the method to one event."""
        family = find_evaluator(method).seeded(self.random_state)
        return smooth_fit(sample) if family == Smooth() else fit_family(family, sample)

    def value(self, events: BinaryTasks, method: str) -> float:
        """Return the estimate for the task as it is, perhaps below 0."""
        fits = self.fit(events, method)
        debias = self._debias(fits[0], method)
        return float(np.mean(self._errors(fits, events, debias=debias)))

    def estimate_by(
        self, fits: list[ErrorFit], events: BinaryTasks, method: str
    ) -> tuple[Estimate, ...]:
        """Return what `estimate` does, from fits of the method."""
        debias = self._debias(fits[0], method)
        values = self._errors(fits, events, debias=debias)
        with one_blas_thread():
            draws = self._draws(fits, events, method, values, debias=debias)
        needed = debias and draws is not None
        plain = self._errors(fits, events, debias=False) if needed else values
        bins = np.array([float(fit.pieces) for fit in fits])

        def row(task: str, which: slice) -> Estimate:
            value, truth, size = (
                float(np.mean(v[which])) for v in (values, plain, bins)
            )
            value = max(value, 0.0)
            low, high = self._ends(value, truth, draws, which)
            n = events.samples[0].n_data
            name = method_name(method)
            return Estimate(name, task, value, low, high, n, debias, size)

        whole = row(events.task, slice(None))
        if len(fits) == 1:
            return (whole,)
        each = (row(name, slice(i, i + 1)) for i, name in enumerate(events.names))
        return (whole, *each)

    def _errors(
        self, fits: list[ErrorFit], events: BinaryTasks, *, debias: bool
    ) -> FloatVector:
        return np.array(
            [
                fit.error(sample, alpha=self.alpha, debias=debias)
                for fit, sample in zip(fits, events.samples, strict=True)
            ]
        )

    def _debias(self, fit: ErrorFit, method: str) -> bool:
        known = fit.debiases(float(self.alpha))
        if self.debias is True and not known:
            raise OptionError(
                f"debias=True is not possible for method {method!r} with "
                f'alpha={self.alpha:g}; pass debias="auto" or False.'
            )
        return known and bool(self.debias)

    def shared_rows(self, events: BinaryTasks, rng: np.random.Generator) -> RowGroups:
        """Draw resamples of the rows, for all events on these rows together."""
        sample = events.samples[0]
        return RowGroups.draw(sample.n, self.n_resamples, rng, sample.weight)

    def _draws(
        self,
        fits: list[ErrorFit],
        events: BinaryTasks,
        method: str,
        values: FloatVector,
        *,
        debias: bool,
    ) -> Resampled | PosteriorLimits | None:
        if self.confidence is None:
            return None
        has_map = not find_evaluator(method).squared
        if self.interval == "posterior" and not has_map:
            raise OptionError(
                f'interval="posterior" is not possible for method {method!r}, which '
                f'measures no map; pass interval="auto" or "basic".'
            )
        if has_map and self.interval in {"auto", "posterior"}:
            return PosteriorLimits.of(
                events.samples,
                confidence=self.confidence,
                alpha=self.alpha,
                n_draws=self.n_resamples,
                seed=whole_seed(self.random_state),
            )
        return self._resampled(fits, events, method, values, debias=debias)

    def _resampled(
        self,
        fits: list[ErrorFit],
        events: BinaryTasks,
        method: str,
        values: FloatVector,
        *,
        debias: bool,
    ) -> Resampled:
        rng = generator(self.random_state)
        # Classes that do not share rows are resampled each by itself.
        together = len(fits) > 1 and events.same_rows
        shared = self.shared_rows(events, rng) if together else None
        errors, noise = [], []
        for fit, sample in zip(fits, events.samples, strict=True):
            cells = bootstrap_cells(sample.p, sample.y, sample.weight, fit.edges)
            measure = partial(fit.resampled_errors, alpha=self.alpha, debias=debias)
            if shared is None:
                draw = partial(multinomial_weights, cells, rng=rng)
                parts = [
                    measure(cells, draw(n))
                    for n in self._parts(cells, self.n_resamples)
                ]
            else:
                parts = [measure(cells, shared.weights(cells))]
            errors.append(np.concatenate(parts))
            # Draws of several classes go together: then each class has them all.
            alone = float(values[0]) if len(fits) == 1 else None
            noise.append(self._noise(cells, measure, rng, alone))
        # How noise of different classes goes together is not drawn; sorted draws
        # take it as going together fully, which errs towards a lower end of 0.
        return Resampled(
            np.stack(errors),
            np.sort(np.stack(noise), axis=1),
            "percentile" if self.interval == "percentile" else "basic",
            find_evaluator(method).squared,
        )

    def _noise(
        self,
        cells: BootstrapCells,
        measure: Callable[[BootstrapCells, FloatMatrix], FloatVector],
        rng: np.random.Generator,
        value: float | None,
    ) -> FloatVector:
        """Return errors of calibrated resamples; few if `value` is far above them."""

        def drawn(count: int) -> list[FloatVector]:
            parts = self._parts(cells, count)
            return [measure(*calibrated_weights(cells, n, rng)) for n in parts]

        if value is None:
            return np.concatenate(drawn(self.n_resamples))
        first = np.concatenate(drawn(min(NOISE_AHEAD, self.n_resamples)))
        if value > FAR * max(first.max(), 0.0):
            return first
        return np.concatenate([first, *drawn(self.n_resamples - first.size)])

    def _parts(self, cells: BootstrapCells, count: int) -> list[int]:
        """Part the resamples so that those drawn at once fit into little memory."""
        most = max(MAX_AT_ONCE // cells.weight.size, 1)
        whole, rest = divmod(count, most)
        return [most] * whole + [rest] * (rest > 0)

    def _ends(
        self,
        value: float,
        truth: float,
        draws: Resampled | PosteriorLimits | None,
        which: slice,
    ) -> tuple[float, float]:
        if draws is None or self.confidence is None:
            return float("nan"), float("nan")
        if isinstance(draws, Resampled):
            return draws.ends(value, truth, which, self.confidence)
        return draws.ends(value, which)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Errors of resamples, and of perfectly calibrated ones; one row an event."""

    errors: FloatMatrix
    noise: FloatMatrix
    kind: IntervalKind
    squared: bool

    def ends(
        self, value: float, truth: float, which: slice, confidence: float
    ) -> tuple[float, float]:
        """Return the bootstrap interval for the mean error of some events."""
        ends = squared_interval if self.squared else interval
        return ends(
            value,
            self.errors[which].mean(axis=0),
            truth=truth,
            noise=self.noise[which].mean(axis=0),
            confidence=confidence,
            kind=self.kind,
        )
