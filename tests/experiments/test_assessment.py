"""CMEE, CEAC, Theorem 3, distances and rank correlations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from calibrant.exceptions import UnknownNameError
from calibrant.experiments.assessment import (
    error_after_calibration,
    lost_by_ties,
    map_error,
    rank_correlation,
    truth_after_calibration,
)

inside = st.floats(0.01, 0.99)
tied = st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9])


@given(
    st.lists(st.tuples(tied, inside), min_size=1, max_size=60),
    st.sampled_from(["squared", "kullback-leibler"]),
)
def test_theorem_3_map_error_is_error_after_calibration_and_ties(rows, divergence):
    c_hat, c = np.array(rows).T
    whole = map_error(c_hat, c, divergence)
    after = error_after_calibration(c_hat, c, divergence)
    ties = lost_by_ties(c_hat, c, divergence)
    assert whole == pytest.approx(after + ties, abs=1e-12)
    assert after <= whole + 1e-12


def test_theorem_3_does_not_hold_for_absolute_differences():
    c_hat, c = [0.3, 0.3], [0.1, 0.5]
    assert map_error(c_hat, c) == pytest.approx(0.2)
    assert error_after_calibration(c_hat, c) == pytest.approx(0.0)
    c_hat = [0.0, 0.0]
    assert map_error(c_hat, c) == pytest.approx(0.3)
    assert error_after_calibration(c_hat, c) + lost_by_ties(c_hat, c) > 0.31


def test_theorem_3_of_a_fitted_map_on_a_million_rows():
    """Isotonic maps have flat parts; the theorem holds for the fitted map as well."""
    import calibrant as cb
    from calibrant.experiments import SyntheticTruth

    truth = SyntheticTruth.of("beta2", 0.1)
    data, unseen = truth.draw(1000, 0), truth.unseen()
    c_hat = cb.make_calibrator("isotonic").fit(data.p, data.y).map_(unseen.p)
    whole = map_error(c_hat, unseen.c, "squared")
    after = error_after_calibration(c_hat, unseen.c, "squared")
    ties = lost_by_ties(c_hat, unseen.c, "squared")
    assert whole == pytest.approx(after + ties, rel=1e-9)
    assert 0.0 < after < 0.98 * whole


def test_without_ties_nothing_is_lost():
    rng = np.random.default_rng(0)
    c_hat, c = rng.random(100), rng.random(100)
    assert lost_by_ties(c_hat, c) == 0.0
    assert error_after_calibration(c_hat, c) == map_error(c_hat, c)


def test_resolution_makes_near_values_equal():
    c_hat, c = [0.30001, 0.29999], [0.1, 0.5]
    assert error_after_calibration(c_hat, c) == pytest.approx(0.2, abs=1e-4)
    assert error_after_calibration(c_hat, c, resolution=1e-3) == pytest.approx(0.0)
    assert lost_by_ties(c_hat, c, resolution=1e-3) == pytest.approx(0.2)


def test_truth_after_calibration_is_the_mean_of_equal_values():
    truth = truth_after_calibration([0.2, 0.9, 0.2], [0.0, 0.7, 0.5])
    np.testing.assert_allclose(truth, [0.25, 0.7, 0.25])


def test_divergences_by_hand():
    assert map_error([0.2], [0.5], "squared") == pytest.approx(0.09)
    expected = 0.5 * np.log(0.5 / 0.2) + 0.5 * np.log(0.5 / 0.8)
    assert map_error([0.2], [0.5], "kullback-leibler") == pytest.approx(expected)
    with pytest.raises(UnknownNameError, match="unknown divergence 'square'"):
        map_error([0.2], [0.5], "square")


@given(st.lists(st.tuples(tied, inside), min_size=3, max_size=40))
def test_rank_correlation_is_scipys(rows):
    estimate, truth = np.array(rows).T
    if np.ptp(estimate) == 0 or np.ptp(truth) == 0:
        assert np.isnan(rank_correlation(estimate, truth))
        return
    expected = spearmanr(estimate, truth).statistic
    assert rank_correlation(estimate, truth) == pytest.approx(expected, abs=1e-12)


def test_rank_correlation_of_missing_values_is_missing():
    assert np.isnan(rank_correlation([np.nan, 1.0, 2.0], [1.0, 2.0, 3.0]))
