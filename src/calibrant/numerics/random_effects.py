"""Random-effects meta-analysis: the mean over centres, and where a new one may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtrit

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

MIN_CENTRES = 2
"""With one centre nothing is known about differences between centres."""


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
    The interval is that of Hartung and Knapp, with k - 1 degrees of freedom; the
    prediction interval of Higgins et al. adds the variance between centres and has
    k - 2 degrees of freedom, so that it is NaN for two centres.

    References
    ----------
    J. Hartung, G. Knapp (2001). A refined method for the meta-analysis of controlled
    clinical trials with binary outcome. Statistics in Medicine 20. doi:10.1002/sim.1009

    J. P. T. Higgins, S. G. Thompson, D. J. Spiegelhalter (2009). A re-evaluation of
    random-effects meta-analysis. JRSS A 172. doi:10.1111/j.1467-985X.2008.00552.x

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
    # One more degree of freedom is lost to the variance between centres.
    t = float(stdtrit(freedom - 1, 0.5 + 0.5 * confidence)) if freedom > 1 else np.nan
    farther = t * (variance + tau2) ** 0.5
    return PooledValue(
        value=mean,
        low=mean - reach,
        high=mean + reach,
        prediction_low=mean - farther,
        prediction_high=mean + farther,
        tau=tau2**0.5,
    )


def _between(values: FloatVector, variances: FloatVector) -> float:
    """Return the restricted maximum likelihood estimate of the variance of centres."""

    def score(tau2: float) -> float:
        weight = 1.0 / (variances + tau2)
        apart = values - weight @ values / weight.sum()
        lost = np.square(weight).sum() / weight.sum()
        return float(np.square(weight) @ np.square(apart) - weight.sum() + lost)

    most = 10.0 * float(np.var(values, ddof=1)) + float(variances.max())
    if score(0.0) <= 0.0:
        return 0.0
    return float(brentq(score, 0.0, most, xtol=1e-14, rtol=1e-12))
