import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from calibrant.numerics.kernel_error import (
    ErrorKernel,
    median_distance,
    quadratic_forms,
)

KERNELS = {
    "laplace": lambda d, h: np.exp(-np.abs(d) / h),
    "rbf": lambda d, h: np.exp(-(d**2) / (2 * h**2)),
}


def by_definition(p, y, kernel, h, *, unbiased=True):
    """Return the mean over pairs, pair by pair."""
    total, n = 0.0, len(p)
    for i in range(n):
        for j in range(n):
            if i != j or not unbiased:
                near = KERNELS[kernel](p[i] - p[j], h)
                total += (y[i] - p[i]) * (y[j] - p[j]) * near
    return total / (n * (n - 1) if unbiased else n**2)


def one_error(p, y, kernel, h, *, debias=True, weight=None):
    weight = np.ones(p.size) if weight is None else weight
    found = ErrorKernel(kernel, h).errors(p, y[None], weight, debias=debias)
    return float(found[0])


def tied_sample(n, seed):
    """Return predictions with ties, and with some of exactly 0 and 1."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.4, 0.6, n), 2)
    return p, (rng.random(n) < p**1.3).astype(float)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("h", [5.0, 1.0, 0.2, 0.02, 1e-3, 1e-6])
@pytest.mark.parametrize("unbiased", [True, False])
def test_errors_equal_the_double_loop(kernel, h, unbiased):
    p, y = tied_sample(120, seed=1)
    wanted = by_definition(p, y, kernel, h, unbiased=unbiased)
    found = one_error(p, y, kernel, h, debias=unbiased)
    assert_allclose(found, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("h", [1.0, 0.1, 0.02, 0.012, 1e-3, 1e-5])
def test_fast_sums_equal_the_whole_matrix(kernel, h):
    """5,000 rows: series of 21 to 266 terms, near pairs over blocks, stretches."""
    rng = np.random.default_rng(0)
    p = np.concatenate([[0.0, 1.0, 1.0], rng.beta(0.3, 2.0, 4997)])
    residuals = rng.normal(size=(3, p.size))
    near = KERNELS[kernel](p[:, None] - p, h)
    wanted = ((residuals @ near) * residuals).sum(axis=1)
    found = quadratic_forms(p, residuals, kernel, h)
    assert_allclose(found, wanted, rtol=1e-12)


@given(
    p=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    h=st.floats(1e-7, 10),
    seed=st.integers(0, 9),
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_any_predictions_and_any_bandwidth(p, h, seed, kernel):
    p = np.array(p)
    r = np.random.default_rng(seed).normal(size=(1, p.size))
    with np.errstate(under="ignore"):
        near = KERNELS[kernel](p[:, None] - p, h)
        found = quadratic_forms(p, r, kernel, h)
    assert_allclose(found, (r @ near * r).sum(), rtol=1e-11, atol=1e-11)


def test_julia_reference_value():
    """CalibrationErrors.jl tests its unbiased estimator with this value.

    UnbiasedSKCE(SqExponentialKernel() ⊗ WhiteKernel()) of [[1, 0], [0, 1]] with
    classes [2, 1] is -2 exp(-1); vectors lie sqrt(2) times as far apart as their
    first entries.
    """
    kernel = ErrorKernel("rbf", 1 / np.sqrt(2), factor=2.0)
    p, y = np.array([0.0, 1.0]), np.array([[1.0, 0.0]])
    found = kernel.errors(p, y, np.ones(2), debias=True)
    assert found[0] == pytest.approx(-2 * np.exp(-1), abs=1e-15)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("debias", [True, False])
def test_weight_two_equals_the_row_twice(kernel, debias):
    p, y = tied_sample(80, seed=3)
    count = np.random.default_rng(0).integers(1, 4, p.size)
    found = one_error(p, y, kernel, 0.2, weight=count.astype(float), debias=debias)
    rows = np.repeat(np.arange(p.size), count)
    wanted = one_error(p[rows], y[rows], kernel, 0.2, debias=debias)
    assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_share_of_positives_equals_its_rows(kernel):
    p, share, weight = np.array([0.2, 0.7]), np.array([[0.25, 0.5]]), np.array([4.0, 2])
    found = ErrorKernel(kernel, 0.5).errors(p, share, weight, debias=True)
    rows = np.array([0.2] * 4 + [0.7] * 2)
    wanted = by_definition(rows, np.array([1, 0, 0, 0, 1, 0]), kernel, 0.5)
    assert_allclose(found[0], wanted, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_unbiased_errors_of_calibrated_labels_average_to_zero(kernel):
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.9, 60)
    labels = (rng.random((20_000, p.size)) < p).astype(float)
    found = ErrorKernel(kernel, 0.3)
    errors = found.errors(p, labels, np.ones(p.size), debias=True)
    standard_error = errors.std() / np.sqrt(errors.size)
    assert abs(errors.mean()) < 3 * standard_error
    biased = found.errors(p, labels, np.ones(p.size), debias=False)
    assert_allclose(biased.mean(), (p * (1 - p)).mean() / p.size, rtol=0.03)


def test_blocks_average_their_own_pairs():
    p, y = tied_sample(23, seed=4)
    found = ErrorKernel("laplace", 0.2).block_errors(p, y, 5)
    wanted = [
        by_definition(p[i : i + 5], y[i : i + 5], "laplace", 0.2)
        for i in range(0, 20, 5)
    ]
    assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


def test_many_small_blocks_are_taken_in_parts():
    p, y = tied_sample(100, seed=5)
    kernel = ErrorKernel("rbf", 0.2)
    whole = kernel.block_errors(p, y, 2)
    parts = kernel.block_errors(p, y, 2, max_at_once=12)
    assert_allclose(parts, whole, rtol=0, atol=0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gathered_draws_have_the_distribution_of_single_rows(kernel):
    """Mean and variance of the drawn errors, in closed form for any kernel."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 3.0, 6000)
    drawn = ErrorKernel(kernel, 0.05).calibrated_errors(p, None, 3000, rng)
    noise = p * (1 - p)
    near = KERNELS[kernel](p[:, None] - p, 0.05) ** 2
    np.fill_diagonal(near, 0.0)
    variance = 2 * noise @ near @ noise / (p.size * (p.size - 1.0)) ** 2
    assert abs(drawn.mean()) < 4 * np.sqrt(variance / drawn.size)
    assert_allclose(drawn.var(), variance, rtol=0.2)


def test_median_distance_is_that_of_all_pairs():
    rng = np.random.default_rng(2)
    for n, close in [(7, 1e-9), (801, 1e-3), (9000, 1e-3)]:
        p = rng.beta(0.5, 2.0, n)
        pairs = np.abs(p[:, None] - p)[np.triu_indices(n, 1)]
        assert_allclose(median_distance(p, None), np.median(pairs), atol=close)


def test_median_distance_counts_copies_as_rows():
    p, weight = np.array([0.1, 0.35, 0.9]), np.array([2.0, 3.0, 2.0])
    rows = np.repeat(p, weight.astype(int))
    assert_allclose(median_distance(p, weight), median_distance(rows, None), rtol=1e-9)


def test_median_distance_of_mostly_equal_rows_is_the_mean():
    p = np.array([0.2] * 9 + [0.7])  # 9 of 45 pairs are 0.5 apart
    assert_allclose(median_distance(p, None), 0.1, rtol=1e-12)
    assert median_distance(np.full(5, 0.3), None) == 1.0
