"""Straight lines between some of the points, and constants beyond the last ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.natural_splines import LEAST_SPACING, knots_apart

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector


def spread_nodes(x: FloatVector, weight: FloatVector, most: int) -> FloatVector:
    """Return at most `most` of ascending points, ends included.

    Half of them follow the weight and half the range: so there are many where there
    are many rows, and some all along.

    Examples
    --------
    >>> spread_nodes(np.array([0.0, 1.0, 2.0, 3.0, 9.0]), np.ones(5), 3)
    array([0., 3., 9.])
    """
    x, first = np.unique(x, return_index=True)
    if x.size > most:
        weight = np.add.reduceat(weight, first)
        below = np.cumsum(weight) - weight
        even = below / below[-1] + (x - x[0]) / (x[-1] - x[0])
        x = x[np.unique(np.searchsorted(even, np.linspace(0.0, even[-1], most)))]
    return knots_apart(x, LEAST_SPACING * (x[-1] - x[0]))


def interpolated(
    x: FloatVector, nodes: FloatVector, values: FloatMatrix
) -> FloatMatrix:
    """Return rows of `values`, one a node, straight between nodes, constant beyond.

    Examples
    --------
    >>> interpolated(np.array([-1.0, 0.5]), np.array([0.0, 1]), np.array([[4.0], [6]]))
    array([[4.],
           [5.]])
    """
    if nodes.size == 1:
        return np.repeat(values, x.size, axis=0)
    right = np.clip(np.searchsorted(nodes, x), 1, nodes.size - 1)
    left = right - 1
    share = (x - nodes[left]) / (nodes[right] - nodes[left])
    share = np.clip(share, 0.0, 1.0)[:, np.newaxis]
    return np.asarray((1.0 - share) * values[left] + share * values[right])
