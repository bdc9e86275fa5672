import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize_scalar
from scipy.special import softmax as scipy_softmax

from calibrant.core.probabilities import softmax
from calibrant.numerics.class_probabilities import (
    centred,
    fit_tempering,
    inverse_temperature,
    log_probabilities,
    log_softmax,
    mean_log_loss,
    min_uniform,
    tempered_inputs,
    tempering_loss,
    weight_shares,
)


def rows(n=120, k=4, seed=0, strength=1.5):
    rng = np.random.default_rng(seed)
    column = rng.integers(k, size=n)
    x = rng.normal(size=(n, k)) + strength * np.eye(k)[column]
    share = rng.random(n)
    return x, column, share / share.sum()


def test_softmax_survives_logits_of_any_size():
    logits = np.array([[1e5, 0.0, -1e5], [3.0, 3.0, 3.0]])
    assert_allclose(softmax(logits), [[1, 0, 0], [1 / 3] * 3])
    assert_allclose(log_softmax(logits)[0], [0, -1e5, -2e5])
    assert np.isfinite(log_probabilities(np.array([[1.0, 0.0]]), "prob")).all()
    assert_allclose(centred(logits + 7.0), centred(logits))


def test_temperature_is_the_one_of_least_loss():
    x, column, share = rows(n=300)
    b = inverse_temperature(5.0 * x, column, share)

    def loss(inverse):
        return mean_log_loss(log_softmax(inverse * 5.0 * x), column, share)

    general = minimize_scalar(
        loss, bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-12}
    )
    assert b == pytest.approx(general.x, abs=1e-6)
    assert loss(b) <= general.fun + 1e-14
    slope = (loss(b * (1 + 1e-6)) - loss(b * (1 - 1e-6))) / (2e-6 * b)
    assert abs(slope) < 1e-8


def test_temperature_of_odd_rows_is_finite_and_above_zero():
    share = weight_shares(None, 4)
    column = np.array([0, 1, 0, 1])
    right = np.eye(2)[column] * 3.0
    sure = inverse_temperature(right, column, share)
    assert 1 < sure < 1e6
    wrong = inverse_temperature(-right, column, share)
    assert 0 < wrong < 1e-5
    assert inverse_temperature(np.zeros((4, 2)), column, share) == 1.0
    assert inverse_temperature(right * 1e5, column, share) > 0


def draw(n, inverse, uniform, seed=0, k=4):
    """Draw logits, and labels of the tempered probabilities."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 3.0, (n, k))
    log_prob = tempered_inputs(logits, inverse, uniform)
    return logits, (log_prob + rng.gumbel(size=(n, k))).argmax(axis=1)


def test_slopes_of_the_loss():
    logits, y = draw(50, 1.0, 0.1)
    rows, point = (logits, y, np.arange(50.0)), np.array([-0.4, -2.0])
    slopes = approx_fprime(point, lambda x: tempering_loss(x, *rows)[0])
    assert_allclose(tempering_loss(point, *rows)[1], slopes, 1e-4)


def test_the_true_temperature_and_share_are_found():
    logits, y = draw(20_000, 0.4, 0.1)
    inverse, uniform, _ = fit_tempering(logits, y, np.ones(20_000))
    assert_allclose(inverse, 0.4, rtol=0.03)
    assert_allclose(uniform, 0.1, rtol=0.1)


def test_predictions_that_are_far_too_certain_find_their_share():
    logits, y = draw(5_000, 1.0, 0.2)
    for size in (50.0, 1e8, 1e90):
        inverse, uniform, _ = fit_tempering(size * logits, y, np.ones(5_000))
        assert_allclose((size * inverse, uniform), (1.0, 0.2), rtol=0.15)


def test_few_rows_stay_near_the_identity_and_the_least_share():
    logits, _ = draw(10, 1.0, 0.0)
    inverse, uniform, _ = fit_tempering(logits, logits.argmax(axis=1), np.ones(10))
    assert 1.0 < inverse < 2.5
    assert_allclose(uniform, min_uniform(10.0))


def test_tempered_inputs_are_log_probabilities():
    logits = np.array([[800.0, 0.0, -800.0]])
    expected = 0.9 * scipy_softmax(2.0 * logits, axis=1) + 0.1 / 3.0
    assert_allclose(np.exp(tempered_inputs(logits, 2.0, 0.1)), expected)
