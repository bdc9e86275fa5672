"""Natural cubic splines as heights and slopes at knots, and a basis of bent ones.

A natural spline is cubic between knots, has two continuous derivatives and no curvature
at its ends, so that it goes on straight beyond them. Of all curves through given points
it has the least curvature, the integral of the squared second derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector

LEAST_SPACING = 1e-4
"""Knots are at least this share of the whole range apart."""


def curve_at(
    x: FloatVector, knots: FloatVector, heights: FloatMatrix, slopes: FloatMatrix
) -> FloatMatrix:
    """Return cubic curves with given heights and slopes at knots, straight beyond.

    Heights and slopes have a row for each knot, and perhaps a column for each curve.

    Examples
    --------
    >>> knots, heights, slopes = np.array([0.0, 1]), np.array([0.0, 1]), np.zeros(2)
    >>> curve_at(np.array([-1.0, 0.5, 0.75, 2.0]), knots, heights, slopes)
    array([0.     , 0.5    , 0.84375, 1.     ])
    """
    start, linear, square, cube = cubic_pieces(knots, heights, slopes)
    inside = np.clip(x, knots[0], knots[-1])
    piece = np.searchsorted(knots[1:-1], inside, side="right")
    along, beyond = inside - knots[piece], x - inside
    if heights.ndim > 1:
        along, beyond = along[..., np.newaxis], beyond[..., np.newaxis]
    value = cube[piece] * along
    for power in (square, linear):
        value += power[piece]
        value *= along
    value += start[piece]
    if beyond.any():
        value += beyond * np.where(beyond < 0.0, slopes[0], slopes[-1])
    return np.asarray(value, dtype=np.float64)


def cubic_pieces(
    knots: FloatVector, heights: FloatMatrix, slopes: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix, FloatMatrix]:
    """Return the powers 0 to 3 of the distance from the left knot of each piece."""
    width = np.diff(knots)
    if heights.ndim > 1:
        width = width[:, np.newaxis]
    left, right = slopes[:-1], slopes[1:]
    rise = np.diff(heights, axis=0) / width
    square = (3.0 * rise - 2.0 * left - right) / width
    return heights[:-1], left, square, (left + right - 2.0 * rise) / width**2


def spaced_knots(x: FloatVector, weight: FloatVector, count: int) -> FloatVector:
    """Return at most `count` points, ends included, at quantiles of weight.

    Quantiles that lie between two points are in the middle: so complements of
    predictions have complements of knots.

    Examples
    --------
    >>> spaced_knots(np.array([0.0, 1, 2, 3, 9]), np.array([1.0, 1, 8, 1, 1]), 3)
    array([0., 2., 9.])
    """
    below = np.cumsum(weight)
    wanted = np.arange(count) / (count - 1) * below[-1]
    places = (np.searchsorted(below, wanted, side) for side in ("left", "right"))
    left, right = (x[np.minimum(place, x.size - 1)] for place in places)
    chosen = 0.5 * left + 0.5 * right
    chosen = np.unique(np.concatenate([[x[0]], chosen, [x[-1]]]))
    return knots_apart(chosen, LEAST_SPACING * (x[-1] - x[0]))


def knots_apart(knots: FloatVector, spacing: float) -> FloatVector:
    """Return knots without those that are too near to another, but with both ends.

    Examples
    --------
    >>> knots_apart(np.array([0.0, 0.1, 1.0, 1.9, 2.0]), 0.5)
    array([0., 1., 2.])
    """
    kept = [float(knots[0])]
    for knot in knots[1:-1].tolist():
        if knot - kept[-1] > spacing and knots[-1] - knot > spacing:
            kept.append(knot)
    return np.array([*kept, *knots[-1:][knots[-1:] > kept[0]]])


@dataclass(frozen=True, eq=False)
class BentBasis:
    """Natural splines over the same knots, none of which has a straight part.

    Attributes
    ----------
    knots : ndarray of shape (k,)
        Ascending.
    heights, slopes : ndarray of shape (k, d)
        One column for each spline, d = k - 2 (none for fewer than three knots). The
        curvature of a sum of them is the sum of their squared coefficients.
    """

    knots: FloatVector
    heights: FloatMatrix
    slopes: FloatMatrix

    @classmethod
    def over(cls, knots: FloatVector) -> BentBasis:
        """Build the basis over some knots.

        With h the heights and m the second derivatives at inner knots, R m = Q h and
        the curvature is m' R m (Green and Silverman 1994, section 2.1).
        """
        size = knots.size
        if size < 3:  # noqa: PLR2004
            none = np.zeros((size, 0))
            return cls(knots, none, none)
        width = np.diff(knots)
        inner = np.arange(size - 2)
        second = np.zeros((size - 2, size))  # Q
        second[inner, inner] = 1.0 / width[:-1]
        second[inner, inner + 2] = 1.0 / width[1:]
        second[inner, inner + 1] = -1.0 / width[:-1] - 1.0 / width[1:]
        products = np.diag((width[:-1] + width[1:]) / 3.0)  # R
        products[inner[1:], inner[:-1]] = products[inner[:-1], inner[1:]] = (
            width[1:-1] / 6.0
        )
        # Singular values, not eigenvalues of Q' inv(R) Q: these would be squares,
        # and where knots are uneven rounding would swallow the least of them.
        root = np.linalg.solve(np.linalg.cholesky(products), second)
        _, sizes, vectors = np.linalg.svd(root, full_matrices=False)
        heights = vectors.T / sizes
        bends = np.linalg.solve(products, second @ heights)
        return cls(knots, heights, _slopes(width, heights, bends))

    def at(self, x: FloatVector) -> FloatMatrix:
        """Return all splines at some points, shape (points, d)."""
        if self.heights.shape[1] == 0:
            return np.zeros((x.size, 0))
        return curve_at(x, self.knots, self.heights, self.slopes)


def _slopes(
    width: FloatVector, heights: FloatMatrix, bends: FloatMatrix
) -> FloatMatrix:
    """Return slopes at knots from heights and second derivatives at inner knots."""
    bends = np.pad(bends, ((1, 1), (0, 0)))
    rise = np.diff(heights, axis=0) / width[:, np.newaxis]
    sixth = width[:, np.newaxis] / 6.0
    starts = rise - sixth * (2.0 * bends[:-1] + bends[1:])
    end = rise[-1:] + sixth[-1:] * (2.0 * bends[-1:] + bends[-2:-1])
    return np.concatenate([starts, end])
