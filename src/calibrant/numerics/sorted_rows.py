"""Rows in order of their predictions, with running sums and ties.

The sum of anything over all rows whose prediction lies below some value is then one
look-up, whatever the number of rows; sums over bins are differences of such sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.sample import BinarySample
from calibrant.numerics.sample_cache import cached_on_sample

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )

MAX_CACHED_ROWS = 2**20
"""Of samples with more rows the sorted ones are not cached, to save memory."""
SAME = 1e-15
"""Predictions that exceed the first one of a tie by less belong to the tie."""


def are_binary(y: FloatVector) -> bool:
    """Return whether labels are 0 and 1 only."""
    return bool(((y == 0.0) | (y == 1.0)).all())


def sorted_rows(sample: BinarySample) -> BinarySample:
    """Return the rows of a sample in order, sorted once unless they are many.

    Ties are in order of label and weight, so that the order of rows is lost.

    Examples
    --------
    >>> sorted_rows(BinarySample(np.array([0.5, 0.2]), np.array([1.0, 0.0]))).p
    array([0.2, 0.5])
    """
    return _sort(sample) if sample.p.size > MAX_CACHED_ROWS else _sorted_once(sample)


@cached_on_sample("sorted rows")
def _sorted_once(sample: BinarySample) -> BinarySample:
    return _sort(sample)


def sorted_if_known(sample: BinarySample) -> BinarySample:
    """Return the rows in order if they have been sorted before, else as they are.

    For sums over bins, which are faster over rows in order but not worth a sort.
    """
    return sample.cache.get("sorted rows") or sample


def _sort(sample: BinarySample) -> BinarySample:
    p, y, weight = sample.p, sample.y, sample.weight
    if weight is None and are_binary(y):
        # Sorting whole numbers is faster than looking up rows. The bits of floats
        # that are not negative are in the order of the floats; doubled, they leave
        # room for the label. The absolute value removes the sign of -0.0.
        key = np.abs(p).view(np.int64) << 1
        key |= y.astype(np.int64)
        key.sort()
        return BinarySample((key >> 1).view(np.float64), (key & 1).astype(np.float64))
    order = np.argsort(p)
    ordered = p[order]
    if (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort((y, p) if weight is None else (weight, y, p))
    return BinarySample(ordered, y[order], None if weight is None else weight[order])


@cached_on_sample("running sums")
def running_sums(rows: BinarySample) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Return weights, weighted predictions and labels of the first i rows, i = 0 to n.

    Examples
    --------
    >>> running_sums(BinarySample(np.array([0.25, 0.5]), np.array([1.0, 0.0])))[1]
    array([0.  , 0.25, 0.75])
    """
    p, y = rows.p, rows.y
    if rows.weight is not None:
        p, y = rows.weight * p, rows.weight * y
    return _weights_before(rows), _sums_before(p), _sums_before(y)


@cached_on_sample("sums of weights")
def _weights_before(rows: BinarySample) -> FloatVector:
    if rows.weight is None:
        return np.arange(rows.n + 1, dtype=np.float64)
    return _sums_before(rows.weight)


def _sums_before(values: FloatVector) -> FloatVector:
    sums = np.zeros(values.size + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def at_rank(rows: BinarySample, ranks: FloatMatrix) -> FloatMatrix:
    """Return the prediction of the sorted row before which `ranks` of weight lie."""
    if rows.weight is None:
        row = ranks.astype(np.intp)
    else:
        row = np.searchsorted(_weights_before(rows)[1:], ranks, side="right")
    return rows.p[np.minimum(row, rows.p.size - 1)]


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
    rises = np.ones(p.size, dtype=bool)
    np.greater_equal(p[1:] - p[:-1], same, out=rises[1:])
    starts = np.flatnonzero(rises if apart is None else rises | apart)
    stops = np.append(starts[1:], p.size)
    several = np.flatnonzero(stops - starts > 1)
    wide = several[p[stops[several] - 1] - p[starts[several]] >= same]
    inner = []
    for start, stop in zip(starts[wide].tolist(), stops[wide].tolist(), strict=True):
        first = float(p[start])
        for row, value in enumerate(p[start:stop].tolist(), start):
            if value - first >= same:
                inner.append(row)
                first = value
    return np.sort(np.append(starts, inner)).astype(np.intp) if inner else starts


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
