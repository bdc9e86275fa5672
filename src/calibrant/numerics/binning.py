"""Bins: edges, the bin of each prediction, and sums per bin.

Bins are closed on the left and open on the right, [a, b), and the last one is closed
on both sides. Equal predictions therefore always fall into the same bin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.grid import BinFinder, bin_index, order_statistics

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector


BLOCK = 16_384
"""Rows summed at once: few enough that what is computed on the way stays in cache."""


@dataclass(frozen=True, eq=False)
class BinTable:
    """Sums per bin; all that a binned calibration error needs.

    Tables over the same edges add up, so parts of the data can be summed apart.

    Attributes
    ----------
    edges : ndarray of shape (k + 1,)
        From 0 to 1; bin i is [edges[i], edges[i + 1]), the last one closed.
    weight, prob, label : ndarray of shape (k,)
        Sum of weights, of weight times prediction and of weight times label.
    """

    edges: FloatVector
    weight: FloatVector
    prob: FloatVector
    label: FloatVector

    @property
    def mean_prob(self) -> FloatVector:
        """Return the mean prediction per bin, NaN where a bin is empty."""
        return _ratio(self.prob, self.weight)

    @property
    def mean_label(self) -> FloatVector:
        """Return the share of positives per bin, NaN where a bin is empty."""
        return _ratio(self.label, self.weight)

    def __add__(self, other: BinTable) -> BinTable:
        if not np.array_equal(self.edges, other.edges):
            raise ValueError("only tables over the same edges add up")
        return BinTable(
            self.edges,
            self.weight + other.weight,
            self.prob + other.prob,
            self.label + other.label,
        )


def _ratio(total: FloatVector, weight: FloatVector) -> FloatVector:
    used = weight > 0.0
    return np.divide(total, weight, out=np.full_like(weight, np.nan), where=used)


def width_edges(bins: int) -> FloatVector:
    """Return the edges of `bins` bins of equal width, i / bins exactly.

    ``linspace(0, 1, 11)[3]`` is not 0.3; ``width_edges(10)[3]`` is.

    Examples
    --------
    >>> width_edges(10)[[3, 6, 7]]
    array([0.3, 0.6, 0.7])
    """
    return np.arange(bins + 1) / bins


def split_ranks(total: float, bins: int | IntVector, cut: IntVector) -> FloatVector:
    """Return how many rows lie before cut number `cut` of `bins` equal parts.

    As ``np.array_split``: of 11 rows in 3 parts the first two get 4 rows, the last 3.
    """
    share, rest = np.divmod(total, bins)
    return np.asarray(cut * share + np.minimum(cut, rest), dtype=np.float64)


def size_edges(p: FloatVector, weight: FloatVector | None, bins: int) -> FloatVector:
    """Return the edges of `bins` bins with (nearly) equally many rows each.

    An edge is the first prediction of its bin. Where many predictions are equal,
    edges coincide and there are fewer bins than asked: ties are never torn apart.
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
    inner = np.unique(inner)
    return np.concatenate([[0.0], inner[inner > 0.0], [1.0]])


def tabulate(
    p: FloatVector, y: FloatVector, weight: FloatVector | None, edges: FloatVector
) -> BinTable:
    """Return the sums per bin over the given edges.

    Examples
    --------
    >>> p, y = np.array([0.1, 0.3, 0.65, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])
    >>> table = tabulate(p, y, None, width_edges(2))
    >>> table.weight, table.mean_label
    (array([2., 2.]), array([0.5, 0.5]))
    """
    bins = edges.size - 1
    find = BinFinder(edges) if p.size > BLOCK else partial(bin_index, edges=edges)
    sums = np.zeros((3, bins))
    for start in range(0, p.size, BLOCK):
        rows = slice(start, start + BLOCK)
        part = None if weight is None else weight[rows]
        sums += _block_sums(find(p[rows]), p[rows], y[rows], part, bins)
    return BinTable(edges, *sums)


def _block_sums(
    index: IntVector,
    p: FloatVector,
    y: FloatVector,
    weight: FloatVector | None,
    bins: int,
) -> FloatVector:
    if weight is not None:
        p, y = weight * p, weight * y
    return np.stack(
        [np.bincount(index, weights=w, minlength=bins) for w in (weight, p, y)]
    )
