"""Least-squares splines of a curve of cumulative labels.

With rows sorted by prediction, the cumulative sum of y - p, divided by the number of
rows, is a curve over [0, 1]; its slope is the distance of the calibration map from the
diagonal. The curve is a polygon, whose corners are the distinct predictions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calibrant.numerics.cross_validation import EXTRA_COST, brier_unit, simplest_within

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

    from calibrant.core.array_types import FloatMatrix, FloatVector, FoldEnsemble
    from calibrant.numerics.cross_validation import FoldedPoints
    from calibrant.numerics.resampling import Resamples

Runout: TypeAlias = Literal["natural", "parabolic", "cubic"]

MIN_KNOTS: dict[Runout, int] = {"natural": 2, "parabolic": 3, "cubic": 4}
"""So many knots each kind needs at least."""
FEW_VALUES = 16
"""With at most this many distinct predictions the map is their observed rates."""
USUAL_KNOTS = 6
"""So many knots, those of Gupta et al., are tried however few rows there are. With
two natural splines are straight, and the map can only be shifted."""


@dataclass(frozen=True, eq=False)
class CumulativeFit:
    """Values of a map at distinct predictions, and the number of knots behind them.

    `losses` are cross-validated, where knots were chosen so.
    """

    runout: Runout
    values: FloatVector
    knots: int
    losses: FloatVector | None = None

    def refitted(self, resamples: Resamples) -> FloatMatrix:
        """Return the map of each resample, with as many knots."""
        if resamples.p.size <= FEW_VALUES:
            return resamples.rate
        p, weight, label_sum = resamples.p, resamples.weight, resamples.label_sum
        return values_of_splines(p, weight, label_sum, self.knots, self.runout)


@dataclass(kw_only=True, eq=False, repr=False)
class SplineSearch:
    """The choice of knots; `CumulativeSpline` describes its settings."""

    runout: Runout = "natural"
    knots: int | Literal["cv"] = "cv"
    max_knots: int = 16
    rows_per_knot: int = 200
    tolerance: float = 1e-3
    ensemble: FoldEnsemble = "folds"

    def choose(self, points: FoldedPoints, total: float) -> CumulativeFit:
        """Fit splines without the rows of each fold in turn, or to all of them.

        `total` is the number of rows that the points stand for.
        """
        whole = points.together()
        rates = whole.rate[0]
        if points.p.size <= FEW_VALUES or rates.min() == rates.max():
            return CumulativeFit(self.runout, rates, MIN_KNOTS[self.runout])
        knots, losses, values = self._tried(points, total)
        if self.ensemble == "refit":
            sums = whole.weight, whole.label_sum
            values = values_of_splines(points.p, *sums, knots, self.runout)
        return CumulativeFit(self.runout, values.mean(axis=0), knots, losses)

    def _tried(
        self, points: FoldedPoints, total: float
    ) -> tuple[int, FloatVector | None, FloatMatrix]:
        """Return the number of knots, the losses behind it and the folds' values."""
        others = points.training()
        sums = others.weight, others.label_sum
        if self.knots != "cv":
            values = values_of_splines(points.p, *sums, self.knots, self.runout)
            return self.knots, None, values
        fewest = MIN_KNOTS[self.runout]
        by_rows = fewest + int(total // self.rows_per_knot)
        counts = np.arange(fewest, min(self.max_knots, max(by_rows, USUAL_KNOTS)) + 1)
        tried = [
            values_of_splines(points.p, *sums, int(knots), self.runout)
            for knots in counts
        ]
        losses = np.array([points.held_out_brier(values) for values in tried])
        cost = EXTRA_COST * brier_unit(losses, total) * (counts > by_rows)
        best = simplest_within(losses + cost, self.tolerance)
        return fewest + best, losses, tried[best]


def values_of_splines(
    p: FloatVector,
    weight: FloatMatrix,
    label_sum: FloatMatrix,
    knots: int,
    runout: Runout,
) -> FloatMatrix:
    """Return the map of each sample at the predictions of points."""
    weight = np.maximum(weight, 0.0)
    slope = slopes_of_splines(weight, label_sum - weight * p, knots, runout)
    return np.clip(p + slope, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Basis:
    """The cubic splines with given knots that are 1 at one knot and 0 at the others.

    `integral` and `twice` are their integrals from 0 and the integrals of those;
    `inverse`, of shape (k, k), inverts their scalar products over [0, 1].
    """

    spline: BSpline
    integral: BSpline
    twice: BSpline
    inverse: FloatMatrix


@lru_cache(maxsize=64)
def _basis(knots: int, runout: Runout) -> Basis:
    """Return cubic splines over equidistant knots from 0 to 1.

    Natural splines have no curvature at the ends; parabolic run-out has no third
    derivative in the outer pieces; cubic run-out has one polynomial in the outer two.
    """
    from scipy.interpolate import make_interp_spline

    zero = np.zeros(knots)
    ends = {
        "natural": "natural",
        "parabolic": ([(3, zero)], [(3, zero)]),
        "cubic": None,
    }[runout]
    x = np.linspace(0.0, 1.0, knots)
    spline = make_interp_spline(x, np.eye(knots), k=3, bc_type=ends)
    # Four nodes integrate products exactly: they are polynomials of degree 6.
    nodes, shares = np.polynomial.legendre.leggauss(4)
    half = 0.5 * np.diff(x)[:, np.newaxis]
    values = spline((x[:-1, np.newaxis] + half * (1.0 + nodes)).ravel())
    products = values.T @ ((half * shares).ravel()[:, np.newaxis] * values)
    integral = spline.antiderivative()
    inverse = np.asarray(np.linalg.inv(products), dtype=np.float64)
    return Basis(spline, integral, integral.antiderivative(), inverse)


def slopes_of_splines(
    weight: FloatMatrix, excess: FloatMatrix, knots: int, runout: Runout
) -> FloatMatrix:
    """Return the mean slope, over each point, of the spline nearest to the curve.

    Of each curve and point, (curves, m) in order of predictions, `weight` may be 0, and
    `excess` is the weighted sum of label less prediction.
    """
    share = weight / weight.sum(axis=1, keepdims=True)
    rise = excess / weight.sum(axis=1, keepdims=True)
    corners = np.zeros((len(weight), weight.shape[1] + 1))
    np.minimum(np.cumsum(share, axis=1), 1.0, out=corners[:, 1:])
    basis = _basis(knots, runout)
    heights = _nearest(basis, corners, share, rise)
    width = np.diff(corners, axis=1)
    middle = 0.5 * (corners[:, 1:] + corners[:, :-1])
    # Over a point without width the mean slope is the slope.
    slope = np.einsum("fmk,fk->fm", basis.spline.derivative()(middle), heights)
    at_corners = np.einsum("fmk,fk->fm", basis.spline(corners), heights)
    wide = width > 1e-6  # noqa: PLR2004  (differences of values keep enough digits)
    np.divide(np.diff(at_corners, axis=1), width, out=slope, where=wide)
    return np.asarray(slope)


def _nearest(
    basis: Basis, corners: FloatMatrix, share: FloatMatrix, rise: FloatMatrix
) -> FloatMatrix:
    """Return the heights at the knots of the splines with the least squared distance.

    The scalar product of a spline with the polygon follows by integrating by parts:
    the polygon's slope is constant between its corners.
    """
    slope = np.divide(rise, share, out=np.zeros_like(rise), where=share > 0.0)
    twice = np.diff(basis.twice(corners), axis=1)
    whole = rise.sum(axis=1)[:, np.newaxis] * basis.integral(1.0)
    products = whole - np.einsum("fm,fmk->fk", slope, twice)
    return np.asarray(products @ basis.inverse)
