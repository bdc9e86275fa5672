"""Rows of one value per class, summed to the same digit in any order of the classes.

A row that is divided by a sum which rounding makes depend on the order may fall on
either side of the edge of a bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix

DIGITS = 52
"""Whole numbers of one binary digit more are exact, and so are their sums."""


def row_sums(values: FloatMatrix) -> FloatMatrix:
    """Return the sum of each row as a column, for values from 0 to about 1.

    Values are parted into two whole numbers, of a large and of a tiny unit, whose sums
    are exact.

    Examples
    --------
    >>> row_sums(np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2]])).ravel().tolist()
    [1.0, 1.0]
    >>> 0.7 + 0.2 + 0.1 == 0.1 + 0.7 + 0.2
    False
    """
    unit = 2.0 ** (DIGITS - int(values.shape[1]).bit_length())
    scaled = values * unit
    large = np.rint(scaled)
    tiny = np.rint((scaled - large) * unit)
    totals = [part.sum(axis=1, keepdims=True) for part in (large, tiny)]
    return np.asarray((totals[0] + totals[1] / unit) / unit)


def softmax(scores: FloatMatrix) -> FloatMatrix:
    """Return the softmax of each row.

    Examples
    --------
    >>> softmax(np.array([[5000.0, 5000.0, -5000.0]]))
    array([[0.5, 0.5, 0. ]])
    """
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / row_sums(raised))
