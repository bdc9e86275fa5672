"""A sample gathered into few points whose rows are parted into folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.binning import size_edges
from calibrant.numerics.grid import bin_index
from calibrant.numerics.isotonic import SAME
from calibrant.numerics.piecewise_problems import Points

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector, IntVector
    from calibrant.numerics.sorted_sample import SortedSample

MOST_POINTS = 1024
"""With more distinct predictions than this, rows are gathered into cells."""
CELLS = 512


@dataclass(frozen=True, eq=False)
class FoldedPoints:
    """A sample gathered into points, each point's rows parted into folds.

    Attributes
    ----------
    p : ndarray of shape (m,)
        Mean prediction of each point, ascending.
    weight, label : ndarray of shape (folds, m)
        Sum of weights and of weighted labels per fold.
    """

    p: FloatVector
    weight: FloatMatrix
    label: FloatMatrix

    @classmethod
    def of(cls, rows: SortedSample, fold: IntVector) -> FoldedPoints:
        """Gather sorted rows into points, one per distinct prediction if few.

        Predictions that differ by rounding alone are not distinct.
        """
        folds = int(fold.max()) + 1
        weight = np.ones(rows.p.size) if rows.weight is None else rows.weight
        distinct = 1 + np.count_nonzero(np.diff(rows.p) > SAME)
        if distinct <= MOST_POINTS:
            cell = np.cumsum(np.diff(rows.p, prepend=rows.p[0]) > SAME, dtype=np.intp)
        else:
            even = size_edges(rows.p, rows.weight, CELLS)
            cell = bin_index(rows.p, np.union1d(even, _tail_edges(rows.p, CELLS)))
        size = int(cell[-1]) + 1

        def per_fold(values: FloatVector) -> FloatMatrix:
            sums = np.bincount(fold * size + cell, values, minlength=folds * size)
            return sums.reshape(folds, size).astype(np.float64, copy=False)

        total = np.bincount(cell, weight, minlength=size)
        used = total > 0.0
        p = np.bincount(cell, weight * rows.p, minlength=size)[used] / total[used]
        return cls(p, per_fold(weight)[:, used], per_fold(weight * rows.y)[:, used])

    def training(self, x: FloatVector) -> Points:
        """Return one problem per fold: all rows but those of the fold."""
        # Others are added up, as one huge weight less itself would leave nothing.
        others = 1.0 - np.eye(len(self.weight))
        return points_of(x, others @ self.weight, others @ self.label)

    def together(self, x: FloatVector) -> Points:
        """Return the one problem of all rows."""
        return points_of(
            x, self.weight.sum(0)[np.newaxis], self.label.sum(0)[np.newaxis]
        )

    def held_out_brier(self, values: FloatMatrix) -> float:
        """Return the mean Brier score of each fold's map on the rows it did not see.

        `values` are the maps at the points; the score lacks nothing as labels are 0
        or 1.
        """
        loss = values**2 * self.weight - 2.0 * values * self.label + self.label
        return float(np.mean(loss.sum(axis=1) / self.weight.sum(axis=1)))


def _tail_edges(p: FloatVector, cells: int) -> FloatVector:
    """Return edges that part both outer cells of sorted rows, ever finer outwards.

    Between logits the outermost rows are far apart, and lines end there.
    """
    rows = 2 ** np.arange(max(int(np.log2(p.size / cells)), 0) + 1)
    low = 0.5 * (p[rows - 1] + p[rows])
    high = 0.5 * (p[-rows] + p[-rows - 1])
    return np.concatenate([low, high])


def points_of(x: FloatVector, weight: FloatMatrix, label: FloatMatrix) -> Points:
    """Return problems given by sums of weights and of weighted labels."""
    some = weight > 0.0
    share = np.divide(label, weight, out=np.zeros_like(label), where=some)
    return Points(x, np.maximum(weight, 0.0), np.clip(share, 0.0, 1.0))
