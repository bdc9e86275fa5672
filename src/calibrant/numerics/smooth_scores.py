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

from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.legendre import legvander

from calibrant.numerics.calibration_tests import Outcome
from calibrant.numerics.few_cells import gather_few
from calibrant.numerics.links import clipped, logit
from calibrant.numerics.nested_chi_squares import chance_of_least, least_log_tail

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector
    from calibrant.numerics.log_cells import Gathered

ORDERS = (2, 4, 6, 8, 12, 16, 24)
"""Numbers of functions that are looked at."""
ALWAYS = 8
"""So many functions are used with few rows, too."""
EACH = 12.0
"""Variance of labels, summed over rows, for each function beyond those: about 72 rows
at uniform predictions. With less, sums are not normal enough."""


def smooth_test(
    p: FloatVector, y: FloatVector, weight: FloatVector | None, most: int
) -> Outcome:
    """Return minus the logarithm of the least p-value, and its own p-value.

    `most` is the largest number of functions.
    """
    return smooth_test_of(gather_few(p, y, weight), most)


def smooth_test_of(cells: Gathered, most: int) -> Outcome:
    """Return what `smooth_test` does, from few cells."""
    variance = _variance(cells)
    allowed = min(most, max(ALWAYS, int(variance.sum() / EACH)), cells.p.size)
    orders = [order for order in ORDERS if order <= allowed] or [1]
    squares = scores(cells, orders[-1]) ** 2
    least = least_log_tail(squares, orders)
    return Outcome(0.0 - least, chance_of_least(orders, float(np.exp(least))))


def scores(cells: Gathered, count: int) -> FloatVector:
    """Return independent sums, standard normal were the predictions calibrated."""
    spread = np.sqrt(_variance(cells))
    surplus = cells.label - cells.weight * cells.p
    basis, _ = np.linalg.qr(_functions(cells, count) * spread[:, np.newaxis])
    return np.asarray((surplus / spread) @ basis)


def _variance(cells: Gathered) -> FloatVector:
    p = clipped(cells.p)  # certain ones bring next to none
    return cells.weight * p * (1.0 - p)


def _functions(cells: Gathered, count: int) -> FloatMatrix:
    """Return constant, logit and polynomials of the share of variance below."""
    variance = _variance(cells)
    share = (np.cumsum(variance) - 0.5 * variance) / variance.sum()
    bent = legvander(2.0 * share - 1.0, count)[:, 2:]
    line = np.stack([np.ones(share.size), logit(cells.p)], axis=1)
    return np.hstack([line, bent])[:, :count]
