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
    from calibrant._typing import FloatVector, IntVector

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


def cell_numbers(p: FloatVector) -> IntVector:
    """Return the cell of each prediction: its interval and root as one number.

    Numbers of cells do not rise with predictions above 1/2; see `ascending`.

    Examples
    --------
    >>> cell_numbers(np.array([0.0, 0.3, 1.0])) // ROOTS
    array([    0,  3780, 12600])
    """
    interval = np.floor(p * NEVER_LOW)
    interval -= p < interval / WIDTHS
    near = np.minimum(p, 1.0 - p)
    root = np.ceil(ROOTS * np.sqrt(np.sqrt(np.minimum(near, TAIL))))
    return np.asarray(interval * ROOTS + root, dtype=np.int64)


def ascending(cell: IntVector) -> IntVector:
    """Return numbers that rise with the predictions of the cells.

    Examples
    --------
    >>> upper = cell_numbers(np.array([0.999, 0.99999]))
    >>> np.diff(ascending(upper)) > 0
    array([ True])
    """
    interval, root = np.divmod(cell, ROOTS)
    return np.where(interval < HALF, cell, (interval + 1) * ROOTS - root)


def mean_predictions(
    cell: IntVector, weight: FloatVector, near: FloatVector
) -> FloatVector:
    """Return the mean prediction of each cell, from sums over its rows.

    `near` sums weights times distances to the nearer end of [0, 1]: so even means near
    1 have all their digits.
    """
    distance = near / weight
    return np.where(cell // ROOTS < HALF, distance, 1.0 - distance)
