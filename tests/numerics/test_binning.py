import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from scipy.stats import binom, binomtest, foldnorm, norm

from calibrant.core.sample import BinarySample
from calibrant.numerics.binning import (
    bin_index,
    binned_error,
    debiased_binned_error,
    exact_interval,
    folded_normal_mean,
    order_statistics,
    sample_edges,
    sample_table,
    size_edges,
    tabulate,
    width_edges,
)
from calibrant.numerics.scores import mean_gap
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS, compress_on_log_grid
from strategies import binary_samples, counts


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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("digits", [1, 16])
def test_rows_in_order_have_the_same_bins_and_sums(weighted, digits):
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(0.5, 1.5, 5000), digits)
    y, weight = rng.integers(0, 2, p.size) * 1.0, rng.uniform(0.5, 2, p.size)
    weight = weight if weighted else None
    order = np.argsort(p)
    rows = p[order], y[order], weight[order] if weighted else None
    assert_array_equal(size_edges(rows[0], rows[2], 15), size_edges(p, weight, 15))
    edges = np.array([0.0, 0.1, 0.1, 0.35, 0.9999, 1.0])  # one bin without rows
    for name in ("weight", "prob", "label_sum"):
        got, expected = (
            getattr(tabulate(*one, edges), name) for one in (rows, (p, y, weight))
        )
        assert_allclose(got, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bins", [1, 15, 1024])
def test_known_cells_give_the_same_bins_and_sums(weighted, bins):
    rng = np.random.default_rng(bins)
    edges = width_edges(bins)
    at_edges = [edges, np.nextafter(edges, 0.0), [5e-324, 1.0 - 2.0**-53]]
    p = np.concatenate([rng.beta(0.2, 0.3, MAX_EXACT_ROWS), *at_edges])
    p[:9000] = np.round(p[:9000], 1)
    y, weight = rng.integers(0, 2, p.size) * 1.0, rng.integers(1, 3, p.size) * 1.0
    plain = BinarySample(p, y, weight if weighted else None)
    known = BinarySample(p, y, weight if weighted else None)
    compress_on_log_grid(known)
    assert_array_equal(sample_edges(known, bins), sample_edges(plain, bins))
    for ends in (edges, sample_edges(plain, bins), np.array([0.0, 0.1, 0.1, 1.0])):
        got, expected = sample_table(known, ends), sample_table(plain, ends)
        for name in ("weight", "prob", "label_sum"):
            assert_allclose(getattr(got, name), getattr(expected, name), rtol=1e-12)


def test_an_empty_bin_has_no_mean():
    table = tabulate(np.array([0.1]), np.ones(1), None, width_edges(2))
    assert_array_equal(table.mean_label, [1.0, np.nan])


@pytest.mark.parametrize("mean", [-0.4, 0.0, 0.03, 1.0])
@pytest.mark.parametrize("sd", [0.01, 0.2])
def test_folded_normal_mean_is_scipys(mean, sd):
    expected = foldnorm.mean(abs(mean) / sd, scale=sd)
    assert_allclose(folded_normal_mean(np.array([mean]), np.array([sd])), expected)


def papers_integral(mean_prob, share, n):
    """Expected abs(mean p - R), R normal around the share: trapezoids over 5 sd."""
    sd = np.sqrt(share * (1 - share) / n)
    if sd == 0:
        return abs(mean_prob - share)
    x = np.linspace(share - 5 * sd, share + 5 * sd, 10_000)
    return trapezoid(np.abs(mean_prob - x) * norm.pdf(x, share, sd), x)


@given(st.floats(0, 1), st.integers(0, 50), st.integers(50, 5000))
def test_closed_form_agrees_with_the_papers_integral(mean_prob, positives, n):
    share = positives / 50
    sums = np.array([[float(n)], [mean_prob * n], [share * n]])
    found = debiased_binned_error(*sums, alpha=1.0)
    expected = 2 * abs(mean_prob - share) - papers_integral(mean_prob, share, n)
    assert_allclose(found, expected, atol=1e-5)


def test_squared_error_loses_the_sampling_variance():
    weight, prob, label = (
        np.array([10.0, 5.0]),
        np.array([2.0, 4.0]),
        np.array([4.0, 4.0]),
    )
    found = debiased_binned_error(weight, prob, label, alpha=2.0)
    by_hand = (10 * (0.2**2 - 0.4 * 0.6 / 9) + 5 * (0.0 - 0.8 * 0.2 / 4)) / 15
    assert_allclose(found, by_hand)


def test_a_bin_of_one_row_has_no_variance_to_take_out():
    one = np.array([1.0])
    found = debiased_binned_error(one, np.array([0.3]), one, alpha=2.0)
    assert_allclose(found, 0.49)


def test_debiased_squared_error_is_unbiased_on_calibrated_data():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random((4000, 400)) < p).reshape(4000, 20, 20)
    weight = np.full((4000, 20), 20.0)
    prob = np.broadcast_to(p.reshape(20, 20).sum(axis=1), (4000, 20))
    errors = debiased_binned_error(weight, prob, y.sum(axis=2).astype(float), alpha=2.0)
    # The within-bin variance of p makes the estimate slightly low, by at most var(p).
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(4000) + p.var() / 20


def test_other_exponents_have_no_debiasing():
    with pytest.raises(ValueError, match="alpha=3"):
        debiased_binned_error(*np.ones((3, 2)), alpha=3.0)


def test_tables_are_stacked_on_leading_axes():
    stacked = np.random.default_rng(0).random((3, 4, 5))
    for measure in (binned_error, debiased_binned_error):
        together = measure(*stacked, alpha=1.0)
        apart = [measure(*stacked[:, i], alpha=1.0) for i in range(4)]
        assert_allclose(together, apart)


def test_empty_bins_do_no_harm():
    full = binned_error(np.array([4.0]), np.array([2.0]), np.array([1.0]), alpha=1.0)
    padded = np.array([[4.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    assert binned_error(*padded, alpha=1.0) == full
    assert np.isfinite(debiased_binned_error(*padded, alpha=1.0))


def test_mean_gap_is_weighted():
    gap = mean_gap(
        np.array([0.5, 0.9]), np.array([0.4, 0.4]), np.array([3.0, 1.0]), 2.0
    )
    assert gap == pytest.approx((3 * 0.01 + 0.25) / 4)


@pytest.mark.parametrize("n", [1, 10, 37, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_equal_those_of_scipy(n, confidence):
    events = np.unique(np.linspace(0, n, 7).astype(int))
    low, high = exact_interval(events * 1.0, np.full(events.size, 1.0 * n), confidence)
    for k, a, b in zip(events, low, high, strict=True):
        known = binomtest(int(k), n).proportion_ci(confidence, method="exact")
        assert (a, b) == pytest.approx((known.low, known.high), abs=1e-12)


def test_ends_leave_half_of_the_rest_on_either_side():
    low, high = exact_interval(np.array([8.0]), np.array([10.0]), 0.9)
    assert binom.sf(7, 10, low[0]) == pytest.approx(0.05)
    assert binom.cdf(8, 10, high[0]) == pytest.approx(0.05)
