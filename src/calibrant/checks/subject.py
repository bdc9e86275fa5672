"""What checks look at: one event's predictions, gathered once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.sample import FEW_ROWS
from calibrant.numerics.binning import BinTable, size_edges, tabulate
from calibrant.numerics.grid import bin_index
from calibrant.numerics.log_cells import WeightedPoints, many_cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import FloatVector
    from calibrant.core.sample import BinarySample

LEVEL = 0.01
"""How often a check may speak up about calibrated predictions."""
MAX_BINS = 20
ROWS_A_BIN = 50


@dataclass(frozen=True, eq=False)
class Subject:
    """Predictions of one event, as checks look at them.

    Attributes
    ----------
    sample : BinarySample
        Predictions and outcomes.
    event : str
        "binary", "confidence" or a class.
    level : float
        Chance of a false alarm that each check may take.
    groups : dict
        Samples of groups of the rows, by name.
    """

    sample: BinarySample
    event: str = "binary"
    level: float = LEVEL
    groups: Mapping[str, BinarySample] = field(default_factory=dict)

    @property
    def top_label(self) -> bool:
        """Tell whether the event is that the top class is right."""
        return self.event == "confidence"

    @property
    def rate(self) -> str:
        """Return what the mean of the labels is called."""
        return "accuracy" if self.top_label else "observed rate"

    @property
    def one_outcome(self) -> bool:
        """Tell whether the event always happened, or never."""
        return not 0.0 < float(self.cells.label.sum()) < self.total

    def method(self, binary: str) -> str:
        """Return the name that a binary method has for predictions of this kind.

        Examples
        --------
        >>> Subject(None, "confidence").method("smooth")
        'top-smooth'
        """
        lifts = {"binary": "", "confidence": "top-"}
        return f"{lifts.get(self.event, 'ovr-')}{binary}"

    @cached_property
    def cells(self) -> WeightedPoints:
        """Return the rows, or fine cells of them where there are very many."""
        return many_cells(self.sample)

    @cached_property
    def total(self) -> float:
        """Return the number of rows that there are, weights counted."""
        return self.sample.total

    @cached_property
    def noise(self) -> FloatVector:
        """Return the variance of each cell's sum of labels, were p calibrated."""
        return self.cells.weight * self.cells.p * (1.0 - self.cells.p)

    @cached_property
    def excess(self) -> FloatVector:
        """Return by how much each cell's sum of labels exceeds the predicted one."""
        return self.cells.label - self.cells.weight * self.cells.p

    @cached_property
    def bins(self) -> BinTable:
        """Return sums over bins of about equally many rows.

        There are 20 bins, or fewer, so that each has 50 rows; where ties leave one
        with fewer than 30, it joins its neighbour.
        """
        cells = self.cells
        wanted = int(np.clip(self.total // ROWS_A_BIN, 1, MAX_BINS))
        edges = size_edges(cells.p, cells.weight, min(wanted, cells.p.size))
        share = cells.label / cells.weight
        rows = tabulate(cells.p, share, cells.weight, edges).weight
        return tabulate(cells.p, share, cells.weight, _full(edges, rows))

    @cached_property
    def spans(self) -> tuple[FloatVector, FloatVector]:
        """Return the lowest and the highest prediction of each bin."""
        index = bin_index(self.cells.p, self.bins.edges)
        parts = [self.cells.p[index == k] for k in range(self.bins.weight.size)]
        lowest, highest = zip(*((p.min(), p.max()) for p in parts), strict=True)
        return np.array(lowest), np.array(highest)


def _full(edges: FloatVector, rows: FloatVector) -> FloatVector:
    """Return the edges of bins that have enough rows each, neighbours joined.

    Examples
    --------
    >>> _full(np.array([0.0, 0.2, 0.3, 0.8, 1.0]), np.array([40.0, 3.0, 50.0, 7.0]))
    array([0. , 0.2, 1. ])
    """
    kept, since = [0.0], 0.0
    for edge, number in zip(edges[1:], rows, strict=True):
        since += number
        if since >= FEW_ROWS:
            kept.append(edge)
            since = 0.0
    # What is left over at the end joins the bin before it.
    return np.array([*(kept[:-1] if len(kept) > 1 else kept), 1.0])
