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
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibrant.numerics.links import CLIP
from calibrant.numerics.piecewise_problems import (
    BOUNDS,
    POINT_LOSSES,
    Lines,
    Local,
    Loss,
    PointProblems,
    Points,
    Problems,
    SquareProblems,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Space

    Reach: TypeAlias = Callable[[FloatMatrix], tuple[FloatMatrix, FloatMatrix]]

MAX_STEPS = 60
FIRST_STEPS = 12
HEIGHTS_FIRST = 3
"""Steps for the heights alone: on the diagonal a knot and its height act alike."""
FIRST_HEIGHTS = {"prob": (0.02, 0.98), "logit": (-4.0, 4.0)}
"""Between these heights fits start."""
NEARLY_CERTAIN = 1e-3
"""From heights this near to 0 or 1 a step may lead to 0 or 1."""
ENOUGH = 1e-6
"""A step that gains less than this share of the loss is the last one."""
SMALLEST_GAP = 1e-3
"""Least distance of neighbouring knots, as a share of the range."""
FARTHEST_MOVE = 0.4
"""A knot moves at most this share of the way to its neighbour in one step."""


def _reach_of_logits(heights: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
    return heights - 2.0, heights + 2.0


def _reach_of_probabilities(heights: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
    below, above = heights, 1.0 - heights
    return (
        np.where(below > NEARLY_CERTAIN, 0.1 * below, 0.0),
        np.where(above > NEARLY_CERTAIN, 1.0 - 0.1 * above, 1.0),
    )


def _any_reach(heights: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
    return np.full_like(heights, -np.inf), np.full_like(heights, np.inf)


REACHES: dict[tuple[str, str], Reach] = {
    ("prob", "log-loss"): _reach_of_probabilities,
    ("prob", "brier"): _any_reach,
    ("logit", "log-loss"): _reach_of_logits,
    ("logit", "brier"): _reach_of_logits,
}
"""How far heights may move in one step. Near certainty losses are flat or steep: a
step that jumped there would never come back."""


def _system(local: Local) -> tuple[FloatMatrix, NDArray[np.float64]]:
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
    reach: Reach

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
        low, high = self.reach(lines.heights)
        heights = np.clip(np.clip(heights, low, high), *self.bounds)
        return Lines(self._moved(lines.knots, move[:, n:]), heights)

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
    scale: Space,
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
    Losses are too steep or too flat for their quadratic models where predictions are
    nearly certain and wrong, so no height starts there. The Brier score of a logit is
    flat even farther off: the way there starts from the minimum of the log-loss.
    """
    low, high = FIRST_HEIGHTS[scale]
    start = Lines(start.knots, np.clip(start.heights, low, high))
    if (scale, loss) == ("prob", "brier"):
        problems: Problems = SquareProblems.of(points)
    else:
        problems = PointProblems(points, POINT_LOSSES[scale, loss])
    if (scale, loss) == ("logit", "brier"):
        ahead = PointProblems(points, POINT_LOSSES["logit", "log-loss"])
        start, _ = _descend(ahead, start, (scale, "log-loss"), monotone, FIRST_STEPS)
    return _descend(problems, start, (scale, loss), monotone, max_steps)


def _descend(
    problems: Problems,
    start: Lines,
    space: tuple[Space, Loss],
    monotone: bool,  # noqa: FBT001
    max_steps: int,
) -> tuple[Lines, FloatVector]:
    axis = start.knots[:, -1] - start.knots[:, 0]
    gap = SMALLEST_GAP * axis
    solver = _Solver(BOUNDS[space[0]], gap, monotone, REACHES[space])
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
