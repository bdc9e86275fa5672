"""The measures of a calibration summary, each with its interval, of one sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.special import expit, logit, ndtri, stdtrit

from calibrant.numerics import linearised_statistics
from calibrant.numerics.loess import loess, lowess
from calibrant.numerics.recalibration_line import (
    LogitPoints,
    RecalibrationLine,
    event_limits,
)
from calibrant.numerics.scores import count_quantiles
from calibrant.numerics.smooth_curve_fits import smooth_curve
from calibrant.numerics.weighted_points import (
    compress_on_log_grid,
    distinct_predictions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.linearised_statistics import Linearised
    from calibrant.numerics.smooth_curves import SmoothCurve
    from calibrant.numerics.weighted_points import WeightedPoints

Smoother: TypeAlias = Literal["smooth", "loess", "lowess"]
Limits: TypeAlias = tuple[float, float]
NO_LIMITS: Limits = (np.nan, np.nan)
ANYWHERE: Limits = (-np.inf, np.inf)
QUANTILES = {"E50": 0.5, "E90": 0.9, "Emax": 1.0}
"""Which quantiles of the distance between curve and predictions have names."""
MAX_TIED = 0.002
"""If a larger share of pairs shares a cell, very many rows are sorted for the AUROC.
Within a cell, predictions hardly tell events from other rows: a thousandth of the pairs
in common cells changes the AUROC by about a millionth."""
MIN_FOR_DELONG = 30
"""With fewer events, or other rows, DeLong's interval holds the AUROC too seldom."""
MIN_FOR_SANDWICH = 10
"""With fewer clusters with an event, or with other rows, sums over clusters may vary
too little by chance: slope and intercept are known no better than by as many rows."""
HALF = 0.5
ROUNDING = 64.0 * np.finfo(float).eps
"""A smaller standard error, as a share of the value, is 0 but for rounding."""
FEW = "it needs at least two rows with and two without the event"
ALIKE = "it does not vary within the sample, so its uncertainty cannot be estimated"
ONE_LABEL = "all labels are equal"
SEPARATED = "no row with the event has a lower prediction than a row without it"
CONSTANT = "all predictions are equal, or nearly so"
FALLING = "no row with the event has a higher prediction than a row without it"


@dataclass(frozen=True)
class Measure:
    """One measure of a summary.

    Attributes
    ----------
    measure : str
        Its name.
    value : float
        The estimate; NaN where the data do not define it.
    low, high : float
        Ends of the interval; NaN where there is none.
    error : float
        Standard error, NaN where there is none; pooling needs it.
    missing : str
        Why there is no value or no interval; empty where both are there.
    """

    measure: str
    value: float
    low: float = np.nan
    high: float = np.nan
    error: float = np.nan
    missing: str = ""


@dataclass(frozen=True, eq=False)
class SampleMeasures:
    """The measures of one sample.

    Attributes
    ----------
    sample : BinarySample
        The sample.
    smoother : {"smooth", "loess", "lowess"}
        Which curve distances are measured from.
    smooth_error : tuple of float
        The calibration error by the smooth curve, and its limits.
    confidence : float or None
        Level of intervals, None for no intervals.
    n_draws, seed : int
        How many curves are drawn for limits of distances, and from which seed.
    """

    sample: BinarySample
    smoother: Smoother
    smooth_error: tuple[float, float, float]
    confidence: float | None
    n_draws: int
    seed: int

    def all(self) -> dict[str, Measure]:
        """Return all measures by name."""
        parts = (self.large(), self.line(), self.distances(), self.scores())
        return {one.measure: one for part in parts for one in part}

    @cached_property
    def points(self) -> WeightedPoints:
        """Return the distinct predictions, or fine cells of very many."""
        if self.sample.clusters is not None:
            return distinct_predictions(self.sample)
        return compress_on_log_grid(self.sample)

    @cached_property
    def clusters(self) -> IntVector | None:
        """Return the cluster of each row, numbered from 0."""
        codes = self.sample.clusters
        return None if codes is None else np.unique(codes, return_inverse=True)[1]

    @cached_property
    def fewer(self) -> float:
        """Return the number of events or of other rows, whichever is smaller."""
        return min(self.logits.events, self.logits.total - self.logits.events)

    @cached_property
    def reach(self) -> float:
        """Return how many standard errors limits are off.

        Standard errors are not known better than few events or few clusters tell.
        """
        level = 0.5 + 0.5 * float(self.confidence or 0.0)
        return float(stdtrit(max(self.units - 1.0, 1.0), level))

    @cached_property
    def units(self) -> float:
        """Return how many independent units there are, of the rarer label if both are.

        Units are rows, or clusters: those with an event, and those with another row.
        """
        if self.clusters is None:
            return self.fewer if self.has_both else self.logits.total
        y, weight = self.sample.y, self.sample.weights
        rows = (weight * y, weight * (1.0 - y)) if self.has_both else (weight,)
        sums = (np.bincount(self.clusters, one) for one in rows)
        return float(min(np.count_nonzero(one) for one in sums))

    def error(self, statistic: Linearised) -> float:
        """Return the standard error of a statistic of the points."""
        if self.clusters is None:
            return statistic.standard_error(self.points)
        rows = self._place, self.sample.y, self.sample.weights
        return statistic.clustered_error(*rows, self.clusters)

    @cached_property
    def _place(self) -> IntVector:
        """Return which point each row belongs to."""
        return np.searchsorted(self.points.p, self.sample.p)

    @cached_property
    def logits(self) -> LogitPoints:
        """Return the same on the scale of logits."""
        return LogitPoints.of(self.points)

    @property
    def smooth(self) -> SmoothCurve:
        """Return the curve of the reliability diagram."""
        return smooth_curve(self.sample)

    @cached_property
    def has_both(self) -> bool:
        """Tell whether there are rows with and without the event."""
        return 0.0 < self.logits.events < self.logits.total

    @cached_property
    def _line(self) -> RecalibrationLine | None:
        """Return the recalibration line, where the data determine it."""
        return RecalibrationLine.of(self.logits) if self.logits.has_line else None

    def _without_line(self) -> str:
        """Return why there is no line."""
        if not self.has_both:
            return ONE_LABEL
        if self.logits.constant:
            return CONSTANT
        x, yes = self.logits.x, self.points.label_sum > 0.0
        others = x[self.points.label_sum < self.points.weight]
        return (
            SEPARATED if others.max() - x[yes].min() <= self.logits.close else FALLING
        )

    def large(self) -> Iterator[Measure]:
        """Give calibration in the large and O:E, which the number of events decides."""
        logits = self.logits
        expected = float(self.points.weight @ self.points.p)
        limits = NO_LIMITS
        if self.confidence is not None:
            limits = self._event_limits()
        missing = ""
        if self.confidence is not None and np.isnan(limits[0]):
            missing = FEW
        if expected > 0.0:
            ratio = linearised_statistics.observed_to_expected(self.points)
            error = self.error(ratio) if self.has_both else np.nan
            low, high = (limit / expected for limit in limits)
            yield Measure("O:E", ratio.value, low, high, error, missing)
        else:
            yield Measure("O:E", np.nan, missing="all predictions are 0")
        if not self.has_both:
            yield Measure("in-the-large", np.nan, missing=ONE_LABEL)
            return
        shift = logits.shift_from(logits.x)
        if not np.isnan(limits[0]):
            low, high = (logits.shift_to(logits.x, limit) for limit in limits)
            limits = low, high
        yield Measure("in-the-large", shift.value, *limits, self.error(shift), missing)

    def _event_limits(self) -> Limits:
        """Return between which numbers of events the expected one lies.

        Exact for independent rows; else by the standard error of a common shift.
        """
        logits = self.logits
        centred = logits.x if self._line is None else self._line.logits
        if self.clusters is None:
            return event_limits(logits, centred, float(self.confidence or 0.0))
        if not self.has_both:
            return NO_LIMITS
        shift = logits.shift_from(centred)
        reach = self.reach * self.error(shift)
        low, high = (
            float(logits.weight @ expit(centred + shift.value + step))
            for step in (-reach, reach)
        )
        return low, high

    def line(self) -> Iterator[Measure]:
        """Give intercept and slope of the recalibration line."""
        names = ("intercept", "slope")
        if self._line is None:
            missing = self._without_line()
            yield from (Measure(name, np.nan, missing=missing) for name in names)
            return
        for which, coefficient in enumerate(self._line.linearised()):
            name, value = names[which], coefficient.value
            error = float(np.sqrt(self._line.covariance[which, which]))
            if self.clusters is not None:
                sandwich = self.error(coefficient)
                few = self.units < MIN_FOR_SANDWICH
                yield self._normal(
                    name, value, max(error, sandwich) if few else sandwich
                )
                continue
            limits = NO_LIMITS
            if self.confidence is not None:
                limits = self._line.profile_limits(which, self.confidence)
            yield Measure(name, value, *limits, error)

    def distances(self) -> Iterator[Measure]:
        """Give the ICI, and quantiles of the distance between curve and predictions."""
        mean, low, high = self.smooth_error
        gaps = np.abs(self._curve() - self.points.p)[:, np.newaxis]
        levels = tuple(QUANTILES.values())
        values = count_quantiles(gaps, self.points.weight, levels)[:, 0].tolist()
        if self.smoother == "smooth":
            yield Measure("ICI", mean, low, high)
        else:
            value = float(np.average(gaps[:, 0], weights=self.points.weight))
            yield Measure("ICI", value, *self._widened(value, low, high))
        if self.confidence is None:
            yield from map(Measure, QUANTILES, values)
            return
        lows, highs = self._drawn_limits(levels)
        # Errors of drawn maps are never 0: the test of the ICI decides about all.
        lows = self._lowered(lows, levels, low) if low > 0.0 else 0.0 * lows
        for name, *one in zip(QUANTILES, values, lows, highs, strict=True):
            yield Measure(name, one[0], *self._widened(*one))

    def _widened(self, value: float, low: float, high: float) -> Limits:
        """Return limits that contain the estimate; curves of R may leave [0, 1]."""
        return (min(float(low), value), max(float(high), value))

    def _curve(self) -> FloatVector:
        """Return the curve at the points."""
        if self.smoother == "smooth":
            return self.smooth.values(self.points.p)
        return {"loess": loess, "lowess": lowess}[self.smoother](self.points)

    def _drawn_limits(
        self, levels: tuple[float, ...]
    ) -> tuple[FloatVector, FloatVector]:
        """Return limits of quantiles of distances, by maps drawn from the posterior."""
        p, weight = self.smooth.cells.p, self.smooth.cells.weight
        maps = self.smooth.drawn_curves(p, self.n_draws, self.seed)
        drawn = count_quantiles(np.abs(maps - p[:, np.newaxis]), weight, levels)
        tail = 0.5 * (1.0 - float(self.confidence or 0.0))
        low, high = np.quantile(drawn, (tail, 1.0 - tail), axis=1)
        return low, high

    def _lowered(
        self, lows: FloatVector, levels: tuple[float, ...], mean: float
    ) -> FloatVector:
        """Return lower limits of high quantiles as a simultaneous band gives them.

        The largest distances of a drawn map are too large, as its noise adds to them.
        If the true map lies within the band, it is at least as far from the
        predictions as the band is.
        """
        p, weight = self.smooth.cells.p, self.smooth.cells.weight
        band = self.smooth.band(
            p,
            float(self.confidence or 0.0),
            simultaneous=True,
            random_state=self.seed,
        )
        away = np.maximum(np.maximum(band[0] - p, p - band[1]), 0.0)
        least = count_quantiles(away[:, np.newaxis], weight, levels)[:, 0]
        lowered = np.where(np.array(levels) > HALF, np.minimum(lows, least), lows)
        # No quantile is below a lower one, and the maximum not below the mean.
        lowered[-1] = max(lowered[-1], mean)
        return np.maximum.accumulate(lowered)

    def scores(self) -> Iterator[Measure]:
        """Give the scores, and the area under the ROC curve."""
        yield self._score("Brier", linearised_statistics.brier(self.points), (0.0, 1.0))
        yield self._score(
            "log-loss", linearised_statistics.mean_log_loss(self.points), (0.0, np.inf)
        )
        if not self.has_both:
            for name in ("scaled Brier", "Nagelkerke R2", "AUROC"):
                yield Measure(name, np.nan, missing=ONE_LABEL)
            return
        below = (-np.inf, 1.0)
        yield self._score(
            "scaled Brier", linearised_statistics.scaled_brier(self.points), below
        )
        yield self._score(
            "Nagelkerke R2", linearised_statistics.nagelkerke(self.points), below
        )
        points = self.points
        if (
            linearised_statistics.tied_share(points) > MAX_TIED
        ):  # in cells of distinct predictions
            points = distinct_predictions(self.sample)
        area = linearised_statistics.auroc(points)
        if self.clusters is None:
            error = linearised_statistics.delong_error(area, points)
        else:
            error = self.error(area) if self.units > 1.0 else np.nan
        yield self._area(area.value, error)

    def _area(self, value: float, error: float) -> Measure:
        """Return the AUROC: DeLong's interval, on the logit scale for few events."""
        separated = min(value, 1.0 - value) < ROUNDING
        error = 0.0 * error if separated else error
        plain = self._normal("AUROC", value, error, (0.0, 1.0))
        if np.isnan(plain.low):
            return plain
        if self.clusters is None and self.fewer >= MIN_FOR_DELONG:
            reach = float(ndtri(0.5 + 0.5 * float(self.confidence or 0.0))) * error
            low, high = max(value - reach, 0.0), min(value + reach, 1.0)
        else:
            reach = self.reach * error / (value * (1.0 - value))
            low, high = expit(logit(value) + np.array([-reach, reach])).tolist()
        return Measure("AUROC", value, low, high, error)

    def _score(self, name: str, score: Linearised, within: Limits) -> Measure:
        return self._normal(name, score.value, self.error(score), within)

    def _normal(
        self, name: str, value: float, error: float, within: Limits = ANYWHERE
    ) -> Measure:
        """Return a measure with a normal interval; none where all rows agree."""
        if self.confidence is None:
            return Measure(name, value, error=error)
        if not error > ROUNDING * abs(value):
            missing = FEW if np.isnan(error) else ALIKE
            return Measure(name, value, missing=missing)
        reach = self.reach * error
        low, high = np.clip((value - reach, value + reach), *within).tolist()
        return Measure(name, value, low, high, error)
