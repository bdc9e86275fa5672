import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.numerics import kernel_density


def direct(p, y, at, bandwidth):
    """Sum kernels row by row, each row once more mirrored at the nearer end."""
    reach = 3 * bandwidth

    def kernel(u):
        return np.where(np.abs(u) < 1, (1 - u**2) ** 3, 0)

    image = np.where(p < 0.5, -p, 2 - p)
    near = np.array([kernel((x - p) / reach) + kernel((x - image) / reach) for x in at])
    return near @ y / near.sum(axis=1)


@pytest.mark.parametrize("n", [500, 2000, 20_000])
@pytest.mark.parametrize("shape", [(1.0, 1.0), (0.4, 1.5)])
def test_the_polygon_is_within_a_ten_thousandth_of_the_sums(n, shape):
    rng = np.random.default_rng(n)
    p = rng.beta(*shape, n)
    y = (rng.random(n) < p**1.4).astype(float)
    at = np.sort(rng.choice(p, 300, replace=False))
    found = cb.make_calibrator("kde").fit(p, y).transform(at)
    expected = direct(p, y, at, p.std() * (2 * n) ** -0.2)
    assert np.abs(found - expected).max() < 1e-4


def test_rare_events_are_resolved_too():
    rng = np.random.default_rng(1)
    p = rng.beta(2, 4000, 5000)
    y = (rng.random(5000) < 3 * p).astype(float)
    at = np.quantile(p, np.linspace(0, 0.98, 99))
    found = cb.make_calibrator("kde").fit(p, y).transform(at)
    expected = direct(p, y, at, p.std() * 10_000**-0.2)
    assert np.abs(found - expected).max() < 1e-4


@pytest.mark.parametrize("spread", ["events", "others"])
def test_the_rule_may_use_the_rows_of_one_class(smooth_sample, spread):
    p, y = smooth_sample
    own = p[y == (spread == "events")]
    bandwidth = own.std() * (2 * p.size) ** -0.2
    by_rule = cb.make_calibrator("kde", spread=spread).fit(p, y)
    given = cb.make_calibrator("kde", bandwidth=bandwidth).fit(p, y)
    assert_allclose(by_rule.transform(p), given.transform(p), atol=1e-9)


def test_a_class_that_is_absent_leaves_the_rule_to_all_rows():
    p = np.linspace(0.1, 0.9, 50)
    fitted = cb.make_calibrator("kde", spread="events").fit(p, np.zeros(50))
    assert (fitted.transform(p) == 0).all()


def test_gaps_between_predictions_are_bridged_by_a_line():
    p = np.repeat([0.1, 0.9], 500)
    y = np.repeat([0.0, 1.0], 500)
    fitted = cb.make_calibrator("kde", bandwidth=0.02).fit(p, y)
    found = fitted.transform([0.1, 0.5, 0.9])
    assert_allclose(found, [0, 0.5, 1], atol=1e-3)


def test_aggregating_into_cells_moves_the_map_little(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(6000)
    y = (rng.random(6000) < p).astype(float)
    aggregated = cb.make_calibrator("kde").fit(p, y).transform(p)
    monkeypatch.setattr(kernel_density, "MAX_CELLS", 10_000)
    assert_allclose(
        aggregated, cb.make_calibrator("kde").fit(p, y).transform(p), atol=1e-4
    )
