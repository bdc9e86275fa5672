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
        own &= frame["threshold"] <= line.get_xdata()[-1]
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


@pytest.fixture
def low_risks():
    """Two models that flag no row above 0.6 and 0.3."""
    rng = np.random.default_rng(4)
    p = 0.6 * rng.random(200)
    y = (rng.random(200) < p).astype(int)
    return cb.DecisionCurveDisplay.from_predictions(y, {"ant": p, "bee": 0.5 * p})


def test_nothing_is_drawn_where_no_model_flags_any_row(low_risks):
    ax = low_risks.plot()
    assert ax.get_xlim()[1] < 0.6
    for line in ax.get_lines():
        assert line.get_xdata()[-1] == ax.get_xlim()[1]
    ends = [area.get_paths()[0].vertices[:, 0].max() for area in ax.collections]
    assert ends[0] == ax.get_xlim()[1]
    assert ends[1] < 0.3
    assert low_risks.frame()["threshold"].max() == 0.99


def test_thresholds_that_no_prediction_reaches_are_drawn_if_there_are_no_others():
    y = np.arange(100) % 2
    p = np.linspace(0.1, 0.3, 100)
    options = {"thresholds": [0.5, 0.6]}
    for style in ("colour", "grey"):
        display = cb.DecisionCurveDisplay.from_predictions(
            y, {"a": p, "b": p}, **options
        )
        assert display.plot(style=style).get_xlim() == (0.0, 0.6)


@pytest.mark.parametrize(("simultaneous", "kind"), [(False, "point"), (True, "simul")])
def test_the_legend_says_what_bands_are(low_risks, simultaneous, kind):
    curve = cb.decision_curve(low_risks.curve.predictions, confidence=0.9)
    display = cb.DecisionCurveDisplay(curve, simultaneous=simultaneous)
    texts = [text.get_text() for text in display.plot().get_legend().get_texts()]
    assert texts[-1].startswith(f"90 % band, {kind}")


def test_bands_of_several_models_are_lines_in_grey(low_risks):
    assert not [a for a in low_risks.plot(style="grey").collections if a.get_fill()]
    single = cb.decision_curve(low_risks.curve.predictions.model("ant"))
    (area,) = cb.DecisionCurveDisplay(single).plot(style="grey").collections
    assert area.get_fill()
