import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.special import softmax

from calibrant.numerics.tempering import (
    _Tempering,
    fit_tempering,
    min_uniform,
    tempered_inputs,
)


def draw(n, inverse, uniform, seed=0, k=4):
    """Draw logits, and labels of the tempered probabilities."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 3.0, (n, k))
    log_prob = tempered_inputs(logits, inverse, uniform)
    return logits, (log_prob + rng.gumbel(size=(n, k))).argmax(axis=1)


def test_slopes_of_the_loss():
    logits, y = draw(50, 1.0, 0.1)
    loss = _Tempering(logits, y, np.arange(50.0)).at
    point = np.array([-0.4, -2.0])
    assert_allclose(loss(point)[1], approx_fprime(point, lambda x: loss(x)[0]), 1e-4)


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
    expected = 0.9 * softmax(2.0 * logits, axis=1) + 0.1 / 3.0
    assert_allclose(np.exp(tempered_inputs(logits, 2.0, 0.1)), expected)
