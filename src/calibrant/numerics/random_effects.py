"""Random-effects meta-analysis: the mean over centres, and where a new one may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, ndtr, stdtrit

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

MIN_CENTRES = 2
"""With one centre nothing is known about differences between centres."""
BETWEEN = np.concatenate([[0.0], np.logspace(-4.0, 8.0, 240)])
"""Variances between centres that are weighed, in units of the variance of values."""
FAR = 40.0
"""Standard deviations beyond which there is no new centre."""


@dataclass(frozen=True)
class PooledValue:
    """The mean over centres.

    Attributes
    ----------
    value, low, high : float
        The mean, and its interval.
    prediction_low, prediction_high : float
        Between these a new centre is expected.
    tau : float
        Standard deviation of the true values of centres.
    """

    value: float
    low: float
    high: float
    prediction_low: float
    prediction_high: float
    tau: float


def pool(values: FloatVector, errors: FloatVector, confidence: float) -> PooledValue:
    """Return the mean of values with standard errors, at least two.

    The variance between centres is estimated by restricted maximum likelihood.
    The interval is that of Hartung and Knapp, with k - 1 degrees of freedom. Given
    the variance between centres, a new one is normal around the weighted mean; the
    prediction interval averages that over the variances by their confidence
    distribution, which follows from Cochran's Q (Nagashima et al.).

    References
    ----------
    J. Hartung, G. Knapp (2001). A refined method for the meta-analysis of controlled
    clinical trials with binary outcome. Statistics in Medicine 20. doi:10.1002/sim.1009

    K. Nagashima, H. Noma, T. A. Furukawa (2019). Prediction intervals for
    random-effects meta-analysis: a confidence distribution approach. Statistical
    Methods in Medical Research 28. doi:10.1177/0962280218773520

    Examples
    --------
    >>> pooled = pool(np.array([0.8, 1.0, 1.3]), np.full(3, 0.1), 0.95)
    >>> round(pooled.value, 4), round(pooled.tau**2, 4)  # variance 0.0633 less 0.01
    (1.0333, 0.0533)
    """
    tau2 = _between(values, np.square(errors))
    weight = 1.0 / (np.square(errors) + tau2)
    mean = float(weight @ values / weight.sum())
    freedom = values.size - 1
    variance = float(weight @ (values - mean) ** 2 / (freedom * weight.sum()))
    t = float(stdtrit(freedom, 0.5 + 0.5 * confidence))
    reach = t * variance**0.5
    new_low, new_high = _limits_of_a_new_centre(values, errors, confidence)
    return PooledValue(
        value=mean,
        low=mean - reach,
        high=mean + reach,
        prediction_low=new_low,
        prediction_high=new_high,
        tau=tau2**0.5,
    )


def _limits_of_a_new_centre(
    values: FloatVector, errors: FloatVector, confidence: float
) -> tuple[float, float]:
    """Return quantiles of a new centre, a mixture over variances between centres.

    At the true variance, Q has a chi-squared distribution with k - 1 degrees of
    freedom, and it falls with the variance: its tail is a distribution of variances.
    """
    variances = np.square(errors)
    unit = float(np.var(values, ddof=1)) + float(variances.mean())
    between = BETWEEN * unit
    weight = 1.0 / (variances + between[:, np.newaxis])
    total = weight.sum(axis=1)
    mean = weight @ values / total
    q = np.sum(weight * np.square(values - mean[:, np.newaxis]), axis=1)
    share = np.diff(chdtrc(values.size - 1, q), prepend=0.0)
    share /= share.sum()
    spread = np.sqrt(between + 1.0 / total)
    bracket = mean.min() - FAR * spread.max(), mean.max() + FAR * spread.max()

    def quantile(level: float) -> float:
        def beyond(x: float) -> float:
            return float(share @ ndtr((x - mean) / spread)) - level

        return float(brentq(beyond, *bracket))

    return quantile(0.5 - 0.5 * confidence), quantile(0.5 + 0.5 * confidence)


def _between(values: FloatVector, variances: FloatVector) -> float:
    """Return the restricted maximum likelihood estimate of the variance of centres."""

    def score(tau2: float) -> float:
        weight = 1.0 / (variances + tau2)
        apart = values - weight @ values / weight.sum()
        lost = np.square(weight).sum() / weight.sum()
        return float(np.square(weight) @ np.square(apart) - weight.sum() + lost)

    upper = 10.0 * float(np.var(values, ddof=1)) + float(variances.max())
    if score(0.0) <= 0.0:
        return 0.0
    return float(brentq(score, 0.0, upper, xtol=1e-14, rtol=1e-12))
