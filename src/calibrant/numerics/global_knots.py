"""Piecewise polynomials of least squares, their knots by global search.

The number of pieces is given or chosen by cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calibrant.core.parameters import generator
from calibrant.numerics.cross_validation import (
    brier_unit,
    likelihood_weights,
    simplest_weight,
)
from calibrant.numerics.knot_exchange import KnotProblems, exchange, insert
from calibrant.numerics.line_fits import spread_apart
from calibrant.numerics.piece_search import Ensemble, supported_pieces
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntMatrix,
        Seed,
    )
    from calibrant.numerics.cross_validation import FoldedPoints
    from calibrant.numerics.resampling import Resamples

    Nodes: TypeAlias = tuple[FloatVector, FloatVector]

MAX_PIECES = {1: 7, 2: 5}
"""The largest numbers of pieces that the paper tries, by degree."""
MAX_BETWEEN = 1024
"""Up to this many points, knots may also lie midway between points."""
WIDTHS = (1, 2, 4, 8, 16)
"""How many points apart knots that come in twos and threes are put at first."""
POLISHED = 8
"""How many of the best sets of knots are then moved between the points."""
FIRST_STEP, FIRST_TRIES = 2e-3, 120
"""How far, as a share of the axis, and how often they are first moved."""
MAX_FINALISTS = 3
"""How many of those are moved until the end."""
LAST_STEP, LAST_TRIES = -5e-4, 600
PRECISION = {"xatol": 1e-7, "fatol": 1e-9}
FOLD_ROUNDS = PAIR_ROUNDS = 3
MIN_DISTANCE = 1e-6
"""Smallest distance of knots, as a share of the axis."""


def truncated_powers(x: FloatVector, knots: FloatVector, degree: int) -> FloatMatrix:
    """Return 1, x, .., x^d and (x - t)_+, .., (x - t)_+^d of each knot, at `x`."""
    whole = [x**j for j in range(degree + 1)]
    beyond = [np.maximum(x - t, 0.0) for t in knots]
    bent = [b**j for b in beyond for j in range(1, degree + 1)]
    return np.stack([*whole, *bent], axis=1)


def fold_knots(problems: KnotProblems, max_pieces: int) -> Iterator[IntMatrix]:
    """Yield the knots of each problem for 1, 2, .. `max_pieces` pieces.

    Each number of pieces starts from the previous one with one knot more, and from the
    one before that with a jump more.
    """
    size = problems.source.size
    knots = [np.zeros((size, 0), dtype=np.intp)]
    yield knots[0]
    for _ in range(1, max_pieces):
        starts = [insert(problems, knots[-1])]
        if len(knots) > 1:
            starts.append(insert(problems, knots[-2], (0, 1)))
        many = problems.chosen(np.tile(np.arange(size), len(starts)))
        tried, loss = exchange(many, np.concatenate(starts), rounds=FOLD_ROUNDS)
        best = loss.reshape(len(starts), size).argmin(axis=0)
        knots.append(tried[best * size + np.arange(size)])
        yield knots[-1]


def fitted_values(problems: KnotProblems, knots: IntMatrix) -> FloatMatrix:
    """Return the least squares fit of each problem at all its points."""
    design = problems.columns(knots)
    root = np.sqrt(problems.share[problems.source])
    target = (root * problems.rate[problems.source])[:, :, np.newaxis]
    weights = np.linalg.pinv(design * root[:, :, np.newaxis]) @ target
    values: FloatMatrix = (design @ weights)[:, :, 0]
    return values


def search_knots(
    points: WeightedPoints,
    pieces: int,
    *,
    degree: int,
    starts: int,
    rng: np.random.Generator,
) -> FloatVector:
    """Return inner knots of one problem with as low a loss as can be found.

    Searches start from fewer knots with one, two or three more, and from `starts`
    random sets of knots, half of them close together. The best are then moved between
    the points.
    """
    if pieces == 1:
        return np.zeros(0)
    problems = KnotProblems.of(_with_middles(points), degree)
    apart = 1 if problems.x.size == points.p.size else 2
    best = [np.zeros((1, 0), dtype=np.intp)]
    for count in range(1, pieces):
        begun = list(_more_knots(problems, best, apart))
        if count == pieces - 1:
            begun.append(_random_knots(problems.x.size, count, starts, rng))
        start = np.concatenate(begun)
        many = problems.chosen(np.zeros(len(start), dtype=np.intp))
        knots, loss = exchange(many, start)
        best.append(knots[[loss.argmin()]])
    pairs, _ = exchange(many, knots, together=2, rounds=PAIR_ROUNDS)
    jumped, jumped_loss = exchange(many, pairs)
    knots, first = np.unique(np.concatenate([knots, jumped]), axis=0, return_index=True)
    loss = np.concatenate([loss, jumped_loss])[first]
    finalists = knots[np.argsort(loss, kind="stable")[:POLISHED]]
    return _polished(points, problems.x[finalists], degree)


def _with_middles(points: WeightedPoints) -> WeightedPoints:
    """Add places of no weight between the points, where knots may be put."""
    if points.p.size > MAX_BETWEEN:
        return points
    x = np.concatenate([points.p, 0.5 * (points.p[:-1] + points.p[1:])])
    order = np.argsort(x, kind="stable")
    width = ((0, 0), (0, points.p.size - 1))
    weight, label = np.pad(points.weight, width), np.pad(points.label_sum, width)
    return WeightedPoints(x[order], weight[:, order], label[:, order])


def _more_knots(
    problems: KnotProblems, best: list[IntMatrix], apart: int
) -> Iterator[IntMatrix]:
    """Yield starts: one knot more, or two or three in a row at several widths."""
    yield insert(problems, best[-1])
    for together in (2, 3):
        for width in WIDTHS if len(best) >= together else ():
            offsets = [apart * width * i for i in range(together)]
            if offsets[-1] < problems.x.size:
                yield insert(problems, best[-together], offsets)


def _random_knots(
    places: int, count: int, starts: int, rng: np.random.Generator
) -> IntMatrix:
    anywhere = rng.uniform(0, places, (starts - starts // 2, count))
    centre = rng.uniform(0, places, (starts // 2, 1))
    spread = np.exp(rng.uniform(0.0, np.log(places), centre.shape)) / 4.0
    together = centre + spread * rng.standard_normal((starts // 2, count))
    knots = np.concatenate([anywhere, together])
    return np.sort(np.clip(knots, 0, places - 1).astype(np.intp), axis=1)


def _polished(points: WeightedPoints, starts: FloatMatrix, degree: int) -> FloatVector:
    """Return the best knots from searches without derivatives."""
    # Not at the top: it would double the time to import this package.
    from scipy.optimize import minimize

    x, root = points.p, np.sqrt(points.share[0])
    target = root * points.rate[0]
    low, reach = x[0], x[-1] - x[0]

    def sorted_within(knots: FloatVector) -> FloatVector:
        return np.sort(np.clip(knots, low, low + reach))

    def loss(knots: FloatVector) -> float:
        design = truncated_powers(x, sorted_within(knots), degree) * root[:, np.newaxis]
        weights = np.linalg.lstsq(design, target, rcond=None)[0]
        return float(((target - design @ weights) ** 2).sum())

    def moved(knots: FloatVector, step: float, tries: int) -> tuple[FloatVector, float]:
        simplex = np.vstack([knots, knots + step * reach * np.eye(knots.size)])
        options = {"initial_simplex": simplex, "maxfev": tries, **PRECISION}
        result = minimize(loss, knots, method="Nelder-Mead", options=options)
        return result.x, result.fun

    first = (moved(start, FIRST_STEP, FIRST_TRIES) for start in starts)
    finalists = sorted(first, key=itemgetter(1))[:MAX_FINALISTS]
    last = (moved(knots, LAST_STEP, LAST_TRIES) for knots, _ in finalists)
    return sorted_within(min(last, key=itemgetter(1))[0])


def node_heights(points: WeightedPoints, inner: FloatVector, *, degree: int) -> Nodes:
    """Return nodes of one problem's fit, from end to end, and the heights there.

    Nodes are the knots and, for parabolas, the middles between them.
    """
    x = points.p
    knots = np.concatenate([x[:1], inner, x[-1:]])[np.newaxis]
    knots = spread_apart(knots, MIN_DISTANCE * (x[-1] - x[0]))[0]
    nodes = np.interp(
        np.arange(degree * (knots.size - 1) + 1) / degree, np.arange(knots.size), knots
    )
    root = np.sqrt(points.share[0])[:, np.newaxis]
    design = truncated_powers(x, knots[1:-1], degree) * root
    target = root[:, 0] * points.rate[0]
    weights = np.linalg.lstsq(design, target, rcond=None)[0]
    return nodes, truncated_powers(nodes, knots[1:-1], degree) @ weights


@dataclass(frozen=True, eq=False)
class ChosenPieces:
    """Pieces with weights, whose mean is the map.

    Attributes
    ----------
    nodes : list of (ndarray, ndarray)
        Knots (of parabolas, also the middles between them) and the heights there.
    weights : ndarray
        The weight of each.
    n_pieces : int
        The best number of pieces.
    degree : int
        1 of lines, 2 of parabolas.
    losses : ndarray or None
        Cross-validated losses of 1, 2, ... pieces, where they were compared.
    """

    nodes: list[Nodes]
    weights: FloatVector
    n_pieces: int
    degree: int
    losses: FloatVector | None = None

    def refitted(self, resamples: Resamples) -> FloatMatrix:
        """Return the map of each resample, each knot moved once."""
        x, degree = resamples.p, self.degree
        whole = KnotProblems.of(resamples.sample, degree)
        pieces = min(self.n_pieces, pieces_by_levels(x.size, degree))
        start = list(fold_knots(whole, pieces))[-1][0]
        problems = KnotProblems.of(resamples, degree)
        starts = np.tile(start, (problems.source.size, 1))
        knots, _ = exchange(problems, starts, rounds=1)
        return np.clip(fitted_values(problems, knots), 0.0, 1.0)


def pieces_by_levels(distinct: int, degree: int) -> int:
    """Return how many pieces can fit any rates at these distinct predictions."""
    return max(-(-(distinct - 1) // degree), 1)


@dataclass(kw_only=True, eq=False, repr=False)
class GlobalSearch:
    """The search by cross-validation; `GlobalPiecewise` describes its settings."""

    degree: Literal[1, 2] = 1
    pieces: int | Literal["cv"] = "cv"
    max_pieces: int | None = None
    tolerance: float = 1e-3
    ensemble: Ensemble | None = None
    starts: int = 8
    random_state: Seed = 0

    def choose(self, points: FoldedPoints, total: float) -> ChosenPieces:
        """Fit pieces without the rows of each fold in turn, or to all of them.

        `total` is the number of rows that the points stand for.
        """
        counts = self._counts(points.p.size) if points.folds > 1 else range(1, 2)
        ensemble = self.ensemble or ("weighted" if self.pieces == "cv" else "refit")
        if len(counts) == 1 and (ensemble == "refit" or points.folds == 1):
            return self._searched(points, counts[0])
        training = points.training()
        problems = KnotProblems.of(training, self.degree)
        tried = list(fold_knots(problems, counts[-1]))[counts[0] - 1 :]
        values = [fitted_values(problems, knots) for knots in tried]
        losses = np.array([points.held_out_brier(v) for v in values])
        if ensemble == "weighted":
            weights = likelihood_weights(losses, brier_unit(losses, total))
        else:
            weights = simplest_weight(losses, self.tolerance)
        n_pieces = counts[int(np.argmax(weights))]
        compared = losses if self.pieces == "cv" else None
        if ensemble == "refit":
            return self._searched(points, n_pieces, compared)
        nodes, shares = [], []
        for knots, weight in zip(tried, weights, strict=True):
            if weight > 0.0:
                nodes += [
                    self._nodes(training.take(np.array([fold])), training.p[places])
                    for fold, places in enumerate(knots)
                ]
                shares += [weight] * len(knots)
        return ChosenPieces(nodes, np.array(shares), n_pieces, self.degree, compared)

    def _counts(self, distinct: int) -> range:
        """Return the numbers of pieces to try."""
        max_pieces = pieces_by_levels(distinct, self.degree)
        if self.pieces != "cv":
            pieces = supported_pieces(self.pieces, max_pieces, distinct)
            return range(pieces, pieces + 1)
        asked = self.max_pieces or MAX_PIECES[self.degree]
        return range(1, min(asked, max_pieces) + 1)

    def _searched(
        self, points: FoldedPoints, n_pieces: int, losses: FloatVector | None = None
    ) -> ChosenPieces:
        """Return the best map of all rows that a global search finds."""
        whole = points.together()
        rng = generator(self.random_state)
        inner = search_knots(
            whole, n_pieces, degree=self.degree, starts=self.starts, rng=rng
        )
        nodes = [self._nodes(whole, inner)]
        return ChosenPieces(nodes, np.ones(1), n_pieces, self.degree, losses)

    def _nodes(self, points: WeightedPoints, inner: FloatVector) -> Nodes:
        if points.p.size == 1:
            return np.array([0.0, 1.0]), np.repeat(points.rate[0], 2)
        return node_heights(points, inner, degree=self.degree)
