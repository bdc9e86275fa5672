"""Continuous piecewise linear fits with free knots, many at a time.

A function f has knots t_0 < ... < t_K and heights h_0 .. h_K and is linear in
between. With the hat functions b_i of the knots,

    f(x) = sum_i h_i b_i(x),   df/dh_i = b_i(x),   df/dt_i = -f'(x) b_i(x),

so that heights and inner knots together have a block-tridiagonal Gauss-Newton
matrix. Each step solves that small system with Marquardt's damping, holds heights at
their bounds and knots apart, and is taken only where it lowers the loss. All problems
of a batch (the folds of a cross-validation, the resamples of a bootstrap) share their
points and take their steps together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
from scipy.special import expit

from calibrant.numerics.links import CLIP, clipped, logit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calibrant._typing import BoolVector, FloatMatrix, FloatVector, Scale

Loss: TypeAlias = Literal["log-loss", "brier"]
PointLoss: TypeAlias = "Callable[[FloatMatrix, FloatMatrix], tuple[FloatMatrix, ...]]"

MAX_STEPS = 60
FIRST_STEPS = 6
HEIGHTS_FIRST = 3
"""Steps for the heights alone: on the diagonal a knot and its height act alike."""
ENOUGH = 1e-6
"""A step that gains less than this share of the loss is the last one."""
SMALLEST_GAP = 1e-3
"""Least distance of neighbouring knots, as a share of the range."""
LARGEST_LOGIT = float(logit(np.array([1.0]))[0])
FARTHEST_MOVE = 0.4
"""A knot moves at most this share of the way to its neighbour in one step."""


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


def _log_loss_of_probability(
    f: FloatMatrix, y: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    c = clipped(f)
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
    "logit": (-LARGEST_LOGIT, LARGEST_LOGIT),
}


@dataclass(frozen=True, eq=False)
class _Local:
    """Mean loss of each problem, and what its quadratic model needs per piece.

    ``sums`` holds, per (sum, problem, piece), the curvature times (1-u)^2, u(1-u) and
    u^2 and the derivative times (1-u) and u, where u runs from 0 to 1 over a piece.
    """

    value: FloatVector
    sums: NDArray[np.float64]
    slope: FloatMatrix

    def where(self, better: BoolVector, other: _Local) -> _Local:
        return _Local(
            np.where(better, self.value, other.value),
            np.where(better[:, np.newaxis], self.sums, other.sums),
            np.where(better[:, np.newaxis], self.slope, other.slope),
        )

    def keep(self, chosen: BoolVector) -> _Local:
        return _Local(self.value[chosen], self.sums[:, chosen], self.slope[chosen])


def _starts(x: FloatVector, knots: FloatMatrix) -> NDArray[np.intp]:
    """Return the first point of each piece, numbered through all problems."""
    problems, pieces = knots.shape[0], knots.shape[1] - 1
    starts = np.zeros((problems, pieces), dtype=np.intp)
    starts[:, 1:] = np.searchsorted(x, knots[:, 1:-1], side="left")
    return (starts + x.size * np.arange(problems)[:, np.newaxis]).ravel()


class _Problems(Protocol):
    """What the solver needs of its problems."""

    def keep(self, chosen: BoolVector) -> _Problems: ...

    def expand(self, lines: Lines) -> _Local: ...


@dataclass(frozen=True, eq=False)
class _PointProblems:
    """Problems whose loss is summed over points."""

    points: Points
    point_loss: PointLoss

    def keep(self, chosen: BoolVector) -> _PointProblems:
        """Return the chosen problems."""
        points = self.points
        fewer = Points(points.x, points.weight[chosen], points.label[chosen])
        return replace(self, points=fewer)

    def expand(self, lines: Lines) -> _Local:
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
        return _Local(value, sums.reshape(5, *width.shape), rise / width)


@dataclass(frozen=True, eq=False)
class _SquareProblems:
    """Problems of least squares, from running sums: their cost is that of the knots.

    ``below`` holds the sums of w, wx, wx^2, wy, wxy and wy^2 over the points before
    each point, per source of data; ``source`` tells the source of each problem.
    """

    x: FloatVector
    below: NDArray[np.float64]
    source: NDArray[np.intp]

    @classmethod
    def of(cls, points: Points) -> _SquareProblems:
        """Sum up the points of each problem."""
        x, y, share = points.x, points.label, points.share
        terms = np.stack(
            [share, share * x, share * x**2, share * y, share * x * y, share * y**2]
        )
        below = np.concatenate([np.zeros((*terms.shape[:2], 1)), terms], axis=2)
        return cls(x, np.cumsum(below, axis=2), np.arange(len(share)))

    def keep(self, chosen: BoolVector) -> _SquareProblems:
        """Return the chosen problems."""
        return replace(self, source=self.source[chosen])

    def expand(self, lines: Lines) -> _Local:
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
        return _Local(value.sum(axis=1), sums, rise / width)


def _system(local: _Local) -> tuple[FloatMatrix, NDArray[np.float64]]:
    """Return gradient (B, 2n) and matrix (B, 2n, 2n); first all heights, then knots."""
    before, between, after, push_left, push_right = local.sums
    problems, pieces = before.shape
    n = pieces + 1
    gradient = np.zeros((problems, 2, n))
    matrix = np.zeros((problems, 2, n, 2, n))
    left, right = np.arange(pieces), np.arange(1, n)
    factors = (np.ones_like(local.slope), -local.slope)
    for a, factor in enumerate(factors):
        gradient[:, a, :-1] += factor * push_left
        gradient[:, a, 1:] += factor * push_right
        for b, other in enumerate(factors):
            block = matrix[:, a, :, b, :]
            diagonal = np.einsum("bii->bi", block)  # a view into the matrix
            diagonal[:, :-1] += factor * other * before
            diagonal[:, 1:] += factor * other * after
            block[:, left, right] = block[:, right, left] = factor * other * between
    size = 2 * n
    return gradient.reshape(problems, size), matrix.reshape(problems, size, size)


@dataclass(frozen=True, eq=False)
class _Solver:
    """What stays the same from step to step."""

    bounds: tuple[float, float]
    gap: FloatVector
    monotone: bool

    def free(self, lines: Lines, gradient: FloatMatrix, *, knots: bool) -> BoolVector:
        """Tell which variables may move: not those pressed against a bound."""
        n = lines.knots.shape[1]
        free = np.zeros_like(gradient, dtype=bool)
        low, high = self.bounds
        pull = gradient[:, :n]
        if self.monotone:
            flat = np.diff(lines.heights) <= 0.0
            free[:, 0] = (lines.heights[:, 0] > low) | (pull[:, 0] < 0.0)
            free[:, 1:n] = ~(flat & (pull[:, 1:] > 0.0))
        else:
            at_low = (lines.heights <= low) & (pull > 0.0)
            at_high = (lines.heights >= high) & (pull < 0.0)
            free[:, :n] = ~(at_low | at_high)
        free[:, n + 1 : -1] = knots
        return free

    def step(
        self,
        lines: Lines,
        system: tuple[FloatMatrix, NDArray[np.float64]],
        damping: FloatVector,
        *,
        knots: bool,
    ) -> Lines:
        """Return where a damped step leads, within bounds and with knots apart."""
        gradient, matrix = system
        n = lines.knots.shape[1]
        if self.monotone:
            gradient, matrix = _as_increments(gradient, matrix, n)
        free = self.free(lines, gradient, knots=knots)
        matrix = matrix * (free[:, :, np.newaxis] & free[:, np.newaxis, :])
        diagonal = np.einsum("bii->bi", matrix)  # a view: what is added, is added there
        diagonal += np.where(free, damping[:, np.newaxis] * diagonal + CLIP, 1.0)
        pull = (gradient * free)[:, :, np.newaxis]
        move: FloatMatrix = -np.linalg.solve(matrix, pull)[:, :, 0].astype(np.float64)
        if self.monotone:
            increments = np.diff(lines.heights, prepend=0.0) + move[:, :n]
            increments[:, 1:] = np.maximum(increments[:, 1:], 0.0)
            heights = np.cumsum(increments, axis=1)
        else:
            heights = lines.heights + move[:, :n]
        return Lines(
            self._moved(lines.knots, move[:, n:]), np.clip(heights, *self.bounds)
        )

    def _moved(self, knots: FloatMatrix, move: FloatMatrix) -> FloatMatrix:
        space = np.diff(knots)
        room = np.minimum(
            0.5 * np.maximum(space - self.gap[:, np.newaxis], 0.0),
            FARTHEST_MOVE * space,
        )
        inner = np.clip(move[:, 1:-1], -room[:, :-1], room[:, 1:])
        return np.concatenate(
            [knots[:, :1], knots[:, 1:-1] + inner, knots[:, -1:]], axis=1
        )


def _as_increments(
    gradient: FloatMatrix, matrix: NDArray[np.float64], n: int
) -> tuple[FloatMatrix, NDArray[np.float64]]:
    """Change variables from heights to the first height and the rises after it."""
    change = np.eye(gradient.shape[1])
    change[:n, :n] = np.tril(np.ones((n, n)))
    return gradient @ change, change.T @ matrix @ change


def fit_lines(
    points: Points,
    start: Lines,
    *,
    scale: Scale,
    loss: Loss,
    monotone: bool = False,
    max_steps: int = MAX_STEPS,
) -> tuple[Lines, FloatVector]:
    """Return the lines with the least loss near the start, and that loss.

    Parameters
    ----------
    points : Points
        The data of each problem.
    start : Lines
        Where to begin; the first and last knots stay.
    scale : {"prob", "logit"}
        Whether heights are probabilities, held in [0, 1], or logits.
    loss : {"log-loss", "brier"}
        What is minimised, on average over the weights.
    monotone : bool
        Whether heights must not fall.
    max_steps : int
        Where to stop at the latest.

    Notes
    -----
    The Brier score of a logit is flat where predictions are nearly certain and wrong,
    so that the way there starts from the minimum of the log-loss, which is not.
    """
    if (scale, loss) == ("prob", "brier"):
        problems: _Problems = _SquareProblems.of(points)
    else:
        problems = _PointProblems(points, POINT_LOSSES[scale, loss])
    if (scale, loss) == ("logit", "brier"):
        ahead = _PointProblems(points, POINT_LOSSES["logit", "log-loss"])
        start, _ = _descend(ahead, start, BOUNDS[scale], monotone, FIRST_STEPS)
    return _descend(problems, start, BOUNDS[scale], monotone, max_steps)


def _descend(
    problems: _Problems,
    start: Lines,
    bounds: tuple[float, float],
    monotone: bool,  # noqa: FBT001
    max_steps: int,
) -> tuple[Lines, FloatVector]:
    reach = start.knots[:, -1] - start.knots[:, 0]
    solver = _Solver(bounds, SMALLEST_GAP * reach, monotone)
    lines, local = start, problems.expand(start)
    active = np.arange(start.knots.shape[0])
    damping = np.full(active.size, 1e-3)
    final = Lines(start.knots.copy(), start.heights.copy())
    value = local.value.copy()
    for number in range(max_steps):
        knots = number >= HEIGHTS_FIRST
        trial = solver.step(lines, _system(local), damping, knots=knots)
        ahead = problems.expand(trial)
        better = ahead.value <= local.value
        gain = np.where(better, local.value - ahead.value, np.inf)
        lines, local = trial.where(better, lines), ahead.where(better, local)
        damping = np.clip(np.where(better, damping / 4.0, damping * 5.0), 1e-9, None)
        done = (gain < ENOUGH * np.abs(local.value)) & knots | (damping > 1e6)  # noqa: PLR2004
        final.knots[active], final.heights[active] = lines.knots, lines.heights
        value[active] = local.value
        if done.all():
            break
        if done.any():
            keep = ~done
            active, damping = active[keep], damping[keep]
            problems = problems.keep(keep)
            lines = Lines(lines.knots[keep], lines.heights[keep])
            local = local.keep(keep)
            solver = replace(solver, gap=solver.gap[keep])
    return final, value
