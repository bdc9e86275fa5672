"""Calibrant's numbers next to those of its peers, recorded by ``make golden``.

Where the definitions agree the numbers must; where they differ a test rebuilds the
peer's number from its own convention, so that the difference is known and not noise.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import calibration_curve

import calibrant as cb
from calibrant.numerics.binning import (
    binned_error,
    debiased_binned_error,
    size_edges,
    tabulate,
    width_edges,
)

es15 = partial(cb.calibration_error, method="es15")

GOLDEN = json.loads((Path(__file__).parent / "golden" / "peers.json").read_text())
UNIFORM = ["uniform_500", "uniform_510"]
BUNDLED = ["forest", "bayes"]
CLOSE = 1e-9
BINS = 15


def load(name):
    """Return labels and predictions of a recorded data set."""
    if name in BUNDLED:
        p, y = cb.datasets.load_binary(name)
    else:
        p, y = (np.array(GOLDEN["data"][name][column]) for column in "py")
    return y.astype(float), p


def recorded(name, peer):
    return GOLDEN["values"][name][peer]


def raw_error(y, p, method):
    return cb.calibration_error(y, p, method=method, debias=False)


def error_over(y, p, edges, *, measure=binned_error, alpha=1.0):
    """Return the error over given edges, bins closed on the left."""
    table = tabulate(p, y, None, edges)
    return float(measure(table.weight, table.prob, table.label_sum, alpha=alpha))


def right_closed(edges):
    """Return edges that put, closed on the left, what lies on an edge below it."""
    return np.r_[edges[0], np.nextafter(edges[1:-1], 2.0), edges[-1]]


@pytest.mark.parametrize("name", UNIFORM + BUNDLED)
@pytest.mark.parametrize("peer", ["netcal width", "torchmetrics"])
def test_equal_width_bins_give_the_peers_number(name, peer):
    found = raw_error(*load(name), "ew15")
    assert_allclose(found, recorded(name, peer), rtol=0, atol=CLOSE)


def test_netcal_closes_bins_on_the_same_side():
    y, p = np.tile(load("on_edges"), 3)  # three copies, as 10 rows are too few for us
    wanted = recorded("on_edges", "netcal width")
    assert_allclose(raw_error(y, p, "ew15"), wanted, rtol=0, atol=CLOSE)


def test_torchmetrics_gives_one_a_bin_of_its_own_and_rounds_an_edge_up():
    y, p = load("on_edges")
    edges = np.append(width_edges(BINS), 2.0)  # p = 1 is not below the last edge
    edges[11] = np.nextafter(11 / BINS, 1.0)  # torch.linspace(0, 1, 16)[11]
    found, wanted = error_over(y, p, edges), recorded("on_edges", "torchmetrics")
    assert_allclose(found, wanted, rtol=0, atol=CLOSE)
    assert abs(error_over(y, p, width_edges(BINS)) - wanted) > 0.1


@pytest.mark.parametrize("name", UNIFORM)
def test_equal_width_bins_give_the_points_of_the_sklearn_curve(name):
    y, p = load(name)
    table = tabulate(p, y, None, width_edges(BINS))
    curve = recorded(name, "sklearn uniform")
    assert_allclose(table.mean_label, curve["prob_true"], rtol=0, atol=CLOSE)
    assert_allclose(table.mean_prob, curve["prob_pred"], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", ["on_edges", "forest"])
def test_sklearn_closes_bins_on_the_right(name):
    y, p = load(name)
    table = tabulate(p, y, None, right_closed(width_edges(BINS)))
    curve, used = recorded(name, "sklearn uniform"), table.weight > 0
    assert_allclose(table.mean_label[used], curve["prob_true"], rtol=0, atol=CLOSE)
    ours = tabulate(p, y, None, width_edges(BINS))
    assert not np.array_equal(ours.weight, table.weight)


def test_equal_size_bins_give_netcals_number_where_all_bins_are_full():
    found = raw_error(*load("uniform_510"), "es15")
    assert_allclose(found, recorded("uniform_510", "netcal size"), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", ["uniform_500", *BUNDLED])
def test_netcal_cuts_at_interpolated_quantiles_and_we_at_ranks(name):
    y, p = load(name)
    edges = np.quantile(p, width_edges(BINS))
    edges[[0, -1]] = 0.0, 1.0
    wanted = recorded(name, "netcal size")
    assert_allclose(error_over(y, p, edges), wanted, rtol=0, atol=CLOSE)
    assert abs(raw_error(y, p, "es15") - wanted) > 1e-6


def test_equal_size_bins_give_the_points_of_the_sklearn_curve():
    y, p = load("uniform_510")
    table = tabulate(p, y, None, size_edges(p, None, BINS))
    curve = recorded("uniform_510", "sklearn quantile")
    assert_allclose(table.mean_label, curve["prob_true"], rtol=0, atol=CLOSE)
    assert_allclose(table.mean_prob, curve["prob_pred"], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", ["uniform_500", *BUNDLED])
def test_sklearn_cuts_at_interpolated_quantiles_closed_on_the_right(name):
    y, p = load(name)
    edges = right_closed(np.percentile(p, 100 * width_edges(BINS)))
    table = tabulate(p, y, None, edges)
    curve, used = recorded(name, "sklearn quantile"), table.weight > 0
    assert_allclose(table.mean_label[used], curve["prob_true"], rtol=0, atol=CLOSE)
    assert_allclose(table.mean_prob[used], curve["prob_pred"], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("name", GOLDEN["values"])
def test_the_installed_sklearn_gives_the_recorded_curve(name, strategy):
    y, p = load(name)
    found = calibration_curve(y, p, n_bins=BINS, strategy=strategy)
    wanted = recorded(name, f"sklearn {strategy}")
    assert_allclose(found, [wanted["prob_true"], wanted["prob_pred"]], atol=CLOSE)


def midpoint_edges(p):
    """Return the edges of uncertainty-calibration: midway between parts of the rows."""
    parts = np.array_split(np.sort(p), min(BINS, p.size))
    middle = [(a[-1] + b[0]) / 2 for a, b in pairwise(parts)]
    return right_closed(np.unique([0.0, *middle, 1.0]))


def value_edges(p):
    """Return edges midway between the distinct predictions."""
    values = np.unique(p)
    return np.r_[0.0, (values[:-1] + values[1:]) / 2, 1.0]


def without_single_rows(y, p, edges):
    """Return the debiased squared error, 0 where a bin has one row."""
    table = tabulate(p, y, None, edges)
    several = table.weight > 1
    sums = (table.weight[several], table.prob[several], table.label_sum[several])
    return debiased_binned_error(*sums, alpha=2.0) * sums[0].sum() / p.size


@pytest.mark.parametrize("name", UNIFORM)
def test_the_debiased_squared_error_is_the_square_of_uncertainty_calibration(name):
    y, p = load(name)
    found = np.sqrt(es15(y, p, alpha=2))
    wanted = recorded(name, "uncertainty-calibration L2")
    assert_allclose(found, wanted, rtol=0, atol=CLOSE)


def test_uncertainty_calibration_puts_ties_at_a_cut_below_it_and_we_above():
    y, p = load("bayes")
    found = error_over(
        y, p, midpoint_edges(p), measure=debiased_binned_error, alpha=2.0
    )
    wanted = recorded("bayes", "uncertainty-calibration L2")
    assert_allclose(np.sqrt(found), wanted, rtol=0, atol=1e-12)
    assert abs(np.sqrt(es15(y, p, alpha=2)) - wanted) > 1e-10


def test_uncertainty_calibration_gives_each_value_a_bin_where_values_repeat():
    y, p = load("forest")
    assert np.unique(p).size < p.size / 4  # its rule
    found = np.sqrt(without_single_rows(y, p, value_edges(p)))
    wanted = recorded("forest", "uncertainty-calibration L2")
    assert_allclose(found, wanted, rtol=0, atol=CLOSE)


def test_uncertainty_calibration_takes_bins_of_one_row_as_free_of_error():
    y, p = load("on_edges")
    found = np.sqrt(without_single_rows(y, p, midpoint_edges(p)))
    wanted = recorded("on_edges", "uncertainty-calibration L2")
    assert_allclose(found, wanted, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("name", [*UNIFORM, "bayes"])
def test_the_closed_form_of_the_bias_is_the_mean_of_the_peers_draws(name):
    y, p = load(name)
    found = error_over(y, p, midpoint_edges(p), measure=debiased_binned_error)
    drawn = recorded(name, "uncertainty-calibration L1")
    assert abs(found - drawn["mean"]) < 4 * drawn["standard_error"]


@pytest.mark.parametrize("name", UNIFORM)
def test_the_default_error_is_debiased_over_the_same_bins_as_the_peers(name):
    y, p = load(name)
    found = error_over(y, p, midpoint_edges(p), measure=debiased_binned_error)
    assert_allclose(es15(y, p), found, rtol=0, atol=CLOSE)
