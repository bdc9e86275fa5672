"""Smooth maps of few rows, against integration over a fine grid."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit, logit

import calibrant as cb
from calibrant.exceptions import SmallSampleWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::calibrant.exceptions.SmallSampleWarning"
)


def smooth(p, y, **params):
    return cb.make_calibrator("smooth", **params).fit(np.array(p), np.array(y))


def integrated(p, y, likely=1.0):
    """Posterior mean of the map, and quantiles of its error, over a grid of (a, b).

    logit c = u + a + b u / r with r the root mean square of u, a and b normal around 0
    with one spread s; the density of log s is s ** 0.3, times half of a normal density
    for the mean; s from a quarter of what noise makes of a constant up to 9.
    """
    u = logit(p)
    r = np.sqrt(np.mean(u**2))
    least = 0.25 / np.sqrt(1 / 81 + np.sum(p * (1 - p)))
    spreads = np.geomspace(least, 9.0, 6)
    axis = np.sinh(np.linspace(-5.5, 5.5, 201)) / 3.0  # fine around 0, up to 40
    a, b = np.meshgrid(axis, axis)
    area = np.outer(np.gradient(axis), np.gradient(axis))
    f = u[:, None, None] + a + b * (u / r)[:, None, None]
    fit = np.exp(-np.logaddexp(0.0, np.where(y[:, None, None] > 0, -f, f)).sum(axis=0))
    density = [np.exp(-(a**2 + b**2) / (2 * s**2)) / s**2 * s**0.3 for s in spreads]
    unusual = np.exp(-0.5 * (spreads / (likely * max(r, 1.0))) ** 2)
    c = expit(f)
    mean = np.sum(unusual[:, None, None] * density, axis=0) * fit * area
    wide = np.sum(density, axis=0) * fit * area
    errors = np.abs(c - p[:, None, None]).mean(axis=0).ravel()
    order = np.argsort(errors)
    below = np.cumsum(wide.ravel()[order]) / wide.sum()
    ends = np.interp([0.05, 0.95], below, errors[order])
    return (c * mean).sum(axis=(1, 2)) / mean.sum(), ends


@pytest.mark.parametrize("n", [1, 3, 10, 29])
def test_the_map_is_the_posterior_mean(n):
    rng = np.random.default_rng(n)
    for _ in range(4):
        p = np.sort(rng.uniform(0.05, 0.95, n))
        y = (rng.random(n) < p**2).astype(float)
        wanted, ends = integrated(p, y)
        fit = smooth(p, y).fit_
        assert_allclose(fit.map(p), wanted, atol=0.02)
        found = fit.error_quantiles((0.05, 0.95), n_draws=1000)
        assert_allclose(found, ends, atol=0.03)


def test_one_row_moves_its_prediction_by_part_of_the_way():
    assert 0.7 < smooth([0.7], [1.0]).map_(np.array([0.7]))[0] < 0.85
    assert 0.3 < smooth([0.7], [0.0]).map_(np.array([0.7]))[0] < 0.6


def test_few_rows_that_agree_are_not_taken_for_certainty():
    """Three of three at 0.6: whoever says 1 would have lost a lot on the fourth."""
    map_ = smooth([0.6, 0.6, 0.6], [1.0, 1.0, 1.0]).map_
    assert 0.65 < map_(np.array([0.6]))[0] < 0.9


@pytest.mark.parametrize("n", [2, 7, 29, 30, 60])
def test_a_weight_of_two_is_the_row_twice(n):
    rng = np.random.default_rng(n)
    p = rng.random(n // 2)
    y = (rng.random(n // 2) < p).astype(float)
    once = cb.evaluate(y, p, methods="smooth", sample_weight=np.full(n // 2, 2.0))
    twice = cb.evaluate(np.tile(y, 2), np.tile(p, 2), methods="smooth")
    for column in ("value", "low", "high"):
        assert_allclose(once.frame()[column], twice.frame()[column], rtol=1e-6)


def grouped(sizes, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.8, 0.8, np.sum(sizes)), 2)  # ties, exact 0 and 1
    y = (rng.random(p.size) < 0.1 + 0.8 * p).astype(int)
    return {"y": y, "p": p, "group": np.repeat(np.arange(len(sizes)), sizes)}


def test_a_group_is_evaluated_as_it_is_alone():
    table = grouped([1, 2, 3, 5, 29, 30, 31, 64, 65, 200])
    options = {"methods": ["smooth", "isotonic"], "n_resamples": 200}
    together = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by="group"), **options
    )
    found, scores = together.frame(), together.scores()
    for group in range(10):
        rows = table["group"] == group
        alone = cb.evaluate(table["y"][rows], table["p"][rows], **options)
        own = found["group"] == group
        for column in ("value", "low", "high", "n", "bins"):
            wanted = alone.frame()[column]
            assert_allclose(found[column][own], wanted, rtol=1e-6, atol=1e-12)
        for column, wanted in alone.scores().items():
            assert_allclose(scores[column][group], wanted[0], rtol=1e-9, atol=1e-12)


def test_weighted_groups_are_evaluated_as_they_are_alone():
    table = grouped([4, 9, 20])
    table["w"] = np.random.default_rng(3).integers(0, 4, table["p"].size)
    options = {"methods": "smooth", "confidence": 0.8, "alpha": 2}
    together = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by="group", weight="w"),
        **options,
    )
    for group in range(3):
        rows = table["group"] == group
        alone = cb.evaluate(
            table["y"][rows],
            table["p"][rows],
            sample_weight=table["w"][rows],
            **options,
        )
        for column in ("value", "low", "high"):
            assert_allclose(
                together.frame()[column][group], alone.frame()[column][0], rtol=1e-7
            )


def test_small_groups_take_little_time():
    """About a second each it was, by `smooth` with intervals."""
    table = grouped(np.random.default_rng(1).integers(3, 31, 84))
    start = time.process_time()
    cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by="group"), methods="smooth"
    )
    assert time.process_time() - start < 3.0


def test_thousands_of_groups_take_less_than_a_millisecond_each():
    table = grouped([10] * 1500)
    start = time.process_time()
    cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by="group"), methods="smooth"
    )
    assert time.process_time() - start < 1.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [10, 20, 29])
@pytest.mark.parametrize(
    ("shift", "slope"), [(0.0, 1.0), (0.7, 1.0), (0.0, 0.5), (0.0, 2.0)]
)
def test_intervals_of_few_rows_hold_true_errors(n, shift, slope):
    """Nominal 90 %; 400 groups leave a standard error of 1.5 points."""
    rng = np.random.default_rng(8)
    p = rng.beta(1.2, 1.2, 400 * n)
    c = expit(shift + slope * logit(p))
    group = np.repeat(np.arange(400), n)
    table = {"y": (rng.random(p.size) < c).astype(int), "p": p, "group": group}
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="p", by="group"), methods="smooth"
    ).frame()
    truth = np.bincount(group, weights=np.abs(c - p)) / n
    held = (found["low"] <= truth + 1e-12) & (truth <= found["high"])
    assert held.mean() > 0.86
    assert (found["high"] > found["low"]).all()


extreme = st.one_of(
    st.floats(0.0, 1.0),
    st.floats(0.0, 1e-200),
    st.floats(5e-324, 1e-300),
    st.floats(1.0 - 1e-12, 1.0),
    st.sampled_from([0.0, 1.0, 5e-324, 1e-9, 1.0 - 2**-53, 0.5]),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(extreme, st.booleans()), min_size=1, max_size=12))
@pytest.mark.parametrize("repeats", [1, 7])
def test_extreme_predictions_give_numbers(repeats, rows):
    p, y = (np.tile(column, repeats) for column in zip(*rows, strict=True))
    found = cb.evaluate(y.astype(int), p, methods="smooth").frame()
    low, value, high = (found[column][0] for column in ("low", "value", "high"))
    assert 0.0 <= low <= value <= high <= 1.0
    map_ = smooth(p, y.astype(float)).map_
    assert (np.abs(map_(p) - 0.5) <= 0.5).all()
    assert cb.map_from_dict(map_.to_dict()) == map_


def test_predictions_next_to_nothing_are_evaluated():
    p = [3e-204, 1.3e-204, 5.8e-264, 5.8e-276]
    with pytest.warns(SmallSampleWarning):
        found = cb.evaluate([0, 0, 0, 1], p, methods="smooth").frame()
    assert 0.0 < found["value"][0] < 0.25


def test_the_curve_has_no_pieces_however_many_rows_there_are():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    for n in (20, 400):
        frame = cb.evaluate(y[:n], p[:n], methods="smooth").frame()
        assert frame["bins"].tolist() == [0]
