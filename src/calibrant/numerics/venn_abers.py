"""Inductive Venn-Abers prediction: isotonic regression with one more row, both ways.

A new prediction s joins the sample once with label 0 and once with label 1. The values
at s of the two isotonic fits, p0 <= p1, are the two probabilities. Neither fit is
repeated for each s. With running sums W of the weights and S of the labels before point
i, and blocks [.., e) of the isotonic fit to the sample itself,

    p1 at point i = max over j <= i of  min over block ends e > j of
                    (S_e - S_j + 1) / (W_e - W_j + 1),

because a label of 1 raises the fit from its own block on only, and whole blocks join or
do not. The inner minimum is the slope of the tangent from (W_j - 1, S_j - 1) to the
convex chain of block ends, found by bisection. p0 is the same, seen from the other end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.isotonic import pooled_rates

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector


def venn_abers_limits(
    label_sum: FloatVector, weight: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Return p0 and p1 at each distinct prediction, in ascending order of these.

    A prediction between two of them has the p0 of the lower one and the p1 of the
    upper one; p0 is 0 below all of them, p1 is 1 above all of them.

    Parameters
    ----------
    label_sum, weight : ndarray of shape (m,)
        Sum of weighted labels and of weights at each prediction.

    References
    ----------
    V. Vovk, I. Petej, V. Fedorova (2015). Large-scale probabilistic predictors with and
    without guarantees of validity. NeurIPS. doi:10.48550/arXiv.1511.00213

    Examples
    --------
    >>> low, high = venn_abers_limits(np.array([0.0, 2.0]), np.array([3.0, 2.0]))
    >>> low.round(2), high.round(2)
    (array([0.  , 0.67]), array([0.25, 1.  ]))
    """
    others = weight - label_sum
    return 1.0 - _upper(others[::-1], weight[::-1])[::-1], _upper(label_sum, weight)


def _upper(label_sum: FloatVector, weight: FloatVector) -> FloatVector:
    """Return p1 at each prediction."""
    value, starts = pooled_rates(label_sum, weight)
    labels, rows = (np.append(0.0, np.cumsum(sums)) for sums in (label_sum, weight))
    ends = np.append(starts[1:], weight.size)

    def slopes(point: IntVector, block: IntVector) -> FloatVector:
        end = ends[block]
        rise, run = labels[end] - labels[point], rows[end] - rows[point]
        return np.asarray((rise + 1.0) / (run + 1.0))

    point = np.arange(weight.size)
    block = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
    tangent, following = slopes(point, block), np.append(value[1:], np.inf)
    point = np.flatnonzero(following[block] < tangent)  # the next block joins
    first, last = block[point] + 1, np.full(point.size, ends.size - 1)
    for _ in range(int(ends.size).bit_length()):
        middle = (first + last) // 2
        joins = following[middle] < slopes(point, middle)
        first, last = np.where(joins, middle + 1, first), np.where(joins, last, middle)
    tangent[point] = slopes(point, first)
    return np.maximum.accumulate(tangent)
