"""pl-de and pl-de2 against pwlf, whose losses ``make golden`` records."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import FewerPiecesWarning
from calibrant.experiments.synthetic import sample as paper_sample

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "pwlf.json").read_text(encoding="ascii")
)
NAMES = {1: "pl-de", 2: "pl-de2"}
SAME = 1e-6


def squares(case):
    """Sum of squares of our fit without the bounds of 0 and 1, from its nodes."""
    p, y, _ = paper_sample(case["shape"], case["error"], case["n"], case["seed"])
    name = NAMES[case["degree"]]
    map_ = cb.make_calibrator(name, pieces=case["pieces"]).fit(p, y).map_
    piece = np.searchsorted(map_.knots[1:-1], p, side="right")
    left, right = map_.heights[piece], map_.heights[piece + 1]
    u = (p - map_.knots[piece]) / np.diff(map_.knots)[piece]
    values = left + (right - left) * u
    if case["degree"] == 2:
        values += 4 * u * (1 - u) * (map_.middles[piece] - (left + right) / 2)
    return ((values - y) ** 2).sum()


@pytest.mark.parametrize(
    "case", GOLDEN, ids=lambda c: f"{c['shape']}-{c['n']}-{c['degree']}-{c['pieces']}"
)
def test_no_fit_is_worse_than_that_of_pwlf(case):
    assert squares(case) <= case["squares"] * (1 + SAME)


def test_one_line_is_least_squares(smooth_sample):
    p, y = smooth_sample
    map_ = cb.make_calibrator("pl-de", pieces=1).fit(p, y).map_
    slope, intercept = np.polyfit(p, y, 1)
    assert_allclose(map_(p), np.clip(intercept + slope * p, 0, 1), atol=1e-9)


def test_one_parabola_is_least_squares(smooth_sample):
    p, y = smooth_sample
    map_ = cb.make_calibrator("pl-de2", pieces=1).fit(p, y).map_
    assert_allclose(map_(p), np.clip(np.polyval(np.polyfit(p, y, 2), p), 0, 1))


@pytest.mark.parametrize("method", ["pl-de", "pl-de2"])
def test_pieces_are_chosen_by_held_out_brier_score(smooth_sample, method):
    fit = cb.make_calibrator(method, ensemble="refit").fit(*smooth_sample).fit_
    within = fit.losses <= fit.losses.min() * 1.001
    assert fit.n_pieces == 1 + np.argmax(within)
    assert len(fit.losses) == {"pl-de": 7, "pl-de2": 5}[method]
    assert fit.losses.min() > 0.0


def test_more_pieces_never_fit_worse(smooth_sample):
    p, y = smooth_sample
    losses = [
        np.mean((cb.make_calibrator("pl-de", pieces=k).fit(p, y).map_(p) - y) ** 2)
        for k in (1, 2, 3, 4)
    ]
    assert (np.diff(losses) < 1e-12).all()


def test_fewer_pieces_are_used_and_told():
    p, y = np.tile([0.2, 0.5, 0.8], 30), np.arange(90) % 2
    with pytest.warns(FewerPiecesWarning, match="3 distinct predictions support 2"):
        fitted = cb.make_calibrator("pl-de", pieces=5).fit(p, y)
    assert fitted.fit_.n_pieces == 2


@pytest.mark.parametrize("method", ["pl-de", "pl-de2"])
def test_intervals_hold_the_error(method):
    p, y, c = paper_sample("square", 0.08, 1000, 1)
    row = cb.evaluate(y, p, methods=(method,), n_resamples=100).frame()
    assert row["low"][0] <= np.abs(p - c).mean() <= row["high"][0]


FEW = {
    "constant": ([0.4] * 40, np.arange(40) % 4 == 0),
    "constant at 0": ([0.0] * 40, np.arange(40) % 4 == 0),
    "two values": ([0.3, 0.7] * 20, np.arange(40) % 3 == 0),
    "one row": ([0.3], [1]),
    "two rows": ([0.3, 0.6], [1, 0]),
    "two equal rows": ([0.3, 0.3], [1, 0]),
    "three rows": ([0.3, 0.6, 0.6], [1, 0, 1]),
}


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("case", FEW)
@pytest.mark.parametrize("method", ["pl-de", "pl-de2"])
def test_one_or_two_distinct_predictions_have_their_rates_and_an_interval(method, case):
    p, y = map(np.array, FEW[case])
    rate = [y[p == value].mean() for value in p]
    row = cb.evaluate(y, p, methods=(method,), n_resamples=20).frame()
    assert np.isfinite([row["low"][0], row["high"][0]]).all()
    if len(p) > 3:  # rows that are held out leave few others
        assert_allclose(row["value"], np.abs(rate - p).mean(), atol=0.02)


def test_parabolas_meet_four_levels_whose_rates_no_parabola_meets():
    off = 0.15 * np.array([-1, 3, -3, 1]) / 3  # orthogonal to 1, x and x^2
    levels = np.array([0.2, 0.4, 0.6, 0.8])
    p = np.repeat(levels, 1000)
    y = np.concatenate([np.arange(1000) < round(1000 * c) for c in levels + off])
    error = cb.calibration_error(y, p, method="pl-de2")
    assert_allclose(error, np.abs(off).mean(), atol=1e-3)
