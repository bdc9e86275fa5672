"""The exact interval of a rate, against the binomial distribution itself."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from calibrant.numerics.rate_interval import exact_interval


@pytest.mark.parametrize("n", [1, 10, 37, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_equal_those_of_scipy(n, confidence):
    events = np.unique(np.linspace(0, n, 7).astype(int))
    low, high = exact_interval(events * 1.0, np.full(events.size, 1.0 * n), confidence)
    for k, a, b in zip(events, low, high, strict=True):
        known = binomtest(int(k), n).proportion_ci(confidence, method="exact")
        assert (a, b) == pytest.approx((known.low, known.high), abs=1e-12)


def test_ends_leave_half_of_the_rest_on_either_side():
    low, high = exact_interval(np.array([8.0]), np.array([10.0]), 0.9)
    assert binom.sf(7, 10, low[0]) == pytest.approx(0.05)
    assert binom.cdf(8, 10, high[0]) == pytest.approx(0.05)
