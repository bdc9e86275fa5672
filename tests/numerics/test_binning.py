import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from calibrant.numerics.binning import (
    bin_index,
    order_statistics,
    size_edges,
    tabulate,
    width_edges,
)
from calibrant.testing.strategies import binary_samples, counts


def bin_by_definition(p, edges):
    """Find each bin by the words: [a, b), the last one closed."""
    found = []
    for value in p:
        inside = [
            i
            for i in range(edges.size - 1)
            if edges[i] <= value < edges[i + 1]
            or (i == edges.size - 2 and value == edges[-1])
        ]
        found.append(inside[-1])
    return np.array(found)


def test_width_edges_are_exact_fractions():
    assert_array_equal(width_edges(10), [i / 10 for i in range(11)])


def test_edges_belong_to_the_bin_on_their_right():
    p = np.array([0.0, 0.1, 0.3, 0.6, 0.7, 0.99, 1.0])
    table = tabulate(p, np.ones(7), None, width_edges(10))
    assert_array_equal(table.weight, [1, 1, 0, 1, 0, 0, 1, 1, 0, 2])


@given(binary_samples(), st.integers(1, 25))
def test_index_is_the_definition(sample, bins):
    p, _ = sample
    assert_array_equal(
        bin_index(p, width_edges(bins)), bin_by_definition(p, width_edges(bins))
    )


@pytest.mark.parametrize("bins", [1, 2, 15, 100, 5000])
@pytest.mark.parametrize("power", [0.2, 1, 9])
def test_many_rows_take_the_same_bins_as_a_search(bins, power):
    rng = np.random.default_rng(bins)
    p = np.concatenate([rng.random(6000) ** power, width_edges(bins), [0.0, 1.0]])
    for edges in (width_edges(bins), size_edges(p, None, bins)):
        assert_array_equal(
            bin_index(p, edges), np.searchsorted(edges[1:-1], p, "right")
        )


@pytest.mark.parametrize("power", [0.1, 1, 40])
def test_order_statistics_are_those_of_a_sort(power):
    rng = np.random.default_rng(3)
    p = rng.random(9000) ** power
    p[:3000] = np.round(p[:3000], 2)
    rank = np.unique(rng.integers(0, p.size, 200))
    assert_array_equal(order_statistics(p, rank), np.sort(p)[rank])


@pytest.mark.parametrize(("n", "bins"), [(11, 3), (1000, 15), (5003, 40), (7, 7)])
def test_equal_size_bins_hold_what_array_split_gives(n, bins):
    p = np.random.default_rng(n).random(n)
    table = tabulate(p, p, None, size_edges(p, None, bins))
    parts = np.array_split(np.sort(p), bins)
    assert_array_equal(table.weight, [part.size for part in parts])
    assert_allclose(table.mean_prob, [part.mean() for part in parts])


@given(binary_samples(), st.integers(1, 12))
def test_ties_are_never_torn_apart(sample, bins):
    p, _ = sample
    edges = size_edges(p, None, min(bins, p.size))
    index = bin_index(p, edges)
    assert all(len(set(index[p == value])) == 1 for value in p)
    assert (np.diff(edges[:-1]) > 0).all()


@given(binary_samples(min_size=3), st.integers(1, 3), st.data())
def test_weighted_edges_are_those_of_repeated_rows(sample, bins, data):
    p, _ = sample
    weight = np.array(data.draw(st.lists(counts, min_size=p.size, max_size=p.size)))
    repeated = np.repeat(p, weight.astype(int))
    assert_array_equal(size_edges(p, weight, bins), size_edges(repeated, None, bins))


def test_ones_get_a_bin_of_their_own_where_they_fill_one():
    p = np.array([0.2, 0.4, 0.6, 1.0, 1.0, 1.0])
    edges = size_edges(p, None, 2)
    assert_array_equal(bin_index(p, edges), [0, 0, 0, 1, 1, 1])


def test_tables_of_parts_add_up(sample):
    p, y = sample
    edges = width_edges(7)
    whole = tabulate(p, y, None, edges)
    parts = tabulate(p[:200], y[:200], None, edges) + tabulate(
        p[200:], y[200:], None, edges
    )
    assert_allclose(
        [parts.weight, parts.prob, parts.label], [whole.weight, whole.prob, whole.label]
    )
    with pytest.raises(ValueError, match="same edges"):
        whole + tabulate(p, y, None, width_edges(8))


def test_an_empty_bin_has_no_mean():
    table = tabulate(np.array([0.1]), np.ones(1), None, width_edges(2))
    assert_array_equal(table.mean_label, [1.0, np.nan])
