import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

from calibrant.numerics.random_effects import pool

GOLDEN = Path(__file__).parents[1] / "golden" / "summary.json"


def test_pooled_values_are_those_of_metafor():
    r = json.loads(GOLDEN.read_text(encoding="utf-8"))["pooled"]
    found = pool(np.array(r["values"]), np.array(r["errors"]), 0.95)
    value, low, high, _, _, tau = r["results"]
    ours = [found.value, found.low, found.high, found.tau]
    np.testing.assert_allclose(ours, [value, low, high, tau], atol=1e-9)


def test_centres_that_agree_have_no_variance_between_them():
    found = pool(np.array([1.0, 1.01, 0.99]), np.full(3, 0.2), 0.95)
    assert found.tau == 0.0
    assert found.prediction_low < found.low
    assert found.prediction_high > found.high


@pytest.mark.parametrize("centres", [2, 3, 8])
def test_prediction_intervals_are_quantiles_of_drawn_centres(centres):
    """Variances are drawn by solving Q = chi-squared, then centres given them."""
    rng = np.random.default_rng(centres)
    errors = rng.uniform(0.1, 0.3, centres)
    values = rng.normal(1.0, 0.4, centres)
    found = pool(values, errors, 0.8)

    def at(between):
        weight = 1.0 / (errors**2 + between)
        mean = weight @ values / weight.sum()
        return weight @ (values - mean) ** 2, mean, 1.0 / weight.sum()

    drawn = []
    for q in chi2.rvs(centres - 1, size=4000, random_state=rng):
        among = at(0.0)[0] > q
        between = brentq(lambda t, q=q: at(t)[0] - q, 0.0, 1e12) if among else 0.0
        _, mean, variance = at(between)
        drawn.append(rng.normal(mean, np.sqrt(between + variance)))
    ends = found.prediction_low, found.prediction_high
    below = np.searchsorted(np.sort(drawn), ends) / 4000
    np.testing.assert_allclose(below, [0.1, 0.9], atol=0.02)


@pytest.mark.parametrize(("centres", "spread"), [(3, 0.3), (8, 0.1), (8, 0.3)])
def test_intervals_cover_the_mean_and_new_centres(centres, spread):
    """400 meta-analyses of centres that vary around 1."""
    rng = np.random.default_rng(0)
    inside = np.zeros(2)
    for _ in range(400):
        errors = rng.uniform(0.1, 0.3, centres)
        true = rng.normal(1.0, spread, centres + 1)
        found = pool(rng.normal(true[:-1], errors), errors, 0.95)
        inside += [
            found.low <= 1.0 <= found.high,
            found.prediction_low <= true[-1] <= found.prediction_high,
        ]
    np.testing.assert_allclose(inside / 400, 0.95, atol=0.03)
