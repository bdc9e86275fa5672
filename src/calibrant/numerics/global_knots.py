"""Piecewise polynomials of least squares: knots by global search, then heights."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.knot_exchange import KnotProblems, exchange, insert
from calibrant.numerics.line_fits import spread_apart
from calibrant.numerics.line_problems import BatchPoints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntMatrix,
        IntVector,
    )

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


def moved_knots(problems: KnotProblems, knots: IntVector) -> IntMatrix:
    """Return the given knots, moved once each to suit each problem."""
    start = np.tile(knots, (problems.source.size, 1))
    return exchange(problems, start, rounds=1)[0]


def fitted_values(problems: KnotProblems, knots: IntMatrix) -> FloatMatrix:
    """Return the least squares fit of each problem at all its points."""
    design = problems.columns(knots)
    root = np.sqrt(problems.share[problems.source])
    target = (root * problems.rate[problems.source])[:, :, np.newaxis]
    weights = np.linalg.pinv(design * root[:, :, np.newaxis]) @ target
    values: FloatMatrix = (design @ weights)[:, :, 0]
    return values


def search_knots(
    points: BatchPoints,
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
    apart = 1 if problems.x.size == points.x.size else 2
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


def _with_middles(points: BatchPoints) -> BatchPoints:
    """Add places of no weight between the points, where knots may be put."""
    if points.x.size > MAX_BETWEEN:
        return points
    x = np.concatenate([points.x, 0.5 * (points.x[:-1] + points.x[1:])])
    order = np.argsort(x, kind="stable")
    width = ((0, 0), (0, points.x.size - 1))
    weight, label = np.pad(points.weight, width), np.pad(points.rate, width)
    return BatchPoints(x[order], weight[:, order], label[:, order])


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


def _polished(points: BatchPoints, starts: FloatMatrix, degree: int) -> FloatVector:
    """Return the best knots from searches without derivatives."""
    # Not at the top: it would double the time to import this package.
    from scipy.optimize import minimize

    x, root = points.x, np.sqrt(points.share[0])
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


def node_heights(
    points: BatchPoints, inner: FloatVector, *, degree: int
) -> tuple[FloatVector, FloatVector]:
    """Return nodes of one problem's fit, from end to end, and the heights there.

    Nodes are the knots and, for parabolas, the middles between them.
    """
    x = points.x
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
