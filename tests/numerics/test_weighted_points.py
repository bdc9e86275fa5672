import numpy as np
from numpy.testing import assert_allclose

from calibrant.core.sample import BinarySample
from calibrant.numerics.links import logit
from calibrant.numerics.weighted_points import (
    BITS,
    MAX_CELLS,
    compress_on_log_grid,
    compress_to_at_most,
    log_cell,
)


def many(seed=0, n=100_000):
    rng = np.random.default_rng(seed)
    near = 10.0 ** -rng.uniform(0.301, 17, n)
    return np.where(rng.random(n) < 0.5, near, 1 - near), rng.random(n).round()


def test_cells_are_in_order_and_logits_hardly_vary_within():
    p, _ = many()
    p = np.sort(p)
    cell, near = log_cell(p)
    assert (np.diff(cell) >= 0).all()
    assert_allclose(near, np.minimum(p, 1 - p))
    inside = (p > 1e-13) & (p < 1 - 1e-6)
    same = np.diff(cell[inside]) == 0
    assert same.any()
    assert np.diff(logit(p[inside]))[same].max() < 2.0**-BITS * 2


def test_sums_are_kept():
    p, y = many()
    weight = np.random.default_rng(1).random(p.size)
    cells = compress_on_log_grid(BinarySample(p, y, weight))
    assert cells.p.size < p.size / 2
    assert_allclose(cells.weight.sum(), weight.sum())
    assert_allclose(cells.label_sum.sum(), weight @ y)
    assert_allclose(cells.weight @ cells.p, weight @ p)
    assert (np.diff(cells.p) >= 0).all()


def test_ends_and_the_middle_have_cells_of_their_own():
    p = np.repeat([0.0, 0.5, 1.0, np.nextafter(0.5, 0)], 20_000)
    cells = compress_on_log_grid(BinarySample(p, p > 0.4))
    assert_allclose(cells.p, [0.0, 0.5, 0.5, 1.0])
    assert cells.label_sum.tolist() == [0, 20_000, 20_000, 20_000]


def test_of_a_few_rows_each_prediction_is_kept_once_and_in_order():
    p, y = many(n=1000)
    p[500:] = p[:500]
    cells = compress_on_log_grid(BinarySample(p, y))
    assert np.array_equal(cells.p, np.unique(p))
    assert cells.weight.tolist() == [np.sum(p == value) for value in cells.p]
    assert cells.label_sum.tolist() == [np.sum(y[p == value]) for value in cells.p]


def test_means_of_cells_keep_their_last_digits():
    p = np.repeat([0.3, 0.7 + 1e-12, 1e-9], 30_000)
    order = np.random.default_rng(0).permutation(p.size)
    for rows in (p, p[order]):
        cells = compress_on_log_grid(BinarySample(rows, rows))
        assert_allclose(cells.p, np.unique(p), rtol=1e-15, atol=0)


def heavy_tails(n):
    rng = np.random.default_rng(0)
    p = rng.beta(0.05, 0.1, n)
    return p, (rng.random(n) < p).astype(float)


def test_few_values_are_kept_to_the_last_digit():
    p = np.tile([0.1, 0.3, 0.7], 1000)
    cells = compress_to_at_most(BinarySample(p, np.arange(3000) % 2 == 0.0))
    assert cells.p.tolist() == [0.1, 0.3, 0.7]
    assert cells.weight.tolist() == [1000.0] * 3
    assert cells.label_sum.tolist() == [500.0] * 3


def test_cells_are_narrow_in_rank_and_in_logit():
    for n in (20_000, 200_000):
        p, y = heavy_tails(n)
        cells = compress_to_at_most(BinarySample(p, y))
        assert 256 < cells.p.size <= MAX_CELLS
        assert_allclose(cells.weight.sum(), n)
        assert_allclose(cells.label_sum.sum(), y.sum())
        assert_allclose(cells.weight @ cells.p, p.sum())
        # Very many predictions of 0 or 1 after clipping may share one value.
        inner = (cells.p > 1e-12) & (cells.p < 1 - 1e-12)
        assert cells.weight[inner].max() <= 1.02 * n / 256
        u = logit(cells.p)
        gaps = np.diff(u[inner])
        assert np.median(gaps) < (u[-1] - u[0]) / 256


def test_weights_are_counts():
    p, y = heavy_tails(3000)
    times = np.arange(3000) % 3 + 1
    weighted = compress_to_at_most(BinarySample(p, y, times.astype(float)))
    repeated = compress_to_at_most(
        BinarySample(np.repeat(p, times), np.repeat(y, times))
    )
    assert_allclose(weighted.p, repeated.p, rtol=1e-12)
    assert_allclose(weighted.weight, repeated.weight)
    assert_allclose(weighted.label_sum, repeated.label_sum)
