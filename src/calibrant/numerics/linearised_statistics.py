"""Statistics such as Brier score and AUROC, linearised to give standard errors.

The linear part says how much one more row of each kind moves the statistic. The sum of
its squares estimates the variance where rows are independent; where rows of a cluster
belong together, their parts are added first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.links import logit
from calibrant.numerics.scores import log_losses, squared_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.numerics.weighted_points import WeightedPoints


@dataclass(frozen=True, eq=False)
class Linearised:
    """A statistic and its linear part at each point.

    Attributes
    ----------
    value : float
        The statistic.
    no, yes : ndarray of shape (m,)
        What a row without, and with the event adds to it.
    """

    value: float
    no: FloatVector
    yes: FloatVector

    def standard_error(self, points: WeightedPoints) -> float:
        """Return the standard error where all rows are independent."""
        others = points.weight - points.label_sum
        with np.errstate(over="ignore"):  # infinite for O:E, if hardly any is expected
            total = float(others @ self.no**2 + points.label_sum @ self.yes**2)
        return _root_of(total, float(points.weight.sum()))

    def clustered_error(
        self, place: IntVector, y: FloatVector, weight: FloatVector, cluster: IntVector
    ) -> float:
        """Return the standard error where rows of one cluster belong together.

        Parameters
        ----------
        place : ndarray of shape (n,)
            Which point each row belongs to.
        y, weight : ndarray of shape (n,)
            Label and weight of each row.
        cluster : ndarray of shape (n,)
            Number of its cluster, from 0.
        """
        part = self.no[place] + y * (self.yes - self.no)[place]
        sums = np.bincount(cluster, weight * part)
        with np.errstate(over="ignore"):
            return _root_of(float(sums @ sums), float(sums.size))


def _root_of(total: float, units: float) -> float:
    """Return the root of a sum of squares, corrected for few independent units."""
    return float(np.sqrt(total * units / (units - 1.0))) if units > 1.0 else np.nan


def mean_of(no: FloatVector, yes: FloatVector, points: WeightedPoints) -> Linearised:
    """Return the mean of what rows without and with the event count."""
    n = points.weight.sum()
    total = (points.weight - points.label_sum) @ no + points.label_sum @ yes
    value = float(total / n)
    return Linearised(value, (no - value) / n, (yes - value) / n)


def combined(value: float, *parts: tuple[float, Linearised]) -> Linearised:
    """Return a function of statistics: its value, and its derivative by each."""
    no = np.sum([slope * part.no for slope, part in parts], axis=0)
    yes = np.sum([slope * part.yes for slope, part in parts], axis=0)
    return Linearised(value, no, yes)


def base_rate(points: WeightedPoints) -> Linearised:
    """Return the share of events."""
    zeros = np.zeros_like(points.p)
    return mean_of(zeros, zeros + 1.0, points)


def observed_to_expected(points: WeightedPoints) -> Linearised:
    """Return the number of events over the sum of predictions."""
    expected = float(points.weight @ points.p)
    ratio = float(points.label_sum.sum()) / expected
    no = -ratio * points.p / expected
    return Linearised(ratio, no, no + 1.0 / expected)


def _mean_loss(
    loss: Callable[[FloatVector, FloatVector], FloatVector], points: WeightedPoints
) -> Linearised:
    zeros = np.zeros_like(points.p)
    return mean_of(loss(points.p, zeros), loss(points.p, zeros + 1.0), points)


def brier(points: WeightedPoints) -> Linearised:
    """Return the Brier score."""
    return _mean_loss(squared_errors, points)


def mean_log_loss(points: WeightedPoints) -> Linearised:
    """Return the log-loss."""
    return _mean_loss(log_losses, points)


def scaled_brier(points: WeightedPoints) -> Linearised:
    """Return 1 - Brier score / that of the base rate, which must not be 0 or 1.

    Examples
    --------
    >>> from calibrant.numerics.weighted_points import WeightedPoints
    >>> p, weight = np.array([0.2, 0.8]), np.array([5.0, 5.0])
    >>> scaled_brier(WeightedPoints(p, weight, weight * p)).value  # 1 - 0.16 / 0.25
    0.36
    """
    score, rate = brier(points), base_rate(points)
    reference = rate.value * (1.0 - rate.value)
    slope = score.value / reference**2 * (1.0 - 2.0 * rate.value)
    return combined(
        1.0 - score.value / reference, (-1.0 / reference, score), (slope, rate)
    )


def nagelkerke(points: WeightedPoints) -> Linearised:
    """Return Nagelkerke's R2 of the predictions as they are, below 0 if they harm.

    With the mean log-losses l of the predictions and h of the base rate, it is
    (1 - exp(2 l - 2 h)) / (1 - exp(-2 h)).

    References
    ----------
    N. J. D. Nagelkerke (1991). A note on a general definition of the coefficient of
    determination. Biometrika 78. doi:10.1093/biomet/78.3.691
    """
    loss, rate = mean_log_loss(points), base_rate(points)
    r = rate.value
    h = float(-r * np.log(r) - (1.0 - r) * np.log1p(-r))
    gain, highest = np.exp(2.0 * (loss.value - h)), -np.expm1(-2.0 * h)
    value = float((1.0 - gain) / highest)
    by_h = (2.0 * gain - 2.0 * value * np.exp(-2.0 * h)) / highest
    by_rate = -by_h * float(logit(np.array([r]))[0])
    return combined(value, (float(-2.0 * gain / highest), loss), (float(by_rate), rate))


def auroc(points: WeightedPoints) -> Linearised:
    """Return the area under the ROC curve; ties count half.

    Parameters
    ----------
    points : WeightedPoints
        Distinct predictions, ascending; some with and some without the event.

    Examples
    --------
    >>> from calibrant.numerics.weighted_points import WeightedPoints
    >>> p, ones = np.array([0.1, 0.4, 0.6]), np.ones(3)
    >>> auroc(WeightedPoints(p, ones, np.array([0.0, 1.0, 0.0]))).value
    0.5
    """
    yes, no = points.label_sum, points.weight - points.label_sum
    below = (np.cumsum(no) - 0.5 * no) / no.sum()
    above = 1.0 - (np.cumsum(yes) - 0.5 * yes) / yes.sum()
    area = min(float(yes @ below / yes.sum()), 1.0)  # weights may round to more
    return Linearised(area, (above - area) / no.sum(), (below - area) / yes.sum())


def tied_share(points: WeightedPoints) -> float:
    """Return the share of pairs, of a row with and one without the event, at a point.

    Examples
    --------
    >>> from calibrant.numerics.weighted_points import WeightedPoints
    >>> p, weight = np.array([0.1, 0.4]), np.array([2.0, 2.0])
    >>> tied_share(WeightedPoints(p, weight, np.array([1.0, 1.0])))
    0.5
    """
    yes, no = points.label_sum, points.weight - points.label_sum
    return float(yes @ no / (yes.sum() * no.sum()))


def delong_error(area: Linearised, points: WeightedPoints) -> float:
    """Return the standard error of an area; NaN with fewer than two rows of a kind.

    References
    ----------
    E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson (1988). Comparing the areas under
    two or more correlated receiver operating characteristic curves. Biometrics 44.
    doi:10.2307/2531595
    """
    yes, no = points.label_sum, points.weight - points.label_sum
    parts = ((yes, area.yes), (no, area.no))
    roots = [_root_of(float(n @ part**2), float(n.sum())) for n, part in parts]
    return float(np.hypot(roots[0], roots[1]))
