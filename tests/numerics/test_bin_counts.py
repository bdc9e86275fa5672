"""The number of bins, against slow and readable twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold

from calibrant.core.sample import BinarySample
from calibrant.maps.binned import BinnedMap
from calibrant.numerics import sorted_rows as sorted_rows_module
from calibrant.numerics.bin_counts import cross_validated_losses, sweep
from calibrant.numerics.binning import size_edges, tabulate, width_edges
from calibrant.numerics.cross_validation import fold_numbers, simplest_within
from calibrant.numerics.sorted_rows import sorted_rows
from strategies import binary_samples


def edges_of(p, weight, bins, spacing):
    return width_edges(bins) if spacing == "width" else size_edges(p, weight, bins)


def losses_by_definition(sample, fold, *, max_bins, spacing, tops):
    """Fit and score every fold and every number of bins one by one."""
    losses = np.zeros((fold.max() + 1, max_bins))
    weight = np.ones_like(sample.p) if sample.weight is None else sample.weight
    for number in range(fold.max() + 1):
        train, test = fold != number, fold == number
        for bins in range(1, max_bins + 1):
            given_weight = None if sample.weight is None else weight[train]
            edges = edges_of(sample.p[train], given_weight, bins, spacing)
            table = tabulate(sample.p[train], sample.y[train], weight[train], edges)
            map_ = BinnedMap.of_table(table, tops)
            loss = (map_(sample.p[test]) - sample.y[test]) ** 2
            losses[number, bins - 1] = np.average(loss, weights=weight[test])
    return losses.mean(axis=0)


@pytest.mark.parametrize("spacing", ["size", "width"])
@pytest.mark.parametrize("tops", ["slope-1", "flat"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_those_of_fitting_each_fold(sample, spacing, tops, weighted):
    p, y = sample
    weight = 1.0 + np.arange(p.size) % 3 if weighted else None
    ordered = sorted_rows(BinarySample(p, y, weight))
    fold = fold_numbers(p.size, 5, np.random.RandomState(0))
    options = {"max_bins": 12, "spacing": spacing, "tops": tops}
    fast = cross_validated_losses(ordered, fold, **options)
    assert_allclose(fast, losses_by_definition(ordered, fold, **options), rtol=1e-10)


def sweep_by_definition(p, y, spacing):
    """Try 1, 2, ... bins until the share of positives first falls."""
    for bins in range(1, p.size + 1):
        table = tabulate(p, y, None, edges_of(p, None, bins, spacing))
        share = table.mean_label[table.weight > 0]
        if (np.diff(share) < 0).any():
            return bins - 1
    return p.size


@settings(max_examples=60)
@given(binary_samples(max_size=40))
def test_sweep_stops_where_trying_one_by_one_does(sample):
    p, y = sample
    ordered = sorted_rows(BinarySample(p, y))
    for spacing in ("size", "width"):
        found = sweep(ordered, max_bins=p.size, spacing=spacing)
        assert found == sweep_by_definition(p, y, spacing)


def test_sweep_goes_to_the_limit_on_separable_data():
    p = np.linspace(0, 1, 300)
    ordered = sorted_rows(BinarySample(p, (p > 0.5).astype(float)))
    assert sweep(ordered, max_bins=300, spacing="size") == 300
    assert sweep(ordered, max_bins=77, spacing="width") == 77


@pytest.mark.parametrize(("n", "folds"), [(100, 10), (37, 10), (5, 2)])
def test_folds_are_those_of_scikit_learn(n, folds):
    fold = fold_numbers(n, folds, np.random.RandomState(1))
    split = KFold(folds, shuffle=True, random_state=1).split(np.zeros(n))
    for number, (_, test) in enumerate(split):
        assert np.array_equal(np.flatnonzero(fold == number), test)


def test_rule_skips_over_worse_scores_in_between():
    losses = np.array([1.0, 0.1000999, 0.5, 0.1, 0.3])
    assert simplest_within(losses, 0.001) == 1
    assert simplest_within(losses, 0.0) == 3


def test_sorting_loses_the_order_of_rows(sample):
    p, y = sample
    weight = np.arange(p.size, dtype=float) % 5 + 1
    order = np.random.default_rng(0).permutation(p.size)
    one = sorted_rows(BinarySample(p, y, weight))
    other = sorted_rows(BinarySample(p[order], y[order], weight[order]))
    for name in ("p", "y", "weight"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


def test_rows_of_a_sample_are_sorted_once_unless_they_are_many(monkeypatch):
    rng = np.random.default_rng(0)
    sample = BinarySample(rng.random(50), (rng.random(50) < 0.5).astype(float))
    assert sorted_rows(sample) is sorted_rows(sample)
    monkeypatch.setattr(sorted_rows_module, "MAX_CACHED_ROWS", 49)
    assert sorted_rows(sample) is not sorted_rows(sample)
