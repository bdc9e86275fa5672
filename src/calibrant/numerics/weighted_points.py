"""Predictions with weights and labels, compressed so that fits do not grow with rows.

Two grids do the compressing. On the logarithmic one each octave of the distance to
the nearer end, 1/4 to 1/2, 1/8 to 1/4 and so on, has the same number of cells, so the
logit hardly varies within a cell, however extreme it is. The other one has few cells
that are narrow both in rank and on the logit scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from calibrant.numerics.links import logit
from calibrant.numerics.sample_cache import cached_on_sample
from calibrant.numerics.sorted_rows import sorted_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )
    from calibrant.core.sample import BinarySample

BITS = 9
"""Each octave has 2 ** BITS cells: 1/1024 is the width of the widest ones."""
OCTAVES = 52
"""Nearer to an end than 2 ** -53, predictions share a cell."""
SIDE = OCTAVES * 2**BITS + 1
"""Number of cells below 1/2, and as many above."""
PART = 16_384
"""Rows whose cells are found at once, few enough to stay in cache. Sums over blocks of
`BLOCK` rows are added up, lest rounding adds up over very many rows."""
MAX_EXACT_ROWS = 65_536
"""With more rows than this, sums over cells replace the rows."""
MAX_CELLS = 512
"""`compress_to_at_most` returns no more cells than this."""
BLOCK = 262_144
TINY = float(np.finfo(float).tiny)

_SHIFT = np.int64(52 - BITS)
_LOWEST = (np.array(2.0**-53).view(np.int64) >> _SHIFT) - 1
_SIDE_STARTS = np.append(
    0.0,
    ((np.arange(1, SIDE, dtype=np.int64) + _LOWEST) << _SHIFT).view(np.float64),
)
_NEAREST = np.append(_SIDE_STARTS, _SIDE_STARTS[::-1])
"""The smallest distance to the nearer end in each cell."""


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """Predictions, or cells of predictions, in ascending order.

    Attributes
    ----------
    p : ndarray of shape (m,) or (samples, m)
        Prediction, or mean prediction of a cell; or its place on another axis.
    weight, label_sum : ndarray of shape (m,) or (samples, m)
        Sum of weights and of weighted labels, of one sample or of several over the
        same cells.
    """

    p: FloatMatrix
    weight: FloatMatrix
    label_sum: FloatMatrix

    def as_batch(self) -> WeightedPoints:
        """Return one sample as a batch of one."""
        weight, label_sum = self.weight[np.newaxis], self.label_sum[np.newaxis]
        return WeightedPoints(self.p, weight, label_sum)

    def on_axis(self, x: FloatVector) -> WeightedPoints:
        """Return the points at other places, such as their logits."""
        return WeightedPoints(x, self.weight, self.label_sum)

    def take(self, samples: BoolVector | IntVector) -> WeightedPoints:
        """Return some of several samples, which may be repeated."""
        return WeightedPoints(self.p, self.weight[samples], self.label_sum[samples])

    @cached_property
    def rate(self) -> FloatMatrix:
        """Return the observed rate in each cell, 0 where there are no rows."""
        nothing, some = np.zeros_like(self.label_sum), self.weight > 0.0
        rates = np.divide(self.label_sum, self.weight, out=nothing, where=some)
        return np.asarray(np.clip(rates, 0.0, 1.0))

    @cached_property
    def share(self) -> FloatMatrix:
        """Return weights that sum to 1 in each sample."""
        share: FloatMatrix = self.weight / self.weight.sum(axis=-1, keepdims=True)
        return share

    @classmethod
    def side_by_side(cls, samples: Sequence[WeightedPoints]) -> Self:
        """Return samples as the rows of matrices; padding has weight 0.

        Examples
        --------
        >>> one, two = np.ones(1), np.array([1.0, 3.0])
        >>> samples = [WeightedPoints(two, two, two), WeightedPoints(one, one, one)]
        >>> WeightedPoints.side_by_side(samples).weight
        array([[1., 3.],
               [1., 0.]])
        """
        sizes = np.array([one.p.size for one in samples])
        filled = np.arange(sizes.max()) < sizes[:, np.newaxis]
        p, weight, label = np.full(filled.shape, 0.5), *np.zeros((2, *filled.shape))
        p[filled] = np.concatenate([one.p for one in samples])
        weight[filled] = np.concatenate([one.weight for one in samples])
        label[filled] = np.concatenate([one.label_sum for one in samples])
        return cls(p, weight, label)


@dataclass(frozen=True, eq=False)
class LogCells(WeightedPoints):
    """Cells of the logarithmic grid that have any rows.

    Attributes
    ----------
    number : ndarray of shape (m,)
        Number of each cell.
    of_row : ndarray of shape (n,)
        Number of the cell of each row of the sample.
    """

    number: IntVector
    of_row: NDArray[np.uint16]

    def share_in(self, numbers: IntVector) -> float:
        """Return the share of weight in some of the cells."""
        inside = self.weight[np.isin(self.number, numbers)]
        return float(inside.sum() / self.weight.sum())

    def rows_in(self, numbers: IntVector) -> IntVector:
        """Return which rows are in some of the cells."""
        chosen = np.zeros(2 * SIDE, dtype=bool)
        chosen[numbers] = True
        parts = [
            start + np.flatnonzero(chosen.take(self.of_row[start : start + PART]))
            for start in range(0, self.of_row.size, PART)
        ]
        return np.concatenate(parts)


def log_cell(p: FloatVector) -> tuple[IntVector, FloatVector]:
    """Return the cell of each prediction, and its distance to the nearer end.

    The cell is read off the exponent and the first bits of the distance.
    """
    near = np.minimum(p, 1.0 - p)
    depth = (near.view(np.int64) >> _SHIFT) - _LOWEST
    np.maximum(depth, 0, out=depth)
    np.minimum(depth, SIDE - 1, out=depth)  # exactly 1/2 starts an octave of its own
    depth += (p >= 0.5) * (2 * SIDE - 1 - 2 * depth)  # noqa: PLR2004
    return depth, near


@cached_on_sample("log cells")
def compress_on_log_grid(sample: BinarySample) -> WeightedPoints:
    """Return the distinct predictions, or cells of them if there are very many.

    Both are in ascending order, so that the order of rows does not matter, and a row
    of weight 2 counts to the last digit as two rows.
    """
    compress = _log_cells if sample.p.size > MAX_EXACT_ROWS else distinct_predictions
    return compress(sample)


def cells_if_known(sample: BinarySample) -> LogCells | None:
    """Return the cells of very many rows if they have been found before.

    For sums over bins, which are faster over cells but not worth finding these.
    """
    known = sample.cache.get("log cells")
    return known if isinstance(known, LogCells) else None


def distinct_predictions(sample: BinarySample) -> WeightedPoints:
    """Return each prediction once, ascending, whatever the number of rows."""
    rows = sorted_rows(sample)
    weight = np.ones(rows.p.size) if rows.weight is None else rows.weight
    first = np.flatnonzero(np.diff(rows.p, prepend=-np.inf) > 0.0)
    if first.size == rows.p.size:
        return WeightedPoints(rows.p, weight, weight * rows.y)
    label = np.add.reduceat(weight * rows.y, first)
    return WeightedPoints(rows.p[first], np.add.reduceat(weight, first), label)


def _log_cells(sample: BinarySample) -> LogCells:
    """Return the cells of the logarithmic grid that have any rows."""
    sums = np.zeros((3, 2 * SIDE))
    of_row = np.empty(sample.p.size, dtype=np.uint16)
    for start in range(0, sample.p.size, BLOCK):
        rows = slice(start, start + BLOCK)
        weight = None if sample.weight is None else sample.weight[rows]
        sums += _block_sums(sample.p[rows], sample.y[rows], weight, of_row[rows])
    used = np.flatnonzero(sums[0] > 0.0)
    total, inside, label_sum = sums[:, used]
    near = _NEAREST[used] + inside / total
    mean = np.where(used < SIDE, near, 1.0 - near)
    return LogCells(mean, total, label_sum, used, of_row)


def _block_sums(
    p: FloatVector,
    y: FloatVector,
    weight: FloatVector | None,
    of_row: NDArray[np.uint16],
) -> FloatMatrix:
    """Return sums of weights, distances and labels; write down the cell of each row."""
    sums = np.zeros((3, 2 * SIDE))
    for start in range(0, p.size, PART):
        rows = slice(start, start + PART)
        cell, near = log_cell(p[rows])
        of_row[rows] = cell
        inside = near - _NEAREST[cell]  # short: its sum keeps the last digits
        w = None if weight is None else weight[rows]
        label = y[rows] if w is None else w * y[rows]
        np.add.at(sums[0], cell, 1.0 if w is None else w)
        np.add.at(sums[1], cell, inside if w is None else w * inside)
        np.add.at(sums[2], cell, label)
    return sums


@cached_on_sample("few cells")
def compress_to_at_most(sample: BinarySample) -> WeightedPoints:
    """Return the distinct predictions, or at most 512 cells of them, ascending.

    A cell has at most 1/256 of the rows, except for ties, and spans at most 1/256 of
    the range of logits: so it is fine where predictions are dense, and at both ends.
    """
    return _at_most(compress_on_log_grid(sample))


def _at_most(points: WeightedPoints) -> WeightedPoints:
    """Merge neighbouring points into at most `MAX_CELLS` cells."""
    distinct = np.cumsum(np.diff(points.p, prepend=points.p[:1]) > 0.0, dtype=np.intp)
    points = _merge(points, distinct)
    if points.p.size <= MAX_CELLS:
        return points
    return _merge(points, even_cells(points.p, points.weight, MAX_CELLS))


def even_cells(p: FloatVector, weight: FloatVector, count: int) -> IntVector:
    """Return the cell, from 0 to `count` - 1, of ascending predictions.

    Half of the way from one cell to the next is by rank, half by logit.
    """
    u, rank = logit(p), np.cumsum(weight) - 0.5 * weight
    even = 0.5 * rank / weight.sum() + 0.5 * (u - u[0]) / max(u[-1] - u[0], TINY)
    return np.asarray(np.minimum((count * even).astype(np.intp), count - 1))


def _merge(points: WeightedPoints, cell: IntVector) -> WeightedPoints:
    """Return the sums over neighbours that share a cell."""
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    if first.size == points.p.size:
        return points
    weight = np.add.reduceat(points.weight, first)
    label = np.add.reduceat(points.label_sum, first)
    inside = points.p - np.repeat(points.p[first], np.diff(first, append=points.p.size))
    # Sums of distances, so that ties keep their value to the last digit.
    mean = points.p[first] + np.add.reduceat(points.weight * inside, first) / weight
    return WeightedPoints(mean, weight, label)
