"""Classical tests of calibration: statistic and p-value of weighted rows.

A weight is a count, so a row of weight w adds w times as much to a sum and to its
variance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr

from calibrant.numerics.binning import size_edges, tabulate
from calibrant.numerics.links import logit
from calibrant.numerics.logistic import fit_logistic

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

REVERSAL_LEVEL = 0.01
"""Models without skill are taken to be upside down this often."""
REVERSAL_MIN_ROWS = 30
"""With fewer rows, no model is taken to be upside down."""


class Outcome(NamedTuple):
    """Statistic and p-value of a test."""

    statistic: float
    pvalue: float


def spiegelhalter_z(p: FloatVector, y: FloatVector, weight: FloatVector) -> Outcome:
    """Return Spiegelhalter's z, the standardised Brier score, two-sided.

    Where no prediction adds noise (all are 0, 1/2 or 1), a single wrong one refutes
    calibration.
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

    Groups are the bins of `size_edges`. The degrees of freedom are the number of groups
    (ties may leave fewer than `groups`) less `fitted`.
    """
    rows = p.size if weight is None else int(weight.sum())
    table = tabulate(p, y, weight, size_edges(p, weight, min(groups, max(rows, 1))))
    used = table.weight > 0.0
    n, expected = table.weight[used], table.prob[used]
    gap = np.square(table.label_sum[used] - expected)
    variance = np.clip(expected * (1.0 - expected / n), 0.0, None)
    off = gap > 0.0
    with np.errstate(divide="ignore", over="ignore"):  # wrong certain predictions
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
    weights, labels = weight[np.newaxis], (weight * y)[np.newaxis]
    fit = fit_logistic(x[:, np.newaxis], weights, labels)
    before = float((weight * (np.logaddexp(0.0, x) - y * x)).sum())
    after = float(fit.losses[0] * weight.sum())
    statistic = max(2.0 * (before - after), 0.0)
    return Outcome(statistic, float(chdtrc(2, statistic)))


class Reversal(NamedTuple):
    """How strongly predictions and labels contradict each other."""

    correlation: float
    pvalue: float


def find_reversal(
    p: FloatVector, y: FloatVector, weight: FloatVector, level: float = REVERSAL_LEVEL
) -> Reversal | None:
    """Return the reversal if predictions and labels are negatively correlated.

    That is tested at `level`, one-sided; None where it is not significant. A label may
    be the mean label of the rows that a weight counts.

    Examples
    --------
    >>> p = np.linspace(0.0, 1.0, 40)
    >>> round(find_reversal(p, (p < 0.5).astype(float), np.ones(40)).correlation, 2)
    -0.87
    >>> find_reversal(p, (p > 0.5).astype(float), np.ones(40)) is None
    True
    """
    total = float(weight.sum())
    rate = float(weight @ y) / total
    centred = p - float(weight @ p) / total
    scale = float(weight @ centred**2) * total * rate * (1.0 - rate)
    if total < REVERSAL_MIN_ROWS or scale <= 0.0:
        return None
    correlation = float(weight @ (centred * (y - rate))) / np.sqrt(scale)
    pvalue = float(ndtr(correlation * np.sqrt(total)))
    if pvalue >= level:
        return None
    return Reversal(float(correlation), pvalue)
