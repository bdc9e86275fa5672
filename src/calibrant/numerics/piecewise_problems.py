"""Piecewise linear fits as problems: their data, their losses and local models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from scipy.special import expit

from calibrant.numerics.links import clip_probability, logit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector

Loss: TypeAlias = Literal["log-loss", "brier"]
PointLoss: TypeAlias = "Callable[[FloatMatrix, FloatMatrix], tuple[FloatMatrix, ...]]"

MAX_LOGIT = float(logit(np.array([1.0]))[0])
LEAST_GAP = 1e-6
"""Between points that are nearer to each other a line would be too steep."""
NEGLIGIBLE = 0.02
"""Peaks and dips up to this height stay."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points in ascending order that the problems of a batch share.

    Attributes
    ----------
    x : ndarray of shape (m,)
        Predictions, or their logits.
    weight, label : ndarray of shape (B, m)
        Weight and mean label of each point in each problem.
    """

    x: FloatVector
    weight: FloatMatrix
    label: FloatMatrix

    @cached_property
    def share(self) -> FloatMatrix:
        """Return weights that sum to 1 in each problem."""
        share: FloatMatrix = self.weight / self.weight.sum(axis=1, keepdims=True)
        return share


@dataclass(frozen=True, eq=False)
class Lines:
    """Knots and heights of each problem, both of shape (B, K + 1)."""

    knots: FloatMatrix
    heights: FloatMatrix

    @property
    def pieces(self) -> int:
        """Return the number of pieces."""
        return int(self.knots.shape[1]) - 1

    def where(self, better: BoolVector, other: Lines) -> Lines:
        """Return these lines where `better`, the other ones elsewhere."""
        choose = better[:, np.newaxis]
        return Lines(
            np.where(choose, self.knots, other.knots),
            np.where(choose, self.heights, other.heights),
        )


def values_at(x: FloatVector, knots: FloatVector, heights: FloatVector) -> FloatVector:
    """Return one piecewise linear function at `x`, continued beyond its ends.

    Examples
    --------
    >>> values_at(np.array([-1.0, 0.5]), np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    array([-2.,  1.])
    """
    piece = np.searchsorted(knots[1:-1], x, side="right")
    slope = np.diff(heights) / np.diff(knots)
    return np.asarray(heights[piece] + slope[piece] * (x - knots[piece]))


def held_between(
    x: FloatVector, knots: FloatVector, heights: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Return lines without peaks and dips that lie between two neighbouring points.

    No point tells how high such a knot is. The line between the two points takes its
    place; at all points the values stay as they are.

    Parameters
    ----------
    x : ndarray
        Points, ascending.
    knots, heights : ndarray of shape (k + 1,)
        Where pieces meet, ascending, and the values there.

    Examples
    --------
    >>> x, knots = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.5, 2.0])
    >>> held_between(x, knots, np.array([0.0, 3.0, 1.0]))
    (array([0., 1., 2.]), array([0., 2., 1.]))
    """
    inner, height = knots[1:-1], heights[1:-1]
    if x.size == 1 or inner.size == 0:
        return knots, heights
    right = np.clip(np.searchsorted(x, inner), 1, x.size - 1)
    ends = np.stack([x[right - 1], x[right]])
    values = values_at(ends, knots, heights)
    among = (ends[0] < inner) & (inner < ends[1]) & (ends[1] - ends[0] > LEAST_GAP)
    beyond = np.maximum(height - values.max(axis=0), values.min(axis=0) - height)
    gaps = np.unique(right[among & (beyond > NEGLIGIBLE)])
    if gaps.size == 0:
        return knots, heights
    kept = inner[~(among & np.isin(right, gaps))]
    knots_ = np.unique(np.concatenate([knots[[0, -1]], kept, x[gaps - 1], x[gaps]]))
    return knots_, values_at(knots_, knots, heights)


def _log_loss_of_probability(
    f: FloatMatrix, y: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    c = clip_probability(f)
    loss = -(y * np.log(c) + (1.0 - y) * np.log1p(-c))
    return loss, (c - y) / (c * (1.0 - c)), y / c**2 + (1.0 - y) / (1.0 - c) ** 2


def _brier_of_probability(
    f: FloatMatrix, y: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    return (f - y) ** 2, 2.0 * (f - y), np.full_like(f, 2.0)


def _log_loss_of_logit(
    f: FloatMatrix, y: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    c = expit(f)
    return np.logaddexp(0.0, f) - y * f, c - y, c * (1.0 - c)


def _brier_of_logit(
    f: FloatMatrix, y: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    c = expit(f)
    speed = c * (1.0 - c)
    return (c - y) ** 2, 2.0 * (c - y) * speed, 2.0 * speed**2


POINT_LOSSES: dict[tuple[str, str], PointLoss] = {
    ("prob", "log-loss"): _log_loss_of_probability,
    ("prob", "brier"): _brier_of_probability,
    ("logit", "log-loss"): _log_loss_of_logit,
    ("logit", "brier"): _brier_of_logit,
}
"""Loss of a value f against a label, its derivative and (Gauss-Newton) curvature."""

BOUNDS: dict[str, tuple[float, float]] = {
    "prob": (0.0, 1.0),
    "logit": (-MAX_LOGIT, MAX_LOGIT),
}


@dataclass(frozen=True, eq=False)
class Local:
    """Mean loss of each problem, and what its quadratic model needs per piece.

    ``sums`` holds, per (sum, problem, piece), the curvature times (1-u)^2, u(1-u) and
    u^2 and the derivative times (1-u) and u, where u runs from 0 to 1 over a piece.
    """

    value: FloatVector
    sums: NDArray[np.float64]
    slope: FloatMatrix

    def where(self, better: BoolVector, other: Local) -> Local:
        """Return this model where `better`, the other one elsewhere."""
        return Local(
            np.where(better, self.value, other.value),
            np.where(better[:, np.newaxis], self.sums, other.sums),
            np.where(better[:, np.newaxis], self.slope, other.slope),
        )

    def keep(self, chosen: BoolVector) -> Local:
        """Return the models of the chosen problems."""
        return Local(self.value[chosen], self.sums[:, chosen], self.slope[chosen])


def _starts(x: FloatVector, knots: FloatMatrix) -> NDArray[np.intp]:
    """Return the first point of each piece, numbered through all problems."""
    problems, pieces = knots.shape[0], knots.shape[1] - 1
    starts = np.zeros((problems, pieces), dtype=np.intp)
    starts[:, 1:] = np.searchsorted(x, knots[:, 1:-1], side="left")
    return (starts + x.size * np.arange(problems)[:, np.newaxis]).ravel()


class Problems(Protocol):
    """What the solver needs of its problems."""

    def keep(self, chosen: BoolVector) -> Problems:
        """Return the chosen problems."""
        ...

    def expand(self, lines: Lines) -> Local:
        """Return the loss and its quadratic model around the lines."""
        ...


@dataclass(frozen=True, eq=False)
class PointProblems:
    """Problems whose loss is summed over points."""

    points: Points
    point_loss: PointLoss

    def keep(self, chosen: BoolVector) -> PointProblems:
        """Return the chosen problems."""
        points = self.points
        fewer = Points(points.x, points.weight[chosen], points.label[chosen])
        return replace(self, points=fewer)

    def expand(self, lines: Lines) -> Local:
        """Return the loss and its quadratic model around the lines.

        Points are sorted, so those of a piece are neighbours: what belongs to a piece
        is repeated for its points, and what belongs to points is summed over runs.
        """
        points = self.points
        width, rise = np.diff(lines.knots), np.diff(lines.heights)
        shape = points.label.shape
        starts = _starts(points.x, lines.knots)
        count = np.diff(starts, append=points.label.size)

        def of_piece(values: FloatMatrix) -> FloatMatrix:
            return np.repeat(values.ravel(), count).reshape(shape)

        u = (points.x - of_piece(lines.knots[:, :-1])) * of_piece(1.0 / width)
        f = of_piece(lines.heights[:, :-1]) + of_piece(rise) * u
        loss, derivative, curvature = self.point_loss(f, points.label)
        derivative, curvature = points.share * derivative, points.share * curvature

        terms = np.zeros((5, points.label.size + 1))  # an end for runs after the last
        on_right = curvature * u
        terms[2, :-1] = (on_right * u).ravel()
        terms[1, :-1] = on_right.ravel() - terms[2, :-1]
        terms[0, :-1] = (curvature - on_right).ravel() - terms[1, :-1]
        terms[4, :-1] = (derivative * u).ravel()
        terms[3, :-1] = derivative.ravel() - terms[4, :-1]
        sums = np.add.reduceat(terms, starts, axis=1) * (count > 0)
        value = np.einsum("bm,bm->b", points.share, loss)
        return Local(value, sums.reshape(5, *width.shape), rise / width)


@dataclass(frozen=True, eq=False)
class SquareProblems:
    """Problems of least squares, from running sums: their cost is that of the knots.

    ``below`` holds the sums of w, wx, wx^2, wy, wxy and wy^2 over the points before
    each point, per source of data; ``source`` tells the source of each problem.
    """

    x: FloatVector
    below: NDArray[np.float64]
    source: NDArray[np.intp]

    @classmethod
    def of(cls, points: Points) -> SquareProblems:
        """Sum up the points of each problem."""
        x, y, share = points.x, points.label, points.share
        terms = np.stack(
            [share, share * x, share * x**2, share * y, share * x * y, share * y**2]
        )
        below = np.concatenate([np.zeros((*terms.shape[:2], 1)), terms], axis=2)
        return cls(x, np.cumsum(below, axis=2), np.arange(len(share)))

    def keep(self, chosen: BoolVector) -> SquareProblems:
        """Return the chosen problems."""
        return replace(self, source=self.source[chosen])

    def expand(self, lines: Lines) -> Local:
        """Return the loss, which is its own quadratic model in the heights."""
        width, rise = np.diff(lines.knots), np.diff(lines.heights)
        ends = np.zeros(lines.knots.shape, dtype=np.intp)
        ends[:, 1:-1] = np.searchsorted(self.x, lines.knots[:, 1:-1], side="left")
        ends[:, -1] = self.x.size
        one, x, xx, y, xy, yy = np.diff(
            self.below[:, self.source[:, np.newaxis], ends], axis=2
        )
        left, height = lines.knots[:, :-1], lines.heights[:, :-1]
        u = (x - left * one) / width
        uu = (xx - 2.0 * left * x + left**2 * one) / width**2
        uy = (xy - left * y) / width
        on_right = height * u + rise * uu - uy
        on_both = height * one + rise * u - y
        value = height * (on_both - y) + rise * (on_right - uy) + yy
        sums = 2.0 * np.stack(
            [one - 2.0 * u + uu, u - uu, uu, on_both - on_right, on_right]
        )
        return Local(value.sum(axis=1), sums, rise / width)
