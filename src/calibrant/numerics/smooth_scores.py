"""A test of calibration against smooth departures of growing order.

Were the predictions calibrated, the labels' distribution would be known in full. So is
that of sums of what labels exceed predictions by, weighted by functions of the
prediction: normal, with known variance. Functions that are orthogonal in this variance
give independent sums. They come from smooth to wiggly: constant and logit first (what
Cox's test looks at), then polynomials of growing order. Small departures of simple
shape show in the first few, complex ones in more; see `nested_chi_squares` for how
looking at several numbers of them is paid for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.polynomial.legendre import legvander

from calibrant.numerics.calibration_tests import Outcome
from calibrant.numerics.few_cells import compress_to_at_most
from calibrant.numerics.links import clipped, logit
from calibrant.numerics.nested_chi_squares import (
    chance_of_least,
    critical_log_least,
    least_log_tails,
)
from calibrant.numerics.side_by_side import SideBySide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.numerics.log_cells import WeightedPoints

ORDERS = (2, 4, 6, 8, 12, 16, 24)
"""Numbers of functions that are looked at."""
ALWAYS = 8
"""So many functions are used with few rows, too."""
EACH = 12.0
"""Variance of labels, summed over rows, for each function beyond those: about 72 rows
at uniform predictions. With less, sums are not normal enough."""


class LeastTail(NamedTuple):
    """The most surprising of nested sums of squared scores.

    Attributes
    ----------
    log_least : float
        Logarithm of the least p-value.
    orders : tuple of int
        Numbers of squares that were summed.
    """

    log_least: float
    orders: tuple[int, ...]

    @property
    def outcome(self) -> Outcome:
        """Return minus the logarithm, and the p-value of the least p-value."""
        chance = chance_of_least(self.orders, float(np.exp(self.log_least)))
        return Outcome(0.0 - self.log_least, chance)

    def rejects(self, level: float) -> bool:
        """Tell whether that p-value is at most a level.

        Examples
        --------
        >>> LeastTail(-3.5, (2, 4)).rejects(0.05), LeastTail(-3.0, (2, 4)).rejects(0.05)
        (True, False)
        """
        return self.log_least <= critical_log_least(self.orders, level)


def smooth_test(
    p: FloatVector, y: FloatVector, weight: FloatVector | None, most: int
) -> Outcome:
    """Return minus the logarithm of the least p-value, and its own p-value.

    `most` is the largest number of functions.
    """
    return smooth_test_of(compress_to_at_most(p, y, weight), most)


def smooth_test_of(cells: WeightedPoints, most: int) -> Outcome:
    """Return what `smooth_test` does, from few cells."""
    return least_tails([cells], most)[0].outcome


def least_tails(
    cells: Sequence[WeightedPoints], most: int = ORDERS[-1]
) -> list[LeastTail]:
    """Return the most surprising sums of samples, in few steps however many there are.

    Samples with equally many functions are put side by side.
    """
    orders = [_orders(one, most) for one in cells]
    found: dict[int, LeastTail] = {}
    for each in set(orders):
        places = [k for k, own in enumerate(orders) if own == each]
        squares = scores(SideBySide.of([cells[k] for k in places]), each[-1]) ** 2
        logs = least_log_tails(squares, each).tolist()
        found |= {k: LeastTail(log, each) for k, log in zip(places, logs, strict=True)}
    return [found[k] for k in range(len(cells))]


def _orders(cells: WeightedPoints, most: int) -> tuple[int, ...]:
    enough = int(_variance(cells).sum() / EACH)
    allowed = min(most, max(ALWAYS, enough), cells.p.size)
    return tuple(order for order in ORDERS if order <= allowed) or (1,)


def scores(cells: WeightedPoints | SideBySide, count: int) -> FloatMatrix:
    """Return independent sums, standard normal were the predictions calibrated.

    Their last axis is that of functions; samples side by side have a row each.
    """
    variance = _variance(cells)
    spread = np.sqrt(variance)
    surplus = cells.label - cells.weight * cells.p
    surplus = np.divide(surplus, spread, out=np.zeros_like(spread), where=spread > 0.0)
    functions = _functions(cells.p, variance, count)
    basis, _ = np.linalg.qr(functions * spread[..., np.newaxis])
    return np.asarray((surplus[..., np.newaxis, :] @ basis)[..., 0, :])


def _variance(cells: WeightedPoints | SideBySide) -> FloatMatrix:
    p = clipped(cells.p)  # certain ones bring next to none
    return np.asarray(cells.weight * p * (1.0 - p))


def _functions(p: FloatMatrix, variance: FloatMatrix, count: int) -> FloatMatrix:
    """Return constant, logit and polynomials of the share of variance below."""
    total = variance.sum(axis=-1, keepdims=True)
    share = (np.cumsum(variance, axis=-1) - 0.5 * variance) / total
    bent = legvander(2.0 * share - 1.0, count)[..., 2:]
    line = np.stack([np.ones_like(share), logit(p)], axis=-1)
    return np.concatenate([line, bent], axis=-1)[..., :count]
