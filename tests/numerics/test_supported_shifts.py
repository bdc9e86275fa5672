import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.numerics.supported_shifts import rising_shifts, supported_shifts

KNOTS = np.array([-6.0, -1.0, 0.0, 2.0, 5.0])


def test_rows_that_agree_and_one_more_limit_a_shift():
    u, weight = np.array([-1.5, 0.0, 4.5, 5.0]), np.array([2.0, 1.0, 3.0, 4.0])
    p, nearby = expit(KNOTS), np.array([0.0, 3.0, 1.0, 0.0, 7.0])
    for far, rate in ((-50.0, p), (50.0, nearby + p)):
        shifts = supported_shifts(KNOTS, np.full(5, far), u, weight)
        assert_allclose(expit(KNOTS + shifts), rate / (nearby + 1), atol=1e-14)
    near = np.array([0.0, 0.1, -0.1, 0.0, 0.1])
    assert_allclose(supported_shifts(KNOTS, near, u, weight), near)


def test_rising_maps_have_the_least_log_loss_of_all_that_do_not_fall():
    rng = np.random.default_rng(2)
    weight = rng.uniform(1, 5, 5)
    shifts = np.array([3.0, -2.0, 1.0, -3.0, -5.0])
    truth = expit(KNOTS + shifts)

    def loss(steps):
        f = np.cumsum(steps)
        return weight @ (truth * np.logaddexp(0, -f) + (1 - truth) * np.logaddexp(0, f))

    bounds = [(None, None)] + [(0, None)] * 4
    best = minimize(loss, [-3, 1, 1, 1, 1], bounds=bounds, tol=1e-14).x
    found = KNOTS + rising_shifts(KNOTS, shifts, KNOTS, weight)
    assert_allclose(found, np.cumsum(best), atol=1e-3)


def test_maps_that_rise_stay_as_they_are():
    shifts = np.array([1.0, 0.0, -0.5, 0.3, 300.0])
    assert rising_shifts(KNOTS, shifts, KNOTS, np.ones(5)) is shifts


def test_falls_between_values_next_to_one_are_found():
    knots = np.array([30.0, 40.0, 50.0])
    found = knots + rising_shifts(knots, np.array([20.0, 0.0, 0.0]), knots, np.ones(3))
    assert (np.diff(found) >= 0).all()
    assert np.isfinite(found).all()
