"""The smooth test's null distribution, against simulation and closed forms."""

from math import factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_ndtr, logit
from scipy.stats import chi2, kstest, norm

from calibrant.core.sample import BinarySample
from calibrant.numerics.classical_tests import cox, spiegelhalter_z
from calibrant.numerics.smooth_calibration_test import (
    EXPONENT,
    LINE_SHARE,
    PRICES,
    SHARES,
    SmoothPValue,
    bent_line,
    count_for,
    log_mean_p,
    log_tail,
    outcome_of_scores,
    score_functions,
    score_statistics,
    smooth_p_values,
    spiegelhalter_line,
)
from calibrant.numerics.weighted_points import compress_to_at_most


def smooth_test(one):
    """Return statistic and p-value of one sample."""
    return smooth_p_values([one])[0].outcome


def points(p, y):
    return compress_to_at_most(BinarySample(p, y))


def scores(p, y, count, line=bent_line):
    """Return scores, and Spiegelhalter's direction among the first two."""
    one = points(p, np.asarray(y, dtype=float))
    basis = score_functions(one, count, line)
    return score_statistics(one, basis), spiegelhalter_line(one, basis)


def direction(cosine):
    return np.array([cosine, np.sqrt(1.0 - cosine**2)])


COUNTS = [count for count in PRICES if count > 1]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("cosine", [0.0, -0.6, 0.95])
def test_the_chance_of_the_mean_is_that_of_simulation(count, cosine):
    normal = np.random.default_rng(0).standard_normal((100_000, count))
    mean = np.exp(log_mean_p(normal, direction(cosine)))
    found = np.minimum(PRICES[count] * mean, 0.5 * (1.0 + mean))
    assert kstest(found, "uniform").statistic < 0.04  # near 0.9
    for level in (0.3, 0.1, 0.05, 0.01, 0.001):
        drawn = np.mean(found <= level)
        error = np.sqrt(level * (1 - level) / mean.size)
        assert abs(drawn - level) < 0.03 * level + 4 * error


def rare_chance(count, line, level, draws=25_000):
    """Return the chance that the mean is below a level, and its standard error.

    Scores are drawn from a mixture in which one sum is as large as it must be, and
    weighted by their density.
    """
    rng, axes = np.random.default_rng(7), np.eye(count)
    parts = [axes[:, :order] for order in SHARES if order <= count]
    parts.append(axes[:, :2] @ line[:, np.newaxis])
    sizes = [part.shape[1] for part in parts]
    spreads = [np.sqrt(chi2.isf(0.1 * level, size) / size) for size in sizes]
    drawn = []
    for part, spread in zip(parts, spreads, strict=True):
        z = rng.standard_normal((draws, count))
        drawn.append(z + (spread - 1) * (z @ part) @ part.T)
    z, density = np.concatenate(drawn), 0.0
    for part, size, spread in zip(parts, sizes, spreads, strict=True):
        square = ((z @ part) ** 2).sum(axis=1)
        density += spread**-size * np.exp(0.5 * (1 - spread**-2) * square)
    found = (log_mean_p(z, line) <= np.log(level)) * len(parts) / density
    return found.mean(), found.std() / np.sqrt(found.size)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("level", [1e-3, 1e-8])
def test_small_chances_have_the_same_price(count, level):
    chance, error = rare_chance(count, direction(0.3), level)
    assert error < 0.03 * chance
    assert abs(PRICES[count] * level - chance) < 0.04 * chance + 3 * error


@pytest.mark.parametrize("count", COUNTS)
def test_the_mean_is_that_of_powers_of_pvalues(count):
    z, line = np.random.default_rng(3).standard_normal(count), direction(0.6)
    total = LINE_SHARE
    powers = LINE_SHARE * chi2.sf((z[:2] @ line) ** 2, 1) ** -EXPONENT
    for order, share in SHARES.items():
        if order <= count:
            total += share
            powers += share * chi2.sf(np.sum(z[:order] ** 2), order) ** -EXPONENT
    mean = (powers / total) ** (-1 / EXPONENT)
    assert_allclose(np.exp(log_mean_p(z, line)), mean)
    found = outcome_of_scores(z, line)
    assert_allclose(found.statistic, -np.log(mean))
    assert_allclose(found.pvalue, min(PRICES[count] * mean, (1 + mean) / 2))


def test_scores_of_zero_are_no_evidence():
    found = outcome_of_scores(np.zeros(24), direction(0.0))
    assert_allclose(found, (0.0, 1.0), atol=1e-12)


def test_one_score_has_the_pvalue_of_the_normal():
    found = outcome_of_scores(np.array([1.96]), np.ones(1))
    assert_allclose(found.pvalue, 2 * norm.sf(1.96))


def test_pvalues_of_huge_scores_keep_their_logarithm():
    found = outcome_of_scores(np.full(24, 20.0), direction(0.0))
    assert found.pvalue == 0.0
    share = SHARES[24] / (sum(SHARES.values()) + LINE_SHARE)
    wanted = -log_tail(24, 24 * 400.0) + np.log(share) / EXPONENT
    assert_allclose(found.statistic, wanted)


def test_rejection_is_a_pvalue_at_most_the_level():
    found = SmoothPValue(3.0, 0.05)
    assert found.rejects(0.05)
    assert not found.rejects(0.049)


@pytest.mark.parametrize(
    ("information", "most", "count"),
    [(0.1, 24, 6), (150, 24, 12), (287, 24, 12), (288, 24, 24), (1e6, 5, 3), (9, 1, 1)],
)
def test_more_functions_need_more_variance(information, most, count):
    assert count_for(information, most) == count


@pytest.mark.parametrize("order", [2, 4, 24])
@pytest.mark.parametrize("value", [0.5, 30.0, 1400.0, 1e5])
def test_tails_keep_their_logarithm_where_chances_vanish(order, value):
    """A chi-square of even order passes x with the chance of few Poisson events."""
    terms = [(value / 2) ** j / factorial(j) for j in range(order // 2)]
    wanted = -value / 2 + np.log(sum(terms))
    assert_allclose(log_tail(order, value), wanted, rtol=1e-6, atol=1e-12)


def test_the_tail_of_one_square_is_that_of_the_normal():
    for value in (0.5, 1e5):
        wanted = np.log(2.0) + log_ndtr(-np.sqrt(value))
        assert_allclose(log_tail(1, value), wanted, rtol=1e-6)


def test_samples_are_tested_together_as_alone():
    rng = np.random.default_rng(5)
    cells = []
    for n in (1, 2, 3, 7, 8, 30, 400):
        p = rng.random(n)
        cells.append(points(p, (rng.random(n) < p).astype(float)))
    together = [test.outcome for test in smooth_p_values(cells)]
    alone = [smooth_test(one) for one in cells]
    assert_allclose(together, alone, rtol=1e-9)


def test_the_constant_finds_how_far_the_mean_of_labels_is_off():
    rng = np.random.default_rng(6)
    p = rng.beta(0.3, 5.0, 200)
    y = (rng.random(200) < p).astype(float)
    z = (y - p).sum() / np.sqrt((p * (1 - p)).sum())
    assert_allclose(abs(scores(p, y, 8)[0][0]), abs(z))


def test_the_line_is_nearly_that_of_spiegelhalter():
    """1 - 2 p is a line of 2 p - 1 + arcsin(2 p - 1) but for little of its variance."""
    rng = np.random.default_rng(4)
    for shape in ((1.0, 1.0), (0.3, 5.0), (0.2, 0.2)):
        p = rng.beta(*shape, 5000)
        pairs = []
        for _ in range(100):
            y = (rng.random(5000) < p).astype(float)
            found, line = scores(p, y, 2)
            pairs.append((found @ line, spiegelhalter_z(p, y, np.ones(5000)).statistic))
        assert np.corrcoef(np.transpose(pairs))[0, 1] > 0.99


def test_all_predictions_of_one_half_have_no_spiegelhalter_direction():
    p = np.array([0.5, 0.5 + 1e-16])
    assert np.isfinite(smooth_test(points(p, np.array([0.0, 1.0]))).pvalue)


def test_scores_of_calibrated_labels_are_independent_and_standard():
    rng = np.random.default_rng(1)
    p = np.sort(rng.beta(0.5, 2.0, 300))
    found = np.array([scores(p, rng.random(300) < p, 8)[0] for _ in range(3000)])
    assert_allclose(found.mean(axis=0), 0.0, atol=4 / np.sqrt(3000))
    assert_allclose(np.cov(found.T), np.eye(8), atol=5 * np.sqrt(2 / 3000))


def test_lines_of_the_logit_give_the_score_form_of_cox():
    """Score and likelihood ratio agree to first order in small departures."""
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.95, 100_000)
    y = (rng.random(p.size) < np.clip(p + 0.004, 0, 1)).astype(float)
    ours = np.square(scores(p, y, 2, logit)[0]).sum()
    theirs = cox(p, y, np.ones(p.size))
    assert theirs.statistic > 4.0
    assert_allclose(ours, theirs.statistic, rtol=0.02)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.3, 5.0), (0.2, 0.2)])
def test_a_calibrated_model_is_rejected_as_often_as_promised(a, b):
    rng = np.random.default_rng(3)
    found = []
    for _ in range(1500):
        p = rng.beta(a, b, 300)
        y = (rng.random(300) < p).astype(float)
        found.append(smooth_test(points(p, y)).pvalue)
    found = np.array(found)
    assert kstest(found, "uniform").statistic < 0.045
    assert abs(np.mean(found <= 0.05) - 0.05) < 0.02


@pytest.mark.parametrize(("p", "y"), [([0.1], [1.0]), ([0.2, 0.8], [1.0, 0.0])])
def test_no_pvalue_is_below_the_chance_of_the_labels(p, y):
    """Of one row, exactly one in ten calibrated ones surprises as much as this one."""
    found = smooth_p_values([points(np.array(p), np.array(y))])[0]
    chance = np.prod(np.where(np.array(y) == 1.0, p, 1.0 - np.array(p)))
    assert_allclose(found.outcome.pvalue, chance)
    assert found.rejects(chance * 1.01)
    assert not found.rejects(chance * 0.99)


def test_one_prediction_gives_the_normal_test_of_a_share():
    y = np.repeat([1.0, 0.0], [24, 76])
    z = (24 - 30) / np.sqrt(100 * 0.3 * 0.7)
    found = smooth_test(points(np.full(100, 0.3), y))
    assert_allclose(found.pvalue, chi2.sf(z**2, 1))


def test_certain_predictions_pass_or_fail_for_certain():
    p = np.repeat([0.0, 1.0], 50)
    assert smooth_test(points(p, p)).pvalue == 1.0
    y = p.copy()
    y[0] = 1.0
    assert smooth_test(points(p, y)).pvalue < 1e-100
