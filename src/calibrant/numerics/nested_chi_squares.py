"""The least p-value of nested chi-squares, and the chance of one so small.

Squares of independent standard normal numbers are summed up to several orders. Each sum
has a chi-square distribution; which of them is the most surprising is picked after
having seen them, and the price of that is known exactly: sums only grow by further
independent chi-squares, so that where they first pass their limits follows by
integration from order to order.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc, chdtri, gammaln

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import FloatMatrix, FloatVector

NODES = 128
"""Points of each integral: three digits of the chance, two of one below 1e-100."""


def log_tail(order: int, value: float) -> float:
    """Return the logarithm of the chance of a chi-square above a value.

    Examples
    --------
    >>> round(log_tail(2, 3.0), 6)  # -3 / 2
    -1.5
    >>> round(log_tail(2, 1e5), 6)
    -50000.0
    """
    chance = float(chdtrc(order, value))
    if chance > 0.0:
        return float(np.log(chance))
    half, x = 0.5 * order, 0.5 * value  # two terms of the series for large x
    tail = (half - 1.0) * np.log(x) - gammaln(half) + np.log1p((half - 1.0) / x)
    return float(tail - x)


def least_log_tail(squares: FloatVector, orders: Sequence[int]) -> float:
    """Return the logarithm of the least p-value among sums up to some orders."""
    sums = np.cumsum(squares)
    return min(log_tail(order, float(sums[order - 1])) for order in orders)


def chance_of_least(orders: Sequence[int], least: float) -> float:
    """Return the chance that the least p-value is at most `least`.

    Parameters
    ----------
    orders : sequence of int
        Ascending; even but for the first.
    least : float
        A p-value.

    Examples
    --------
    >>> chance_of_least([2], 0.05)
    0.05
    >>> round(chance_of_least([2, 4, 8], 0.05), 4)
    0.1001
    """
    if not 0.0 < least < 1.0:
        return float(least)
    limits = [float(chdtri(order, least)) for order in orders]
    nodes, share = _unit_integral()
    sums, passed = limits[0] * nodes, least
    # Mass of sums that have not passed any limit so far.
    mass = limits[0] * share * _density(orders[0], sums)
    for k in range(1, len(orders)):
        further = orders[k] - orders[k - 1]
        passed += float(mass @ chdtrc(further, limits[k] - sums))
        longer = limits[k] * nodes
        reached = _density(further, longer[:, np.newaxis] - sums) @ mass
        sums, mass = longer, limits[k] * share * reached
    return min(passed, 1.0)


@cache
def _unit_integral() -> tuple[FloatVector, FloatVector]:
    """Return points between 0 and 1, and their shares in an integral."""
    nodes, share = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (nodes + 1.0), 0.5 * share


def _density(order: int, value: FloatMatrix) -> FloatMatrix:
    half, x = 0.5 * order, np.maximum(0.5 * value, np.finfo(float).tiny)
    found = 0.5 * np.exp((half - 1.0) * np.log(x) - x - gammaln(half))
    return np.where(value > 0.0, found, 0.0)
