"""Samples in order of their predictions, with running sums and ties.

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
    from calibrant.core.sample import BinarySample

MAX_KEPT_ROWS = 2**20
"""Of samples with more rows the sorted ones are not kept, to save memory."""
SAME = 1e-15
"""Predictions that exceed the first one of a tie by less belong to the tie."""


def are_binary(y: FloatVector) -> bool:
    """Return whether labels are 0 and 1 only."""
    return bool(((y == 0.0) | (y == 1.0)).all())


def _running_sums(values: FloatVector) -> FloatVector:
    sums = np.zeros(values.size + 1)
    np.cumsum(values, out=sums[1:])
    return sums


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
            # Sorting whole numbers is faster than looking up rows. The bits of floats
            # that are not negative are in the order of the floats; doubled, they leave
            # room for the label. The absolute value removes the sign of -0.0.
            key = np.abs(p).view(np.int64) << 1
            key |= y.astype(np.int64)
            key.sort()
            return cls((key >> 1).view(np.float64), (key & 1).astype(np.float64))
        order = np.argsort(p)
        ordered = p[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.lexsort((y, p) if weight is None else (weight, y, p))
        return cls(ordered, y[order], None if weight is None else weight[order])

    @classmethod
    def of_sample(
        cls, sample: BinarySample, *, max_kept: int = MAX_KEPT_ROWS
    ) -> SortedSample:
        """Return the rows of a sample in order, sorted once unless they are many."""
        if sample.n > max_kept:
            return cls.of(sample.p, sample.y, sample.weight)
        return sample.cached(
            "sorted rows", lambda: cls.of(sample.p, sample.y, sample.weight)
        )

    @cached_property
    def total(self) -> float:
        """Return the sum of weights."""
        return float(self.p.size if self.weight is None else self.weight.sum())

    @cached_property
    def weight_below(self) -> FloatVector:
        """Return the weight of the first i rows, for i from 0 to n."""
        if self.weight is None:
            return np.arange(self.p.size + 1, dtype=np.float64)
        return _running_sums(self.weight)

    @cached_property
    def prob_below(self) -> FloatVector:
        """Return the weighted predictions of the first i rows."""
        return _running_sums(self.p if self.weight is None else self.weight * self.p)

    @cached_property
    def label_below(self) -> FloatVector:
        """Return the weighted labels of the first i rows."""
        return _running_sums(self.y if self.weight is None else self.weight * self.y)

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


def tie_starts(
    p: FloatVector, apart: BoolVector | None = None, same: float = SAME
) -> IntVector:
    """Return the first row of each tie of ascending predictions.

    A tie is narrower than `same`, however near its last prediction is to the next:
    many predictions, each near its neighbours, are many ties. scikit-learn's isotonic
    regression has the same rule. Rows that are marked as `apart` never tie with rows
    before them.

    Examples
    --------
    >>> tie_starts(np.array([0.3, 0.1 + 0.2, 0.5]))
    array([0, 2])
    >>> tie_starts(np.arange(6) * 0.6 * SAME)
    array([0, 2, 4])
    """
    rises = np.diff(p, prepend=-np.inf) >= same
    starts = np.flatnonzero(rises if apart is None else rises | apart)
    stops = np.append(starts[1:], p.size)
    wide = p[stops - 1] - p[starts] >= same
    if not wide.any():
        return starts
    inner = []
    for start, stop in zip(starts[wide].tolist(), stops[wide].tolist(), strict=True):
        first = float(p[start])
        for row, value in enumerate(p[start:stop].tolist(), start):
            if value - first >= same:
                inner.append(row)
                first = value
    return np.sort(np.append(starts, inner)).astype(np.intp)


def edges_between(below: FloatVector, above: FloatVector) -> FloatVector:
    """Return an edge between each two predictions, for bins closed on the left.

    Edges lie halfway. Between neighbouring floats halfway may round to the lower one,
    which belongs to the left bin: there the edge is the upper one.

    Examples
    --------
    >>> edges_between(np.array([0.25, 0.0]), np.array([0.5, 5e-324]))
    array([3.75e-001, 4.94e-324])
    """
    halfway = 0.5 * below + 0.5 * above
    return np.where(halfway > below, halfway, above)
