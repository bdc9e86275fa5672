import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logit

from calibrant.numerics.classical_tests import (
    REVERSAL_LEVEL,
    cox,
    find_reversal,
    hosmer_lemeshow,
    spiegelhalter_z,
)


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 300)
    return p, (rng.random(300) < p**1.1).astype(float)


def test_spiegelhalter_is_the_standardised_brier_score(sample):
    p, y = sample
    expected = (p * (1 - p)).sum()
    variance = ((1 - 2 * p) ** 2 * p * (1 - p)).sum()
    z = (((y - p) ** 2).sum() - expected) / np.sqrt(variance)
    assert_allclose(spiegelhalter_z(p, y, np.ones(300)).statistic, z, rtol=1e-12)


def test_spiegelhalter_without_noise():
    p = np.array([0.0, 1.0, 0.5])
    assert spiegelhalter_z(p, np.array([0.0, 1.0, 1.0]), np.ones(3)) == (0.0, 1.0)
    assert spiegelhalter_z(p, np.array([1.0, 1.0, 1.0]), np.ones(3)) == (np.inf, 0.0)


def test_hosmer_lemeshow_by_hand():
    """Two groups of four: 1 of 4 where 0.8 are expected, 3 of 4 where 3.2 are."""
    p = np.array([0.2] * 4 + [0.8] * 4)
    y = np.array([1.0, 0, 0, 0, 1, 1, 1, 0])
    found = hosmer_lemeshow(p, y, None, groups=2, fitted=0)
    wanted = 2 * 0.2**2 / (0.8 * 0.8)
    assert_allclose(found.statistic, wanted, rtol=1e-12)
    assert_allclose(found.pvalue, np.exp(-wanted / 2), rtol=1e-12)  # two groups
    assert np.isnan(hosmer_lemeshow(p, y, None, groups=3, fitted=2).pvalue)


def test_hosmer_lemeshow_of_certain_predictions():
    p = np.array([0.0, 0.0, 1.0, 1.0])
    right = hosmer_lemeshow(p, p, None, groups=2, fitted=0)
    wrong = hosmer_lemeshow(p, 1 - p, None, groups=2, fitted=0)
    assert right == (0.0, 1.0)
    assert wrong == (np.inf, 0.0)


def test_cox_reaches_the_optimum_of_a_general_solver(sample):
    p, y = sample
    weight = np.random.default_rng(1).integers(1, 4, p.size).astype(float)

    def deviance(theta):
        line = theta[0] + theta[1] * logit(p)
        return 2 * (weight * (np.logaddexp(0, line) - y * line)).sum()

    best = minimize(deviance, [0.0, 1.0], tol=1e-12).fun
    found = cox(p, y, weight)
    assert_allclose(found.statistic, deviance([0.0, 1.0]) - best, atol=1e-8)
    assert_allclose(found.pvalue, np.exp(-found.statistic / 2), rtol=1e-12)


def test_cox_of_separable_classes_gains_the_whole_deviance():
    p = expit(np.array([-2.0, -1.0, 1.0, 2.0]))
    y = np.array([0.0, 0.0, 1.0, 1.0])
    whole = -2 * np.log([1 - p[0], 1 - p[1], p[2], p[3]]).sum()
    assert_allclose(cox(p, y, np.ones(4)).statistic, whole, atol=1e-6)


def test_cox_of_one_constant_prediction_moves_the_intercept():
    p, y = np.full(100, 0.3), np.repeat([1.0, 0.0], [45, 55])
    gain = 2 * (45 * np.log(0.45 / 0.3) + 55 * np.log(0.55 / 0.7))
    assert_allclose(cox(p, y, np.ones(100)).statistic, gain, rtol=1e-8)


def test_weight_two_equals_the_row_twice(sample):
    p, y = sample
    count = np.random.default_rng(2).integers(1, 4, p.size)
    weight, rows = count.astype(float), np.repeat(np.arange(p.size), count)
    ones = np.ones(rows.size)
    for test in (spiegelhalter_z, cox):
        assert_allclose(test(p, y, weight), test(p[rows], y[rows], ones), rtol=1e-9)
    assert_allclose(
        hosmer_lemeshow(p, y, weight, groups=8, fitted=0),
        hosmer_lemeshow(p[rows], y[rows], None, groups=8, fitted=0),
        rtol=1e-9,
    )


def test_correlation_is_that_of_numpy_and_weights_are_copies():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < 1.0 - p).astype(float)
    count = rng.integers(1, 4, 200)
    found = find_reversal(p, y, count.astype(float))
    many_p, many_y = np.repeat(p, count), np.repeat(y, count)
    correlation = np.corrcoef(many_p, many_y)[0, 1]
    assert found.correlation == pytest.approx(correlation)
    assert find_reversal(p, 1.0 - y, count.astype(float)) is None


def test_models_without_skill_are_rarely_upside_down():
    rng = np.random.default_rng(0)
    ones, draws = np.ones(500), 2000
    found = sum(
        find_reversal(rng.random(500), (rng.random(500) < 0.3) + 0.0, ones) is not None
        for _ in range(draws)
    )
    # Four standard errors of a share of 1 %.
    assert abs(found / draws - REVERSAL_LEVEL) < 4.0 * np.sqrt(REVERSAL_LEVEL / draws)


@pytest.mark.parametrize("p", [np.full(40, 0.3), np.linspace(0.0, 1.0, 29)])
def test_no_spread_or_few_rows_are_nothing_to_test(p):
    assert find_reversal(p, (p < 0.5).astype(float), np.ones(p.size)) is None
