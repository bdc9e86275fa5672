"""Cells that are fine near 0 and 1, for samples too large to be gone through often.

Each octave of the distance to the nearer end, 1/4 to 1/2, 1/8 to 1/4 and so on, has
equally many cells. So the logit hardly varies within a cell, however extreme it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.sorted_sample import SortedSample

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.core.sample import BinarySample

BITS = 9
"""Each octave has 2 ** BITS cells: 1/1024 is the width of the widest ones."""
OCTAVES = 52
"""Nearer to an end than 2 ** -53, predictions share a cell."""
SIDE = OCTAVES * 2**BITS + 1
"""Number of cells below 1/2, and as many above."""
MANY_ROWS = 65_536
"""With more rows than this, sums over cells replace the rows."""
BLOCK = 262_144

_SHIFT = np.int64(52 - BITS)
_LOWEST = (np.array(2.0**-53).view(np.int64) >> _SHIFT) - 1


def _nearest() -> FloatVector:
    """Return the least distance to the nearer end that each cell holds."""
    bits = (np.arange(1, SIDE, dtype=np.int64) + _LOWEST) << _SHIFT
    side = np.append(0.0, bits.view(np.float64))
    return np.append(side, side[::-1])


_NEAREST = _nearest()


@dataclass(frozen=True, eq=False)
class WeightedPoints:
    """Predictions, or cells of predictions, that do not fall.

    Attributes
    ----------
    p : ndarray of shape (m,)
        Prediction, or mean prediction of a cell.
    weight, label : ndarray of shape (m,)
        Sum of weights and of weighted labels.
    """

    p: FloatVector
    weight: FloatVector
    label: FloatVector


def log_cell(p: FloatVector) -> tuple[IntVector, FloatVector]:
    """Return the cell of each prediction, and its distance to the nearer end.

    The cell is read off the exponent and the first bits of the distance.
    """
    near = np.minimum(p, 1.0 - p)
    depth = np.maximum((near.view(np.int64) >> _SHIFT) - _LOWEST, 0)
    depth = np.minimum(depth, SIDE - 1)  # exactly 1/2 starts an octave of its own
    return np.where(p < 0.5, depth, 2 * SIDE - 1 - depth), near  # noqa: PLR2004


def compress_on_log_grid(
    p: FloatVector, y: FloatVector, weight: FloatVector | None
) -> WeightedPoints:
    """Return the distinct predictions, or cells of them where there are very many.

    Either come in ascending order, so that the order of rows does not matter, and a
    row of weight 2 counts to the last digit as two rows.

    Examples
    --------
    >>> p = np.repeat([0.25, 1.0], 40_000)
    >>> cells = compress_on_log_grid(p, np.ones(80_000), None)
    >>> cells.p, cells.weight
    (array([0.25, 1.  ]), array([40000., 40000.]))
    """
    if p.size <= MANY_ROWS:
        return _distinct(SortedSample.of(p, y, weight))
    sums = np.zeros((3, 2 * SIDE))
    for start in range(0, p.size, BLOCK):
        rows = slice(start, start + BLOCK)
        part = None if weight is None else weight[rows]
        sums += _block_sums(p[rows], y[rows], part)
    used = np.flatnonzero(sums[0] > 0.0)
    total, inside, label = sums[:, used]
    near = _NEAREST[used] + inside / total
    return WeightedPoints(np.where(used < SIDE, near, 1.0 - near), total, label)


def many_cells(sample: BinarySample) -> WeightedPoints:
    """Return what `compress_on_log_grid` makes of a sample, made once."""
    return sample.cached(
        "many cells", lambda: compress_on_log_grid(sample.p, sample.y, sample.weight)
    )


def _distinct(rows: SortedSample) -> WeightedPoints:
    """Return each prediction of sorted rows once."""
    weight = np.ones(rows.p.size) if rows.weight is None else rows.weight
    first = np.flatnonzero(np.diff(rows.p, prepend=-np.inf) > 0.0)
    if first.size == rows.p.size:
        return WeightedPoints(rows.p, weight, weight * rows.y)
    label = np.add.reduceat(weight * rows.y, first)
    return WeightedPoints(rows.p[first], np.add.reduceat(weight, first), label)


def _block_sums(
    p: FloatVector, y: FloatVector, weight: FloatVector | None
) -> FloatMatrix:
    cell, near = log_cell(p)
    inside = near - _NEAREST[cell]  # short: its sum keeps the last digits
    if weight is not None:
        inside, y = weight * inside, weight * y
    return np.stack(
        [np.bincount(cell, weights=w, minlength=2 * SIDE) for w in (weight, inside, y)]
    )
