"""A fixed grid of cells over [0, 1], the same for all data, and sums over its cells.

Sums over the cells of one grid add up, whatever part of the rows they come from. A cell
is an interval of width 1/12,600, split further near both ends, where logits vary:
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

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.sample import BinarySample
from calibrant.core.weights import effective_counts

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector

WIDTHS = 12_600
"""Intervals of equal width. 1 to 10 divide it, and 12, 15, 20, 25, 50, 100."""
ROOTS = 8_192
"""Intervals of equal width of the fourth root of the distance to the nearer end."""
TAIL = 0.05
"""Nearer to an end than this, intervals are split by the fourth root."""
NEVER_LOW = WIDTHS * (1.0 + 2.0**-51)
"""A prediction times this, rounded down, is its interval or the next, never one less
because of rounding."""
HALF = WIDTHS // 2
MAX_ROOT = int(np.ceil(ROOTS * TAIL**0.25))
CELLS = WIDTHS + 2 * MAX_ROOT + 1
"""Number of cells."""
FIRST_ABOVE_HALF = HALF + MAX_ROOT
"""The first cell whose predictions are at least 1/2."""
AT_ONCE = 2**14
"""Rows whose cells are found at once: so few stay in the cache of a processor."""
MAX_CODES = 2**22
"""With more groups than fit, only those cells are counted that there are."""


def cell_numbers(p: FloatVector) -> IntVector:
    """Return the cell of each prediction.

    Whenever a prediction rises from one cell to the next, either its interval or its
    root changes: so their sum counts cells, if roots rise above 1/2 as well.

    Examples
    --------
    >>> cell_numbers(np.array([0.0, 1e-100, 0.3, 0.5, 1.0]))
    array([    0,     1,  7654, 10174, 20348])
    """
    numbers = np.empty(p.size, dtype=np.int64)
    for start in range(0, p.size, AT_ONCE):
        rows = slice(start, start + AT_ONCE)
        numbers[rows] = _cell_numbers(p[rows])
    return numbers


def _cell_numbers(p: FloatVector) -> FloatVector:
    interval = np.floor(p * NEVER_LOW)
    interval -= p < interval / WIDTHS
    near = np.minimum(p, 1.0 - p)
    root = np.ceil(ROOTS * np.sqrt(np.sqrt(np.minimum(near, TAIL))))
    rising = np.where(interval < HALF, root, 2 * MAX_ROOT - root)
    return np.asarray(interval + rising)


@dataclass(frozen=True, eq=False, kw_only=True)
class CellSums:
    """Sums over rows that share a cell, and a group where there are any.

    Attributes
    ----------
    group, cell : ndarray of shape (m,)
        Numbers of group and cell.
    rows, event_rows : ndarray of shape (m,)
        Number of rows, and of events.
    near : ndarray of shape (m,)
        Sum of weights times distances of predictions to the nearer end of [0, 1], so
        that even means near 1 have all their digits.
    low, high : ndarray of shape (m,)
        Smallest and largest prediction.
    weight, event_weight, weight_squared : ndarray of shape (m,) or None
        Sum of weights, of those of events, and of squared weights; None where rows
        have none.
    """

    group: IntVector
    cell: IntVector
    rows: IntVector
    event_rows: IntVector
    near: FloatVector
    low: FloatVector
    high: FloatVector
    weight: FloatVector | None = None
    event_weight: FloatVector | None = None
    weight_squared: FloatVector | None = None

    @property
    def p(self) -> FloatVector:
        """Return the mean prediction of each cell, exact where all rows agree."""
        distance = self.near / (self.rows if self.weight is None else self.weight)
        mean = np.where(self.cell < FIRST_ABOVE_HALF, distance, 1.0 - distance)
        same = self.low == self.high
        return np.where(same, self.low, np.clip(mean, self.low, self.high))

    def sample(self, *, clustered: bool = False) -> BinarySample:
        """Return the cells as a weighted sample; its clusters are groups, if asked for.

        Each cell makes a row for the label 1 and one for 0, at its mean prediction.
        """
        others = self.rows - self.event_rows
        row_counts = np.concatenate([self.event_rows, others])
        used = row_counts > 0
        weights = (self.event_rows, others) if self.weight is None else self._weights()
        return BinarySample(
            p=np.tile(self.p, 2)[used],
            y=np.repeat([1.0, 0.0], others.size)[used],
            weight=np.concatenate(weights)[used].astype(np.float64),
            row_counts=row_counts[used].astype(np.intp),
            clusters=np.tile(self.group, 2)[used] if clustered else None,
        )

    def rows_apart(self, *, clustered: bool = False) -> BinarySample:
        """Return the rows one by one; those of each cell must be equal."""
        counts = np.concatenate([self.event_rows, self.rows - self.event_rows])
        weight = None
        if self.weight is not None:
            each = np.tile(self.weight / self.rows, 2)
            weight = effective_counts(np.repeat(each, counts))
        return BinarySample(
            p=np.repeat(np.tile(self.low, 2), counts),
            y=np.repeat(np.repeat([1.0, 0.0], self.rows.size), counts),
            weight=weight,
            clusters=np.repeat(np.tile(self.group, 2), counts) if clustered else None,
        )

    def _weights(self) -> tuple[FloatVector, FloatVector]:
        """Return the weights of events, and of other rows.

        As for single rows, weights below one on average are scaled to sum to the
        effective number of rows.
        """
        weight = np.asarray(self.weight)
        of_events = np.minimum(np.asarray(self.event_weight), weight)
        others = np.where(self.event_rows < self.rows, weight - of_events, 0.0)
        total = float(weight.sum())
        scale = 1.0
        if total < self.rows.sum():
            scale = total / float(np.asarray(self.weight_squared).sum())
        return scale * of_events, scale * np.maximum(others, 0.0)


def sum_cells(
    p: FloatVector,
    y: FloatVector,
    weight: FloatVector | None = None,
    group: IntVector | None = None,
) -> CellSums:
    """Return the sums over the rows of each cell, and group; weights are above 0."""
    code = cell_numbers(p)
    if group is not None:
        code += group * CELLS
    if code.max() < MAX_CODES:
        place, size = code, int(code.max()) + 1
        known = np.arange(size)
    else:
        known, place = np.unique(code, return_inverse=True)
        size = known.size

    def total(values: FloatVector | None) -> FloatVector:
        return np.bincount(place, values, minlength=size).astype(np.float64)

    near = np.minimum(p, 1.0 - p)
    rows = total(None)
    used = np.flatnonzero(rows)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, place, p)
    np.maximum.at(high, place, p)
    weighted = {}
    if weight is not None:
        near = weight * near
        weighted = {
            "weight": total(weight)[used],
            "event_weight": total(weight * y)[used],
            "weight_squared": total(weight**2)[used],
        }
    return CellSums(
        group=known[used] // CELLS,
        cell=known[used] % CELLS,
        rows=rows[used].astype(np.intp),
        event_rows=total(y)[used].astype(np.intp),
        near=total(near)[used],
        low=low[used],
        high=high[used],
        **weighted,
    )
