"""Cross-validation: folds, their rows and points, and choices by held-out losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibrant.core.parameters import legacy_generator
from calibrant.core.sample import BinarySample
from calibrant.numerics.binning import bin_index, size_edges
from calibrant.numerics.cell_grid import sum_cells
from calibrant.numerics.sample_cache import cached_on_sample
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
    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntMatrix,
        IntVector,
        Seed,
    )

    Random: TypeAlias = np.random.RandomState | np.random.Generator

MAX_SHUFFLED = 2**16
"""Up to this many aggregated rows get the folds that they had as single rows; more if
drawing counts for each cell and fold would take longer."""
MAX_DRAWN = 10**9
"""NumPy draws without replacement from fewer rows than this."""
FOLDED_CELLS = 2048
"""Mean scores of rows and of so many cells differ by less than 0.00001."""
MAX_POINTS = 1024
"""With more distinct predictions than this, rows are aggregated into cells."""
CELLS = 512
MAX_KEYS = 10
"""Rows whose ten largest scores are all equal count as equal."""
ROUNDING = 1e-12
"""Losses that differ by less are equal."""
MIN_WEIGHT = 0.2
"""Choices that weigh less than this share of the best do not enter a mean."""
EXTRA_COST = 2.0
"""What complexity beyond that which the rows support costs in log-likelihood: as much
as two parameters, a knot and its height, by Akaike's criterion."""
RISES = 4
CLEARLY_WORSE = 1.001
"""So many choices in a row that lose more than 0.1 percent and have no weight end a
search."""


def fold_numbers(n: int, folds: int, rng: Random) -> IntVector:
    """Return the fold of each of `n` rows, shuffled, sizes differing by one at most.

    Given a ``RandomState``, the folds are those of scikit-learn's
    ``KFold(folds, shuffle=True)`` with the same state.

    Examples
    --------
    >>> fold_numbers(6, 3, np.random.RandomState(1))
    array([1, 0, 0, 2, 1, 2])
    """
    shuffled = np.arange(n)
    rng.shuffle(shuffled)
    sizes = np.full(folds, n // folds)
    sizes[: n % folds] += 1
    fold = np.empty(n, dtype=np.intp)
    fold[shuffled] = np.repeat(np.arange(folds), sizes)
    return fold


def cluster_fold_numbers(clusters: IntVector, folds: int, rng: Random) -> IntVector:
    """Return the fold of each row; those of a cluster are in the same one.

    Examples
    --------
    >>> cluster_fold_numbers(np.array([7, 7, 3, 5]), 3, np.random.RandomState(0))
    array([0, 0, 2, 1])
    """
    names, cluster = np.unique(clusters, return_inverse=True)
    fold: IntVector = fold_numbers(names.size, min(folds, names.size), rng)[cluster]
    return fold


def fold_counts(rows: IntVector, folds: int, rng: Random) -> IntMatrix:
    """Return how many of the rows of each cell are in each fold, shape (m, folds).

    As if all rows were shuffled: counts are drawn without replacement, so that sizes
    of folds differ by one at most. Beyond a billion rows each row falls into any fold
    independently, which makes no difference that could be noticed.
    """
    total = int(rows.sum())
    if total <= max(MAX_SHUFFLED, folds * rows.size):
        cell = np.repeat(np.arange(rows.size), rows)
        code = cell * folds + fold_numbers(total, folds, rng)
        return np.bincount(code, minlength=rows.size * folds).reshape(-1, folds)
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(rng.randint(2**32, size=4, dtype=np.uint32))
    if total >= MAX_DRAWN:
        return rng.multinomial(rows, np.full(folds, 1.0 / folds))
    left, parts = rows.astype(np.int64), []
    for number in range(folds - 1):
        size = total // folds + (number < total % folds)
        parts.append(rng.multivariate_hypergeometric(left, size, method="marginals"))
        left = left - parts[-1]
    return np.stack([*parts, left], axis=1)


def class_fold_numbers(
    x: FloatMatrix, column: IntVector, share: FloatVector, folds: int, rng: Random
) -> IntVector:
    """Return the fold of each row of a multi-class sample.

    Rows are sorted first, by the top score, that of the true class and the other
    large ones, so that neither the order of rows nor that of classes matters.
    """
    own = x[np.arange(column.size), column]
    largest = -np.sort(-x, axis=1)[:, :MAX_KEYS]
    # Rows that are equal so far differ by a swap of classes at most: only there does
    # the order of classes count.
    swapped = (column, *x[:, :MAX_KEYS].T)
    order = np.lexsort((share, *swapped, *largest[:, :0:-1].T, own, largest[:, 0]))
    fold = np.empty(order.size, dtype=np.intp)
    fold[order] = fold_numbers(order.size, folds, rng)
    return fold


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


@cached_on_sample("cells")
def _cells(sample: BinarySample) -> BinarySample:
    return sum_cells(sample.p, sample.y, sample.weight).sample()


def few_cells(sample: BinarySample) -> BinarySample:
    """Return a sample as it is, or at most 2,048 cells of one that is very large.

    That is enough to score smooth maps, and each cell still knows its rows, so that
    folds can divide them.
    """
    return sample if sample.n_data <= MAX_EXACT_ROWS else _few_cells(sample)


@cached_on_sample("cells to fold")
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


def is_past_the_best(losses: FloatVector, weights: FloatVector) -> bool:
    """Return whether losses, from simple to complex, are well past their minimum."""
    worse = (losses > CLEARLY_WORSE * losses.min() + ROUNDING) & (weights == 0.0)
    return bool(losses.size > RISES and worse[-RISES:].all())


def likelihood_weights(
    losses: FloatVector, unit: FloatVector, min_weight: float = MIN_WEIGHT
) -> FloatVector:
    """Return weights proportional to exp(-loss / unit), the smallest set to 0.

    The last axis is that of the choices.

    Examples
    --------
    >>> likelihood_weights(np.array([0.3, 0.1, 0.1]), unit=np.array([0.01]))
    array([0. , 0.5, 0.5])
    """
    least = losses.min(axis=-1, keepdims=True)
    weight = np.exp((least - losses) / np.maximum(unit, ROUNDING))
    weight = np.where(weight < min_weight, 0.0, weight)
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def brier_unit(losses: FloatVector, rows: float) -> FloatVector:
    """Return the difference of mean Brier scores for a log-likelihood ratio of 1.

    The likelihood is that of normal noise whose variance is the smallest score.

    Examples
    --------
    >>> brier_unit(np.array([0.2, 0.1]), rows=100)
    array([0.002])
    """
    least = losses.min(axis=-1, keepdims=True)
    return np.asarray(2.0 * np.maximum(least, 0.0) / rows)


def simplest_weight(losses: FloatVector, tolerance: float) -> FloatVector:
    """Return weights that are 1 at the choice of `simplest_within`, 0 elsewhere."""
    return np.asarray(
        np.arange(losses.size) == simplest_within(losses, tolerance), dtype=np.float64
    )


def simplest_within(losses: FloatVector, tolerance: float) -> int:
    """Return the first index whose loss is within `tolerance` of the smallest.

    Losses are ordered from simple to complex, so with a tolerance of 0.001 this is
    the paper's rule (appendix C.2): prefer fewer bins whenever they cost less than
    0.1 percent.

    Examples
    --------
    >>> simplest_within(np.array([0.2, 0.10005, 0.11, 0.1]), tolerance=0.001)
    1
    """
    # A perfect fit may come out a rounding error below 0.
    least = max(float(losses.min()), 0.0)
    return int(np.argmax(losses <= least * (1.0 + tolerance) + ROUNDING))
