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

    from calibrant.core.array_types import FloatMatrix, FloatVector

ROUNDING = 0.01
"""Margin of the bounds between which a logarithm is searched for."""
NODES = 128
"""Points of each integral: three digits of the chance, two of one below 1e-100."""


def log_tail(order: int, value: FloatVector) -> FloatVector:
    """Return the logarithm of the chance of a chi-square above values.

    Examples
    --------
    >>> log_tail(2, np.array([3.0, 1e5])).round(6)  # minus halves of them
    array([-1.5e+00, -5.0e+04])
    """
    value = np.asarray(value, dtype=np.float64)
    chance = chdtrc(order, value)
    positive = chance > 0.0
    # Where chances vanish, two terms of the series for large x.
    half, x = 0.5 * order, 0.5 * np.where(positive, 2.0 * order, value)
    tail = (half - 1.0) * np.log(x) - gammaln(half) + np.log1p((half - 1.0) / x) - x
    return np.where(positive, np.log(np.where(positive, chance, 1.0)), tail)


def least_log_tails(squares: FloatMatrix, orders: Sequence[int]) -> FloatVector:
    """Return the logarithm of the least p-value among sums up to some orders.

    The last axis of the squares is that of orders.
    """
    sums = np.cumsum(squares, axis=-1)
    tails = [log_tail(order, sums[..., order - 1]) for order in orders]
    return np.asarray(np.min(tails, axis=0))


@cache
def critical_log_least(orders: tuple[int, ...], level: float) -> float:
    """Return the logarithm of the least p-value whose own chance is a level.

    Examples
    --------
    >>> least = float(np.exp(critical_log_least((2, 4, 8), 0.1)))
    >>> round(chance_of_least([2, 4, 8], least), 6)
    0.1
    """
    from scipy.optimize import brentq

    def surplus(log_least: float) -> float:
        return chance_of_least(orders, float(np.exp(log_least))) - level

    # The chance is at least the least p-value, and at most the sum over all orders.
    most = float(np.log(level))
    least = most - float(np.log(len(orders))) - ROUNDING
    return float(brentq(surplus, least, most + ROUNDING)) if least < most else most


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
