import numpy as np
from numpy.testing import assert_allclose

from calibrant.numerics.links import logit
from calibrant.numerics.log_cells import BITS, gather_many, log_cell


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
    cells = gather_many(p, y, weight)
    assert cells.p.size < p.size / 2
    assert_allclose(cells.weight.sum(), weight.sum())
    assert_allclose(cells.label.sum(), weight @ y)
    assert_allclose(cells.weight @ cells.p, weight @ p)
    assert (np.diff(cells.p) >= 0).all()


def test_ends_and_the_middle_have_cells_of_their_own():
    p = np.repeat([0.0, 0.5, 1.0, np.nextafter(0.5, 0)], 20_000)
    cells = gather_many(p, p > 0.4, None)
    assert_allclose(cells.p, [0.0, 0.5, 0.5, 1.0])
    assert cells.label.tolist() == [0, 20_000, 20_000, 20_000]


def test_a_few_rows_are_left_as_they_are():
    p, y = many(n=1000)
    assert gather_many(p, y, None).p is p
