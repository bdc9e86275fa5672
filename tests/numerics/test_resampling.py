import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant.calibrators.binned import Binned
from calibrant.core.sample import BinarySample
from calibrant.exceptions import LabelError
from calibrant.numerics.binning import tabulate, width_edges
from calibrant.numerics.resampling import RowGroups, bootstrap_cells


def test_cells_keep_the_sums_of_every_bin(sample):
    p, y = sample
    weight = np.arange(p.size) % 3 + 1.0
    edges = width_edges(7)
    cells = bootstrap_cells(p, y, weight, edges)
    whole, gathered = (
        tabulate(p, y, weight, edges),
        tabulate(cells.p, cells.y, cells.weight, edges),
    )
    for name in ("weight", "prob", "label_sum"):
        assert_allclose(getattr(gathered, name), getattr(whole, name))
    assert_allclose(np.bincount(cells.row_cell, weights=weight), cells.weight)


@pytest.mark.parametrize("tops", ["slope-1", "flat"])
@pytest.mark.parametrize("debias", [False, True])
def test_the_sample_itself_as_a_resample_gives_its_error(smooth_sample, tops, debias):
    sample = BinarySample(*smooth_sample)
    fit = Binned(bins=9, tops=tops).fit_event(sample)
    cells = bootstrap_cells(sample.p, sample.y, None, fit.edges)
    found = fit.resampled_errors(
        cells, cells.weight[np.newaxis], alpha=1, debias=debias
    )
    tolerance = 1e-12 if tops == "slope-1" else 2e-3
    assert_allclose(found, fit.error(sample, alpha=1, debias=debias), atol=tolerance)


def test_groups_of_rows_spread_as_resampled_rows_do(smooth_sample):
    sample = BinarySample(*smooth_sample)
    fit = Binned(bins=9).fit_event(sample)
    rng = np.random.default_rng(0)
    cells = bootstrap_cells(sample.p, sample.y, None, fit.edges)
    groups = RowGroups.draw(sample.n, 3000, rng).weights(cells)
    assert_allclose(groups.sum(axis=1).mean(), sample.n, rtol=0.01)
    fast = fit.resampled_errors(cells, groups, alpha=1, debias=False)
    slow = []
    for _ in range(3000):
        rows = rng.integers(0, sample.n, sample.n)
        table = tabulate(sample.p[rows], sample.y[rows], None, fit.edges)
        slow.append(np.abs(table.label_sum - table.prob).sum() / sample.n)
    assert_allclose(fast.mean(), np.mean(slow), rtol=0.05)
    assert_allclose(fast.std(), np.std(slow), rtol=0.12)


def test_a_row_of_weight_three_is_resampled_as_three_rows(smooth_sample):
    p, y = smooth_sample
    fit = Binned(bins=9).fit_event(BinarySample(p, y))

    def spread(p, y, weight):
        groups = RowGroups.draw(p.size, 3000, np.random.default_rng(0), weight)
        cells = bootstrap_cells(p, y, weight, fit.edges)
        weights = groups.weights(cells)
        assert_allclose(weights.sum(axis=1).mean(), 1800, rtol=0.01)
        return fit.resampled_errors(cells, weights, alpha=1, debias=False).std()

    repeated = spread(np.repeat(p, 3), np.repeat(y, 3), None)
    assert_allclose(spread(p, y, np.full(600, 3.0)), repeated, rtol=0.12)


def test_very_heavy_rows_are_drawn_by_several_copies_at_a_time():
    weight = np.array([2.0**40, 2.0**39, 0.5])
    groups = RowGroups.draw(3, 2, np.random.default_rng(0), weight)
    assert groups.row.size <= 2**22 + 3
    assert_allclose(np.bincount(groups.row, weights=groups.weight), weight)


def test_shares_of_labels_are_refused_and_not_cut_off():
    with pytest.raises(LabelError, match=r"row 1 holds 0\.7"):
        bootstrap_cells(
            np.array([0.2, 0.6]), np.array([0.0, 0.7]), None, width_edges(1)
        )
