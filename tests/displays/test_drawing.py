"""Figures: what is drawn is what was computed, and nothing is cut off."""

import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose
from scipy.stats import binomtest

import calibrant as cb
from calibrant.displays.curve_drawing import TOO_HIGH, TOO_LOW
from calibrant.displays.style import STYLES
from calibrant.exceptions import (
    FewerDiagramsWarning,
    OptionError,
    SmallSampleWarning,
)

DISPLAY = cb.ReliabilityDisplay.from_predictions
GRID = cb.ReliabilityGrid.from_predictions
LONG = "malignant neoplasm of the head of the pancreas, stage three"


def visible_texts(figure):
    figure.canvas.draw()
    return [
        text
        for text in figure.findobj(mpl.text.Text)
        if text.get_visible() and text.get_text().strip()
    ]


def cut_off(figure):
    """Return the texts that reach beyond the figure; half a pixel is rounding."""
    texts, page = visible_texts(figure), figure.bbox
    found = []
    for text in texts:
        box = text.get_window_extent()
        inside = box.x0 > page.x0 - 0.5 and box.x1 < page.x1 + 0.5
        if not (inside and box.y0 > page.y0 - 0.5 and box.y1 < page.y1 + 0.5):
            found.append((text.get_text(), box))
    return found


@pytest.fixture
def display(sample):
    p, y = sample
    return DISPLAY(y, p, name="model")


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("width", [2.0, 3.5, 7.0])
@pytest.mark.parametrize("axes", ["prob", "logit"])
def test_nothing_is_cut_off(sample, width, style, axes):
    p, y = sample
    words = np.where(y == 1, LONG, "benign")
    options = {"method": "es5", "pos_label": LONG, "axes": axes}
    figure = DISPLAY(words, p, name=LONG, **options).plot(width=width, style=style)
    assert cut_off(figure.figure) == []
    assert figure.figure.get_figwidth() == width


@pytest.mark.parametrize("kind", ["curve", "diagonal", "centres", "bars"])
def test_no_kind_is_cut_off_in_one_column(sample, kind):
    p, y = sample
    options = {"kind": kind, "instances": 5, "true_map": np.sqrt, "name": "model"}
    assert cut_off(DISPLAY(y, p, **options).plot(width=3.5).figure) == []


@pytest.mark.parametrize(("width", "count"), [(3.5, 3), (7.0, 5), (7.0, 10)])
def test_no_grid_is_cut_off_or_has_an_empty_cell(sample, width, count):
    p, y = sample
    models = {f"a model with number {k}": p ** (1 + k / 10) for k in range(count)}
    figure = GRID(y, models, method="es5").plot(width=width)
    assert cut_off(figure) == []
    panels = [ax for ax in figure.axes if ax.get_title()]
    assert len(panels) == count
    boxes = np.array([ax.get_position().bounds for ax in panels])
    assert_allclose(boxes[:, 2:], boxes[:1, 2:].repeat(count, axis=0), rtol=1e-9)
    last = boxes[np.isclose(boxes[:, 1], boxes[:, 1].min())]
    first = boxes[np.isclose(boxes[:, 1], boxes[:, 1].max())]
    middle = (first[0, 0] + first[-1, 0]) / 2
    assert (last[0, 0] + last[-1, 0]) / 2 == pytest.approx(middle)  # centred


def test_the_curve_and_its_band_are_drawn_as_tabled_and_end_with_the_data(display):
    ax = display.plot()
    curve, band = display.frame("curve"), display.frame("band")
    drawn = max(
        ax.lines, key=lambda line: line.get_zorder() * (line.get_marker() == "None")
    )
    assert_allclose(drawn.get_xdata(), curve["p"])
    assert_allclose(drawn.get_ydata(), curve["calibrated"])
    histogram = display.frame("histogram")
    used = histogram["weight"] > 0
    assert curve["p"][0] >= histogram["left"][used][0]
    assert curve["p"][-1] <= histogram["right"][used][-1]
    assert_allclose(band["p"], curve["p"])


def test_dots_have_the_exact_interval_of_the_binomial(display):
    bins = display.frame("bins")
    for observed, weight, low, high in zip(
        bins["observed"], bins["weight"], bins["low"], bins["high"], strict=True
    ):
        test = binomtest(round(observed * weight), round(weight))
        known = test.proportion_ci(0.95, method="exact")
        assert (low, high) == pytest.approx((known.low, known.high))
    (drawn,) = display.plot().containers
    line, _, (bars,) = drawn.lines
    assert_allclose(line.get_xdata(), bins["predicted"])
    assert_allclose(line.get_ydata(), bins["observed"])
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert_allclose(ends, np.column_stack([bins["low"], bins["high"]]))


def test_the_histogram_has_events_above_and_non_events_below(display, sample):
    p, y = sample
    parts = display.frame("histogram")
    inside = (p >= parts["left"][3]) & (p < parts["right"][3])
    assert parts["weight"][3] == inside.sum()
    assert parts["events"][3] == y[inside].sum()
    (below,) = display.plot().child_axes
    heights = np.array([bar.get_height() for bar in below.patches])
    up, down = np.split(heights, 2)
    others = parts["weight"] - parts["events"]
    tallest = max(parts["events"].max(), others.max())
    assert_allclose(up, parts["events"] / tallest)
    assert_allclose(down, -others / tallest)


def test_bars_of_a_rare_outcome_are_enlarged_by_a_stated_factor():
    rng = np.random.default_rng(0)
    p = rng.beta(1.0, 80.0, 20_000)
    y = (rng.random(p.size) < p).astype(int)
    display = cb.ReliabilityDisplay.from_predictions(y, p, axes="prob")
    parts = display.frame("histogram")
    (below,) = display.plot().child_axes
    up, down = np.split(np.array([bar.get_height() for bar in below.patches]), 2)
    others = parts["weight"] - parts["events"]
    assert [text.get_text() for text in below.texts] == [
        "events \N{MULTIPLICATION SIGN}100",
        "non-events",
    ]
    assert_allclose(up, 100 * parts["events"] / others.max())
    assert_allclose(down, -others / others.max())


def test_the_corner_says_what_evaluate_says(display, sample):
    p, y = sample
    known = cb.evaluate(y, p, methods="smooth").frame()
    table = display.frame("statistics")
    for name, column in (("error", "value"), ("low", "low"), ("high", "high")):
        assert table[name][0] == pytest.approx(known[column][0])
    assert (table["n"][0], table["events"][0]) == (500, pytest.approx(y.sum()))
    texts = " ".join(text.get_text() for text in display.plot().texts)
    error = f"error {known['value'][0]:.3f} [{known['low'][0]:.3f}, "
    assert f"n = 500, {y.sum():.0f} events" in texts
    assert error in texts


def test_slope_and_intercept_are_those_of_logistic_regression():
    rng = np.random.default_rng(0)
    logit = rng.normal(0.0, 1.5, 50_000)
    p = 1.0 / (1.0 + np.exp(-logit))
    y = rng.random(p.size) < 1.0 / (1.0 + np.exp(-(0.7 * logit - 0.4)))
    statistics = DISPLAY(y, p, method="es5").statistics
    assert statistics.slope == pytest.approx(0.7, abs=0.04)
    assert statistics.intercept == pytest.approx(-0.4, abs=0.04)
    known = cb.summary(y, p).frame()
    measures = dict(zip(known["measure"], known["value"], strict=True))
    assert statistics.slope == pytest.approx(measures["slope"])
    assert statistics.intercept == pytest.approx(measures["intercept"])
    alike = DISPLAY(np.ones(50), p[:50], method="es5").statistics
    assert np.isnan(alike.slope)
    assert not any("slope" in line for line in alike.lines())


def test_directions_have_their_colours(sample):
    p, _ = sample
    high = DISPLAY((p > 0.9).astype(int), p, method="platt")
    ax = high.plot()
    colours = {text.get_text(): text.get_color() for text in ax.texts}
    assert to_rgb(colours[TOO_HIGH]) == to_rgb(STYLES["colour"].over)
    low = DISPLAY((p > 0.1).astype(int), p, method="platt").plot(ax=plt.figure().gca())
    under = next(text for text in low.texts if text.get_text() == TOO_LOW)
    assert to_rgb(under.get_color()) == to_rgb(STYLES["colour"].under)
    over = ax.collections[0]
    assert over.get_facecolor()[0][:3] == pytest.approx(to_rgb(colours[TOO_HIGH]))
    x, y = over.get_paths()[0].vertices.T
    assert (y <= x + 1e-12).all()
    assert np.ptp(x - y) > 0.5


def test_only_directions_that_occur_are_named():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 4000)
    for truth, named in ((p**3, [TOO_HIGH]), (p, []), (1 - (1 - p) ** 3, [TOO_LOW])):
        display = DISPLAY((rng.random(4000) < truth).astype(int), p)
        texts = [text.get_text() for text in display.plot(ax=plt.figure().gca()).texts]
        assert [text for text in texts if text in (TOO_HIGH, TOO_LOW)] == named


def test_the_grey_style_has_no_colour(display):
    figure = display.plot(style="grey", width=3.5).figure
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    assert (np.ptp(pixels, axis=2) <= 2).all()
    with pytest.raises(OptionError, match="unknown style 'gray'; did you mean 'grey'"):
        display.plot(style="gray")


@pytest.mark.parametrize("part", ["curve", "band", "bins", "statistics", "events"])
def test_every_part_can_be_restyled_or_left_out(display, part):
    restyled = display.plot(**{part: {"color": "#ff00ff"}}).figure
    without = display.plot(**{part: False}).figure

    def magenta(figure):
        figure.canvas.draw()
        red, green, blue = np.asarray(figure.canvas.buffer_rgba())[..., :3].T.astype(
            int
        )
        return ((red - green > 10) & (blue - green > 10) & (abs(red - blue) < 9)).any()

    assert magenta(restyled)
    assert not magenta(without)
    shown = [len(f.findobj(mpl.artist.Artist)) for f in (restyled, without)]
    assert shown[1] < shown[0]


def test_wrong_parts_and_widths_are_named(display):
    with pytest.raises(OptionError, match="unknown part 'curv'; did you mean 'curve'"):
        display.plot(curv={})
    with pytest.raises(OptionError, match="band must be a dict of matplotlib keywords"):
        display.plot(band="red")
    with pytest.raises(OptionError, match="width must be 2 to 40 inches; got 1"):
        display.plot(width=1)
    with pytest.raises(OptionError, match="pass it without ax"):
        display.plot(plt.subplots()[1], width=3.5)


def test_the_label_below_the_histogram_can_be_changed(display):
    ax = display.plot(width=3.5)
    ax.set_xlabel("Risk of a relapse")
    ax.figure.canvas.draw()
    (below,) = ax.child_axes
    label = ax.xaxis.label.get_window_extent()
    ticks = [tick.get_window_extent().y0 for tick in below.get_xticklabels()]
    assert label.y1 <= min(ticks)
    assert cut_off(ax.figure) == []


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_given_axes_keep_all_names_inside(display, layout):
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 4.5), layout=layout)
    for ax in axes:
        display.plot(ax)
    assert cut_off(figure) == []


def test_rare_events_get_logit_axes_that_end_with_the_data():
    rng = np.random.default_rng(3)
    p = 1.0 / (1.0 + np.exp(-rng.normal(-5.5, 1.0, 4000)))
    y = rng.random(p.size) < p
    display = DISPLAY(y, p, axes="auto", method="platt")
    assert display.axes == "logit"
    low, high = display.limits
    assert p.min() / 5 < low < np.quantile(p, 0.02)
    assert np.quantile(p, 0.98) < high < 0.5
    assert DISPLAY(y, p, method="platt").axes == "prob"
    grid = GRID(y, {"rare": p, "less rare": 3 * p}, axes="auto", method="platt")
    assert len({(one.axes, one.limits) for one in grid.displays}) == 1
    assert cut_off(grid.plot(width=7)) == []
    with pytest.raises(OptionError, match="unknown axes 'log'"):
        DISPLAY(y, p, axes="log")


def test_few_levels_have_a_dot_and_a_bar_each():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 11, 800) / 10
    y = rng.random(800) < 0.2 + 0.6 * p
    display = DISPLAY(y, p)
    assert_allclose(display.frame("bins")["predicted"], np.arange(11) / 10, atol=1e-12)
    bars = display.frame("histogram")
    assert_allclose(bars["weight"], np.bincount(np.round(10 * p).astype(int)))
    middle = (bars["left"] + bars["right"])[1:-1] / 2
    assert_allclose(middle, np.arange(1, 10) / 10)


def test_edges_of_the_band_are_smooth(smooth_sample):
    p, y = smooth_sample
    band = DISPLAY(y, p).frame("band")
    inner = (band["p"] > 0.1) & (band["p"] < 0.9)
    x = band["p"][inner]
    for side in ("low", "high"):
        slope = np.diff(band[side][inner]) / np.diff(x)
        turns = np.diff(np.sign(np.diff(slope[np.diff(x) > 1e-4])))
        assert np.count_nonzero(turns) < 25  # of some 320 points


def test_grids_show_classes_and_groups():
    prob, digit = cb.datasets.load_multiclass("forest")
    classes = GRID(digit, prob, task="classwise", method="es5")
    assert [one.name for one in classes.displays] == [f"class {k}" for k in range(10)]
    alone = DISPLAY(digit, prob, task=4, method="es5")
    assert classes.displays[4].error == alone.error
    assert classes.displays[0].axis_labels[0] == "Predicted probability"
    p, y = cb.datasets.load_binary("forest")
    groups = np.arange(p.size) % 2
    grid = GRID(y, p, groups=groups, method="es5")
    assert [one.name for one in grid.displays] == ["group: 0", "group: 1"]
    alone = DISPLAY(y[groups == 1], p[groups == 1], method="es5")
    assert grid.displays[1].error == alone.error


@pytest.mark.parametrize("style", STYLES)
def test_before_and_after_are_in_one_picture(smooth_sample, style):
    p, y = smooth_sample
    grid = GRID(y, {"before": p, "after": p**1.5})
    ax = grid.overlay(width=3.5, style=style)
    assert cut_off(ax.figure) == []
    for display in grid.displays:
        curve = display.frame("curve")
        assert any(
            np.array_equal(line.get_xdata(), curve["p"])
            and np.array_equal(line.get_ydata(), curve["calibrated"])
            for line in ax.lines
        )
    named = {text.get_text(): text.get_color() for text in ax.texts}
    assert set(named) == {"before", "after"}
    assert named["before"] != named["after"]
    numbers = [text.get_text() for text in ax.get_legend().get_texts()]
    texts = [display.statistics.error_text() for display in grid.displays]
    assert numbers == [f"before: {texts[0]}", f"after: {texts[1]}"]


@pytest.mark.parametrize("statistics", [True, False])
def test_more_than_two_curves_are_named_in_the_key_only(smooth_sample, statistics):
    p, y = smooth_sample
    powers = {"low": 2.5, "raw": 1.0, "raw again": 1.02, "high": 0.4}
    grid = GRID(y, {name: p**power for name, power in powers.items()}, method="es5")
    ax = grid.overlay(**({} if statistics else {"statistics": False}))
    assert not ax.texts
    legend = ax.get_legend()
    told = [text.get_text().partition(":")[0] for text in legend.get_texts()]
    assert told == list(powers)
    colours = [line.get_color() for line in legend.get_lines()]
    assert len(set(colours)) == 4
    assert all(len(line.get_xdata()) > 1 for line in legend.get_lines())


def test_too_many_curves_are_not_drawn_in_one(sample):
    p, y = sample
    grid = GRID(y, {str(k): p for k in range(9)}, method="es3")
    with pytest.raises(OptionError, match="at most 8 curves; got 9"):
        grid.overlay()
    _, ax = plt.subplots()
    GRID(y, {str(k): p for k in range(8)}, method="es3").overlay(ax, style="grey")
    looks = {(line.get_color(), str(line.get_linestyle())) for line in ax.lines[1:]}
    assert len(looks) >= 4


def test_settings_stay_as_they_were(display):
    before = dict(mpl.rcParams)
    display.plot(width=3.5, style="grey")
    assert dict(mpl.rcParams) == before


def stated_confidences(n, levels, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, n), rng.choice(levels, n)


def written(ax):
    return next(text for text in ax.texts if text.get_text().startswith("n ="))


@pytest.mark.parametrize("width", [3.5, 7.0])
def test_statistics_of_a_grid_cover_no_bar(width):
    """Intervals of few rows reach into both corners: then statistics stand above."""
    y, p = stated_confidences(60, np.arange(11) / 10)
    _, q = stated_confidences(60, np.arange(11) / 10, seed=1)
    grid = GRID(y, {"a": p, "b": q})
    figure = grid.plot(width=width)
    figure.canvas.draw()
    panels = [ax for ax in figure.axes if ax.get_title()]
    for ax, display in zip(panels, grid.displays, strict=True):
        box, bins = written(ax).get_window_extent(), display.frame("bins")
        ends = [
            ax.transData.transform(np.column_stack([bins["predicted"], bins[end]]))
            for end in ("low", "high")
        ]
        beside = (ends[0][:, 0] < box.x0) | (ends[0][:, 0] > box.x1)
        assert (beside | (ends[1][:, 1] < box.y0) | (ends[0][:, 1] > box.y1)).all()
        assert box.y1 < ax.title.get_window_extent().y0
    assert not cut_off(figure)


def test_bars_of_diagrams_side_by_side_have_one_factor():
    rng = np.random.default_rng(2)
    p = rng.beta(1.0, 9.0, 1000)
    y = (rng.random(1000) < p).astype(int)
    figure = GRID(y, {"wide": p, "narrow": 0.2 * p}, axes="prob").plot(width=7)
    below = [ax.child_axes[0] for ax in figure.axes if ax.get_title()]
    names = [{text.get_text() for text in ax.texts} for ax in below]
    assert names[0] == names[1]


def test_bins_without_events_point_beyond_logit_axes():
    p = np.repeat(np.linspace(0.01, 0.3, 60), 5)
    y = np.random.default_rng(0).random(p.size) < np.where(p < 0.1, 0.0, p)
    with mpl.rc_context():
        display = cb.ReliabilityDisplay.from_predictions(y.astype(int), p, axes="logit")
        ax = display.plot()
    bins = display.frame("bins")
    none = int((bins["observed"] == 0.0).sum())
    sizes = {
        line.get_marker(): line.get_xdata().size
        for line in ax.lines
        if line.get_marker() in ("o", "v")
    }
    assert none > 0
    assert sizes == {"o": bins["observed"].size - none, "v": none}


def test_a_single_diagram_says_what_its_band_is(sample):
    p, y = sample

    def last_line(ax):
        texts = [t.get_text() for t in ax.texts if "intervals" in t.get_text()]
        return texts[0].splitlines()[-1]

    display = DISPLAY(y, p, confidence=0.9)
    assert last_line(display.plot(width=3.5)) == "90 % intervals, point-wise band"
    assert last_line(display.plot(width=3.5, band=False)) == "90 % intervals"
    wide = DISPLAY(y, p, band="simultaneous").plot(width=3.5)
    assert last_line(wide) == "95 % intervals, simultaneous band"
    assert last_line(DISPLAY(y, p, method="es5").plot()) == "95 % intervals"
    overlay = GRID(y, {"a": p, "b": p**2}).overlay()
    title = overlay.get_legend().get_title().get_text()
    assert title == "calibration error [95 % interval]\npoint-wise bands"


def test_the_corner_says_how_many_clusters_there_are(sample):
    p, y = sample
    codes = np.arange(y.size) // 4
    display = cb.ReliabilityDisplay.from_predictions(y, p, clusters=codes)
    first = display.statistics.lines()[0]
    assert first.startswith(f"n = {y.size:,} in {codes[-1] + 1:,} clusters, ")
    assert display.statistics.frame()["clusters"] == codes[-1] + 1


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
def test_small_samples_have_more_bins_the_more_rows():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    counts = []
    for n in (10, 15, 20, 21, 22, 23, 29, 30, 45, 100, 150, 200):
        display = cb.ReliabilityDisplay.from_predictions(y[:n], p[:n])
        rows = display.frame("bins")["weight"]
        assert rows.min() >= 5
        counts.append(rows.size)
    assert counts == sorted(counts)


def test_statistics_of_a_grid_stand_in_a_free_corner():
    p, y = cb.datasets.load_binary("forest")
    figure = GRID(y, {"a": p, "b": p}).plot(width=7)
    figure.canvas.draw()
    ax = figure.axes[0]
    assert ax.get_window_extent().contains(*written(ax).get_window_extent().p0)


def test_text_in_a_corner_is_where_it_was_measured():
    """Outlined letters are set unhinted: lines were ragged, and left the frame."""
    p, y = cb.datasets.load_binary("bayes")
    texts = GRID(y, {"a": p, "b": p}).plot(width=4.5).axes[0].texts
    assert [text.get_path_effects() for text in texts] == [[]]


def test_each_model_has_a_row_of_its_groups(sample):
    p, y = sample
    groups = np.arange(y.size) % 5
    grid = GRID(y, dict.fromkeys("abc", p), groups=groups, method="es3")
    assert (grid.row_length, len(grid.displays), grid.left_out) == (5, 15, 0)
    tops = [ax.get_position().y1 for ax in grid.plot().axes if ax.get_title()]
    assert_allclose(np.reshape(tops, (3, 5)).std(axis=1), 0.0, atol=1e-9)
    assert np.unique(np.round(tops, 6)).size == 3
    with pytest.warns(FewerDiagramsWarning, match=r"the first 35 .* out of 40"):
        many = GRID(y, {str(k): p for k in range(8)}, groups=groups, method="es3")
    assert (len(many.displays), many.left_out) == (35, 5)  # whole rows


def names_of(grid):
    return [display.name.replace(" class ", "") for display in grid.displays]


@pytest.mark.parametrize(
    ("k", "row", "first"),
    [
        (3, 3, ["a,0", "a,1", "a,2", "b,0"]),
        (10, 5, ["a,0", "a,1", "a,2", "a,3", "a,4", "b,0"]),
        (7, 2, ["a,0", "b,0", "a,1", "b,1"]),
    ],
)
def test_the_same_classes_of_models_stand_below_each_other(k, row, first):
    rng = np.random.default_rng(0)
    prob, y = rng.dirichlet(np.ones(k), 300), rng.integers(0, k, 300)
    models = {"a": prob, "b": prob[::-1]}
    grid = GRID(y, models, task="classwise", method="ew3")
    assert grid.row_length == row
    assert names_of(grid)[: len(first)] == first
    assert sorted(names_of(grid)) == sorted(
        f"{m},{c}" for m in models for c in range(k)
    )


def test_of_many_classes_the_worst_are_drawn():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(40), 2000)
    y = np.array([rng.choice(40, p=row) for row in prob])
    y[rng.random(2000) < 0.2] = 7  # far more often than predicted
    words = "only the 36 classes with the largest errors are drawn, out of 40"
    with pytest.warns(FewerDiagramsWarning, match=words):
        grid = GRID(y, prob, task="classwise", method="ew3")
    assert (len(grid.displays), grid.left_out) == (36, 4)
    assert grid.displays[0].name == "class 7"


def test_the_name_of_bars_covers_none():
    """Eight events, one in each of the bars beside every place for their name."""
    events = [0.08, 0.13, 0.18, 0.23, 0.28, 0.43, 0.58, 0.78]
    p = np.array([*events, *events[:3] * 11])
    y = np.repeat([1, 0], [8, 33])
    ax = DISPLAY(y, p).plot(width=2.3)
    ax.figure.canvas.draw()
    (below,) = ax.child_axes
    name = next(text for text in below.texts if text.get_text().startswith("events"))
    box = name.get_window_extent()
    bars = [bar.get_window_extent() for bar in below.patches if bar.get_height() > 0]
    assert bars
    assert not any(box.overlaps(bar) for bar in bars)


def test_a_warning_of_few_rows_names_the_group():
    y, p = np.tile([0, 1], 60), np.linspace(0.01, 0.99, 120)
    groups = np.repeat(["many", "one"], [119, 1])
    with pytest.warns(SmallSampleWarning, match="^group=one: only 1 row: with so"):
        GRID(y, p, groups=groups)


def test_curves_that_begin_in_the_middle_overlay_without_a_warning():
    """As those of the top label of ten classes; warnings are errors here."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 500)
    y = (rng.random(500) < p).astype(int)
    ax = GRID(y, {"a": p, "b": 0.9 * p}, method="es3").overlay()
    assert len(ax.figure.axes) >= 1


def test_errors_of_a_figure_have_the_same_decimals(smooth_sample):
    p, y = smooth_sample
    rng = np.random.default_rng(0)
    true = rng.random(p.size) < p
    grid = GRID({"far": y, "near": true}, {"far": p**2, "near": p}, method="es5")
    said = [ax.texts[0].get_text() for ax in grid.plot(width=7).axes]
    errors = [re.search(r"error (\S+)", text) for text in said]
    assert len({len(found[1]) for found in errors}) == 1
    legend = grid.overlay().get_legend().get_texts()
    assert len({len(text.get_text().split()[1]) for text in legend}) == 1


def test_ticks_of_neighbours_keep_apart(smooth_sample):
    p, y = smooth_sample
    figure = GRID(y, {"a": p, "b": p}, method="ew5", kind="bars").plot(width=7)
    figure.canvas.draw()
    ends = [
        ax.child_axes[0].get_xticklabels()[place].get_window_extent()
        for ax, place in zip(figure.axes, (-1, 0), strict=True)
    ]
    assert ends[0].x1 < ends[1].x0 - 2.0
