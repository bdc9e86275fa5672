import numpy as np
from hypothesis import given
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from calibrant.numerics.isotonic import isotonic_values
from calibrant.numerics.links import logit
from calibrant.numerics.scores import brier_score, log_loss
from calibrant.numerics.sorted_sample import SortedSample
from calibrant.testing.strategies import binary_samples


def test_scores_are_scikit_learns(sample):
    p, y = sample
    weight = np.arange(p.size) % 4 + 1.0
    assert_allclose(
        brier_score(p, y, weight), brier_score_loss(y, p, sample_weight=weight)
    )
    expected = sklearn_log_loss(y, p, sample_weight=weight)
    assert_allclose(log_loss(p, y, weight), expected, rtol=1e-9)


@given(binary_samples(min_size=2))
def test_isotonic_values_are_scikit_learns(sample):
    p, y = sample
    ordered = SortedSample.of(np.round(p, 6), y)  # scikit-learn merges closer values
    expected = IsotonicRegression(y_min=0, y_max=1).fit_transform(ordered.p, ordered.y)
    assert_allclose(isotonic_values(ordered), expected, atol=1e-6)


def test_isotonic_values_minimise_log_loss_too():
    rng = np.random.default_rng(2)
    p = np.sort(rng.random(12))
    y = (rng.random(12) < p).astype(float)
    ours = log_loss(isotonic_values(SortedSample.of(p, y)), y, None)

    def loss(steps):
        return log_loss(np.clip(np.cumsum(np.abs(steps)), 0, 1), y, None)

    best = min(
        minimize(loss, rng.random(12) / 12, method="Powell").fun for _ in range(3)
    )
    assert ours <= best + 1e-9


def test_logit_of_zero_and_one_is_finite():
    assert_allclose(logit(np.array([0.0, 1.0])), [-36.0437, 36.0437], rtol=1e-4)
