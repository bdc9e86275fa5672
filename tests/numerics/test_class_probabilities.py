import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from calibrant.core.probabilities import softmax
from calibrant.numerics.class_probabilities import (
    centred,
    inverse_temperature,
    log_probabilities,
    log_softmax,
    mean_log_loss,
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
