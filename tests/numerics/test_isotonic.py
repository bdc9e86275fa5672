import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose
from scipy.optimize import isotonic_regression, minimize
from sklearn.isotonic import IsotonicRegression

from calibrant.core.sample import BinarySample
from calibrant.numerics.isotonic import isotonic_values, venn_abers_limits
from calibrant.numerics.scores import log_loss
from calibrant.numerics.sorted_rows import sorted_rows
from strategies import binary_samples


@given(binary_samples(min_size=2))
def test_isotonic_values_are_scikit_learns(sample):
    p, y = sample
    ordered = sorted_rows(
        BinarySample(np.round(p, 6), y)
    )  # scikit-learn merges closer values
    expected = IsotonicRegression(y_min=0, y_max=1).fit_transform(ordered.p, ordered.y)
    assert_allclose(isotonic_values(ordered), expected, atol=1e-6)


def test_isotonic_values_minimise_log_loss_too():
    rng = np.random.default_rng(2)
    p = np.sort(rng.random(12))
    y = (rng.random(12) < p).astype(float)
    ours = log_loss(isotonic_values(sorted_rows(BinarySample(p, y))), y, None)

    def loss(steps):
        return log_loss(np.clip(np.cumsum(np.abs(steps)), 0, 1), y, None)

    best = min(
        minimize(loss, rng.random(12) / 12, method="Powell").fun for _ in range(3)
    )
    assert ours <= best + 1e-9


def by_definition(p, label_sum, weight, new, label):
    """Fit isotonic regression with one more row, and look up its value."""
    at = np.searchsorted(p, new)
    if at == p.size or p[at] != new:
        weight, label_sum = (np.insert(sums, at, 0.0) for sums in (weight, label_sum))
    one = np.arange(weight.size) == at
    weight, label_sum = weight + one, label_sum + label * one
    return isotonic_regression(label_sum / weight, weights=weight).x[at]


@pytest.mark.parametrize("seed", range(40))
def test_limits_are_two_isotonic_fits_with_one_more_row(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    p = np.unique(np.round(rng.random(n), 2))
    weight = rng.integers(1, 4, p.size) * rng.choice([1.0, 0.3])
    power = rng.choice([0.1, 1.0, 5.0])
    label_sum = weight * (rng.random(p.size) < p**power) * rng.choice([1.0, 0.5])
    low, high = venn_abers_limits(label_sum, weight)
    between = 0.5 * p[1:] + 0.5 * p[:-1]
    for label, ours, expected in ((0, low, low[:-1]), (1, high, high[1:])):
        found = [by_definition(p, label_sum, weight, s, label) for s in p]
        assert_allclose(ours, found, atol=1e-14)
        found = [by_definition(p, label_sum, weight, s, label) for s in between]
        assert_allclose(expected, found, atol=1e-14)


def test_rows_of_one_label_have_limits_in_closed_form():
    low, high = venn_abers_limits(np.zeros(4), np.ones(4))
    assert_allclose(low, 0.0)
    assert_allclose(high, [1 / 5, 1 / 4, 1 / 3, 1 / 2])


def test_huge_weights_leave_the_observed_rates():
    rate, weight = np.array([0.1, 0.4, 0.3, 0.9]), np.full(4, 1e9)
    for limit in venn_abers_limits(rate * weight, weight):
        assert_allclose(limit, [0.1, 0.35, 0.35, 0.9], atol=1e-8)
