"""The bootstrap: resampled counts of cells, maps refitted to them, and their errors.

Rows are aggregated into cells first: a cell has the rows of one label whose predictions
lie in one short interval. How often a resample draws from each cell is multinomial, so
a thousand resamples cost the same for a thousand rows or a billion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.exceptions import LabelError
from calibrant.numerics.binning import (
    bin_index,
    binned_error,
    debiased_binned_error,
    width_edges,
)
from calibrant.numerics.cross_validation import ROUNDING
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Tops

CELLS = 128
"""Cells of equal width. The variance within one, at most (1/128)^2 / 4, is far below
the variance p (1 - p) of a label, so that nothing is lost by taking its mean."""
GROUPS = 512
"""How many groups of rows are resampled where several events share the rows."""
MAX_COPIES = 2**22
"""How many copies of weighted rows are kept apart where several events share rows."""
RESAMPLES_AT_ONCE = 128
"""How many resamples are refitted together."""


@dataclass(frozen=True, eq=False)
class BootstrapCells:
    """Rows aggregated by prediction and label.

    Attributes
    ----------
    left : ndarray of shape (m,)
        Left end of the cell's interval; ascending.
    p, y, weight : ndarray of shape (m,)
        Mean prediction, label and total weight of each cell that has any.
    row_cell : ndarray of shape (n,)
        The cell of each row.
    """

    left: FloatVector
    p: FloatVector
    y: FloatVector
    weight: FloatVector
    row_cell: IntVector


def bootstrap_cells(
    p: FloatVector, y: FloatVector, weight: FloatVector | None, edges: FloatVector
) -> BootstrapCells:
    """Aggregate rows into cells of equal width that also end at the given edges.

    Labels must be 0 or 1: a share of both has no cell of its own.
    """
    shares = np.flatnonzero((y != 0.0) & (y != 1.0))
    if shares.size:
        raise LabelError(
            f"labels must be 0 or 1 to be resampled; row {shares[0]} holds "
            f"{y[shares[0]]:g}. Make two weighted rows of it, one per label."
        )
    inner = np.unique(np.concatenate([edges[1:-1], width_edges(CELLS)[1:-1]]))
    fine = np.concatenate([[0.0], inner, [1.0]])
    code = 2 * bin_index(p, fine) + y.astype(np.intp)
    size = 2 * (fine.size - 1)
    total = np.bincount(code, weights=weight, minlength=size).astype(np.float64)
    weighted_p = p if weight is None else weight * p
    prob = np.bincount(code, weights=weighted_p, minlength=size)
    used = np.flatnonzero(total)
    position = np.zeros(size, dtype=np.intp)
    position[used] = np.arange(used.size)
    return BootstrapCells(
        left=fine[used // 2],
        p=prob[used] / total[used],
        y=(used % 2).astype(np.float64),
        weight=total[used],
        row_cell=position[code],
    )


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Rows in random groups, and how often each resample draws each group.

    With no more than `GROUPS` rows every row is a group of its own: the ordinary
    bootstrap. Several events on the same rows use the same draws, so that their errors
    stay correlated. A row of weight 2 counts as two rows, which may come into
    different groups.

    Attributes
    ----------
    group : ndarray of shape (m,)
        The group of each row, or of each copy of a row.
    counts : ndarray of shape (replicates, groups)
        How often each resample draws each group.
    row, weight : ndarray of shape (m,) or None
        The row and the weight of each copy; None where rows have no weights.
    """

    group: IntVector
    counts: FloatMatrix
    row: IntVector | None = None
    weight: FloatVector | None = None

    @classmethod
    def draw(
        cls,
        n: int,
        replicates: int,
        rng: np.random.Generator,
        weight: FloatVector | None = None,
        clusters: IntVector | None = None,
    ) -> RowGroups:
        """Put `n` rows, or whole clusters, into groups and resample the groups."""
        if clusters is not None:
            _, cluster = np.unique(clusters, return_inverse=True)
            alone = cls.draw(int(cluster.max()) + 1, replicates, rng)
            row = None if weight is None else np.arange(cluster.size)
            return cls(alone.group[cluster], alone.counts, row, weight)
        row = share = None
        if weight is not None:
            at_a_time = max(weight.sum() / MAX_COPIES, 1.0)
            copies = np.ceil(weight / at_a_time - ROUNDING).astype(np.intp)
            row = np.repeat(np.arange(n), copies)
            share = (weight / copies)[row]
            n = row.size
        groups = min(n, GROUPS)
        group = rng.permutation(np.arange(n) % groups)
        counts = rng.multinomial(groups, np.full(groups, 1.0 / groups), replicates)
        return cls(group, counts.astype(np.float64), row, share)

    def weights(self, cells: BootstrapCells) -> FloatMatrix:
        """Return the weight of each cell in each resample of the groups."""
        groups, size = self.counts.shape[1], cells.weight.size
        cell = cells.row_cell if self.row is None else cells.row_cell[self.row]
        code = self.group * size + cell
        share = np.bincount(code, weights=self.weight, minlength=groups * size)
        return np.asarray(self.counts @ share.reshape(groups, size), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Resamples(WeightedPoints):
    """Resamples over the same points, and the sample that they were drawn from."""

    sample: WeightedPoints


def refitted_errors(
    cells: BootstrapCells,
    weights: FloatMatrix,
    refit: Callable[[Resamples], FloatMatrix],
    alpha: float,
) -> FloatVector:
    """Return the error for each row of cell weights, by the map of each resample."""
    _, cell = np.unique(cells.left, return_inverse=True)
    first = np.searchsorted(cell, np.arange(cell[-1] + 1))

    def sums(weight: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
        label_sum = np.add.reduceat(weight * cells.y, first, axis=-1)
        return np.add.reduceat(weight, first, axis=-1), label_sum

    p = np.add.reduceat(cells.weight * cells.p, first)
    p /= np.add.reduceat(cells.weight, first)
    sample = WeightedPoints(p, *sums(cells.weight[np.newaxis]))
    errors = []
    for chunk in np.array_split(weights, -(-len(weights) // RESAMPLES_AT_ONCE)):
        resamples = Resamples(p, *sums(chunk), sample)
        gap = np.abs(refit(resamples) - p) ** alpha
        total = resamples.weight.sum(axis=1)
        errors.append((resamples.weight * gap).sum(axis=1) / total)
    return np.concatenate(errors)


def errors_over_bins(
    cells: BootstrapCells,
    weights: FloatMatrix,
    edges: FloatVector,
    tops: Tops,
    *,
    alpha: float,
    debias: bool,
) -> FloatVector:
    """Return the binned error for each row of cell weights, over the same bins."""
    index = bin_index(cells.left, edges)
    # Cells come in order and end at the edges, so each bin is a run of cells.
    starts = np.searchsorted(index, np.unique(index))

    def per_bin(values: FloatMatrix) -> FloatMatrix:
        return np.add.reduceat(values, starts, axis=1)

    weight, label_sum = per_bin(weights), per_bin(weights * cells.y)
    if tops == "slope-1":
        measure = debiased_binned_error if debias else binned_error
        return measure(weight, per_bin(weights * cells.p), label_sum, alpha=alpha)
    level = label_sum / np.maximum(weight, np.finfo(float).tiny)
    run = np.repeat(np.arange(starts.size), np.diff([*starts, index.size]))
    gap = np.abs(level[:, run] - cells.p) ** alpha
    return np.asarray((weights * gap).sum(axis=1) / weights.sum(axis=1))


def widen_to(value: float, low: float, high: float) -> tuple[float, float]:
    """Return the interval widened to include the value, and cut to [0, 1].

    Examples
    --------
    >>> widen_to(0.2, 0.3, 1.2)
    (0.2, 1.0)
    """
    low, high = min(low, value), max(high, value)
    return max(float(low), 0.0), min(float(high), 1.0)
