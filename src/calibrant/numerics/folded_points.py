"""Samples divided into folds and aggregated into few points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.parameters import legacy_generator
from calibrant.core.sample import BinarySample, kept_on_sample
from calibrant.numerics.binning import bin_index, size_edges
from calibrant.numerics.cell_grid import sum_cells
from calibrant.numerics.cross_validation import fold_counts, fold_numbers
from calibrant.numerics.sorted_rows import (
    SAME,
    are_binary,
    at_rank,
    edges_between,
    sorted_rows,
    tie_starts,
)
from calibrant.numerics.weighted_points import (
    MAX_EXACT_ROWS,
    TINY,
    WeightedPoints,
    compress_on_log_grid,
    even_cells,
)

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Seed


def folded_rows(
    sample: BinarySample, folds: int, random_state: Seed
) -> tuple[BinarySample, IntVector]:
    """Return the rows of a sample in order, and the fold of each.

    Rows are sorted first, so that their order does not matter. Very many are aggregated
    into cells, as engines do; the rows of a cell are then divided among folds.
    """
    rng = legacy_generator(random_state)
    folds = min(folds, sample.n_data)
    sample = sample_to_fold(sample)
    if sample.row_counts is None:
        rows = sorted_rows(sample)
        return rows, fold_numbers(sample.n, folds, rng)
    order = np.lexsort((sample.y, sample.p))
    row_counts = sample.row_counts[order]
    counts = fold_counts(row_counts, folds, rng)
    row, fold = np.nonzero(counts)
    each = order[row]
    weight = counts[row, fold].astype(np.float64)
    if sample.weight is not None:
        weight *= sample.weight[each] / row_counts[row]
    return BinarySample(sample.p[each], sample.y[each], weight), fold


def sample_to_fold(sample: BinarySample) -> BinarySample:
    """Return a sample as it is, or the cells of one that is very large."""
    alone = sample.row_counts is None and sample.clusters is None
    if alone and sample.n > MAX_EXACT_ROWS and are_binary(sample.y):
        return _cells(sample)
    return sample


@kept_on_sample("cells")
def _cells(sample: BinarySample) -> BinarySample:
    return sum_cells(sample.p, sample.y, sample.weight).sample()


FOLDED_CELLS = 2048
"""Mean scores of rows and of so many cells differ by less than 0.00001."""


def few_cells(sample: BinarySample) -> BinarySample:
    """Return a sample as it is, or at most 2,048 cells of one that is very large.

    That is enough to score smooth maps, and each cell still knows its rows, so that
    folds can divide them.
    """
    return sample if sample.n_data <= MAX_EXACT_ROWS else _few_cells(sample)


@kept_on_sample("cells to fold")
def _few_cells(sample: BinarySample) -> BinarySample:
    if not are_binary(sample.y):
        return sample
    if sample.weight is None:  # rows were counted already, for other fits
        points = compress_on_log_grid(sample)
        p, y = np.repeat(points.p, 2), np.tile([0.0, 1.0], points.p.size)
        others = points.weight - points.label_sum
        rows = weight = np.column_stack([others, points.label_sum]).ravel()
    else:
        cells = sample_to_fold(sample)
        order = np.argsort(cells.p)
        p, y, weight = cells.p[order], cells.y[order], cells.weights[order]
        rows = np.asarray(cells.row_counts, dtype=np.float64)[order]
    # Both labels of a prediction share a cell.
    distinct = np.cumsum(np.diff(p, prepend=p[0]) > 0.0)
    each = np.bincount(distinct, weight).astype(np.float64)
    cell = even_cells(p[np.diff(distinct, prepend=-1) > 0], each, FOLDED_CELLS)
    cell = cell[distinct]
    mean = np.bincount(cell, weight * p) / np.maximum(np.bincount(cell, weight), TINY)
    code = 2 * cell + y.astype(np.intp)
    counts = np.bincount(code, rows)
    used = np.flatnonzero(counts)
    return BinarySample(
        mean[used // 2],
        (used % 2).astype(np.float64),
        np.bincount(code, weight)[used].astype(np.float64),
        row_counts=counts[used].astype(np.intp),
    )


MAX_POINTS = 1024
"""With more distinct predictions than this, rows are aggregated into cells."""
CELLS = 512


@dataclass(frozen=True, eq=False)
class FoldedPoints(WeightedPoints):
    """A sample aggregated into points, with one row of sums per fold."""

    @classmethod
    def of(
        cls, rows: BinarySample, fold: IntVector, same: float = SAME
    ) -> FoldedPoints:
        """Aggregate sorted rows into points, one per distinct prediction if few.

        Predictions that differ by less than `same` are not distinct.
        """
        folds = int(fold.max()) + 1
        weight = rows.weights
        starts = tie_starts(rows.p, same=same)
        if starts.size <= MAX_POINTS:
            each = np.diff(starts, append=rows.p.size)
            cell = np.repeat(np.arange(starts.size), each)
        else:
            even = size_edges(rows.p, rows.weight, CELLS)
            tails = _tail_edges(rows, float(weight.sum()))
            ties = _tie_edges(rows.p, weight, starts)
            cell = bin_index(rows.p, np.union1d(even, np.append(tails, ties)))
        size = int(cell[-1]) + 1

        def per_fold(values: FloatVector) -> FloatMatrix:
            sums = np.bincount(fold * size + cell, values, minlength=folds * size)
            return sums.reshape(folds, size).astype(np.float64, copy=False)

        total = np.bincount(cell, weight, minlength=size)
        used = total > 0.0
        # Sums of distances, so that points near to each other stay in order.
        low = rows.p[np.searchsorted(cell, np.arange(size))]
        inside = np.bincount(cell, weight * (rows.p - low[cell]), minlength=size)
        p = low[used] + inside[used] / total[used]
        return cls(p, per_fold(weight)[:, used], per_fold(weight * rows.y)[:, used])

    @property
    def folds(self) -> int:
        """Return the number of folds."""
        return len(self.weight)

    def training(self) -> WeightedPoints:
        """Return the sums of all rows but those of each fold."""
        # Others are added up, as one huge weight less itself would leave nothing.
        others = 1.0 - np.eye(len(self.weight))
        return WeightedPoints(self.p, others @ self.weight, others @ self.label_sum)

    def together(self) -> WeightedPoints:
        """Return the sums of all rows."""
        sums = (values.sum(0)[np.newaxis] for values in (self.weight, self.label_sum))
        return WeightedPoints(self.p, *sums)

    def held_out_brier(self, values: FloatMatrix) -> float:
        """Return the mean Brier score of each fold's map on the rows it did not see.

        `values` are the maps at the points. Sums suffice, as labels are 0 or 1.
        """
        loss = values**2 * self.weight - 2.0 * values * self.label_sum + self.label_sum
        return float(np.mean(loss.sum(axis=1) / self.weight.sum(axis=1)))


def _tail_edges(rows: BinarySample, total: float) -> FloatVector:
    """Return edges that divide both outer cells of sorted rows, ever finer outwards.

    Between logits the outermost rows are far apart, and lines end there.
    """
    octaves = max(int(np.log2(total / CELLS)), 0) + 1
    rank = np.exp2(np.arange(octaves, dtype=np.float64))
    last = total - 1.0
    # Halfway between rows rank - 1 and rank from either end.
    inner = np.concatenate([rank, last - rank])
    outer = np.concatenate([rank - 1.0, last - rank + 1.0])
    halfway: FloatVector = 0.5 * at_rank(rows, inner) + 0.5 * at_rank(rows, outer)
    return halfway


def _tie_edges(p: FloatVector, weight: FloatVector, starts: IntVector) -> FloatVector:
    """Return edges around predictions that fill a cell, and around both outermost.

    In one cell with a neighbour, zeros would count as small probabilities. Between
    logits that is far off, and a line that ends there would go on to them unfitted.
    """
    between = edges_between(p[starts[1:] - 1], p[starts[1:]])
    alone = np.add.reduceat(weight, starts) >= weight.sum() / CELLS
    alone[[0, -1]] = True
    kept: FloatVector = between[alone[:-1] | alone[1:]]
    return kept
