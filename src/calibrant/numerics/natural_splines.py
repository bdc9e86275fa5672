"""Natural cubic splines, a basis of curved ones, and lines between nodes.

A natural spline is cubic between knots, has two continuous derivatives and no curvature
at its ends, so that it continues straight beyond them. Of all curves through given
points it has the least curvature, the integral of the squared second derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector

MIN_SPACING = 1e-4
"""Knots are at least this share of the whole range apart."""


def curve_at(
    x: FloatVector, knots: FloatVector, heights: FloatMatrix, slopes: FloatMatrix
) -> FloatMatrix:
    """Return cubic curves with given heights and slopes at knots, straight beyond.

    Heights and slopes have one row per knot and one column per curve.
    """
    width = np.diff(knots)[:, np.newaxis]
    left, right = slopes[:-1], slopes[1:]
    rise = np.diff(heights, axis=0) / width
    square = (3.0 * rise - 2.0 * left - right) / width
    cube = (left + right - 2.0 * rise) / width**2
    inside = np.clip(x, knots[0], knots[-1])
    piece = np.searchsorted(knots[1:-1], inside, side="right")
    along, beyond = (inside - knots[piece])[:, np.newaxis], (x - inside)[:, np.newaxis]
    value = cube[piece] * along
    for power in (square, left):
        value += power[piece]
        value *= along
    value += heights[piece]
    if beyond.any():
        value += beyond * np.where(beyond < 0.0, slopes[0], slopes[-1])
    return np.asarray(value, dtype=np.float64)


def spaced_knots(x: FloatVector, weight: FloatVector, count: int) -> FloatVector:
    """Return at most `count` points, ends included, at quantiles of weight.

    Quantiles that lie between two points are in the middle: so complements of
    predictions have complements of knots.
    """
    below = np.cumsum(weight)
    levels = np.arange(count) / (count - 1) * below[-1]
    places = (np.searchsorted(below, levels, side) for side in ("left", "right"))
    left, right = (x[np.minimum(place, x.size - 1)] for place in places)
    chosen = 0.5 * left + 0.5 * right
    return _separate(np.unique(np.concatenate([[x[0]], chosen, [x[-1]]])))


def rank_scale(
    x: FloatVector, weight: FloatVector
) -> Callable[[FloatVector], FloatVector]:
    """Return the function from ascending points to their ranks, linear between them.

    The rank is the share of weight below a point, with half of the point's own.

    Examples
    --------
    >>> rank_scale(np.array([0.0, 1.0, 9.0]), np.array([2.0, 1.0, 1.0]))([0.0, 5.0])
    array([0.25, 0.75])
    """
    x, first = np.unique(x, return_index=True)
    own = np.add.reduceat(weight, first)
    ranks = (np.cumsum(own) - 0.5 * own) / own.sum()
    return lambda at: np.interp(at, x, ranks)


def spread_nodes(x: FloatVector, weight: FloatVector, count: int) -> FloatVector:
    """Return at most `count` of ascending points, ends included.

    Half of them follow the weight and half the range: so there are many where there
    are many rows, and some everywhere.

    Examples
    --------
    >>> spread_nodes(np.array([0.0, 1.0, 2.0, 3.0, 9.0]), np.ones(5), 3)
    array([0., 3., 9.])
    """
    x, first = np.unique(x, return_index=True)
    if x.size > count:
        weight = np.add.reduceat(weight, first)
        below = np.cumsum(weight) - weight
        even = below / below[-1] + (x - x[0]) / (x[-1] - x[0])
        x = x[np.unique(np.searchsorted(even, np.linspace(0.0, even[-1], count)))]
    return _separate(x)


def _separate(knots: FloatVector) -> FloatVector:
    """Return knots without those that are too near to another, but with both ends."""
    spacing = MIN_SPACING * (knots[-1] - knots[0])
    kept = [float(knots[0])]
    for knot in knots[1:-1].tolist():
        if knot - kept[-1] > spacing and knots[-1] - knot > spacing:
            kept.append(knot)
    return np.array([*kept, *knots[-1:][knots[-1:] > kept[0]]])


def interpolate_rows(
    x: FloatVector, nodes: FloatVector, values: FloatMatrix
) -> FloatMatrix:
    """Return `values`, one row per node, linear between nodes and constant beyond.

    Examples
    --------
    >>> nodes, values = np.array([0.0, 1.0]), np.array([[4.0], [6.0]])
    >>> interpolate_rows(np.array([-1.0, 0.5]), nodes, values)
    array([[4.],
           [5.]])
    """
    if nodes.size == 1:
        return np.repeat(values, x.size, axis=0)
    right = np.clip(np.searchsorted(nodes, x), 1, nodes.size - 1)
    left = right - 1
    gap = nodes[right] - nodes[left]
    share = (x - nodes[left]) / np.where(gap > 0.0, gap, 1.0)  # nodes may coincide
    share = np.clip(share, 0.0, 1.0)[:, np.newaxis]
    return np.asarray((1.0 - share) * values[left] + share * values[right])


@dataclass(frozen=True, eq=False)
class CurvatureBasis:
    """Natural splines over the same knots, none of which has a straight part.

    `heights` and `slopes` at the k `knots` have one column per spline, k - 2 in all
    (none for fewer than three knots). The curvature of a sum of them is the sum of
    their squared coefficients.
    """

    knots: FloatVector
    heights: FloatMatrix
    slopes: FloatMatrix

    @classmethod
    def over(cls, knots: FloatVector) -> CurvatureBasis:
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
        q = np.zeros((size - 2, size))
        q[inner, inner] = 1.0 / width[:-1]
        q[inner, inner + 2] = 1.0 / width[1:]
        q[inner, inner + 1] = -1.0 / width[:-1] - 1.0 / width[1:]
        r = np.diag((width[:-1] + width[1:]) / 3.0)
        r[inner[1:], inner[:-1]] = r[inner[:-1], inner[1:]] = width[1:-1] / 6.0
        # Singular values, not eigenvalues of Q' inv(R) Q: these would be squares,
        # and where knots are uneven rounding would lose the smallest of them.
        root = np.linalg.solve(np.linalg.cholesky(r), q)
        _, sizes, vectors = np.linalg.svd(root, full_matrices=False)
        heights = vectors.T / sizes
        second = np.pad(np.linalg.solve(r, q @ heights), ((1, 1), (0, 0)))
        rise = np.diff(heights, axis=0) / width[:, np.newaxis]
        sixth = width[:, np.newaxis] / 6.0
        starts = rise - sixth * (2.0 * second[:-1] + second[1:])
        end = rise[-1:] + sixth[-1:] * (2.0 * second[-1:] + second[-2:-1])
        return cls(knots, heights, np.concatenate([starts, end]))

    def at(self, x: FloatVector) -> FloatMatrix:
        """Return all splines at some points, shape (points, d)."""
        if self.heights.shape[1] == 0:
            return np.zeros((x.size, 0))
        return curve_at(x, self.knots, self.heights, self.slopes)
