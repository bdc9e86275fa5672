import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from calibrant.numerics.paired import (
    holm,
    paired_differences,
    ranks,
    significantly_different,
)

Z90 = norm.ppf(0.95)


@pytest.fixture
def draws():
    """Errors of three models; the first two go together."""
    common, noise, other = np.random.default_rng(0).normal(0, 0.01, (3, 4000))
    return np.stack([0.1 + common, 0.11 + common + 0.1 * noise, 0.13 + other])


def test_probability_is_that_of_a_normal_difference(draws):
    value = np.array([0.1, 0.101, 0.13])
    found = paired_differences(value, np.ones(3), np.ones(3), draws, 0.9)
    spread = (draws[0] - draws[1]).std()
    assert_allclose(spread, 0.001, rtol=0.05)  # what they share does not count
    assert_allclose(found.probability[0, 1], norm.cdf(0.001 / spread))
    assert_allclose(found.low[0, 1], -0.001 - Z90 * spread)
    assert_allclose(found.high[0, 1], -0.001 + Z90 * spread)


def test_both_directions_agree(draws):
    low = np.array([0.0, 0.05, 0.0])
    value = np.array([0.1, 0.101, 0.13])
    found = paired_differences(value, low, value, draws, 0.8)
    assert_allclose(found.probability + found.probability.T, 1.0)
    assert_allclose(found.low, -found.high.T)
    assert_allclose(np.diag(found.probability), 0.5)


def test_an_interval_leaves_out_zero_where_the_probability_is_extreme(draws):
    for gap in np.linspace(-0.03, 0.03, 61):
        value = np.array([0.1, 0.1 + gap])
        low = np.array([0.0, 0.05])
        found = paired_differences(value, low, value, draws[[0, 2]], 0.9)
        outside = found.high[0, 1] < 0.0 or found.low[0, 1] > 0.0
        probability = found.probability[0, 1]
        assert outside == (probability < 0.05 or probability > 0.95)


def test_what_may_be_zero_is_not_told_to_be_larger_than_zero():
    """A sure 0 against 0.03 +- 0.001, whose own interval begins at 0."""
    draws = np.stack([np.zeros(500), np.random.default_rng(1).normal(0.03, 1e-3, 500)])
    value = np.array([0.0, 0.03])
    told = paired_differences(value, np.array([0.0, 0.028]), value, draws, 0.9)
    assert told.probability[0, 1] > 1.0 - 1e-9
    released = paired_differences(value, np.zeros(2), value, draws, 0.9)
    assert_allclose(released.probability[0, 1], 0.95)
    assert_allclose(released.high[0, 1], 0.0, atol=1e-12)


def test_an_error_that_no_resample_moves_is_as_sure_as_its_own_interval():
    """Two methods that see nothing: 0 in every resample, 0.2 or 0.1 at most."""
    value, high = np.zeros(2), np.array([0.2, 0.1])
    found = paired_differences(value, np.zeros(2), high, np.zeros((2, 50)), 0.9)
    assert_allclose([found.low[0, 1], found.high[0, 1]], [-0.1, 0.2])
    assert found.probability[0, 1] == 0.5


def test_ends_of_differences_are_possible_ones():
    draws = np.random.default_rng(0).normal(0.5, 0.6, (2, 100))
    value = np.array([0.05, 0.95])
    found = paired_differences(value, value, value, draws, 0.9)
    assert found.low[0, 1] == -1.0
    assert -0.9 < found.high[0, 1] <= 1.0


def test_errors_below_zero_count_as_zero():
    draws = np.random.default_rng(0).normal(0.0, 0.01, (2, 100))
    value = np.array([-0.02, -0.01])
    found = paired_differences(value, np.zeros(2), np.ones(2), draws, 0.9)
    assert found.difference[0, 1] == 0.0
    assert found.probability[0, 1] == 0.5


def test_no_spread_is_certain_and_equal_is_even():
    draws = np.array([[0.0, 0.0], [0.2, 0.2]])
    value = np.array([0.0, 0.2])
    found = paired_differences(value, value, value, draws, 0.9)
    assert_array_equal(found.probability, [[0.5, 1.0], [0.0, 0.5]])


def test_holm_rejects_as_in_the_textbook():
    """Four p-values at level 0.05: only 0.005 and 0.01 are small enough."""
    pvalues = {(0, 1): 0.01, (0, 2): 0.04, (0, 3): 0.03, (1, 2): 0.005}
    probability = np.full((4, 4), 0.5)  # pairs (1, 3) and (2, 3) have p-value 1
    for (a, b), pvalue in pvalues.items():
        probability[a, b], probability[b, a] = 1.0 - pvalue / 2.0, pvalue / 2.0
    found = significantly_different(
        probability, 0.05 * 6 / 4
    )  # six pairs in place of four
    assert_array_equal(np.argwhere(np.triu(found)), [[0, 1], [1, 2]])
    assert_array_equal(found, found.T)


def test_two_models_are_significantly_different_at_the_level_itself():
    for probability, expected in ((0.951, True), (0.949, False)):
        matrix = np.array([[0.5, probability], [1.0 - probability, 0.5]])
        assert significantly_different(matrix, 0.1)[0, 1] == expected


def test_ranks_count_who_is_better_even_where_apart_is_no_order():
    """The second cannot be told from the first nor the third, but these differ."""
    value = np.array([0.1, 0.2, 0.3, 0.9])
    apart = np.zeros((4, 4), dtype=bool)
    apart[0, 2] = apart[0, 3] = apart[1, 3] = apart[2, 3] = True
    difference = value[:, np.newaxis] - value
    assert_array_equal(ranks(difference, apart | apart.T), [1, 1, 2, 4])


def test_holm_is_the_published_procedure():
    # by hand: sorted 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.5 * 1, then never falling
    assert holm([0.5, 0.01, 0.03, 0.02]).tolist() == [0.5, 0.04, 0.06, 0.06]


def test_adjusted_values_are_chances():
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
