"""Bins: edges, the bin of each prediction, sums per bin, and errors from these sums.

Bins are closed on the left and open on the right, [a, b), and the last one is closed
on both sides. Equal predictions therefore always fall into the same bin. For many rows,
a fixed grid of cells over [0, 1] gives ranks and bins in a few passes, without a sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv, erf

from calibrant.numerics.sorted_rows import sorted_if_known
from calibrant.numerics.weighted_points import cells_if_known, log_cell

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import (
        BoolMatrix,
        FloatMatrix,
        FloatVector,
        IntVector,
    )
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.weighted_points import LogCells

GRID_CELLS = 4096
"""A power of two, so that multiplying a probability by it is exact."""
GRID_MIN_ROWS = 2048
"""Up to this many rows the ordinary search and selection are as fast as the grid."""
CROWDED = 2
"""With more edges than this in one cell, an ordinary search is faster."""
MAX_CUT = 0.25
"""If edges may cut cells with a larger share of the rows, all rows are looked at."""
BLOCK = 16_384
"""Rows summed at once: few enough that temporary arrays stay in cache."""
DEBIASED_ALPHAS = (1.0, 2.0)
"""The exponents for which the bias of a binned error is known."""


@dataclass(frozen=True, eq=False)
class BinTable:
    """Sums per bin; all that a binned calibration error needs.

    Attributes
    ----------
    edges : ndarray of shape (k + 1,)
        From 0 to 1; bin i is [edges[i], edges[i + 1]), the last one closed.
    weight, prob, label_sum : ndarray of shape (k,)
        Sum of weights, of weight times prediction and of weight times label.
    """

    edges: FloatVector
    weight: FloatVector
    prob: FloatVector
    label_sum: FloatVector

    @property
    def mean_prob(self) -> FloatVector:
        """Return the mean prediction per bin, NaN where a bin is empty."""
        return self._per_weight(self.prob)

    @property
    def mean_label(self) -> FloatVector:
        """Return the observed rate per bin, NaN where a bin is empty."""
        return self._per_weight(self.label_sum)

    def _per_weight(self, total: FloatVector) -> FloatVector:
        none = np.full_like(self.weight, np.nan)
        return np.divide(total, self.weight, out=none, where=self.weight > 0.0)


def width_edges(bins: int) -> FloatVector:
    """Return the edges of `bins` bins of equal width, i / bins exactly.

    ``linspace(0, 1, 11)[3]`` is not 0.3; ``width_edges(10)[3]`` is.

    Examples
    --------
    >>> width_edges(10)[[3, 6, 7]]
    array([0.3, 0.6, 0.7])
    """
    return np.arange(bins + 1) / bins


def edges_with_ends(places: FloatVector) -> FloatVector:
    """Return the distinct places between 0 and 1, with both ends.

    Examples
    --------
    >>> edges_with_ends(np.array([0.25, 1.0]))
    array([0.  , 0.25, 1.  ])
    """
    inside = np.unique(places[(places > 0.0) & (places < 1.0)])
    return np.concatenate([[0.0], inside, [1.0]])


def split_ranks(total: float, bins: int | IntVector, cut: IntVector) -> FloatVector:
    """Return how many rows lie before cut number `cut` of `bins` equal parts.

    As ``np.array_split``: of 11 rows in 3 parts the first two get 4 rows, the last 3.
    """
    share, rest = np.divmod(total, bins)
    return np.asarray(cut * share + np.minimum(cut, rest), dtype=np.float64)


def size_edges(p: FloatVector, weight: FloatVector | None, bins: int) -> FloatVector:
    """Return the edges of `bins` bins with (nearly) equal numbers of rows.

    An edge is the first prediction of its bin. Where many predictions are equal,
    edges coincide and there are fewer bins than requested: ties are never split.
    """
    cut = np.arange(1, bins)
    if weight is None:
        rank = split_ranks(p.size, bins, cut).astype(np.intp)
        inner = order_statistics(p, rank)
    else:
        order = np.argsort(p)
        below = np.cumsum(weight[order])
        rank = np.searchsorted(below, split_ranks(below[-1], bins, cut), side="right")
        inner = p[order[np.minimum(rank, p.size - 1)]]
    return _with_ends(inner)


def _with_ends(inner: FloatVector) -> FloatVector:
    inner = np.unique(inner)
    return np.concatenate([[0.0], inner[inner > 0.0], [1.0]])


def sample_edges(sample: BinarySample, bins: int) -> FloatVector:
    """Return the edges of `size_edges` for the rows of a sample."""
    cells = cells_if_known(sample) if sample.weight is None else None
    if cells is None:
        rows = sorted_if_known(sample)
        return size_edges(rows.p, rows.weight, bins)

    def rows_of(homes: IntVector) -> FloatVector:
        return sample.p[cells.rows_in(cells.number[homes])]

    rank = split_ranks(sample.n, bins, np.arange(1, bins)).astype(np.intp)
    return _with_ends(_within_cells(cells.weight.astype(np.intp), rank, rows_of))


def grid_cell(p: FloatVector) -> IntVector:
    """Return the grid cell of each probability; p = 1 has one of its own, the last."""
    return (p * GRID_CELLS).astype(np.intp)


def order_statistics(p: FloatVector, rank: IntVector) -> FloatVector:
    """Return ``np.sort(p)[rank]``.

    Counting rows per cell gives the cells of these ranks; only the rows of these
    cells are examined further.
    """
    if rank.size == 0 or p.size <= GRID_MIN_ROWS:
        return np.partition(p, rank)[rank] if rank.size else p[:0]
    if is_ascending(p):
        return p[rank]
    cell = grid_cell(p)

    def rows_of(homes: IntVector) -> FloatVector:
        needed = np.zeros(GRID_CELLS + 1, dtype=bool)
        needed[homes] = True
        return p[needed[cell]]

    return _within_cells(np.bincount(cell, minlength=GRID_CELLS + 1), rank, rows_of)


def _within_cells(
    count: IntVector, rank: IntVector, rows_of: Callable[[IntVector], FloatVector]
) -> FloatVector:
    """Return order statistics, by the rows of those cells where they are."""
    ends = np.cumsum(count)
    home = np.searchsorted(ends, rank, side="right")
    homes, own = np.unique(home, return_inverse=True)
    before = np.cumsum(count[homes]) - count[homes]
    place = rank - (ends - count)[home] + before[own]
    return np.asarray(np.partition(rows_of(homes), place)[place], dtype=np.float64)


class BinFinder:
    """Find the number of the bin [edges[i], edges[i + 1]) that each `p` lies in.

    Equals a binary search over the inner edges, so that the last bin is closed, but
    is several times faster for many rows: a table gives the bin of each cell's left
    end, and an edge inside the cell moves rows to its right into the next bin.
    """

    def __init__(self, edges: FloatVector) -> None:
        self.inner = edges[1:-1]
        ends = np.arange(GRID_CELLS + 2) / GRID_CELLS
        self.bin_of_cell = np.searchsorted(self.inner, ends, side="right")
        self.edges_in_a_cell = int(np.diff(self.bin_of_cell).max())
        self.next_edge = np.append(self.inner, np.inf)

    def __call__(self, p: FloatVector) -> IntVector:
        """Return the bin of each prediction."""
        if self.edges_in_a_cell > CROWDED:
            return np.searchsorted(self.inner, p, side="right")
        index = self.bin_of_cell[grid_cell(p)]
        for _ in range(self.edges_in_a_cell):
            index += p >= self.next_edge[index]
        return index


def bin_index(p: FloatVector, edges: FloatVector) -> IntVector:
    """Return the number of the bin that each prediction lies in.

    Examples
    --------
    >>> bin_index(np.array([0.0, 0.3, 1.0]), np.array([0.0, 0.3, 1.0]))
    array([0, 1, 1])
    """
    if p.size <= GRID_MIN_ROWS:
        return np.searchsorted(edges[1:-1], p, side="right")
    return BinFinder(edges)(p)


def is_ascending(p: FloatVector) -> bool:
    """Tell whether predictions are in order; if not, the first ones mostly show it."""
    first = p[:GRID_MIN_ROWS]
    return bool((first[1:] >= first[:-1]).all() and (p[1:] >= p[:-1]).all())


def tabulate(
    p: FloatVector, y: FloatVector, weight: FloatVector | None, edges: FloatVector
) -> BinTable:
    """Return the sums per bin over the given edges."""
    bins = edges.size - 1
    if p.size > GRID_MIN_ROWS and is_ascending(p):
        return _tabulate_sorted(p, y, weight, edges)
    find = BinFinder(edges) if p.size > BLOCK else partial(bin_index, edges=edges)
    sums = np.zeros((3, bins))
    for start in range(0, p.size, BLOCK):
        rows = slice(start, start + BLOCK)
        index = find(p[rows])
        w = None if weight is None else weight[rows]
        prob, label = (v[rows] if w is None else w * v[rows] for v in (p, y))
        sums += [np.bincount(index, v, minlength=bins) for v in (w, prob, label)]
    return BinTable(edges, *sums)


def sample_table(sample: BinarySample, edges: FloatVector) -> BinTable:
    """Return the sums per bin over the rows of a sample."""
    cells = cells_if_known(sample)
    if cells is not None:
        cut, _ = log_cell(edges[1:-1])
        if cells.share_in(cut) <= MAX_CUT:
            return _table_of_cells(sample, cells, cut, edges)
    rows = sorted_if_known(sample)
    return tabulate(rows.p, rows.y, rows.weight, edges)


def _table_of_cells(
    sample: BinarySample, cells: LogCells, cut: IntVector, edges: FloatVector
) -> BinTable:
    """Return the same by sums over cells; rows of those that an edge may cut apart."""
    whole = ~np.isin(cells.number, cut)
    index = np.searchsorted(cut, cells.number[whole])
    sums = (cells.weight, cells.weight * cells.p, cells.label_sum)
    totals = (np.bincount(index, v[whole], minlength=edges.size - 1) for v in sums)
    rows = sample.take(cells.rows_in(cut))
    rest = tabulate(rows.p, rows.y, rows.weight, edges)
    parts = (rest.weight, rest.prob, rest.label_sum)
    return BinTable(edges, *(a + b for a, b in zip(totals, parts, strict=True)))


def _tabulate_sorted(
    p: FloatVector, y: FloatVector, weight: FloatVector | None, edges: FloatVector
) -> BinTable:
    """Return the same of rows in order: each bin is a run of rows."""
    starts = np.concatenate([[0], np.searchsorted(p, edges[1:-1])])
    rows = np.diff(starts, append=p.size)
    used = rows > 0

    def sums(values: FloatVector) -> FloatVector:
        total = np.zeros(rows.size)
        total[used] = np.add.reduceat(values, starts[used])
        return total

    if weight is None:
        return BinTable(edges, rows.astype(np.float64), sums(p), sums(y))
    return BinTable(edges, sums(weight), sums(weight * p), sums(weight * y))


def folded_normal_mean(mean: FloatMatrix, sd: FloatMatrix) -> FloatMatrix:
    """Return E abs(X) for X normal with the given mean and standard deviation."""
    size = np.abs(mean)
    z = np.divide(size, sd, out=np.full_like(size, np.inf), where=sd > 0.0)
    noise = sd * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z**2)
    return np.asarray(noise + size * erf(z / np.sqrt(2.0)), dtype=np.float64)


def binned_error(
    weight: FloatMatrix, prob: FloatMatrix, label: FloatMatrix, *, alpha: float
) -> FloatVector:
    """Return ECE, the weighted mean of abs(mean y - mean p) ** alpha over bins.

    Sums per bin stand on the last axis; any axes before it are kept, so that
    thousands of resampled tables are one call. Empty bins do not count.
    """
    gap = _per_weight(label - prob, weight, weight > 0.0)
    return _mean_over_bins(weight, np.abs(gap) ** alpha)


def debiased_binned_error(
    weight: FloatMatrix, prob: FloatMatrix, label: FloatMatrix, *, alpha: float
) -> FloatVector:
    """Return ECE less its estimated bias, for alpha 1 or 2; it may be negative.

    For alpha = 1 the observed rate s of a bin with n rows is replaced by a draw from
    N(s, s (1 - s) / n); the bias is the expected error of such draws less the observed
    error (Kumar et al. 2019). The expectation is that of a folded normal variable, in
    closed form. For alpha = 2 the sampling variance s (1 - s) / (n - 1) is subtracted,
    nothing where n is 1 or less.
    """
    gap = _per_weight(label - prob, weight, weight > 0.0)
    rate = np.clip(_per_weight(label, weight, weight > 0.0), 0.0, 1.0)
    variance = rate * (1.0 - rate)
    if alpha == 1.0:
        spread = np.sqrt(_per_weight(variance, weight, weight > 0.0))
        debiased = 2.0 * np.abs(gap) - folded_normal_mean(gap, spread)
        return _mean_over_bins(weight, debiased)
    if alpha == 2.0:  # noqa: PLR2004
        noise = _per_weight(variance, weight - 1.0, weight > 1.0)
        return _mean_over_bins(weight, gap**2 - noise)
    raise ValueError(f"no debiasing for alpha={alpha}")


def exact_interval(
    label_sum: FloatVector, weight: FloatVector, confidence: float
) -> tuple[FloatVector, FloatVector]:
    """Return the interval of Clopper and Pearson, which never covers too seldom.

    Its ends are those rates at which so many events, or more, and so many, or fewer,
    have half of the remaining probability.

    References
    ----------
    C. J. Clopper, E. S. Pearson (1934). The use of confidence or fiducial limits
    illustrated in the case of the binomial. Biometrika 26.
    doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> np.round(exact_interval(np.array([0.0, 8.0]), np.array([10.0, 10.0]), 0.95), 4)
    array([[0.    , 0.4439],
           [0.3085, 0.9748]])
    """
    tail = 0.5 * (1.0 - confidence)
    others = np.maximum(weight - label_sum, 0.0)
    some, not_all = label_sum > 0.0, others > 0.0
    low, high = np.zeros(label_sum.shape), np.ones(label_sum.shape)
    low[some] = betaincinv(label_sum[some], others[some] + 1.0, tail)
    high[not_all] = betaincinv(label_sum[not_all] + 1.0, others[not_all], 1.0 - tail)
    return low, high


def _per_weight(
    total: FloatMatrix, weight: FloatMatrix, used: BoolMatrix
) -> FloatMatrix:
    return np.divide(total, weight, out=np.zeros_like(total), where=used)


def _mean_over_bins(weight: FloatMatrix, values: FloatMatrix) -> FloatVector:
    total = np.sum(weight * values, axis=-1) / np.sum(weight, axis=-1)
    return np.asarray(total, dtype=np.float64)
