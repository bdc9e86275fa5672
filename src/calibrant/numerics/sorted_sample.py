"""A sample in order of its predictions, with running sums.

The sum of anything over all rows whose prediction lies below some value is then one
look-up, whatever the number of rows; sums over bins are differences of such sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )


def _running(values: FloatVector) -> FloatVector:
    below = np.empty(values.size + 1)
    below[0] = 0.0
    np.cumsum(values, out=below[1:])
    return below


def are_binary(y: FloatVector) -> bool:
    """Tell whether labels are 0 and 1 only."""
    return bool(((y == 0.0) | (y == 1.0)).all())


def _sorted_with_labels(
    p: FloatVector, y: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Sort by prediction, then label, as whole numbers: faster than looking up rows.

    The bits of floats that are not negative are in the order of the floats; doubled,
    they leave room for the label.
    """
    key = np.abs(p).view(np.int64) << 1  # the sign bit of -0.0 is in the way
    key |= y.astype(np.int64)
    key.sort()
    return (key >> 1).view(np.float64), (key & 1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class SortedSample:
    """Predictions in ascending order, with their labels and weights."""

    p: FloatVector
    y: FloatVector
    weight: FloatVector | None = None

    @classmethod
    def of(
        cls, p: FloatVector, y: FloatVector, weight: FloatVector | None = None
    ) -> SortedSample:
        """Sort by prediction; ties by label and weight, so that row order is lost.

        Examples
        --------
        >>> SortedSample.of(np.array([0.5, 0.2]), np.array([1.0, 0.0])).p
        array([0.2, 0.5])
        """
        if weight is None and are_binary(y):
            return cls(*_sorted_with_labels(p, y))
        order = np.argsort(p)
        ordered = p[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.lexsort((y, p) if weight is None else (weight, y, p))
        return cls(ordered, y[order], None if weight is None else weight[order])

    @cached_property
    def total(self) -> float:
        """Return the sum of weights."""
        return float(self.p.size if self.weight is None else self.weight.sum())

    @cached_property
    def weight_below(self) -> FloatVector:
        """Return the weight of the first i rows, for i from 0 to n."""
        if self.weight is None:
            return np.arange(self.p.size + 1, dtype=np.float64)
        return _running(self.weight)

    @cached_property
    def prob_below(self) -> FloatVector:
        """Return the weighted predictions of the first i rows."""
        return _running(self._weighted(self.p))

    @cached_property
    def label_below(self) -> FloatVector:
        """Return the weighted labels of the first i rows."""
        return _running(self._weighted(self.y))

    def _weighted(self, values: FloatVector) -> FloatVector:
        return values if self.weight is None else self.weight * values

    def rows_below(self, values: FloatMatrix) -> IntVector:
        """Return how many rows have a prediction below each value."""
        return np.searchsorted(self.p, values, side="left")

    def at_rank(self, ranks: FloatMatrix) -> FloatMatrix:
        """Return the prediction of the row before which `ranks` of weight lie."""
        if self.weight is None:
            row = ranks.astype(np.intp)
        else:
            row = np.searchsorted(self.weight_below[1:], ranks, side="right")
        return self.p[np.minimum(row, self.p.size - 1)]

    def take(self, rows: BoolVector) -> SortedSample:
        """Return the chosen rows, still in order."""
        weight = None if self.weight is None else self.weight[rows]
        return SortedSample(self.p[rows], self.y[rows], weight)
