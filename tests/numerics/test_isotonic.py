import numpy as np
from hypothesis import given
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from calibrant.core.sample import BinarySample
from calibrant.numerics.isotonic import isotonic_values
from calibrant.numerics.scores import log_loss
from calibrant.numerics.sorted_rows import sorted_rows
from calibrant.testing.strategies import binary_samples


@given(binary_samples(min_size=2))
def test_isotonic_values_are_scikit_learns(sample):
    p, y = sample
    ordered = sorted_rows(
        BinarySample(np.round(p, 6), y)
    )  # scikit-learn merges closer values
    expected = IsotonicRegression(y_min=0, y_max=1).fit_transform(ordered.p, ordered.y)
    assert_allclose(isotonic_values(ordered), expected, atol=1e-6)


def test_isotonic_values_minimise_log_loss_too():
    rng = np.random.default_rng(2)
    p = np.sort(rng.random(12))
    y = (rng.random(12) < p).astype(float)
    ours = log_loss(isotonic_values(sorted_rows(BinarySample(p, y))), y, None)

    def loss(steps):
        return log_loss(np.clip(np.cumsum(np.abs(steps)), 0, 1), y, None)

    best = min(
        minimize(loss, rng.random(12) / 12, method="Powell").fun for _ in range(3)
    )
    assert ours <= best + 1e-9
