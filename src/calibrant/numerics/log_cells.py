"""Cells that are fine near 0 and 1, for samples too large to be gone through often.

Each octave of the distance to the nearer end, 1/4 to 1/2, 1/8 to 1/4 and so on, has
equally many cells. So the logit hardly varies within a cell, however extreme it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector, IntVector
    from calibrant._validation.sample import BinarySample

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


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows, or cells of rows.

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


def gather_many(p: FloatVector, y: FloatVector, weight: FloatVector | None) -> Gathered:
    """Return the rows, or cells of them where there are very many.

    Examples
    --------
    >>> p = np.repeat([0.25, 1.0], 40_000)
    >>> cells = gather_many(p, np.ones(80_000), None)
    >>> cells.p, cells.weight
    (array([0.25, 1.  ]), array([40000., 40000.]))
    """
    if p.size <= MANY_ROWS:
        weight = np.ones(p.size) if weight is None else weight
        return Gathered(p, weight, weight * y)
    sums = np.zeros((3, 2 * SIDE))
    for start in range(0, p.size, BLOCK):
        rows = slice(start, start + BLOCK)
        part = None if weight is None else weight[rows]
        sums += _block_sums(p[rows], y[rows], part)
    used = np.flatnonzero(sums[0] > 0.0)
    total, near, label = sums[:, used]
    mean_near = near / total
    return Gathered(np.where(used < SIDE, mean_near, 1.0 - mean_near), total, label)


def many_cells(sample: BinarySample) -> Gathered:
    """Return what `gather_many` makes of a sample, made once."""
    return sample.once(
        "many cells", lambda: gather_many(sample.p, sample.y, sample.weight)
    )


def _block_sums(
    p: FloatVector, y: FloatVector, weight: FloatVector | None
) -> FloatMatrix:
    cell, near = log_cell(p)
    if weight is not None:
        near, y = weight * near, weight * y
    return np.stack(
        [np.bincount(cell, weights=w, minlength=2 * SIDE) for w in (weight, near, y)]
    )
