"""Net benefit: closed forms, an equivalent definition, and simulated coverage."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import binomtest

from calibrant.numerics.net_benefit import (
    NetBenefit,
    Outcomes,
    lost_benefit,
    score_limits,
    thresholds_reached,
)

THRESHOLDS = np.array([0.05, 0.2, 0.5, 0.8])


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 4.0, n)
    return p, (rng.random(n) < p**1.3).astype(float)


def benefit_of(p, y, thresholds=THRESHOLDS, clusters=None):
    rows = Outcomes(thresholds, y, 1.0 - y, clusters)
    return NetBenefit.of(rows, thresholds_reached(p, thresholds))


def test_the_benefit_counts_rows_as_the_definition_does():
    p, y = drawn(500, 1)
    expected = [
        np.mean((p >= t) & (y == 1)) - t / (1 - t) * np.mean((p >= t) & (y == 0))
        for t in THRESHOLDS
    ]
    assert_allclose(benefit_of(p, y).value, expected, atol=1e-15)


def test_a_difference_is_that_of_the_benefits():
    p, y = drawn(500, 2)
    other = np.sqrt(p)
    rows = Outcomes(THRESHOLDS, y, 1.0 - y)
    apart = NetBenefit.difference(rows, p, other)
    a, b = (thresholds_reached(one, THRESHOLDS) for one in (p, other))
    expected = NetBenefit.of(rows, a).value - NetBenefit.of(rows, b).value
    assert_allclose(apart.value, expected, atol=1e-15)


def test_with_many_rows_limits_are_those_of_a_mean():
    p, y = drawn(200_000, 3)
    benefit = benefit_of(p, y)
    acted = p[:, np.newaxis] >= THRESHOLDS
    gains = acted * np.where(
        y[:, np.newaxis] == 1.0, 1.0, -THRESHOLDS / (1 - THRESHOLDS)
    )
    error = gains.std(axis=0) / np.sqrt(p.size)
    low, high = benefit.limits(0.95)
    assert_allclose(high - low, 2 * 1.959964 * error, rtol=0.01)
    assert_allclose(0.5 * (low + high), gains.mean(axis=0), atol=0.3 * error.max())


def test_treating_all_has_the_limits_of_the_event_rate():
    y = np.repeat([1.0, 0.0], [12, 88])
    low, high = benefit_of(np.ones(100), y, np.array([0.2])).limits(0.95)
    rate = binomtest(12, 100).proportion_ci(0.95, method="wilson")
    assert_allclose(
        [low[0], high[0]], [1.25 * rate.low - 0.25, 1.25 * rate.high - 0.25]
    )


def test_score_limits_of_one_share_are_wilsons():
    one = np.ones((1, 1))
    low, high = score_limits(0.3 * one, one, None, np.array([20.0]), 1.959963984540054)
    expected = binomtest(6, 20).proportion_ci(0.95, method="wilson")
    assert_allclose([low[0], high[0]], [expected.low, expected.high])


def tango_z(b, c, n, limit):
    """Tango's score statistic of b against c discordant pairs of n, from his paper."""
    first = -b - c + (2 * n - b + c) * limit
    last = -c * limit * (1 - limit)
    q = (np.sqrt(first**2 - 8 * n * last) - first) / (4 * n)
    return (b - c - n * limit) / np.sqrt(n * (2 * q + limit * (1 - limit)))


def test_score_limits_of_a_paired_difference_are_tangos():
    b, c, n, z = 12, 5, 80, 1.959963984540054
    limits = score_limits(
        np.array([[b / n], [c / n]]),
        np.array([[1.0], [-1.0]]),
        None,
        np.array([float(n)]),
        z,
    )
    statistics = [tango_z(b, c, n, float(limit[0])) for limit in limits]
    assert_allclose(statistics, [z, -z], rtol=1e-9)


def test_score_limits_are_where_the_likeliest_shares_reject():
    """A general optimiser finds the same standard errors at both limits."""
    n, shares = 60, np.array([0.05, 0.1, 0.02, 0.2, 0.63])
    counts = np.array([1.0, -0.25, -1.0, 0.25, 0.0])
    limits = score_limits(
        shares[:4, np.newaxis], counts[:4, np.newaxis], None, np.array([60.0]), 1.96
    )
    for limit in (float(one[0]) for one in limits):
        found = minimize(
            lambda p: -(shares * np.log(p)).sum(),
            shares,
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1.0},
                {"type": "eq", "fun": lambda p, at=limit: counts @ p - at},
            ],
            bounds=[(1e-9, 1.0)] * 5,
            method="SLSQP",
            options={"ftol": 1e-14},
        ).x
        error = np.sqrt((counts**2 @ found - limit**2) / n)
        assert_allclose(abs(counts @ shares - limit) / error, 1.96, rtol=1e-4)


def test_predictions_that_are_the_same_do_not_differ():
    p, y = drawn(150, 9)
    clusters = np.arange(150) // 3
    for own in (None, clusters):
        rows = Outcomes(THRESHOLDS, y, 1.0 - y, own)
        low, high = NetBenefit.difference(rows, p, p).limits(0.95)
        assert_allclose([low, high], 0.0, atol=0.0)


def test_predictions_that_are_decided_alike_may_still_differ():
    p, y = np.full(50, 0.3), np.repeat([0.0, 1.0], 25)
    rows = Outcomes(np.array([0.5]), y, 1.0 - y)
    low, high = NetBenefit.difference(rows, p + 0.1, p).limits(0.95)
    assert_allclose(high, 1.959964**2 / (50 + 1.959964**2), rtol=1e-6)
    assert_allclose(low, -high)
    more, fewer = NetBenefit.difference(rows, p, p + 0.1).limits(0.95)
    assert_allclose([more, fewer], [-high, -low])


@pytest.mark.slow
def test_intervals_of_differences_hold_and_are_not_too_wide():
    """Two models that decide differently where their logits cross."""
    big = np.random.default_rng(0).beta(1.0, 4.0, 1_000_000)

    def pair(p):
        return expit(1.6 * logit(p) + 0.5), p

    at = np.array([0.1, 0.2, 0.5])
    rows = Outcomes(at, big, 1.0 - big)
    truth = NetBenefit.difference(rows, *pair(big)).value
    held, width, values, runs, n = np.zeros(3), np.zeros(3), [], 400, 150
    for seed in range(runs):
        rng = np.random.default_rng([seed, n])
        p = rng.beta(1.0, 4.0, n)
        y = (rng.random(n) < p).astype(float)
        benefit = NetBenefit.difference(Outcomes(at, y, 1.0 - y), *pair(p))
        low, high = benefit.limits(0.95)
        held += (low <= truth) & (truth <= high)
        width += (high - low) / runs
        values.append(benefit.value)
    assert (held / runs).min() > 0.95 - 2.5 * np.sqrt(0.05 * 0.95 / runs)
    assert (width < 1.5 * 3.92 * np.std(values, axis=0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 300])
def test_intervals_and_bands_hold_the_true_benefit(n):
    big = np.random.default_rng(0).beta(1.0, 4.0, 1_000_000)
    truth = benefit_of(big, big**1.3).value
    held, whole, runs = np.zeros(THRESHOLDS.size), 0, 400
    for seed in range(runs):
        benefit = benefit_of(*drawn(n, 1000 + seed))
        low, high = benefit.limits(0.9)
        held += (low <= truth) & (truth <= high)
        rng = np.random.default_rng(seed)
        low, high = benefit.limits(0.9, benefit.simultaneous_reach(0.9, rng))
        whole += bool(((low <= truth) & (truth <= high)).all())
    floor = 0.9 - 2.5 * np.sqrt(0.09 / runs)
    assert (held / runs).min() > floor
    assert whole / runs > floor


def test_rows_that_come_in_fives_count_once_in_five():
    p, y = drawn(400, 5)
    alone = benefit_of(p, y)
    fives = benefit_of(
        np.repeat(p, 5), np.repeat(y, 5), clusters=np.arange(400).repeat(5)
    )
    assert_allclose(fives.value, alone.value)
    assert_allclose(fives.effective_rows, 400.0, rtol=0.01)
    widths = [np.subtract(*one.limits(0.95)[::-1]) for one in (alone, fives)]
    assert_allclose(widths[1], widths[0], rtol=0.02)


def test_clusters_of_one_row_are_no_clusters():
    p, y = drawn(3000, 6)
    plain = benefit_of(p, y).limits(0.95)
    assert_allclose(
        benefit_of(p, y, clusters=np.arange(3000)).limits(0.95), plain, atol=1e-3
    )


def test_nothing_is_lost_by_calibrated_predictions():
    p = np.linspace(0.01, 0.99, 50)
    lost = lost_benefit(p, np.ones(50), p[:, np.newaxis], THRESHOLDS)
    assert_allclose(lost, 0.0)


def test_the_benefit_lost_is_the_gain_of_acting_by_the_true_chances():
    p = np.linspace(0.01, 0.99, 999)
    chance, weight = p**2, np.linspace(1.0, 3.0, 999)
    rows = Outcomes(THRESHOLDS, weight * chance, weight * (1.0 - chance))
    best, own = (
        NetBenefit.of(rows, thresholds_reached(by, THRESHOLDS)).value
        for by in (chance, p)
    )
    lost = lost_benefit(p, weight, chance[:, np.newaxis], THRESHOLDS)[:, 0]
    assert_allclose(lost, best - own, atol=1e-12)


def test_shares_of_weights_that_round_are_never_negative():
    event = np.array([0.7, 0.0, 0.3, 0.0, 0.0, 0.7, 0.7, 0.1])
    other = np.array([0.0, 0.3, 0.0, 0.7, 0.3, 0.0, 0.0, 0.0])
    rows = Outcomes(THRESHOLDS, event, other)
    a, b = np.array([0, 1, 1, 4, 4, 0, 2, 4]), np.array([0, 3, 0, 2, 4, 1, 1, 1])
    a, b = (np.array([0.0, *THRESHOLDS])[reached] for reached in (a, b))
    benefit = NetBenefit.difference(rows, a, b)
    assert (benefit.shares >= 0.0).all()
    assert np.isfinite(benefit.limits(0.95)).all()
