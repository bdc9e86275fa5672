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

if TYPE_CHECKING:
    from scipy.interpolate import BSpline

    from calibrant.core.array_types import FloatMatrix

Runout: TypeAlias = Literal["natural", "parabolic", "cubic"]

MIN_KNOTS: dict[Runout, int] = {"natural": 2, "parabolic": 3, "cubic": 4}
"""So many knots each kind needs at least."""


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

    Parameters
    ----------
    weight : ndarray of shape (curves, m)
        Weights of the points, in order of their prediction; some may be 0.
    excess : ndarray of shape (curves, m)
        Weighted sum of label less prediction.
    knots : int
        Number of knots.
    runout : {"natural", "parabolic", "cubic"}
        Condition at the ends of the splines.
    """
    share = weight / weight.sum(axis=1, keepdims=True)
    rise = excess / weight.sum(axis=1, keepdims=True)
    ends = np.zeros((len(weight), weight.shape[1] + 1))
    np.minimum(np.cumsum(share, axis=1), 1.0, out=ends[:, 1:])
    basis = _basis(knots, runout)
    heights = _nearest(basis, ends, share, rise)
    width = np.diff(ends, axis=1)
    middle = 0.5 * (ends[:, 1:] + ends[:, :-1])
    # Over a point without width the mean slope is the slope.
    slope = np.einsum("fmk,fk->fm", basis.spline.derivative()(middle), heights)
    at_ends = np.einsum("fmk,fk->fm", basis.spline(ends), heights)
    wide = width > 1e-6  # noqa: PLR2004  (differences of values keep enough digits)
    np.divide(np.diff(at_ends, axis=1), width, out=slope, where=wide)
    return np.asarray(slope)


def _nearest(
    basis: Basis, ends: FloatMatrix, share: FloatMatrix, rise: FloatMatrix
) -> FloatMatrix:
    """Return the heights at the knots of the splines with the least squared distance.

    The scalar product of a spline with the polygon follows by integrating by parts:
    the polygon's slope is constant between its corners.
    """
    slope = np.divide(rise, share, out=np.zeros_like(rise), where=share > 0.0)
    twice = np.diff(basis.twice(ends), axis=1)
    whole = rise.sum(axis=1)[:, np.newaxis] * basis.integral(1.0)
    products = whole - np.einsum("fm,fmk->fk", slope, twice)
    return np.asarray(products @ basis.inverse)
