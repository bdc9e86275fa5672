"""Quantiles of values that stand for several rows each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector

ROUNDING = 1e-9
"""Sums of weights that differ by this share are equal."""


def count_quantiles(
    values: FloatMatrix, weight: FloatVector, levels: Sequence[float]
) -> FloatMatrix:
    """Return quantiles of each column, shape (levels, columns).

    A value of weight w counts as w rows; between rows, quantiles are interpolated as
    by ``np.quantile``.

    Examples
    --------
    >>> values, weight = np.array([[3.0], [1.0]]), np.array([2.0, 1.0])
    >>> count_quantiles(values, weight, (0.25, 0.5))  # of 1, 3, 3
    array([[2.],
           [3.]])
    """
    order = np.argsort(values, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    ranks = np.cumsum(weight[order], axis=0) * (1.0 - ROUNDING)
    last = max(float(weight.sum()) - 1.0, 0.0)  # rows may count less than one

    def at(rank: float) -> FloatMatrix:
        """Return the row of each column that so many rows precede."""
        place = np.minimum((ranks <= rank).sum(axis=0), len(ordered) - 1)
        return np.asarray(np.take_along_axis(ordered, place[np.newaxis], axis=0)[0])

    rows = []
    for level in levels:
        below = np.floor(level * last)
        share = level * last - below
        between = (1.0 - share) * at(below) + share * at(below + 1.0)
        # The maximum may count less than one row.
        rows.append(ordered[-1] if level == 1.0 else between)
    return np.stack(rows)
