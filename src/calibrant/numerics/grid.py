"""A fixed grid of cells over [0, 1]: ranks and bins in a few passes, without a sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector

CELLS = 4096
"""A power of two, so that multiplying a probability by it is exact."""

FEW_ROWS = 2048
"""Up to this many rows the ordinary search and selection are as fast."""

CROWDED = 2
"""With more edges than this in one cell, an ordinary search is faster."""


def cell_index(p: FloatVector) -> IntVector:
    """Return the cell of each probability; p = 1 has one of its own, the last."""
    return (p * CELLS).astype(np.intp)


def order_statistics(p: FloatVector, rank: IntVector) -> FloatVector:
    """Return the values that would stand at the given places were `p` sorted.

    Counting rows per cell tells in which cells the places lie; only the rows of these
    cells are looked at any further.

    Examples
    --------
    >>> order_statistics(np.array([0.4, 0.1, 0.9]), np.array([0, 1]))
    array([0.1, 0.4])
    """
    if rank.size == 0 or p.size <= FEW_ROWS:
        return np.partition(p, rank)[rank] if rank.size else p[:0]
    cell = cell_index(p)
    count = np.bincount(cell, minlength=CELLS + 1)
    below = np.cumsum(count) - count
    home = np.searchsorted(below + count, rank, side="right")
    wanted = np.zeros(CELLS + 1, dtype=bool)
    wanted[home] = True
    kept_below = np.cumsum(count * wanted) - count * wanted
    kept = p[wanted[cell]]
    place = rank - below[home] + kept_below[home]
    return np.asarray(np.partition(kept, place)[place], dtype=np.float64)


class BinFinder:
    """Find the number of the bin [edges[i], edges[i + 1]) that each `p` lies in.

    The same as a binary search over the inner edges, so that the last bin is closed,
    but for many rows several times faster: the cell of a prediction tells the bin of
    the cell's left end, and an edge inside the cell moves what lies right of it on.
    """

    def __init__(self, edges: FloatVector) -> None:
        self.inner = edges[1:-1]
        ends = np.arange(CELLS + 2) / CELLS
        self.bin_of_cell = np.searchsorted(self.inner, ends, side="right")
        self.edges_in_a_cell = int(np.diff(self.bin_of_cell).max())
        self.next_edge = np.append(self.inner, np.inf)

    def __call__(self, p: FloatVector) -> IntVector:
        """Return the bin of each prediction."""
        if self.edges_in_a_cell > CROWDED:
            return np.searchsorted(self.inner, p, side="right")
        index = self.bin_of_cell[cell_index(p)]
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
    if p.size <= FEW_ROWS:
        return np.searchsorted(edges[1:-1], p, side="right")
    return BinFinder(edges)(p)
