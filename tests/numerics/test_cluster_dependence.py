"""Dependence within clusters against closed forms, copies of rows and simulation."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from calibrant.core.sample import BinarySample
from calibrant.exceptions import TooFewRowsError
from calibrant.numerics.cluster_dependence import (
    Dependence,
    coarse_cells,
    dependence_of,
    effective_rows,
    sum_clusters,
)
from calibrant.numerics.smooth_curve_fits import smooth_curve


def copies(n, times, seed=0):
    """Return rows and each of them several times over, as one cluster."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p**1.3).astype(float)
    cluster = np.arange(n).repeat(times)
    once = BinarySample(p, y)
    return once, BinarySample(p.repeat(times), y.repeat(times), clusters=cluster)


def correlated(clusters, size, correlation, seed, *, constant=False):
    """Return calibrated rows whose latent normal variables are correlated."""
    rng = np.random.default_rng(seed)
    code = np.arange(clusters).repeat(size)
    p = rng.random(clusters)[code] if constant else rng.random(code.size)
    z = np.sqrt(correlation) * rng.standard_normal(clusters)[code]
    z += np.sqrt(1.0 - correlation) * rng.standard_normal(code.size)
    return BinarySample(p, (ndtr(z) < p).astype(float), clusters=code)


@pytest.mark.parametrize("correlation", [0.2, 0.7])
def test_covariance_of_labels_is_that_of_normal_variables_below_thresholds(correlation):
    rates = np.array([0.02, 0.3, 0.8])
    series = Dependence(None, rates)._series
    powers = correlation ** np.arange(1, len(series) + 1)
    z, joint = ndtri(rates), [[1.0, correlation], [correlation, 1.0]]
    for a in range(3):
        for b in range(3):
            both = multivariate_normal.cdf([z[a], z[b]], cov=joint)
            found = (powers * series[:, a] * series[:, b]).sum()
            assert found == pytest.approx(both - rates[a] * rates[b], abs=1e-6)


def test_sums_over_clusters_are_those_of_a_loop():
    sample = correlated(15, 6, 0.4, seed=1)
    sums = sum_clusters(sample, sample.clusters)
    cells = np.unique(coarse_cells(sample.p))
    cell = np.searchsorted(cells, coarse_cells(sample.p))
    weights = np.zeros((cells.size, cells.size))
    mixed, labels = np.zeros_like(weights), np.zeros_like(weights)
    for one in range(15):
        rows = sample.clusters == one
        size = np.bincount(cell[rows], minlength=cells.size)
        happened = np.bincount(cell[rows], sample.y[rows], minlength=cells.size)
        weights += np.outer(size, size)
        mixed += np.outer(happened, size)
        labels += np.outer(happened, happened)
    np.testing.assert_allclose(sums.weights, weights)
    np.testing.assert_allclose(sums.mixed, mixed)
    np.testing.assert_allclose(sums.labels, labels)
    surplus = np.bincount(sample.clusters, sample.y - sample.p)
    assert sums.second == pytest.approx((surplus**2).sum())
    assert sums.fourth == pytest.approx((surplus**4).sum())
    assert sums.count == 15


def test_copies_of_rows_count_once():
    once, many = copies(400, 5)
    dependence = dependence_of(many)
    assert dependence.factor == pytest.approx(5.0, rel=0.02)
    assert effective_rows(many).factor == pytest.approx(5.0, rel=0.1)
    fit, plain = smooth_curve(many), smooth_curve(once)
    at = np.linspace(0.05, 0.95, 19)
    low, high = fit.band(at, 0.95)
    plain_low, plain_high = plain.band(at, 0.95)
    np.testing.assert_allclose(high - low, plain_high - plain_low, rtol=0.25)
    np.testing.assert_allclose(fit.values(at), plain.values(at), atol=0.02)


def test_rows_that_are_alone_are_independent():
    sample = correlated(800, 1, 0.5, seed=2)
    assert dependence_of(sample).factor == pytest.approx(1.0, abs=0.01)
    assert effective_rows(sample).cells.weight.sum() == pytest.approx(800.0)
    alone = BinarySample(sample.p, sample.y)
    at = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        smooth_curve(sample).values(at),
        smooth_curve(alone).values(at),
        atol=1e-3,
    )


@pytest.mark.parametrize("constant", [True, False])
def test_the_latent_correlation_is_found(constant):
    found = []
    for seed in range(20):
        sample = correlated(200, 10, 0.4, seed, constant=constant)
        dependence = dependence_of(sample)
        found.append(dependence.correlation(dependence.factor))
    assert np.mean(found) == pytest.approx(0.4, abs=0.02)


def test_a_weight_of_two_is_a_second_row_of_the_cluster():
    rng = np.random.default_rng(3)
    sample = correlated(50, 8, 0.4, seed=3)
    counts = rng.integers(1, 4, sample.n)
    weighted = BinarySample(
        sample.p, sample.y, counts.astype(float), clusters=sample.clusters
    )
    rows = np.arange(sample.n).repeat(counts)
    apart = BinarySample(sample.p[rows], sample.y[rows], clusters=sample.clusters[rows])
    assert dependence_of(weighted).factor == pytest.approx(dependence_of(apart).factor)
    at = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        smooth_curve(weighted).values(at),
        smooth_curve(apart).values(at),
        rtol=1e-6,
    )


def test_only_the_level_is_blurred_where_predictions_vary_within_clusters():
    sample = correlated(100, 20, 0.3, seed=4)
    rows = effective_rows(sample)
    assert rows.factor < 1.5
    assert rows.dependence.factor > 4.0
    level = np.ones((rows.whole.p.size, 1))
    assert np.square(rows.blurs(level)).sum(axis=1).mean() > 0.005


def test_one_cluster_says_nothing():
    sample = BinarySample(np.array([0.2, 0.7]), np.array([0.0, 1.0]), clusters=[4, 4])
    with pytest.raises(TooFewRowsError, match="at least 2 clusters"):
        dependence_of(sample)


@pytest.mark.parametrize(("constant", "parameters"), [(True, 2), (False, 1)])
def test_a_line_takes_away_what_it_can_follow(constant, parameters):
    code = np.arange(12).repeat(10)
    within = np.tile([0.3, 0.7], 60)  # where a slope is the same in every cluster
    p = np.where(code % 2, 0.3, 0.7) if constant else within
    y = np.tile([1.0, 1.0, 0.0, 0.0], 30)
    dependence = dependence_of(BinarySample(p, y, clusters=code))
    assert dependence._taken == pytest.approx(parameters / 12)


def test_shift_and_tilt_have_spreads_of_their_own_in_clusters():
    sample = correlated(30, 20, 0.3, seed=6)
    alone = smooth_curve(BinarySample(sample.p, sample.y)).posterior
    assert smooth_curve(sample).posterior.problem.sizes.size == 4
    assert alone.problem.sizes.size == 3
