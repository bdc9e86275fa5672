"""CMEE, CEAC, Theorem 3, rank correlations, and contenders."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from calibrant.exceptions import OptionError, UnknownNameError
from calibrant.experiments import Contender, Design, SyntheticTruth, run
from calibrant.experiments.assessment import (
    error_after_calibration,
    map_error,
    rank_correlation,
    truth_after_calibration,
)

inside = st.floats(0.01, 0.99)
tied = st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9])


def lost_by_ties(c_hat, c, alpha=1.0):
    """Return the loss from giving one value to rows with different truths."""
    return map_error(truth_after_calibration(c_hat, c), c, alpha)


@given(st.lists(st.tuples(tied, inside), min_size=1, max_size=60))
def test_theorem_3_map_error_is_error_after_calibration_and_ties(rows):
    c_hat, c = np.array(rows).T
    whole = map_error(c_hat, c, 2.0)
    after = error_after_calibration(c_hat, c, 2.0)
    assert whole == pytest.approx(after + lost_by_ties(c_hat, c, 2.0), abs=1e-12)
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

    truth = SyntheticTruth("beta2", 0.1)
    data, unseen = truth.draw(1000, 0), truth.unseen()
    c_hat = cb.make_calibrator("isotonic").fit(data.p, data.y).map_(unseen.p)
    whole = map_error(c_hat, unseen.c, 2.0)
    after = error_after_calibration(c_hat, unseen.c, 2.0)
    ties = lost_by_ties(c_hat, unseen.c, 2.0)
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


def test_truth_after_calibration_is_the_mean_of_equal_values():
    truth = truth_after_calibration([0.2, 0.9, 0.2], [0.0, 0.7, 0.5])
    np.testing.assert_allclose(truth, [0.25, 0.7, 0.25])


def test_squared_differences_by_hand():
    assert map_error([0.2], [0.5], 2.0) == pytest.approx(0.09)


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


def test_contenders_are_found_again_by_their_repr():
    class Anonymous:
        def fit_sample(self, sample):
            raise NotImplementedError

    with pytest.raises(OptionError, match="make it a dataclass"):
        Contender("mine", Anonymous())
    with pytest.raises(UnknownNameError, match="unknown method"):
        Contender.of("mine")


def test_any_calibrator_takes_part():
    """The map of a calibrator of the user's own is measured as those of the library."""
    truth = SyntheticTruth("square", 0.1, test_rows=1000)
    data, unseen = truth.draw(500, 0), truth.unseen()
    row = Contender("mine", Halved()).measure(data, unseen, truth)
    assert row["map_error"] == pytest.approx(np.abs(unseen.p / 2 - unseen.c).mean())
    assert row["estimate"] == pytest.approx(np.mean(data.p / 2))


@dataclass
class Halved:
    """Divides predictions by two."""

    def fit(self, _p, _y):
        return self

    def transform(self, p):
        return p / 2


@pytest.mark.parametrize("method", ["pl", "pl3", "pl-de", "platt", "beta"])
def test_every_twentieth_row_is_as_good_as_all(method, tmp_path):
    """To a tenth of the last printed digit, a thousandth of thousandths."""
    contenders = [
        Contender.of(method, name=f"every {every}", every=every) for every in (1, 20)
    ]
    design = Design(
        contenders=contenders,
        truths=[SyntheticTruth("stairs", 0.1)],
        sizes=[1000],
        seeds=[0],
    )
    rows = run(design, tmp_path)
    assert rows["map_error"][0] == pytest.approx(rows["map_error"][1], abs=1e-6)
