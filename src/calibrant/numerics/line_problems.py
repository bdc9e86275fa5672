"""Piecewise linear fits as problems: their data, their losses and quadratic models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from calibrant.numerics.links import clip_probability, logit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
        Space,
    )
    from calibrant.numerics.weighted_points import WeightedPoints

Loss: TypeAlias = Literal["log-loss", "brier"]

MIN_POINT_GAP = 1e-6
"""Between points that are nearer to each other a line would be too steep."""
NEGLIGIBLE = 0.02
"""Peaks and dips up to this height stay."""


class PiecewiseFits(NamedTuple):
    """Knots and heights of each problem, both of shape (B, K + 1)."""

    knots: FloatMatrix
    heights: FloatMatrix

    @property
    def pieces(self) -> int:
        """Return the number of pieces."""
        return int(self.knots.shape[1]) - 1


class QuadraticModel(NamedTuple):
    """Mean loss of each problem, and the sums of its quadratic model per piece.

    ``sums`` has, per (problem, sum, piece), the curvature times (1-u)^2, u(1-u) and
    u^2 and the derivative times (1-u) and u, where u runs from 0 to 1 over a piece;
    ``slope`` is that of each piece.
    """

    value: FloatVector
    sums: NDArray[np.float64]
    slope: FloatMatrix


def values_at(x: FloatVector, knots: FloatVector, heights: FloatVector) -> FloatVector:
    """Return one piecewise linear function at `x`, continued beyond its ends."""
    piece = np.searchsorted(knots[1:-1], x, side="right")
    slope = np.diff(heights) / np.diff(knots)
    return np.asarray(heights[piece] + slope[piece] * (x - knots[piece]))


def lines_at(
    p: FloatVector, lines: Iterable[tuple[FloatVector, FloatVector]], scale: Space
) -> Iterator[FloatVector]:
    """Give maps of lines, as knots and heights, one by one at the same predictions.

    With "logit" lines are straight between logits; otherwise clipped to [0, 1].
    """
    x = logit(p) if scale == "logit" else p
    for knots, heights in lines:
        value = values_at(x, knots, heights)
        yield expit(value) if scale == "logit" else np.clip(value, 0.0, 1.0)


def remove_peaks_between(
    x: FloatVector, knots: FloatVector, heights: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Return knots and heights without peaks between two neighbouring points.

    The data do not determine the height of such a peak or dip. The line between the
    two points replaces it; at all points `x` (ascending) the values stay the same.

    Examples
    --------
    >>> x, knots = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.5, 2.0])
    >>> remove_peaks_between(x, knots, np.array([0.0, 3.0, 1.0]))
    (array([0., 1., 2.]), array([0., 2., 1.]))
    """
    inner, height = knots[1:-1], heights[1:-1]
    if x.size == 1 or inner.size == 0:
        return knots, heights
    right = np.clip(np.searchsorted(x, inner), 1, x.size - 1)
    ends = np.stack([x[right - 1], x[right]])
    values = values_at(ends, knots, heights)
    among = (ends[0] < inner) & (inner < ends[1]) & (ends[1] - ends[0] > MIN_POINT_GAP)
    beyond = np.maximum(height - values.max(axis=0), values.min(axis=0) - height)
    gaps = np.unique(right[among & (beyond > NEGLIGIBLE)])
    if gaps.size == 0:
        return knots, heights
    kept = inner[~(among & np.isin(right, gaps))]
    knots_ = np.unique(np.concatenate([knots[[0, -1]], kept, x[gaps - 1], x[gaps]]))
    return knots_, values_at(knots_, knots, heights)


def point_losses(
    f: FloatMatrix, y: FloatMatrix, scale: Space, loss: Loss
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    """Return the loss of values f, its derivative and (Gauss-Newton) curvature."""
    if scale == "prob" and loss == "brier":
        return (f - y) ** 2, 2.0 * (f - y), np.full_like(f, 2.0)
    if scale == "prob":
        c = clip_probability(f)
        value = -(y * np.log(c) + (1.0 - y) * np.log1p(-c))
        return value, (c - y) / (c * (1.0 - c)), y / c**2 + (1.0 - y) / (1.0 - c) ** 2
    c = expit(f)
    speed = c * (1.0 - c)
    if loss == "brier":
        return (c - y) ** 2, 2.0 * (c - y) * speed, 2.0 * speed**2
    return np.logaddexp(0.0, f) - y * f, c - y, speed


def _piece_ends(x: FloatVector, knots: FloatMatrix) -> IntVector:
    """Return the first point of each piece of each problem, and the end of the last."""
    ends = np.zeros(knots.shape, dtype=np.intp)
    ends[:, 1:-1] = np.searchsorted(x, knots[:, 1:-1], side="left")
    ends[:, -1] = x.size
    return ends


@dataclass(frozen=True, eq=False)
class PointProblems:
    """Problems whose loss is summed over points."""

    points: WeightedPoints
    scale: Space
    loss: Loss

    def keep(self, chosen: BoolVector) -> PointProblems:
        """Return the chosen problems."""
        return replace(self, points=self.points.take(chosen))

    def expand(self, fits: PiecewiseFits) -> QuadraticModel:
        """Return the loss and its quadratic model around the fits.

        Points are sorted, so those of a piece are neighbours: values of pieces are
        repeated for their points, and values of points are summed over runs.
        """
        points = self.points
        width, rise = np.diff(fits.knots), np.diff(fits.heights)
        shape = points.rate.shape
        problem = np.arange(len(fits.knots))[:, np.newaxis]
        starts = _piece_ends(points.p, fits.knots)[:, :-1] + points.p.size * problem
        starts = starts.ravel()
        count = np.diff(starts, append=points.rate.size)

        def of_piece(values: FloatMatrix) -> FloatMatrix:
            return np.repeat(values.ravel(), count).reshape(shape)

        u = (points.p - of_piece(fits.knots[:, :-1])) * of_piece(1.0 / width)
        f = of_piece(fits.heights[:, :-1]) + of_piece(rise) * u
        loss, derivative, curvature = point_losses(
            f, points.rate, self.scale, self.loss
        )
        derivative, curvature = points.share * derivative, points.share * curvature

        terms = np.zeros((5, points.rate.size + 1))  # an end for runs after the last
        on_right = curvature * u
        terms[2, :-1] = (on_right * u).ravel()
        terms[1, :-1] = on_right.ravel() - terms[2, :-1]
        terms[0, :-1] = (curvature - on_right).ravel() - terms[1, :-1]
        terms[4, :-1] = (derivative * u).ravel()
        terms[3, :-1] = derivative.ravel() - terms[4, :-1]
        sums = np.add.reduceat(terms, starts, axis=1) * (count > 0)
        sums = sums.reshape(5, *width.shape).swapaxes(0, 1)
        value = np.einsum("bm,bm->b", points.share, loss)
        return QuadraticModel(value, sums, rise / width)


@dataclass(frozen=True, eq=False)
class SquareProblems:
    """Problems of least squares, from running sums: their cost is that of the knots.

    ``below`` has the sums of w, wx, wx^2, wy, wxy and wy^2 over the points before
    each point, per source of data; ``source`` is the source of each problem.
    """

    x: FloatVector
    below: NDArray[np.float64]
    source: IntVector

    @classmethod
    def of(cls, points: WeightedPoints) -> SquareProblems:
        """Sum up the points of each problem."""
        x, y, share = points.p, points.rate, points.share
        terms = np.stack(
            [share, share * x, share * x**2, share * y, share * x * y, share * y**2]
        )
        below = np.concatenate([np.zeros((*terms.shape[:2], 1)), terms], axis=2)
        return cls(x, np.cumsum(below, axis=2), np.arange(len(share)))

    def keep(self, chosen: BoolVector) -> SquareProblems:
        """Return the chosen problems."""
        return replace(self, source=self.source[chosen])

    def expand(self, fits: PiecewiseFits) -> QuadraticModel:
        """Return the loss, which is its own quadratic model in the heights."""
        width, rise = np.diff(fits.knots), np.diff(fits.heights)
        ends = _piece_ends(self.x, fits.knots)
        one, x, xx, y, xy, yy = np.diff(
            self.below[:, self.source[:, np.newaxis], ends], axis=2
        )
        left, height = fits.knots[:, :-1], fits.heights[:, :-1]
        u = (x - left * one) / width
        uu = (xx - 2.0 * left * x + left**2 * one) / width**2
        uy = (xy - left * y) / width
        on_right = height * u + rise * uu - uy
        on_both = height * one + rise * u - y
        value = height * (on_both - y) + rise * (on_right - uy) + yy
        sums = (one - 2.0 * u + uu, u - uu, uu, on_both - on_right, on_right)
        return QuadraticModel(
            value.sum(axis=1), 2.0 * np.stack(sums, axis=1), rise / width
        )
