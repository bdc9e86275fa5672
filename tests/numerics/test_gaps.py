import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.stats import foldnorm, norm

from calibrant.numerics.binning import (
    binned_error,
    debiased_binned_error,
    folded_normal_mean,
)
from calibrant.numerics.scores import mean_gap


@pytest.mark.parametrize("mean", [-0.4, 0.0, 0.03, 1.0])
@pytest.mark.parametrize("sd", [0.01, 0.2])
def test_folded_normal_mean_is_scipys(mean, sd):
    expected = foldnorm.mean(abs(mean) / sd, scale=sd)
    assert_allclose(folded_normal_mean(np.array([mean]), np.array([sd])), expected)


def papers_integral(mean_prob, share, n):
    """Expected abs(mean p - R), R normal around the share: trapezoids over 5 sd."""
    sd = np.sqrt(share * (1 - share) / n)
    if sd == 0:
        return abs(mean_prob - share)
    x = np.linspace(share - 5 * sd, share + 5 * sd, 10_000)
    return trapezoid(np.abs(mean_prob - x) * norm.pdf(x, share, sd), x)


@given(st.floats(0, 1), st.integers(0, 50), st.integers(50, 5000))
def test_closed_form_agrees_with_the_papers_integral(mean_prob, positives, n):
    share = positives / 50
    sums = np.array([[float(n)], [mean_prob * n], [share * n]])
    found = debiased_binned_error(*sums, alpha=1.0)
    expected = 2 * abs(mean_prob - share) - papers_integral(mean_prob, share, n)
    assert_allclose(found, expected, atol=1e-5)


def test_squared_error_loses_the_sampling_variance():
    weight, prob, label = (
        np.array([10.0, 5.0]),
        np.array([2.0, 4.0]),
        np.array([4.0, 4.0]),
    )
    found = debiased_binned_error(weight, prob, label, alpha=2.0)
    by_hand = (10 * (0.2**2 - 0.4 * 0.6 / 9) + 5 * (0.0 - 0.8 * 0.2 / 4)) / 15
    assert_allclose(found, by_hand)


def test_a_bin_of_one_row_has_no_variance_to_take_out():
    one = np.array([1.0])
    found = debiased_binned_error(one, np.array([0.3]), one, alpha=2.0)
    assert_allclose(found, 0.49)


def test_debiased_squared_error_is_unbiased_on_calibrated_data():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random((4000, 400)) < p).reshape(4000, 20, 20)
    weight = np.full((4000, 20), 20.0)
    prob = np.broadcast_to(p.reshape(20, 20).sum(axis=1), (4000, 20))
    errors = debiased_binned_error(weight, prob, y.sum(axis=2).astype(float), alpha=2.0)
    # The within-bin variance of p makes the estimate slightly low, by at most var(p).
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(4000) + p.var() / 20


def test_other_exponents_have_no_debiasing():
    with pytest.raises(ValueError, match="alpha=3"):
        debiased_binned_error(*np.ones((3, 2)), alpha=3.0)


def test_tables_are_stacked_on_leading_axes():
    stacked = np.random.default_rng(0).random((3, 4, 5))
    for measure in (binned_error, debiased_binned_error):
        together = measure(*stacked, alpha=1.0)
        apart = [measure(*stacked[:, i], alpha=1.0) for i in range(4)]
        assert_allclose(together, apart)


def test_empty_bins_do_no_harm():
    full = binned_error(np.array([4.0]), np.array([2.0]), np.array([1.0]), alpha=1.0)
    padded = np.array([[4.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    assert binned_error(*padded, alpha=1.0) == full
    assert np.isfinite(debiased_binned_error(*padded, alpha=1.0))


def test_mean_gap_is_weighted():
    gap = mean_gap(
        np.array([0.5, 0.9]), np.array([0.4, 0.4]), np.array([3.0, 1.0]), 2.0
    )
    assert gap == pytest.approx((3 * 0.01 + 0.25) / 4)
