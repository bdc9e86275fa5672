"""Sums over the rows of each cell of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.sample import BinarySample
from calibrant.core.weights import effective_counts
from calibrant.numerics.cell_grid import CELLS, FIRST_ABOVE_HALF, cell_numbers

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector

MAX_CODES = 2**22
"""With more groups than fit, only those cells are counted that there are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CellSums:
    """Sums over rows that share a cell, and a group where there are any.

    Attributes
    ----------
    group, cell : ndarray of shape (m,)
        Numbers of group and cell.
    rows, happened : ndarray of shape (m,)
        Number of rows, and of those in which the event happened.
    near : ndarray of shape (m,)
        Sum of weights times distances of predictions to the nearer end of [0, 1], so
        that even means near 1 have all their digits.
    low, high : ndarray of shape (m,)
        Least and largest prediction.
    weight, weight_happened, weight_squared : ndarray of shape (m,) or None
        Sum of weights, of those of rows in which the event happened, and of squared
        weights; None where rows have none.
    """

    group: IntVector
    cell: IntVector
    rows: IntVector
    happened: IntVector
    near: FloatVector
    low: FloatVector
    high: FloatVector
    weight: FloatVector | None = None
    weight_happened: FloatVector | None = None
    weight_squared: FloatVector | None = None

    @property
    def p(self) -> FloatVector:
        """Return the mean prediction of each cell, exact where all rows agree."""
        distance = self.near / (self.rows if self.weight is None else self.weight)
        mean = np.where(self.cell < FIRST_ABOVE_HALF, distance, 1.0 - distance)
        same = self.low == self.high
        return np.where(same, self.low, np.clip(mean, self.low, self.high))

    def sample(self) -> BinarySample:
        """Return the cells as a weighted sample.

        Each cell makes a row for the label 1 and one for 0, at its mean prediction.
        """
        others = self.rows - self.happened
        row_counts = np.concatenate([self.happened, others])
        used = row_counts > 0
        weights = (self.happened, others) if self.weight is None else self._weights()
        return BinarySample(
            p=np.tile(self.p, 2)[used],
            y=np.repeat([1.0, 0.0], others.size)[used],
            weight=np.concatenate(weights)[used].astype(np.float64),
            row_counts=row_counts[used].astype(np.intp),
        )

    def rows_apart(self) -> BinarySample:
        """Return the rows one by one; those of each cell must be alike."""
        counts = np.concatenate([self.happened, self.rows - self.happened])
        weight = None
        if self.weight is not None:
            each = np.tile(self.weight / self.rows, 2)
            weight = effective_counts(np.repeat(each, counts))
        return BinarySample(
            p=np.repeat(np.tile(self.low, 2), counts),
            y=np.repeat(np.repeat([1.0, 0.0], self.rows.size), counts),
            weight=weight,
        )

    def _weights(self) -> tuple[FloatVector, FloatVector]:
        """Return the weights of rows in which the event happened, and of others.

        As at the door of rows, weights below one on average are scaled to sum to the
        effective number of rows.
        """
        weight = np.asarray(self.weight)
        happened = np.minimum(np.asarray(self.weight_happened), weight)
        others = np.where(self.happened < self.rows, weight - happened, 0.0)
        total = float(weight.sum())
        scale = 1.0
        if total < self.rows.sum():
            scale = total / float(np.asarray(self.weight_squared).sum())
        return scale * happened, scale * np.maximum(others, 0.0)


def sum_cells(
    p: FloatVector,
    happened: FloatVector,
    weight: FloatVector | None = None,
    group: IntVector | None = None,
) -> CellSums:
    """Return the sums over the rows of each cell, and group; weights are above 0.

    Examples
    --------
    >>> sums = sum_cells(np.array([0.5, 0.2, 0.5]), np.array([1.0, 0.0, 0.0]))
    >>> sums.p, sums.rows, sums.happened
    (array([0.2, 0.5]), array([1, 2]), array([0, 1]))
    """
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
            "weight_happened": total(weight * happened)[used],
            "weight_squared": total(weight**2)[used],
        }
    return CellSums(
        group=known[used] // CELLS,
        cell=known[used] % CELLS,
        rows=rows[used].astype(np.intp),
        happened=total(happened)[used].astype(np.intp),
        near=total(near)[used],
        low=low[used],
        high=high[used],
        **weighted,
    )
