"""The exact interval of an observed rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaincinv

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector


def exact_interval(
    label_sum: FloatVector, weight: FloatVector, confidence: float
) -> tuple[FloatVector, FloatVector]:
    """Return the interval of Clopper and Pearson, which never covers too seldom.

    Its ends are those rates at which so many events, or more, and so many, or fewer,
    have half of the remaining probability.

    References
    ----------
    C. J. Clopper, E. S. Pearson (1934). The use of confidence or fiducial limits
    illustrated in the case of the binomial. Biometrika 26.
    doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> np.round(exact_interval(np.array([0.0, 8.0]), np.array([10.0, 10.0]), 0.95), 4)
    array([[0.    , 0.4439],
           [0.3085, 0.9748]])
    """
    tail = 0.5 * (1.0 - confidence)
    others = np.maximum(weight - label_sum, 0.0)
    some, not_all = label_sum > 0.0, others > 0.0
    low, high = np.zeros(label_sum.shape), np.ones(label_sum.shape)
    low[some] = betaincinv(label_sum[some], others[some] + 1.0, tail)
    high[not_all] = betaincinv(label_sum[not_all] + 1.0, others[not_all], 1.0 - tail)
    return low, high
