import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibrant.numerics.binning import bin_index, width_edges
from calibrant.numerics.cell_grid import (
    CELLS,
    FIRST_ABOVE_HALF,
    cell_numbers,
    sum_cells,
)


@pytest.fixture(scope="module")
def spread():
    """Predictions at every scale, in order."""
    rng = np.random.default_rng(3)
    tiny = 10.0 ** rng.uniform(-20.0, 0.0, 60_000)
    ends = [0.0, 5e-324, 0.5, 1.0, np.nextafter(1.0, 0.0), np.nextafter(0.5, 0.0)]
    return np.sort(np.concatenate([rng.random(60_000), tiny, 1.0 - tiny, ends]))


def test_cells_are_intervals_in_order(spread):
    cell = cell_numbers(spread)
    assert (np.diff(cell) >= 0).all()
    assert cell[0] == 0
    assert cell[-1] == CELLS - 1


def test_zero_and_one_have_cells_of_their_own(spread):
    cell = cell_numbers(spread)
    assert (cell[spread > 0.0] > 0).all()
    assert (cell[spread < 1.0] < CELLS - 1).all()


@pytest.mark.parametrize("bins", [2, 7, 10, 15, 20, 25, 30, 50, 100])
def test_bins_of_equal_width_end_where_cells_end(bins, spread):
    edges = width_edges(bins)
    near = np.concatenate([edges, np.nextafter(edges, 0.0), spread])
    cell, bin_ = cell_numbers(near), bin_index(near, edges)
    bins_of_cell = [set(bin_[cell == c]) for c in np.unique(cell_numbers(edges))]
    assert all(len(found) == 1 for found in bins_of_cell)


def test_logits_hardly_vary_within_a_cell(spread):
    p = spread[(spread > 1e-8) & (spread < 1.0 - 1e-8)]
    logit = np.log(p / (1.0 - p))
    cell = cell_numbers(p)
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    low = np.minimum.reduceat(logit, first)
    high = np.maximum.reduceat(logit, first)
    assert (high - low).max() < 0.06  # 4 / (8192 * 1e-8 ** 0.25) and rounding


def test_levels_of_three_digits_never_share_a_cell():
    levels = np.arange(1001) / 1000.0
    assert np.unique(cell_numbers(levels)).size == 1001


def test_half_starts_the_upper_cells():
    assert cell_numbers(np.array([0.5]))[0] == FIRST_ABOVE_HALF
    assert cell_numbers(np.array([np.nextafter(0.5, 0.0)]))[0] < FIRST_ABOVE_HALF


def test_a_cell_with_one_value_keeps_it_to_the_last_digit():
    p = np.repeat([0.1, 1.0 / 3.0, 0.7], [3, 7, 11])
    assert_array_equal(sum_cells(p, np.zeros(21)).p, [0.1, 1.0 / 3.0, 0.7])


def test_means_near_one_keep_their_digits():
    p = 1.0 - np.array([1.0, 2.0, 6.0]) * 2.0**-50
    sums = sum_cells(p, np.ones(3))
    assert_allclose(1.0 - sums.p @ sums.rows / 3, 3.0 * 2.0**-50, rtol=1e-12)


def test_sums_over_groups_are_those_of_each_group(smooth_sample):
    p, y = smooth_sample
    group = np.arange(p.size) % 300  # so many that codes are looked up
    both = sum_cells(p, y, None, group)
    for number in (0, 299):
        alone = sum_cells(p[group == number], y[group == number])
        own = both.group == number
        assert_array_equal(both.cell[own], alone.cell)
        assert_array_equal(both.event_rows[own], alone.event_rows)
        assert_allclose(both.near[own], alone.near, rtol=1e-14)


def test_samples_of_cells_have_all_sums(smooth_sample):
    p, y = smooth_sample
    weight = 1.0 + np.arange(p.size) % 3
    sample = sum_cells(p, y, weight).sample()
    assert sample.n_data == p.size
    assert_allclose(sample.total, weight.sum())
    assert_allclose(sample.weight @ sample.p, weight @ p, rtol=1e-12)
    assert_allclose(sample.weight @ sample.y, weight @ y, rtol=1e-12)


def test_small_weights_are_scaled_to_the_effective_number_of_rows(smooth_sample):
    p, y = smooth_sample
    weight = np.random.default_rng(1).random(p.size)
    sample = sum_cells(p, y, weight).sample()
    assert_allclose(sample.total, weight.sum() ** 2 / (weight**2).sum(), rtol=1e-12)
