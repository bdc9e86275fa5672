"""A fixed grid of cells over [0, 1], the same for all data.

Sums over the cells of one grid add up, whatever part of the rows they come from. A cell
is an interval of width 1/12,600, parted further near both ends, where logits vary:
there by the fourth root of the distance to the end. So

- bins of equal width end where cells end, if their number divides 12,600: as do 10, 15,
  20, 25, 30, 50 and 100;
- predictions rounded to four digits rarely share a cell, to three digits never;
- a cell spans 0.2 % of the odds at 0.01, 0.5 % at 0.0001, 5 % at 0.00000001;
- predictions of exactly 0 and of exactly 1 have cells of their own.

Multiplications, divisions, square roots and comparisons of doubles are all it takes:
they are rounded alike everywhere, so that every engine finds the same cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector

WIDTHS = 12_600
"""Intervals of equal width. 1 to 10 divide it, and 12, 15, 20, 25, 50, 100."""
ROOTS = 8_192
"""Intervals of equal width of the fourth root of the distance to the nearer end."""
TAIL = 0.05
"""Nearer to an end than this, intervals are parted by the fourth root."""
NEVER_LOW = WIDTHS * (1.0 + 2.0**-51)
"""A prediction times this, rounded down, is its interval or the next, never one less
for rounding."""
HALF = WIDTHS // 2
MAX_ROOT = int(np.ceil(ROOTS * TAIL**0.25))
CELLS = WIDTHS + 2 * MAX_ROOT + 1
"""Number of cells."""


def cell_of(interval: FloatVector, root: FloatVector) -> IntVector:
    """Return the cell that is the common part of two intervals, in ascending order.

    Whenever a prediction rises from one cell to the next, either its interval or its
    root changes: so their sum counts cells, once roots rise above 1/2 as well.
    """
    rising = np.where(interval < HALF, root, 2 * MAX_ROOT - root)
    return np.asarray(interval + rising, dtype=np.int64)


def cell_numbers(p: FloatVector) -> IntVector:
    """Return the cell of each prediction.

    Examples
    --------
    >>> cell_numbers(np.array([0.0, 1e-100, 0.3, 0.5, 1.0]))
    array([    0,     1,  7654, 10174, 20348])
    """
    interval = np.floor(p * NEVER_LOW)
    interval -= p < interval / WIDTHS
    near = np.minimum(p, 1.0 - p)
    root = np.ceil(ROOTS * np.sqrt(np.sqrt(np.minimum(near, TAIL))))
    return cell_of(interval, root)


FIRST_ABOVE_HALF = HALF + MAX_ROOT
"""The first cell whose predictions are at least 1/2."""
