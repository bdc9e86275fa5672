"""Spline calibration: splines of the cumulative labels, knots by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from calibrant.calibrators.base import BRIER, EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit
from calibrant.core.array_types import FoldEnsemble
from calibrant.core.parameters import (
    check_choice,
    check_count,
    check_fraction,
)
from calibrant.maps.piecewise import map_through
from calibrant.numerics.cross_validation import EXTRA_COST, brier_unit, simplest_within
from calibrant.numerics.cumulative_splines import MIN_KNOTS, Runout, slopes_of_splines
from calibrant.numerics.folded_points import FoldedPoints, folded_rows

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import Resamples

FEW_VALUES = 16
"""With at most this many distinct predictions the map is their observed rates."""
USUAL_KNOTS = 6
"""So many knots, those of Gupta et al., are tried however few rows there are. With
two natural splines are straight, and the map can only be shifted."""


@dataclass(kw_only=True, eq=False, repr=False)
class CumulativeSpline(EventCalibrator):
    """The slope of a least-squares spline of the cumulative labels.

    With rows sorted by prediction, the cumulative sum of y - p is a curve over the
    share of rows. A cubic spline with few equidistant knots is fitted to it;
    the map exceeds the diagonal by its slope. Where all labels are equal the map is
    flat, and with at most 16 distinct predictions it is the observed rate of
    each.

    Parameters
    ----------
    runout : {"natural", "parabolic", "cubic"}
        What splines do at the ends: no curvature, parabolas, or the cubic of the
        neighbouring piece.
    knots : int or "cv"
        Number of knots, or the choice by cross-validated Brier score.
    max_knots : int
        The largest number tried.
    rows_per_knot : int
        At most one knot per this many rows, plus the minimum, is tried; up to six are
        always tried, at a cost beyond that number.
    folds : int
        Number of folds.
    tolerance : float
        The fewest knots are chosen whose loss is within this share of the smallest.
    ensemble : {"folds", "refit"}
        The mean of the folds' maps, as in the paper, or one map refitted on all rows.
    random_state : int, generator or None
        Shuffles sorted rows into folds.

    References
    ----------
    K. Gupta et al. (2021). Calibration of neural networks using splines. ICLR.
    """

    fitted_by: ClassVar[str] = BRIER
    runout: Runout = "natural"
    knots: int | Literal["cv"] = "cv"
    max_knots: int = 16
    rows_per_knot: int = 200
    folds: int = 10
    tolerance: float = 1e-3
    ensemble: FoldEnsemble = "folds"
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.runout, get_args(Runout), name="runout")
        check_choice(self.ensemble, get_args(FoldEnsemble), name="ensemble")
        fewest = MIN_KNOTS[self.runout]
        check_count(self.max_knots, name="max_knots", least=fewest)
        check_count(self.rows_per_knot, name="rows_per_knot")
        check_count(self.folds, name="folds", least=2)
        if self.tolerance:
            check_fraction(self.tolerance, name="tolerance")
        if self.knots != "cv":
            check_count(self.knots, name="knots", least=fewest)

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = FoldedPoints.of(*folded_rows(sample, self.folds, self.random_state))
        whole = points.together()
        rates = whole.problems(points.p).rate[0]
        if points.p.size <= FEW_VALUES or rates.min() == rates.max():
            return self._curve(points.p, rates, MIN_KNOTS[self.runout])
        knots, losses, values = self._choose(points, sample.total)
        if self.ensemble == "refit":
            values = self._values(points.p, whole.weight, whole.label_sum, knots)
        return self._curve(points.p, values.mean(axis=0), knots, losses)

    def _refit(self, resamples: Resamples, *, knots: int) -> FloatMatrix:
        """Return the map of each resample, with as many knots."""
        if resamples.p.size <= FEW_VALUES:
            return resamples.rates()
        p, weight, label_sum = resamples.p, resamples.weight, resamples.label_sum
        return self._values(p, weight, label_sum, knots)

    def _choose(
        self, points: FoldedPoints, total: float
    ) -> tuple[int, FloatVector | None, FloatMatrix]:
        """Return the number of knots, the losses behind it and the folds' values."""
        others = points.training().problems(points.p)
        training = others.weight, others.weight * others.rate
        if self.knots != "cv":
            values = self._values(points.p, *training, self.knots)
            return self.knots, None, values
        fewest = MIN_KNOTS[self.runout]
        by_rows = fewest + int(total // self.rows_per_knot)
        counts = np.arange(fewest, min(self.max_knots, max(by_rows, USUAL_KNOTS)) + 1)
        tried = [self._values(points.p, *training, int(knots)) for knots in counts]
        losses = np.array([points.held_out_brier(values) for values in tried])
        cost = EXTRA_COST * brier_unit(losses, total) * (counts > by_rows)
        best = simplest_within(losses + cost, self.tolerance)
        return fewest + best, losses, tried[best]

    def _values(
        self, p: FloatVector, weight: FloatMatrix, label_sum: FloatMatrix, knots: int
    ) -> FloatMatrix:
        weight = np.maximum(weight, 0.0)
        slope = slopes_of_splines(weight, label_sum - weight * p, knots, self.runout)
        return np.clip(p + slope, 0.0, 1.0)

    def _curve(
        self,
        p: FloatVector,
        values: FloatVector,
        knots: int,
        losses: FloatVector | None = None,
    ) -> CurveFit:
        map_, refit = map_through(p, values), partial(self._refit, knots=knots)
        return CurveFit(map_, knots - 1, WHOLE_RANGE, refit, losses)
