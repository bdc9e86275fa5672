"""Classical tests of calibration: statistic and p-value of weighted rows.

A weight is a count, so a row of weight w adds w times as much to a sum and to its
variance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import chdtrc, expit, ndtr

from calibrant.numerics.binning import size_edges, tabulate
from calibrant.numerics.links import logit

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector

STEPS = 100
GAIN = 1e-12
"""Newton's method stops where a step lowers the deviance by less than this."""

FLATTEST = 1e-10
"""Added to the curvature, so that separable classes leave a system to solve."""


class Outcome(NamedTuple):
    """Statistic and p-value of a test."""

    statistic: float
    pvalue: float


def spiegelhalter_z(p: FloatVector, y: FloatVector, weight: FloatVector) -> Outcome:
    """Return Spiegelhalter's z, the standardised Brier score, two-sided.

    Where no prediction can bring noise (all are 0, 1/2 or 1), a single wrong one
    refutes calibration.

    Examples
    --------
    >>> p, y = np.array([0.1, 0.9]), np.array([1.0, 1.0])
    >>> [round(v, 4) for v in spiegelhalter_z(p, y, np.ones(2))]
    [1.8856, 0.0593]
    """
    slope = 1.0 - 2.0 * p
    centred = float((weight * (y - p) * slope).sum())
    variance = float((weight * np.square(slope) * p * (1.0 - p)).sum())
    if variance == 0.0:
        return Outcome(np.inf, 0.0) if centred != 0.0 else Outcome(0.0, 1.0)
    z = centred / np.sqrt(variance)
    return Outcome(float(z), float(2.0 * ndtr(-abs(z))))


def hosmer_lemeshow(
    p: FloatVector,
    y: FloatVector,
    weight: FloatVector | None,
    *,
    groups: int,
    fitted: int,
) -> Outcome:
    """Return Hosmer and Lemeshow's chi-square over groups of equal size.

    Groups are the bins of `size_edges`. The degrees of freedom are the groups that
    there are (ties may leave fewer) less `fitted`.
    """
    rows = p.size if weight is None else int(weight.sum())
    table = tabulate(p, y, weight, size_edges(p, weight, min(groups, max(rows, 1))))
    used = table.weight > 0.0
    n, expected = table.weight[used], table.prob[used]
    gap = np.square(table.label[used] - expected)
    variance = np.clip(expected * (1.0 - expected / n), 0.0, None)
    off = gap > 0.0
    with np.errstate(divide="ignore", over="ignore"):  # a certain one that failed
        statistic = float((gap[off] / variance[off]).sum())
    freedom = n.size - fitted
    if freedom < 1:
        return Outcome(statistic, np.nan)
    return Outcome(statistic, float(chdtrc(freedom, statistic)))


def cox(p: FloatVector, y: FloatVector, weight: FloatVector) -> Outcome:
    """Return Cox's likelihood-ratio test that intercept is 0 and slope 1.

    A logistic regression of the label on logit(p) is compared with the predictions
    themselves: chi-square with two degrees of freedom.
    """
    x = logit(p)
    design = np.stack([np.ones_like(x), x])
    start = np.array([0.0, 1.0])
    reached = _least_deviance(design, y, weight, start)
    statistic = max(_deviance(start, design, y, weight) - reached, 0.0)
    return Outcome(statistic, float(chdtrc(2, statistic)))


def _deviance(
    theta: FloatVector, design: FloatMatrix, y: FloatVector, weight: FloatVector
) -> float:
    line = theta @ design
    return 2.0 * float((weight * (np.logaddexp(0.0, line) - y * line)).sum())


def _least_deviance(
    design: FloatMatrix, y: FloatVector, weight: FloatVector, theta: FloatVector
) -> float:
    """Minimise by Newton steps, each halved until it lowers the deviance."""
    best = _deviance(theta, design, y, weight)
    for _ in range(STEPS):
        fitted = expit(theta @ design)
        gradient = design @ (weight * (y - fitted))
        curvature = (design * (weight * fitted * (1.0 - fitted))) @ design.T
        curvature += FLATTEST * (1.0 + np.trace(curvature)) * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        found = _deviance(theta + step, design, y, weight)
        while found > best and np.abs(step).max() > GAIN:
            step = 0.5 * step
            found = _deviance(theta + step, design, y, weight)
        if best - found < GAIN * (1.0 + abs(best)):
            return min(found, best)
        theta, best = theta + step, found
    return best
