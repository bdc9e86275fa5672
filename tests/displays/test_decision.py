"""What a figure of decision curves shows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import OptionError


@pytest.fixture
def display():
    forest, y = cb.datasets.load_binary("forest")
    bayes, _ = cb.datasets.load_binary("bayes")
    models = {"forest": forest, "bayes": bayes}
    return cb.DecisionCurveDisplay.from_predictions(y, models)


def test_the_lines_are_the_numbers_of_the_frame(display):
    lines = {line.get_label(): line for line in display.plot().get_lines()}
    frame = display.frame()
    assert list(lines) == ["forest", "bayes", "treat-all", "treat-none"]
    for name, line in lines.items():
        own = frame["model"] == name
        assert_allclose(line.get_xdata(), frame["threshold"][own])
        assert_allclose(line.get_ydata(), frame["net_benefit"][own])


def test_models_are_visible_and_most_of_the_losses_of_treating_all_are_cut(display):
    low, high = display.plot().get_ylim()
    frame = display.frame()
    assert high > frame["net_benefit"].max()
    assert low > frame["net_benefit"].min()
    assert low < 0.0


def test_groups_do_not_share_a_figure():
    p, y = cb.datasets.load_binary("forest")
    curve = cb.decision_curve(y, p, groups=np.arange(y.size) % 2)
    with pytest.raises(OptionError, match="one group of rows"):
        cb.DecisionCurveDisplay(curve)
    with pytest.raises(OptionError, match="what decision_curve returned"):
        cb.DecisionCurveDisplay(y)


def test_lines_of_treating_all_have_the_colours_of_their_models():
    rng = np.random.default_rng(3)
    prob = {"ant": rng.random(500), "bee": 0.2 * rng.random(500)}
    right = {name: rng.random(500) < p for name, p in prob.items()}
    drawn = cb.DecisionCurveDisplay.from_predictions(right, prob).plot().get_lines()
    lines = {line.get_label(): line for line in drawn}
    for name in prob:
        always = lines[f"treat-all ({name})"]
        assert always.get_color() == lines[name].get_color()
        assert (always.get_linestyle(), lines[name].get_linestyle()) == ("--", "-")


def test_a_single_model_is_solid_in_grey_too():
    p, y = cb.datasets.load_binary("forest")
    lines = cb.DecisionCurveDisplay.from_predictions(y, p).plot(style="grey").lines
    assert lines[0].get_linestyle() == "-"


def test_models_look_in_grey_as_in_the_diagram_of_their_calibration():
    p, y = cb.datasets.load_binary("forest")
    models = dict.fromkeys("abc", p)
    display = cb.DecisionCurveDisplay.from_predictions(y, models)
    *drawn, every, none = display.plot(style="grey").get_lines()
    grid = cb.ReliabilityGrid.from_predictions(y, models)
    curves = [
        line
        for line in grid.overlay(style="grey").get_lines()
        if line.get_label().partition(":")[0] in models
    ]

    def look(line):
        return line.get_color(), line._unscaled_dash_pattern

    assert list(map(look, drawn)) == list(map(look, curves))
    assert look(every) not in map(look, drawn)
    assert look(none)[1] not in [look(one)[1] for one in (*drawn, every)]


def test_axes_end_with_the_thresholds_and_hold_the_bands():
    rng = np.random.default_rng(6)
    p = rng.beta(1.0, 4.0, 150)
    y = (rng.random(150) < p).astype(int)
    at = np.arange(0.01, 0.51, 0.01)
    display = cb.DecisionCurveDisplay.from_predictions(y, p, thresholds=at)
    ax, frame = display.plot(), display.frame()
    own = frame["model"] == "model"
    assert ax.get_xlim() == (0.0, 0.5)
    assert ax.get_ylim()[0] < frame["low"][own].min()
    assert ax.get_ylim()[1] > frame["high"][own].max()
