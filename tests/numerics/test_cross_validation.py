"""Folds are those of shuffled rows; a search ends once it is past the best."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from calibrant.calibrators.piecewise import PiecewiseLinear
from calibrant.core.sample import BinarySample
from calibrant.experiments import synthetic
from calibrant.numerics import piece_search
from calibrant.numerics.cross_validation import (
    fold_counts,
    fold_numbers,
    is_past_the_best,
    simplest_weight,
)


@pytest.mark.parametrize(
    "losses",
    [
        [0.2, 0.1, 0.11, 0.12, 0.11],  # three in a row only
        [0.1, 0.1001, 0.1001, 0.1, 0.1001, 0.1001],  # within 0.1 percent
        [0.2, 0.3, 0.3, 0.3, 0.1],  # the least is the last
    ],
)
def test_the_search_goes_on(losses):
    assert not is_past_the_best(
        np.array(losses), simplest_weight(np.array(losses), 0.001)
    )


def test_the_search_goes_on_while_one_of_the_last_weighs():
    losses = np.array([0.1, 0.2, 0.2, 0.2, 0.2])
    assert not is_past_the_best(losses, np.array([0.8, 0.0, 0.0, 0.2, 0.0]))


@pytest.mark.parametrize("scale", ["prob", "logit"])
def test_the_map_is_that_of_the_whole_search(scale, monkeypatch):
    p, y, _ = synthetic.sample("beta2", 0.05, 3000, 1)
    sample, family = BinarySample(p, y), PiecewiseLinear(space=scale)
    short = family.fit_event(sample)
    monkeypatch.setattr(piece_search, "is_past_the_best", lambda *_: False)
    whole = family.fit_event(sample)
    assert short.losses.size < whole.losses.size
    np.testing.assert_array_equal(short.map(p), whole.map(p))


def test_few_aggregated_rows_get_the_folds_that_they_had_as_rows():
    rows = np.array([3, 0, 4, 2])
    fold = fold_numbers(9, 3, np.random.RandomState(5))
    expected = [np.bincount(part, minlength=3) for part in np.split(fold, [3, 3, 7])]
    assert_array_equal(fold_counts(rows, 3, np.random.RandomState(5)), expected)


@pytest.mark.parametrize("total", [400_000, 6_000_000, 3_000_000_000])
def test_counts_of_many_rows_scatter_as_shuffled_rows_do(total):
    rows = np.full(400, total // 400)
    counts = fold_counts(rows, 5, np.random.RandomState(2))
    assert_array_equal(counts.sum(axis=1), rows)
    if total < 10**9:  # drawn without replacement
        assert np.ptp(counts.sum(axis=0)) <= 1
    expected = total / 400 / 5
    z = (counts - expected) / np.sqrt(expected * (1.0 - 1.0 / 5))
    assert abs(z.mean()) < 0.1
    assert 0.9 < z.std() < 1.1  # hypergeometric: the variance of a binomial, nearly


def test_folds_of_cells_are_seeded():
    rows = np.full(50, 200_000)
    first, again, other = (
        fold_counts(rows, 4, np.random.RandomState(seed)) for seed in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert (first != other).any()
