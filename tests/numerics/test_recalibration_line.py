import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit
from scipy.stats import binom, chi2

from calibrant.numerics.recalibration_line import (
    LogitPoints,
    RecalibrationLine,
    event_limits,
)


def exact_limits(events, n):
    """Return mid-P limits of a binomial count, by its distribution."""

    def above(rate):
        return binom.sf(events, n, rate) + 0.5 * binom.pmf(events, n, rate)

    low = brentq(lambda rate: above(rate) - 0.025, 1e-12, 1 - 1e-12)
    high = brentq(lambda rate: above(rate) - 0.975, 1e-12, 1 - 1e-12)
    return n * low, n * high


@pytest.mark.parametrize(("events", "n"), [(3, 100), (8, 100), (50, 100), (40, 2000)])
def test_equal_predictions_give_the_mid_p_interval_of_a_rate(events, n):
    points = LogitPoints(np.zeros(1), np.array([float(n)]), np.array([float(events)]))
    found = event_limits(points, points.x, 0.95)
    np.testing.assert_allclose(found, exact_limits(events, n), rtol=0.006)


def test_a_line_exists_only_where_labels_overlap():
    x, weight = np.array([-1.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0])
    for label_sum, exists in [
        ([0, 1, 2], False),  # only the middle has both
        ([1, 0, 2], True),
        ([0, 0, 2], False),
        ([2, 1, 0], False),
        ([0, 0, 0], False),
        ([2, 2, 2], False),
        ([1, 1, 1], True),
    ]:
        points = LogitPoints(x, weight, np.array(label_sum, dtype=float))
        assert points.has_line == exists, label_sum


def test_shifted_logits_expect_the_events_asked_for():
    x = np.random.default_rng(0).normal(-3, 2, 200)
    points = LogitPoints(x, np.ones(200), np.zeros(200))
    for events in (1e-6, 3.0, 199.9):
        shift = points.shift_to(x, events)
        assert expit(x + shift).sum() == pytest.approx(events, rel=1e-6)


def test_profile_limits_are_where_the_likelihood_ratio_is_the_quantile():
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1.5, 60)
    y = (rng.random(60) < expit(x)).astype(float)
    line = RecalibrationLine.of(LogitPoints(x, np.ones(60), y))
    best = line.points.log_likelihood(line.logits)
    for limit in line.profile_limits(1, 0.95):
        shift = line.points.shift_to(limit * x, y.sum())  # the intercept is free
        drop = best - line.points.log_likelihood(shift + limit * x)
        assert 2.0 * drop == pytest.approx(3.841459, abs=1e-6)


def test_extreme_labels_do_not_stop_newton():
    """One wrong label far out: the likelihood is flat on one side."""
    x = np.linspace(-9, 9, 400)
    y = (x > 0).astype(float)
    y[0] = 1.0
    line = RecalibrationLine.of(LogitPoints(x, np.ones(400), y))
    for which in (0, 1):
        low, high = line.profile_limits(which, 0.95)
        assert low < line.coefficients[which] < high


def test_nearly_certain_predictions_have_limits_too():
    x = np.array([-36.0, -30.0, 20.0, 36.0])
    points = LogitPoints(x, np.full(4, 5.0), np.array([0.0, 1.0, 5.0, 5.0]))
    low, high = event_limits(points, x, 0.95)
    assert 0.0 < low < 11.0 < high < 20.0


@pytest.mark.parametrize("which", [0, 1])
def test_limits_exist_where_events_and_others_hardly_overlap(which):
    # One event lies just below the only other row: the likelihood is nearly flat.
    x = np.array([-3.003, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0])
    points = LogitPoints(x, np.ones(9), np.array([1.0, 0, 1, 1, 1, 1, 1, 1, 1]))
    line = RecalibrationLine.of(points)
    best = points.log_likelihood(line.logits)
    fixed, free = (np.ones(9), x)[:: 1 - 2 * which]
    for limit in line.profile_limits(which, 0.95):
        drop = minimize_scalar(
            lambda other, limit=limit: (
                best - points.log_likelihood(limit * fixed + other * free)
            ),
            bracket=(0.0, limit * 3.0 ** (2 * which - 1)),
        )
        assert 2.0 * drop.fun == pytest.approx(chi2.ppf(0.95, 1), abs=1e-3)


def test_logits_that_differ_by_rounding_give_no_line():
    p = np.array([0.2, np.nextafter(0.5, 0.0), 0.5, 0.8])
    points = LogitPoints(logit(p), np.ones(4), np.array([0.0, 1.0, 0.0, 1.0]))
    assert not points.has_line
    assert LogitPoints(logit(p[1:3]), np.ones(2), np.array([1.0, 0.0])).constant


def test_as_many_events_as_rows_need_an_infinite_shift():
    points = LogitPoints(np.zeros(1), np.array([10.0]), np.array([5.0]))
    assert points.shift_to(points.x, 10.0) == np.inf
    assert points.shift_to(points.x, 0.0) == -np.inf
