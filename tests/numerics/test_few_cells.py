import numpy as np
from numpy.testing import assert_allclose

from calibrant.core.sample import BinarySample
from calibrant.numerics.links import logit
from calibrant.numerics.weighted_points import MAX_CELLS, compress_to_at_most


def heavy_tails(n):
    rng = np.random.default_rng(0)
    p = rng.beta(0.05, 0.1, n)
    return p, (rng.random(n) < p).astype(float)


def test_few_values_are_kept_to_the_last_digit():
    p = np.tile([0.1, 0.3, 0.7], 1000)
    cells = compress_to_at_most(BinarySample(p, np.arange(3000) % 2 == 0.0))
    assert cells.p.tolist() == [0.1, 0.3, 0.7]
    assert cells.weight.tolist() == [1000.0] * 3
    assert cells.label.tolist() == [500.0] * 3


def test_cells_are_narrow_in_rank_and_in_logit():
    for n in (20_000, 200_000):
        p, y = heavy_tails(n)
        cells = compress_to_at_most(BinarySample(p, y))
        assert 256 < cells.p.size <= MAX_CELLS
        assert_allclose(cells.weight.sum(), n)
        assert_allclose(cells.label.sum(), y.sum())
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
    assert_allclose(weighted.label, repeated.label)
