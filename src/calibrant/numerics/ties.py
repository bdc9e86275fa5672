"""Ties: predictions that are equal, or differ by rounding alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import BoolVector, FloatVector, IntVector

SAME = 1e-15
"""Predictions that exceed the first one of a tie by less belong to the tie."""


def tie_starts(
    p: FloatVector, apart: BoolVector | None = None, same: float = SAME
) -> IntVector:
    """Return the first row of each tie of ascending predictions.

    Rows that are marked as `apart` belong to no tie with rows before them.

    A tie is narrower than `same`, however near its last prediction is to the next:
    many predictions, each near its neighbours, are many ties. scikit-learn's isotonic
    regression has the same rule.

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
    runs = zip(starts[wide].tolist(), stops[wide].tolist(), strict=True)
    inner = [start for run in runs for start in _inner_starts(p, *run, same)]
    return np.sort(np.append(starts, inner)).astype(np.intp)


def _inner_starts(p: FloatVector, first: int, stop: int, same: float) -> list[int]:
    """Return the rows from `first` to `stop` that start a tie, without `first`."""
    found, anchor = [], float(p[first])
    for row, value in enumerate(p[first:stop].tolist(), first):
        if value - anchor >= same:
            found.append(row)
            anchor = value
    return found


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
