"""Spline calibration: splines of the cumulative labels, knots by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, get_args

from calibrant.calibrators.base import BRIER, EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit
from calibrant.core.array_types import FoldEnsemble
from calibrant.core.parameters import (
    check_choice,
    check_count,
    check_fraction,
)
from calibrant.maps.piecewise import map_through
from calibrant.numerics.cumulative_splines import MIN_KNOTS, Runout, SplineSearch
from calibrant.numerics.folded_points import FoldedPoints, folded_rows

if TYPE_CHECKING:
    from calibrant.core.array_types import Seed
    from calibrant.core.sample import BinarySample


@dataclass(kw_only=True, eq=False, repr=False)
class CumulativeSpline(SplineSearch, EventCalibrator):
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
    tolerance : float
        The fewest knots are chosen whose loss is within this share of the smallest.
    ensemble : {"folds", "refit"}
        The mean of the folds' maps, as in the paper, or one map refitted on all rows.
    folds : int
        Number of folds.
    random_state : int, generator or None
        Shuffles sorted rows into folds.

    References
    ----------
    K. Gupta et al. (2021). Calibration of neural networks using splines. ICLR.
    """

    fitted_by: ClassVar[str] = BRIER
    folds: int = 10
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
        fit = self.choose(points, sample.total)
        map_ = map_through(points.p, fit.values)
        return CurveFit(map_, fit.knots - 1, WHOLE_RANGE, fit.refitted, fit.losses)
