"""What checks look at: one event's predictions, gathered once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.binning import BinTable, size_edges, tabulate
from calibrant.numerics.log_cells import Gathered, many_cells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant._typing import FloatVector
    from calibrant._validation.sample import BinarySample

LEVEL = 0.01
"""How often a check may speak up about calibrated predictions."""
MOST_BINS = 20
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

    @cached_property
    def cells(self) -> Gathered:
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
        """Return sums over bins of equally many rows, none with few; empty ones left.

        There are 20 bins, or fewer, so that each has 50 rows.
        """
        cells = self.cells
        wanted = int(np.clip(self.total // ROWS_A_BIN, 1, MOST_BINS))
        edges = size_edges(cells.p, cells.weight, min(wanted, cells.p.size))
        share = cells.label / cells.weight
        table = tabulate(cells.p, share, cells.weight, edges)
        used = table.weight > 0.0
        last = np.append(table.edges[:-1][used], 1.0)
        return BinTable(last, table.weight[used], table.prob[used], table.label[used])
