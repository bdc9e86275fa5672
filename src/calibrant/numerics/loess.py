"""Local regression of labels on predictions, as R's `loess` and `lowess` have it.

Both are reproduced with their defaults and shortcuts, for comparison with published
values: `loess` (local parabolas) is what Austin and Steyerberg compute the ICI with,
`lowess` (local lines) what ``rms::val.prob`` computes Eavg, E90 and Emax with. A point
of weight w stands for w tied rows.

References
----------
W. S. Cleveland, E. Grosse, W. M. Shyu (1992). Local regression models. In: Statistical
models in S, chapter 8.

P. C. Austin, E. W. Steyerberg (2019). The Integrated Calibration Index (ICI) and
related metrics for quantifying the calibration of logistic regression models.
Statistics in Medicine 38. doi:10.1002/sim.8281
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

LOESS_SPAN, LOWESS_SPAN = 0.75, 2.0 / 3.0
"""The share of rows that a local fit uses."""
CELL = 0.2
"""`loess` fits where cells end that have at most this share of the rows of a fit."""
MARGIN = 0.005
"""By how much of their range cells go beyond the predictions."""
MIN_POINTS = 3
"""Parabolas need so many distinct predictions; fewer have their observed rates."""
SKIPPED = 0.01
"""`lowess` interpolates over gaps up to this share of the range of predictions."""
FULL, NONE = 0.001, 0.999
"""Nearer than the first share of the reach, rows have full weight; farther than the
second, none."""


@dataclass(frozen=True, eq=False)
class _RankedRows(WeightedPoints):
    """Ascending predictions with ties, looked up by the rank of a row, from 1."""

    @classmethod
    def of(cls, points: WeightedPoints) -> _RankedRows:
        return cls(points.p, points.weight, points.label_sum)

    @cached_property
    def last(self) -> FloatVector:
        """Return the rank of the last row of each point."""
        return np.cumsum(self.weight)

    @property
    def n(self) -> float:
        return float(self.last[-1])

    def at(self, rank: float) -> float:
        """Return the prediction of the row of a rank."""
        place = int(np.searchsorted(self.last, rank))
        return float(self.p[min(place, self.p.size - 1)])


def _tricube(distance: FloatVector, reach: float) -> FloatVector:
    """Return the weights of rows at distances; ties may leave no reach at all."""
    share = (1.0 - (distance / (reach or 1.0)) ** 3) ** 3
    return np.where(distance <= FULL * reach, 1.0, share)


def loess(points: WeightedPoints) -> FloatVector:
    """Return the values of R's ``loess(y ~ p)`` at distinct, ascending predictions.

    Local parabolas are fitted where cells end; in between, cubics have the same values
    and slopes as these.
    """
    rows = _RankedRows.of(points)
    if rows.p.size < MIN_POINTS:
        return rows.rate
    knots = np.array(_cell_ends(rows))
    fits = np.array([_local_parabola(rows, knot) for knot in knots.tolist()])
    place = np.clip(np.searchsorted(knots, rows.p, side="right") - 1, 0, knots.size - 2)
    width = np.diff(knots)[place]
    h = (rows.p - knots[place]) / width
    (value, slope), (next_value, next_slope) = fits[place].T, fits[place + 1].T
    start = (1.0 - h) ** 2 * ((1.0 + 2.0 * h) * value + h * width * slope)
    end = h**2 * ((3.0 - 2.0 * h) * next_value - (1.0 - h) * width * next_slope)
    return np.asarray(start + end)


def _cell_ends(rows: _RankedRows) -> list[float]:
    """Return where cells end: each is halved until it has few rows."""
    max_rows = np.floor(rows.n * LOESS_SPAN * CELL)
    low, high = float(rows.p[0]), float(rows.p[-1])
    margin = MARGIN * max(high - low, 1e-3 * max(abs(low), abs(high)) + 1e-30)
    ends = {low - margin, high + margin}
    cells = [(1.0, rows.n, low - margin, high + margin)]
    while cells:
        first, last, left, right = cells.pop()
        if last - first + 1.0 <= max_rows:
            continue
        middle = _last_before_gap(rows, first, last)
        cut = rows.at(middle)
        if cut in (left, right):
            continue
        ends.add(cut)
        cells += [(first, middle, left, cut), (middle + 1.0, last, cut, right)]
    return sorted(ends)


def _last_before_gap(rows: _RankedRows, first: float, last: float) -> float:
    """Return the rank nearest the middle of a cell whose next row is not tied."""
    middle = float(np.floor((first + last) / 2.0))
    place = int(np.searchsorted(rows.last, middle))
    near = rows.last[max(place - 1, 0) : place + 1]
    near = near[(near >= first) & (near < last)]
    if near.size == 0:
        return middle
    return float(near[np.lexsort((-near, np.abs(near - middle)))[0]])


def _local_parabola(rows: _RankedRows, at: float) -> tuple[float, float]:
    """Return value and slope of the local fit."""
    x = rows.p - at
    distance = np.abs(x)
    order = np.argsort(distance)
    needed = np.floor(rows.n * LOESS_SPAN + 1e-5)
    rank = int(np.searchsorted(np.cumsum(rows.weight[order]), needed))
    reach = float(distance[order[min(rank, order.size - 1)]])
    used = distance <= NONE * reach
    x, distance = x[used], distance[used]
    share = _tricube(distance, reach)
    root = np.sqrt(rows.weight[used] * share)
    design = np.stack([np.ones_like(x), x, x**2], axis=1)
    fit = np.linalg.lstsq(root[:, np.newaxis] * design, root * rows.rate[used])[0]
    return float(fit[0]), float(fit[1])


def lowess(points: WeightedPoints) -> FloatVector:
    """Return R's ``lowess(p, y, iter = 0)`` at distinct, ascending predictions."""
    rows = _RankedRows.of(points)
    gap = SKIPPED * float(rows.p[-1] - rows.p[0])
    fitted = [0]
    while fitted[-1] < rows.p.size - 1:
        within = int(np.searchsorted(rows.p, rows.p[fitted[-1]] + gap, side="right"))
        fitted.append(max(fitted[-1] + 1, within - 1))
    values = [_local_line(rows, place) for place in fitted]
    return np.interp(rows.p, rows.p[fitted], values)


def _local_line(rows: _RankedRows, place: int) -> float:
    at = float(rows.p[place])
    count = max(2.0, min(rows.n, np.floor(LOWESS_SPAN * rows.n + 1e-7)))
    first = _first_rank(rows, at, count)
    reach = max(at - rows.at(first), rows.at(first + count - 1.0) - at)
    distance = np.abs(rows.p - at)
    weight = np.minimum(rows.weight, np.maximum(rows.last - first + 1.0, 0.0))
    near = (distance <= NONE * reach) & (weight > 0.0)
    if not near.any():
        return float(rows.rate[place])
    x, distance = rows.p[near], distance[near]
    share = _tricube(distance, reach) * weight[near]
    share /= share.sum()
    centre = float(share @ x)
    spread = float(share @ (x - centre) ** 2)
    if np.sqrt(spread) > FULL * (rows.p[-1] - rows.p[0]):
        share *= 1.0 + (at - centre) / spread * (x - centre)
    return float(share @ rows.rate[near])


def _first_rank(rows: _RankedRows, at: float, count: float) -> float:
    """Return where the nearest rows begin, by halving: moving on is worth it or not."""
    low, high = 1.0, float(np.ceil(rows.n - count)) + 1.0
    while low < high:
        middle = float(np.floor((low + high) / 2.0))
        if at - rows.at(middle) > rows.at(middle + count) - at:
            low = middle + 1.0
        else:
            high = middle
    return low
