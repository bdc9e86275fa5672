"""The smooth test's null distribution, against simulation and closed forms."""

from itertools import pairwise
from math import factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import log_ndtr, logit
from scipy.stats import chi2, kstest, norm

from calibrant.core.sample import BinarySample
from calibrant.numerics.classical_tests import cox, spiegelhalter_z
from calibrant.numerics.smooth_calibration_test import (
    CONSTANT_SHARE,
    LEVEL_SHARES,
    ORDERS,
    MinPValue,
    angle,
    least_log_tails,
    log_tail,
    min_p_values,
    p_value_of_min,
    score_functions,
    score_statistics,
    spiegelhalter_line,
)
from calibrant.numerics.weighted_points import compress_to_at_most


def smooth_test(one):
    """Return statistic and p-value of one sample."""
    return min_p_values([one])[0].outcome


def points(p, y):
    return compress_to_at_most(BinarySample(p, y))


def scores(p, y, count, line=angle):
    """Return scores, and Spiegelhalter's direction among the first two."""
    one = points(p, np.asarray(y, dtype=float))
    basis = score_functions(one, count, line)
    return score_statistics(one, basis), spiegelhalter_line(one, basis)


def direction(cosine):
    return np.array([cosine, np.sqrt(1.0 - cosine**2)])


SHARES = np.array(list(LEVEL_SHARES.values()))
PREFIXES = [ORDERS[:size] for size in (2, 3, 4, len(ORDERS))]


def least_quotients(scores, orders, cosine):
    sums = np.cumsum(scores**2, axis=1)[:, np.array(orders) - 1]
    sums[:, 0] = (scores[:, :2] @ direction(cosine)) ** 2
    least = (chi2.sf(sums, orders) / SHARES[: len(orders)]).min(axis=1)
    return np.minimum(least, chi2.sf(scores[:, 0] ** 2, 1) / CONSTANT_SHARE)


@pytest.mark.parametrize("orders", PREFIXES)
@pytest.mark.parametrize("cosine", [0.0, 0.4, -0.9, 1.0])
def test_the_chance_of_the_least_pvalue_is_that_of_simulation(orders, cosine):
    normal = np.random.default_rng(0).standard_normal((100_000, orders[-1]))
    least = least_quotients(normal, orders, cosine)
    for level in (0.7, 0.3, 0.05, 0.01):
        drawn = np.mean(least <= level)
        error = np.sqrt(drawn * (1 - drawn) / least.size)
        assert abs(p_value_of_min(orders, level, cosine) - drawn) < 4 * error


@pytest.mark.parametrize("orders", PREFIXES[:3])
def test_small_chances_are_those_of_weighted_simulation(orders):
    """Scores are drawn with a larger spread, and weighted by their density."""
    level, spread, size = 1e-6, 2.3, orders[-1]
    drawn = spread * np.random.default_rng(7).standard_normal((400_000, size))
    weight = np.exp(-0.5 * (1.0 - spread**-2) * np.sum(drawn**2, axis=1))
    below = least_quotients(drawn, orders, -0.4) <= level
    found = spread**size * weight * below
    error = found.std() / np.sqrt(found.size)
    assert error < 0.04 * found.mean()
    assert abs(p_value_of_min(orders, level, -0.4) - found.mean()) < 4 * error


def leaving(limit, rest, kinks):
    """Return the chance that a score exceeds a limit, or the square of another `rest`.

    Where the limit of the other square has kinks, the integral is split.
    """
    ends = np.unique(np.clip([0.0, *kinks, limit], 0.0, limit))
    parts = [
        quad(lambda z: 2 * norm.pdf(z) * chi2.sf(rest(z), 1), *pair, epsabs=0.0)[0]
        for pair in pairwise(ends)
    ]
    return 2 * norm.sf(limit) + sum(parts)


@pytest.mark.parametrize("level", [0.9, 0.3, 0.05, 1e-9])
def test_two_orders_equal_an_integral_over_the_first(level):
    """Where directions are at right angles, or the same."""
    constant = norm.isf(CONSTANT_SHARE * level / 2)
    line, both = norm.isf(level / 2), chi2.isf(level, 2)
    kinks = np.sqrt([max(both - line**2, 0.0), both])

    def disc(z):
        return max(both - z * z, 0.0)

    wanted = leaving(constant, lambda z: min(line**2, disc(z)), kinks)
    assert_allclose(p_value_of_min((1, 2), level, 0.0), wanted, rtol=1e-6)
    wanted = leaving(line, disc, kinks)
    assert_allclose(p_value_of_min((1, 2), level, 1.0), wanted, rtol=1e-6)


@pytest.mark.parametrize("level", [1e-3, 1e-30, 1e-200])
def test_the_price_of_looking_is_below_that_of_bonferroni(level):
    chance = p_value_of_min(ORDERS, level, 0.2)
    assert level < chance < (SHARES.sum() + CONSTANT_SHARE) * level * 1.05


def test_certain_and_impossible_levels_stay():
    assert p_value_of_min(ORDERS, 0.0, 0.2) == 0.0
    assert p_value_of_min(ORDERS, 1.0, 0.2) == 1.0
    assert 0.999 < p_value_of_min(ORDERS, 0.9999, 0.2) <= 1.0


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


@pytest.mark.parametrize("orders", [(1,), *PREFIXES])
@pytest.mark.parametrize("level", [0.2, 0.05, 1e-6])
def test_a_test_rejects_if_its_pvalue_is_at_most_the_level(orders, level):
    for share in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0, 1.1):
        found = MinPValue(np.log(share * level), orders, 0.1)
        assert found.rejects(level) == (found.outcome.pvalue <= level)


def test_samples_are_tested_together_as_alone():
    rng = np.random.default_rng(5)
    cells = []
    for n in (1, 2, 3, 7, 8, 30, 400):
        p = rng.random(n)
        cells.append(points(p, (rng.random(n) < p).astype(float)))
    together = [test.outcome for test in min_p_values(cells)]
    alone = [smooth_test(one) for one in cells]
    assert_allclose(together, alone, rtol=1e-9)


def test_the_least_is_taken_among_the_orders_only():
    found, line = np.sqrt([0.0, 0.0, 50.0, 0.0]), direction(0.0)
    wanted = chi2.logsf(50.0, 3) - np.log(LEVEL_SHARES[3])
    assert_allclose(least_log_tails(found, line, (1, 2, 3)), wanted)
    assert least_log_tails(found, line, (1, 2)) == 0.0


def test_the_constant_and_the_line_count_alone():
    line = direction(0.6)
    wanted = chi2.logsf(25.0, 1)
    assert_allclose(least_log_tails(5.0 * line, line, (1, 2)), wanted)
    constant = least_log_tails(np.array([5.0, 0.0]), line, (1, 2))
    assert_allclose(constant, wanted - np.log(CONSTANT_SHARE))


def test_the_constant_finds_how_far_the_mean_of_labels_is_off():
    rng = np.random.default_rng(6)
    p = rng.beta(0.3, 5.0, 200)
    y = (rng.random(200) < p).astype(float)
    z = (y - p).sum() / np.sqrt((p * (1 - p)).sum())
    assert_allclose(abs(scores(p, y, 8)[0][0]), abs(z))


def test_the_line_is_nearly_that_of_spiegelhalter():
    """1 - 2 p is a line of the arcsine but for 1 percent of its variance."""
    rng = np.random.default_rng(4)
    for shape in ((1.0, 1.0), (0.3, 5.0), (0.2, 0.2)):
        p = rng.beta(*shape, 5000)
        pairs = []
        for _ in range(100):
            y = (rng.random(5000) < p).astype(float)
            found, line = scores(p, y, 2)
            pairs.append((found @ line, spiegelhalter_z(p, y, np.ones(5000)).statistic))
        assert np.corrcoef(np.transpose(pairs))[0, 1] > 0.98


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
    found = min_p_values([points(np.array(p), np.array(y))])[0]
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
