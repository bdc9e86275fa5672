"""Continuous piecewise linear fits with free knots, many at a time.

A function f has knots t_0 < ... < t_K and heights h_0 .. h_K and is linear in
between. With the hat functions b_i of the knots,

    f(x) = sum_i h_i b_i(x),   df/dh_i = b_i(x),   df/dt_i = -f'(x) b_i(x),

so that heights and inner knots together have a block-tridiagonal Gauss-Newton
matrix. Each step solves that small system with Marquardt's damping, keeps heights
within bounds and knots apart, and is taken only where it lowers the loss. All problems
of a batch (the folds of a cross-validation, the resamples of a bootstrap) share their
points and take their steps together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from calibrant.numerics.line_problems import (
    Loss,
    PiecewiseFits,
    PointProblems,
    QuadraticModel,
    SquareProblems,
)
from calibrant.numerics.links import CLIP, logit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Space
    from calibrant.numerics.weighted_points import WeightedPoints

Batch = TypeVar("Batch", PiecewiseFits, QuadraticModel)

MAX_STEPS = 60
FIRST_STEPS = 12
HEIGHTS_FIRST = 3
"""Steps for the heights alone: on the diagonal a knot and its height act alike."""
FIRST_HEIGHTS = {"prob": (0.02, 0.98), "logit": (-4.0, 4.0)}
"""Between these heights fits start."""
MAX_LOGIT = float(logit(np.array([1.0]))[0])
BOUNDS = {"prob": (0.0, 1.0), "logit": (-MAX_LOGIT, MAX_LOGIT)}
NEARLY_CERTAIN = 1e-3
"""From heights this near to 0 or 1 a step may lead to 0 or 1."""
ENOUGH = 1e-6
"""A step that gains less than this share of the loss is the last one."""
MIN_KNOT_GAP = 1e-3
"""Smallest distance of neighbouring knots, as a share of the range."""
MAX_MOVE = 0.4
"""A knot moves at most this share of the way to its neighbour in one step."""
MAX_DAMPING = 1e6
CROWDED, CROWDED_PIECES = 0.75, 2.5
"""Knots are crowded if they leave a gap of this share of the axis, or of so many times
the gap that evenly spread ones would leave."""
FEW_LEVELS = 2
"""Up to so many points per piece are few."""
STARTS = 64
"""Starts of a search for the best fit of one problem."""


def fit_lines(
    points: WeightedPoints,
    start: PiecewiseFits,
    *,
    scale: Space,
    loss: Loss,
    monotone: bool = False,
    max_steps: int = MAX_STEPS,
) -> tuple[PiecewiseFits, FloatVector]:
    """Return the fits with the smallest loss near the start, and that loss.

    The first and last knots stay. Heights are probabilities, kept in [0, 1], or logits;
    with `monotone` they do not fall.

    Losses are too steep or too flat for their quadratic models where predictions are
    nearly certain and wrong, so no height starts there. The Brier score of a logit is
    flat even farther away: its search starts from the minimum of the log-loss.
    """
    start = start._replace(heights=np.clip(start.heights, *FIRST_HEIGHTS[scale]))
    if (scale, loss) == ("logit", "brier"):
        ahead = PointProblems(points, scale, "log-loss")
        start, _ = _Solver(scale, "log-loss", monotone).run(ahead, start, FIRST_STEPS)
    problems: PointProblems | SquareProblems = PointProblems(points, scale, loss)
    if (scale, loss) == ("prob", "brier"):
        problems = SquareProblems.of(points)
    return _Solver(scale, loss, monotone).run(problems, start, max_steps)


@dataclass(frozen=True)
class _Solver:
    """Gauss-Newton steps with Marquardt's damping."""

    scale: Space
    loss: Loss
    monotone: bool

    def run(
        self,
        problems: PointProblems | SquareProblems,
        fits: PiecewiseFits,
        max_steps: int,
    ) -> tuple[PiecewiseFits, FloatVector]:
        """Return the fits after all steps, and their losses."""
        model = problems.expand(fits)
        active = np.arange(len(fits.knots))
        damping = np.full(active.size, 1e-3)
        final = PiecewiseFits(fits.knots.copy(), fits.heights.copy())
        value = model.value.copy()
        for number in range(max_steps):
            knots = number >= HEIGHTS_FIRST
            trial = self._step(fits, *_system(model), damping, knots=knots)
            ahead = problems.expand(trial)
            better = ahead.value <= model.value
            gain = np.where(better, model.value - ahead.value, np.inf)
            fits = _choose(better, trial, fits)
            model = _choose(better, ahead, model)
            damping = np.where(better, damping / 4.0, damping * 5.0)
            damping = np.clip(damping, 1e-9, None)
            small = gain < ENOUGH * np.abs(model.value)
            going = ~(small & knots | (damping > MAX_DAMPING))
            final.knots[active], final.heights[active] = fits
            value[active] = model.value
            if not going.any():
                break
            if not going.all():
                active, damping = active[going], damping[going]
                problems = problems.keep(going)
                fits = PiecewiseFits(*(part[going] for part in fits))
                model = QuadraticModel(*(part[going] for part in model))
        return final, value

    def _step(
        self,
        fits: PiecewiseFits,
        gradient: FloatMatrix,
        matrix: NDArray[np.float64],
        damping: FloatVector,
        *,
        knots: bool,
    ) -> PiecewiseFits:
        """Return the result of a damped step, within bounds and with knots apart."""
        n = fits.knots.shape[1]
        if self.monotone:  # from heights to the first height and the rises after it
            change = np.eye(2 * n)
            change[:n, :n] = np.tril(np.ones((n, n)))
            gradient, matrix = gradient @ change, change.T @ matrix @ change
        free = self._free(fits.heights, gradient, knots=knots)
        matrix = matrix * (free[:, :, np.newaxis] & free[:, np.newaxis, :])
        diagonal = np.einsum("bii->bi", matrix)  # a view: changes reach the matrix
        diagonal += np.where(free, damping[:, np.newaxis] * diagonal + CLIP, 1.0)
        pull = (gradient * free)[:, :, np.newaxis]
        move: FloatMatrix = -np.linalg.solve(matrix, pull)[:, :, 0].astype(np.float64)
        if self.monotone:
            rises = np.diff(fits.heights, prepend=0.0) + move[:, :n]
            rises[:, 1:] = np.maximum(rises[:, 1:], 0.0)
            heights = np.cumsum(rises, axis=1)
        else:
            heights = fits.heights + move[:, :n]
        heights = np.clip(heights, *self._reach(fits.heights))
        heights = np.clip(heights, *BOUNDS[self.scale])
        gap = MIN_KNOT_GAP * (fits.knots[:, -1:] - fits.knots[:, :1])
        space = np.diff(fits.knots)
        room = np.minimum(0.5 * np.maximum(space - gap, 0.0), MAX_MOVE * space)
        moved = fits.knots.copy()
        moved[:, 1:-1] += np.clip(move[:, n + 1 : -1], -room[:, :-1], room[:, 1:])
        return PiecewiseFits(moved, heights)

    def _free(
        self, heights: FloatMatrix, gradient: FloatMatrix, *, knots: bool
    ) -> BoolVector:
        """Return which variables may move: not those pressed against a bound."""
        n = heights.shape[1]
        free = np.zeros_like(gradient, dtype=bool)
        low, high = BOUNDS[self.scale]
        pull = gradient[:, :n]
        if self.monotone:
            flat = np.diff(heights) <= 0.0
            free[:, 0] = (heights[:, 0] > low) | (pull[:, 0] < 0.0)
            free[:, 1:n] = ~(flat & (pull[:, 1:] > 0.0))
        else:
            at_low = (heights <= low) & (pull > 0.0)
            at_high = (heights >= high) & (pull < 0.0)
            free[:, :n] = ~(at_low | at_high)
        free[:, n + 1 : -1] = knots
        return free

    def _reach(self, heights: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
        """Return how far heights may move in one step.

        Near certainty losses are flat or steep: a step that jumped there would never
        come back.
        """
        if self.scale == "logit":
            return heights - 2.0, heights + 2.0
        if self.loss == "brier":
            return np.full_like(heights, -np.inf), np.full_like(heights, np.inf)
        above = 1.0 - heights
        return (
            np.where(heights > NEARLY_CERTAIN, 0.1 * heights, 0.0),
            np.where(above > NEARLY_CERTAIN, 1.0 - 0.1 * above, 1.0),
        )


def _choose(better: BoolVector, first: Batch, second: Batch) -> Batch:
    """Return the problems of the first batch where `better`, else of the second."""

    def choose(ours: FloatMatrix, theirs: FloatMatrix) -> FloatMatrix:
        return np.where(better.reshape(-1, *[1] * (ours.ndim - 1)), ours, theirs)

    pairs = zip(first, second, strict=True)
    return type(first)(*(choose(*pair) for pair in pairs))


def _system(model: QuadraticModel) -> tuple[FloatMatrix, NDArray[np.float64]]:
    """Return gradient (B, 2n) and matrix (B, 2n, 2n); first all heights, then knots."""
    before, between, after, push_left, push_right = np.moveaxis(model.sums, 1, 0)
    problems, pieces = before.shape
    n = pieces + 1
    gradient = np.zeros((problems, 2, n))
    matrix = np.zeros((problems, 2, n, 2, n))
    left, right = np.arange(pieces), np.arange(1, n)
    factors = (np.ones_like(model.slope), -model.slope)
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


def usual_start(
    points: WeightedPoints, pieces: int, outer: tuple[float, float]
) -> PiecewiseFits:
    """Return fits on the diagonal whose knots split each problem's weight equally.

    Where most predictions crowd at one end, so would the knots, and never leave it;
    they are then moved half the way to equidistant knots. At most `FEW_LEVELS` points
    per piece are split equally themselves, whatever their weight, each point
    standing for the axis up to halfway to its neighbours: a knot that starts on one of
    few points is stuck there.
    """
    low, high = outer
    if points.p.size <= FEW_LEVELS * pieces:
        halfway = 0.5 * (points.p[1:] + points.p[:-1])
        edges = np.concatenate([[low], halfway, [high]])
        rank = points.p.size * np.arange(1, pieces) / pieces
        levels = np.interp(rank, np.arange(edges.size), edges)
        return _on_the_diagonal(np.tile(levels, (len(points.weight), 1)), outer)
    shares = np.broadcast_to(
        np.arange(1, pieces) / pieces, (len(points.weight), pieces - 1)
    )
    inner = _quantiles(points, shares)
    gap = np.diff(inner, prepend=low, append=high, axis=1).max(axis=1) / (high - low)
    crowded = gap > min(CROWDED, CROWDED_PIECES / pieces)
    even = low + (high - low) * shares
    inner = np.where(crowded[:, np.newaxis], 0.5 * (inner + even), inner)
    return _on_the_diagonal(inner, outer)


def search_lines(
    points: WeightedPoints,
    pieces: int,
    outer: tuple[float, float],
    *,
    scale: Space,
    loss: Loss,
    monotone: bool = False,
) -> tuple[PiecewiseFits, FloatVector]:
    """Return the best fit of one problem from many starts.

    The loss has many minima in the knots. All starts are one batch: knots that split
    the weight equally, at random, and at random places of the axis between the `outer`
    ones.
    """
    many = points.take(np.zeros(STARTS, dtype=np.intp))
    rng = np.random.default_rng(pieces)  # so that equal input has equal starts
    shares = np.sort(rng.random((STARTS, pieces - 1)), axis=1)
    shares[0] = np.arange(1, pieces) / pieces
    inner = _quantiles(many, shares)
    inner[1::2] = outer[0] + (outer[1] - outer[0]) * shares[1::2]
    start = _on_the_diagonal(inner, outer)
    fits, value = fit_lines(many, start, scale=scale, loss=loss, monotone=monotone)
    best = [int(np.argmin(value))]
    return PiecewiseFits(fits.knots[best], fits.heights[best]), value[best]


def _quantiles(points: WeightedPoints, shares: FloatMatrix) -> FloatMatrix:
    """Return where the given shares of each problem's weight end."""
    below = np.cumsum(points.weight, axis=1)
    rows = [np.searchsorted(b, s * b[-1]) for b, s in zip(below, shares, strict=True)]
    row = np.minimum(np.array(rows, dtype=np.intp), points.p.size - 1)
    return points.p[row.reshape(shares.shape)]


def _on_the_diagonal(inner: FloatMatrix, outer: tuple[float, float]) -> PiecewiseFits:
    """Return fits on the diagonal with the given inner knots, moved apart."""
    knots = np.pad(inner, ((0, 0), (1, 1)), constant_values=outer)
    knots = spread_apart(knots, MIN_KNOT_GAP * (outer[1] - outer[0]))
    return PiecewiseFits(knots, knots.copy())


def spread_apart(knots: FloatMatrix, gap: float) -> FloatMatrix:
    """Move inner knots so that neighbours are at least `gap` apart."""
    place = gap * np.arange(knots.shape[1])
    rising = np.maximum.accumulate(knots - place, axis=1)
    spread: FloatMatrix = np.minimum(rising, knots[:, -1:] - place[-1]) + place
    return spread
