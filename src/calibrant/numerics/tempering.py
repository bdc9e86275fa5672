"""A temperature, and a share of the uniform distribution.

A row of logits becomes q = (1 - u) softmax(b logits) + u / k. The share u keeps log q
of predictions that are far too certain within what n labels can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from calibrant.core.probabilities import softmax
from calibrant.numerics.class_probabilities import inverse_temperature

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

INVERSE_SPREAD = 0.5
"""Scale of the Cauchy prior of the logarithm of the inverse temperature: temperatures
near 1 are likely, but scores of any size may be given as logits."""
MIN_EVENTS = 0.2
"""Labels that the uniform distribution explains at least."""
TYPICAL_UNIFORM = 0.1
"""Mean of the exponential prior of the share."""
MAX_UNIFORM = 0.5
LOG_INVERSE = (-250.0, 6.0)
LARGE_UNIFORM = 0.05
"""Where a search starts besides the smallest share, as far too certain predictions
need."""


def tempered_inputs(logits: FloatMatrix, inverse: float, uniform: float) -> FloatMatrix:
    """Return logarithms of probabilities after a temperature, mixed with uniform."""
    mixed = (1.0 - uniform) * softmax(inverse * logits) + uniform / logits.shape[1]
    return np.asarray(np.log(mixed))


@dataclass(frozen=True, eq=False)
class _Tempering:
    """The loss of log inverse temperatures and log shares of the uniform."""

    logits: FloatMatrix
    column: IntVector
    weight: FloatVector

    def at(self, point: FloatVector) -> tuple[float, FloatVector]:
        """Return minus the log-density of a point, and its slopes."""
        inverse, uniform = np.exp(point)
        rows, even = np.arange(self.column.size), 1.0 / self.logits.shape[1]
        prob = softmax(inverse * self.logits)
        true = prob[rows, self.column]
        mixed = (1.0 - uniform) * true + uniform * even
        mean = np.einsum("ij,ij->i", prob, self.logits)
        rise = true * (self.logits[rows, self.column] - mean)
        weight = self.weight / mixed
        square = 1.0 + (point[0] / INVERSE_SPREAD) ** 2
        by_inverse = 2.0 * point[0] / INVERSE_SPREAD**2 / square
        by_inverse -= inverse * (1.0 - uniform) * float(weight @ rise)
        by_uniform = uniform * (float(weight @ (true - even)) + 1.0 / TYPICAL_UNIFORM)
        surprise = float(np.log(square)) + uniform / TYPICAL_UNIFORM
        loss = surprise - float(self.weight @ np.log(mixed))
        return loss, np.array([by_inverse, by_uniform])


def fit_tempering(
    logits: FloatMatrix, column: IntVector, weight: FloatVector
) -> tuple[float, float, float]:
    """Return the most probable inverse temperature and share, and their loss.

    The loss is minus the log-density, with a Cauchy prior of the log temperature and
    an exponential one of the share.

    Parameters
    ----------
    logits : ndarray of shape (n, k)
        Logits or log-probabilities.
    column : ndarray of shape (n,)
        The true class.
    weight : ndarray of shape (n,)
        How many rows each row stands for.
    """
    total = float(weight.sum())
    bounds = [LOG_INVERSE, (np.log(min_uniform(total)), np.log(MAX_UNIFORM))]
    loss = _Tempering(logits, column, weight).at
    scaled = np.log(inverse_temperature(logits, column, weight / total))
    starts = ((0.0, bounds[1][0]), (scaled, np.log(LARGE_UNIFORM)))
    tried = [
        minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        for start in starts
    ]
    best = min(tried, key=lambda found: float(found.fun))
    inverse, uniform = np.exp(best.x).tolist()
    return inverse, uniform, float(best.fun)


def min_uniform(total: float) -> float:
    """Return the smallest share of the uniform distribution, for `total` rows."""
    return MIN_EVENTS / (MIN_EVENTS + total)
