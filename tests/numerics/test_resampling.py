import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant.calibrators.binned import Binned
from calibrant.core.sample import BinarySample
from calibrant.exceptions import LabelError
from calibrant.numerics.binning import tabulate, width_edges
from calibrant.numerics.resampling import (
    RowGroups,
    bootstrap_cells,
    calibrated_weights,
    interval,
    multinomial_weights,
)


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


def test_cells_spread_as_resampled_rows_do(smooth_sample):
    sample = BinarySample(*smooth_sample)
    fit = Binned(bins=9).fit_event(sample)
    rng = np.random.default_rng(0)
    cells = bootstrap_cells(sample.p, sample.y, None, fit.edges)
    weights = multinomial_weights(cells, 4000, rng)
    fast = fit.resampled_errors(cells, weights, alpha=1, debias=False)
    slow = []
    for _ in range(4000):
        rows = rng.integers(0, sample.n, sample.n)
        table = tabulate(sample.p[rows], sample.y[rows], None, fit.edges)
        slow.append(np.abs(table.label_sum - table.prob).sum() / sample.n)
    assert_allclose(fast.mean(), np.mean(slow), atol=4 * np.std(slow) / np.sqrt(2000))
    assert_allclose(fast.std(), np.std(slow), rtol=0.06)


def test_groups_of_rows_spread_as_cells_do(smooth_sample):
    sample = BinarySample(*smooth_sample)
    fit = Binned(bins=9).fit_event(sample)
    rng = np.random.default_rng(0)
    cells = bootstrap_cells(sample.p, sample.y, None, fit.edges)
    groups = RowGroups.draw(sample.n, 3000, rng).weights(cells)
    cellwise = multinomial_weights(cells, 3000, rng)
    assert_allclose(groups.sum(axis=1).mean(), sample.n, rtol=0.01)
    spread = [
        fit.resampled_errors(cells, weights, alpha=1, debias=False).std()
        for weights in (groups, cellwise)
    ]
    assert_allclose(spread[0], spread[1], rtol=0.12)


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


def test_calibrated_labels_have_the_predicted_share(smooth_sample):
    p, y = smooth_sample
    cells = bootstrap_cells(p, y, None, width_edges(1))
    both, weights = calibrated_weights(cells, 2000, np.random.default_rng(0))
    assert_allclose(weights.sum(axis=1), p.size)
    positives = (weights * both.y).sum(axis=1)
    assert abs(positives.mean() - p.sum()) < 4 * positives.std() / np.sqrt(2000)


def test_percentile_interval_takes_quantiles():
    draws, noise = np.linspace(0, 1, 101), np.zeros(3)
    options = {"truth": 0.0, "noise": noise, "confidence": 0.8}
    assert_allclose(interval(0.5, draws, kind="percentile", **options), [0.1, 0.9])


def test_basic_interval_is_released_to_zero_where_noise_explains_the_value():
    draws = np.linspace(0.1, 0.3, 101)
    options = {"truth": 0.2, "confidence": 0.8, "kind": "basic"}
    assert interval(0.2, draws, noise=np.full(9, 0.1), **options)[0] > 0.1
    assert interval(0.2, draws, noise=np.full(9, 0.25), **options)[0] == 0.0


KINDS = ("basic", "percentile")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [1e-9, 0.004, 0.5, 0.999])
def test_bootstrap_intervals_hold_the_value_within_0_and_1(kind, value):
    for draws in (np.linspace(0.0, 0.01, 11), np.linspace(0.7, 1.0, 11)):
        options = {"truth": value, "noise": draws, "confidence": 0.9, "kind": kind}
        low, high = interval(value, draws, **options)
        assert 0.0 <= low <= value <= high <= 1.0
        assert low < high


def test_a_basic_interval_where_no_error_can_be_is_absent():
    draws = np.linspace(0.1, 0.2, 11)  # reflected at 0 they all lie below
    options = {"truth": 0.0, "noise": draws, "confidence": 0.9, "kind": "basic"}
    assert np.isnan(interval(0.0, draws, **options)).all()


def test_a_basic_interval_reflects_the_replicates():
    draws, noise = np.linspace(0.3, 0.6, 101), np.linspace(0.0, 0.1, 101)
    options = {"noise": noise, "confidence": 0.8, "kind": "basic"}
    assert_allclose(interval(0.4, draws, truth=0.4, **options), [0.23, 0.47])


def test_the_interval_of_a_squared_norm_is_that_of_the_norm_squared():
    draws, noise = np.linspace(0.2, 0.4, 101), np.linspace(0.0, 0.1, 101)
    options = {"confidence": 0.8, "kind": "basic"}
    ends = interval(0.09, draws**2, truth=0.09, noise=noise**2, squared=True, **options)
    assert_allclose(np.sqrt(ends), [0.22, 0.38])


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_replicates_that_are_all_equal_give_no_interval(kind, squared):
    noise, draws = np.linspace(0.0, 0.4, 11), np.full(11, 0.3)
    options = {"truth": 0.3, "noise": noise, "confidence": 0.9, "kind": kind}
    assert np.isnan(interval(0.3, draws, squared=squared, **options)).all()


def test_shares_of_labels_are_refused_and_not_cut_off():
    with pytest.raises(LabelError, match=r"row 1 holds 0\.7"):
        bootstrap_cells(
            np.array([0.2, 0.6]), np.array([0.0, 0.7]), None, width_edges(1)
        )
