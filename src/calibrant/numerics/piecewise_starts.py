"""Where fits of piecewise linear functions start, and the best of many starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.piecewise import SMALLEST_GAP, fit_lines
from calibrant.numerics.piecewise_problems import Lines, Loss, Points

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, Space

CROWDED, CROWDED_PIECES = 0.75, 2.5
"""Knots are crowded if they leave out this share of the axis, or so many times what
they would leave if they were spread evenly."""
FEW_LEVELS = 2
"""Up to so many points per piece are few."""
STARTS = 64
"""Starts of a search for the best lines of one problem."""


def usual_start(points: Points, pieces: int, ends: tuple[float, float]) -> Lines:
    """Return lines on the diagonal whose knots part each problem's weight equally.

    Where most predictions crowd at one end, so would the knots, and never leave it;
    they are then moved half the way to knots that part the axis equally. At most
    `FEW_LEVELS` points per piece are parted equally themselves, whatever their weight:
    a knot that starts on one of few points is stuck there.
    """
    if points.x.size <= FEW_LEVELS * pieces:
        return _between_levels(points, pieces, ends)
    shares = np.broadcast_to(
        np.arange(1, pieces) / pieces, (len(points.weight), pieces - 1)
    )
    inner = _quantiles(points, shares)
    low, high = ends
    gap = np.diff(inner, prepend=low, append=high, axis=1).max(axis=1) / (high - low)
    crowded = gap > min(CROWDED, CROWDED_PIECES / pieces)
    even = low + (high - low) * shares
    inner = np.where(crowded[:, np.newaxis], 0.5 * (inner + even), inner)
    return _on_the_diagonal(inner, ends)


def _between_levels(points: Points, pieces: int, ends: tuple[float, float]) -> Lines:
    """Return lines on the diagonal whose knots part the points equally.

    Each point stands for the axis up to halfway to its neighbours.
    """
    x = points.x
    edges = np.concatenate([ends[:1], 0.5 * (x[1:] + x[:-1]), ends[1:]])
    rank = x.size * np.arange(1, pieces) / pieces
    inner = np.interp(rank, np.arange(edges.size), edges)
    return _on_the_diagonal(np.tile(inner, (len(points.weight), 1)), ends)


def _quantiles(points: Points, shares: FloatMatrix) -> FloatMatrix:
    """Return where the given shares of each problem's weight end."""
    below = np.cumsum(points.weight, axis=1)
    rows = [np.searchsorted(b, s * b[-1]) for b, s in zip(below, shares, strict=True)]
    row = np.minimum(np.array(rows, dtype=np.intp), points.x.size - 1)
    return points.x[row.reshape(shares.shape)]


def _on_the_diagonal(inner: FloatMatrix, ends: tuple[float, float]) -> Lines:
    """Return lines on the diagonal with the given inner knots, moved apart."""
    low, high = ends
    side = np.ones((len(inner), 1))
    knots = np.concatenate([low * side, inner, high * side], axis=1)
    knots = spread_apart(knots, SMALLEST_GAP * (high - low))
    return Lines(knots, knots.copy())


def search_lines(
    points: Points,
    pieces: int,
    ends: tuple[float, float],
    *,
    scale: Space,
    loss: Loss,
    monotone: bool = False,
) -> tuple[Lines, FloatVector]:
    """Return the best lines of one problem found from many starts.

    The loss has many minima in the knots. All starts are one batch: knots that part
    the weight equally, at random, and at random places of the axis.
    """
    many = Points(
        points.x,
        np.repeat(points.weight, STARTS, axis=0),
        np.repeat(points.label, STARTS, axis=0),
    )
    rng = np.random.default_rng(pieces)  # the same starts for the same question
    shares = np.sort(rng.random((STARTS, pieces - 1)), axis=1)
    shares[0] = np.arange(1, pieces) / pieces
    inner = _quantiles(many, shares)
    inner[1::2] = ends[0] + (ends[1] - ends[0]) * shares[1::2]
    start = _on_the_diagonal(inner, ends)
    lines, value = fit_lines(many, start, scale=scale, loss=loss, monotone=monotone)
    best = [int(np.argmin(value))]
    return Lines(lines.knots[best], lines.heights[best]), value[best]


def spread_apart(knots: FloatMatrix, gap: float) -> FloatMatrix:
    """Move inner knots so that neighbours are at least `gap` apart."""
    place = gap * np.arange(knots.shape[1])
    rising = np.maximum.accumulate(knots - place, axis=1)
    held = np.minimum(rising, knots[:, -1:] - place[-1])
    spread: FloatMatrix = held + place
    return spread
