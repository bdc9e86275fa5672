import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from markupsafe import Markup
from numpy.testing import assert_allclose
from scipy.integrate import trapezoid
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calibrant as cb
from calibrant.exceptions import LengthMismatchError, OptionError, ProbabilityRangeError

DISPLAY = cb.ReliabilityDisplay.from_predictions


def test_frame_has_the_means_of_each_bin(sample):
    p, y = sample
    frame = DISPLAY(y, p, method="ew4").frame()
    inside = (p >= 0.25) & (p < 0.5)
    assert_allclose(frame["predicted"][1], p[inside].mean())
    assert_allclose(frame["observed"][1], y[inside].mean())
    assert_allclose(
        (frame["weight"] * np.abs(frame["gap"])).sum() / 500,
        cb.calibration_error(y, p, method="ew4", debias=False),
    )


@pytest.mark.parametrize("method", ["smooth", "es15", "ew4"])
def test_the_number_in_the_picture_is_that_of_the_table(sample, method):
    p, y = sample
    table = cb.evaluate(y, p, methods=method, confidence=None).frame()
    assert DISPLAY(y, p, method=method).error == pytest.approx(table["value"][0])


def test_empty_bins_are_left_out():
    frame = DISPLAY([0, 1] * 20, [0.1, 0.9] * 20, method="ew10").frame()
    assert_allclose(frame["left"], [0.1, 0.9])


def test_area_between_curve_and_diagonal_is_the_error():
    """With equally wide and equally filled bins, as the paper says."""
    p = np.concatenate([np.linspace(0.01, 0.49, 50), np.linspace(0.51, 0.99, 50)])
    y = np.tile([1, 0, 0, 1, 1], 20)
    display = DISPLAY(y, p, method="ew2", kind="diagonal")
    curve = display.frame("curve")
    area = trapezoid(np.abs(curve["calibrated"] - curve["p"]), curve["p"])
    raw = cb.calibration_error(y, p, method="ew2", debias=False)
    assert_allclose(area, raw, atol=2e-3)


@pytest.mark.parametrize("kind", ["curve", "bars", "centres", "diagonal"])
@pytest.mark.parametrize("scale", ["prob", "logit"])
@pytest.mark.parametrize("histogram", [True, False])
def test_every_kind_draws_without_a_warning(sample, kind, scale, histogram):
    p, y = sample
    ax = DISPLAY(y, p, kind=kind, axes=scale, histogram=histogram).plot()
    ax.figure.canvas.draw()
    assert ax.get_xscale() == ("linear" if scale == "prob" else "logit")


def test_what_lies_beyond_logit_axes_is_not_moved_onto_their_edge():
    logits = np.random.default_rng(0).normal(10.0, 8.0, 2000)
    y = expit(logits / 3) > np.random.default_rng(1).random(2000)
    display = DISPLAY(y, expit(logits), axes="logit")
    ax, high = display.plot(), display.limits[1]
    curve = next(line for line in ax.lines if line.get_linestyle() == "-")
    x = curve.get_xdata()
    assert x[-1] == high
    assert (np.diff(x) > 0.0).all()
    dots = next(line for line in ax.lines if line.get_marker() == "o").get_xdata()
    predicted = display.frame()["predicted"]
    assert_allclose(dots, predicted[predicted <= high])
    assert dots.size < predicted.size


@pytest.mark.parametrize("debias", ["auto", True, False])
def test_figures_and_tables_show_the_same_error(sample, debias):
    p, y = sample
    table = cb.evaluate(y, p, methods="ew15", debias=debias).frame()
    display = DISPLAY(y, p, method="ew15", debias=debias)
    grid = cb.ReliabilityGrid.from_predictions(
        y, {"a": p}, method="ew15", debias=debias
    )
    # Sums of bins are taken over rows as given, or over sorted ones.
    assert display.error == pytest.approx(table["value"][0], abs=1e-14)
    assert grid.displays[0].error == pytest.approx(table["value"][0], abs=1e-14)
    raw = cb.calibration_error(y, p, method="ew15", debias=False)
    assert (display.error == pytest.approx(raw, abs=1e-14)) == (debias is False)


def test_drawn_dots_are_the_frame(sample):
    p, y = sample
    display = DISPLAY(y, p, method="es5", kind="centres")
    ax = display.plot()
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    assert_allclose(dots.get_xdata(), display.frame()["predicted"])
    assert_allclose(dots.get_ydata(), display.frame()["observed"])


def test_drawing_leaves_settings_alone_and_uses_the_axes_given(sample):
    p, y = sample
    before = dict(mpl.rcParams)
    figure, ax = plt.subplots()
    display = DISPLAY(y, p, ax=ax, name="mine", method="es15")
    assert ax.get_title() == "mine"
    assert str(display).startswith("mine, es15")
    assert figure.axes[0] is ax
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("method", "kind", "told"),
    [
        ("es5", "diagonal", {"estimated map", "distance to the diagonal",
                             "means of the bins"}),
        ("es5", "bars", {"observed rate"}),
        ("es5", "centres", {"observed rate", "distance to the diagonal",
                            "means of the bins"}),
        ("smooth", "diagonal", {"estimated map", "distance to the diagonal", "knots",
                                "95 % band, point-wise"}),
        ("pl", "centres", {"estimated map", "distance to the diagonal", "knots"}),
    ],
)  # fmt: skip
def test_the_legend_says_what_colours_mean_each_once(sample, method, kind, told):
    p, y = sample
    figure = DISPLAY(y, p, method=method, kind=kind).plot().figure
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(texts) == sorted(told)
    _, ax = plt.subplots()
    DISPLAY(y, p, method=method, kind=kind, ax=ax)
    assert ax.get_legend() is None  # there is no room for it
    assert len(ax.legend().get_texts()) == len(told)


@pytest.mark.parametrize("scale", ["prob", "logit"])
def test_dots_on_knots_keep_apart(scale):
    p, y, _ = cb.experiments.synthetic.sample("stairs", 0.1, 3000, seed=0)
    display = DISPLAY(y, p, method="pl", axes=scale, kind="diagonal")
    ax = display.plot()
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    places = ax.transAxes.inverted().transform(
        ax.transData.transform(np.column_stack([dots.get_xdata(), dots.get_ydata()]))
    )[:, 0]
    inside = places[(places > 0.001) & (places < 0.999)]
    assert np.diff(inside).min() >= 0.0399
    assert dots.get_xdata().size < display.frame("knots")["p"].size


def test_the_histogram_is_even_on_logit_axes():
    p, y, _ = cb.experiments.synthetic.sample("square", 0.05, 3000, seed=0)
    frame = DISPLAY(y, p, axes="logit").frame("histogram")
    inner = frame["right"][:-1]
    steps = np.diff(np.log(inner / (1.0 - inner)))
    assert_allclose(steps, steps[0])
    assert frame["weight"].sum() == 3000
    assert frame["weight"].size == 20


def test_no_figure_is_made_before_it_is_asked_for(sample):
    p, y = sample
    DISPLAY(y, p)
    assert plt.get_fignums() == []


def test_instances_end_on_the_map(sample):
    p, y = sample
    lines = DISPLAY(y, p, method="es15", instances=30).frame("instances")
    fitted = cb.make_calibrator("es15").fit(p, y)
    assert lines["p"].size == 30
    assert_allclose(lines["calibrated"], fitted.map_(lines["p"]))


def test_instances_come_from_all_bins(sample):
    p, y = sample
    lines = DISPLAY(y, p, method="es5", instances=10).frame("instances")
    edges = cb.make_calibrator("es5").fit(p, y).fit_.edges
    assert (
        np.bincount(np.searchsorted(edges[1:-1], lines["p"], "right")).tolist()
        == [2] * 5
    )


@pytest.mark.parametrize("as_array", [True, False])
def test_true_map_is_drawn_and_measured(as_array):
    p, y, c = cb.experiments.synthetic.sample("square", 0.1, 400, seed=0)
    truth = c if as_array else lambda q: np.interp(q, p, c)
    display = DISPLAY(y, p, true_map=truth, instances=5, kind="diagonal")
    lines = display.frame("instances")
    assert_allclose(lines["calibrated"], np.interp(lines["p"], p, c), atol=5e-3)
    legend = display.plot().figure.legends[0].get_texts()
    told = {text.get_text() for text in legend}
    assert {"true map", "error of one row"} < told
    curve = DISPLAY(y, p, true_map=truth, instances=5).plot()
    legend = curve.get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["true map", "error of one row"]


def test_true_map_must_have_a_value_for_each_row(sample):
    p, y = sample
    with pytest.raises(LengthMismatchError, match="true_map has 3"):
        DISPLAY(y, p, true_map=[0.1, 0.2, 0.3])


def test_parts_not_asked_for_are_empty(sample):
    p, y = sample
    display = DISPLAY(y, p)
    assert display.frame("true_map")["p"].size == 0
    assert display.frame("histogram")["weight"].sum() == 500
    with pytest.raises(OptionError, match="unknown part 'bin'"):
        display.frame("bin")


def test_flat_tops_are_drawn_flat(sample):
    p, y = sample
    display = DISPLAY(y, p, method="ew4", tops="flat")
    curve = display.frame("curve")
    assert np.isnan(display.statistics.high)  # `evaluate` knows no such method
    inside = (curve["p"] >= 0.25) & (curve["p"] < 0.5)
    assert np.ptp(curve["calibrated"][inside]) == 0.0


def test_logits_are_taken_if_the_scale_says_so(sample):
    p, y = sample
    p = np.clip(p, 0.01, 0.99)
    logits = np.log(p) - np.log1p(-p)
    with pytest.raises(ProbabilityRangeError, match='scale="logit"'):
        DISPLAY(y, logits)
    assert DISPLAY(y, logits, scale="logit").error == pytest.approx(DISPLAY(y, p).error)


def test_a_diagram_shows_one_event():
    prob, y = cb.datasets.load_multiclass("forest")
    with pytest.raises(OptionError, match="not available for a single diagram"):
        DISPLAY(y, prob, task="classwise")
    assert DISPLAY(y, prob, task="confidence").error > 0.1


def test_estimators_are_asked_for_their_second_class():
    X, y = load_breast_cancer(return_X_y=True)
    words = np.array(["malignant", "benign"])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, words)
    display = cb.ReliabilityDisplay.from_estimator(model, X, words)
    by_hand = DISPLAY(words, model.predict_proba(X)[:, 1], pos_label="malignant")
    assert display.error == by_hand.error


def test_estimators_with_many_classes_need_a_task():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    with pytest.raises(OptionError, match="3 classes; choose a task"):
        cb.ReliabilityDisplay.from_estimator(model, X, y)
    display = cb.ReliabilityDisplay.from_estimator(model, X, y, task="confidence")
    assert 0 < display.error < 0.2


def test_grid_draws_one_diagram_a_model(sample):
    p, y = sample
    grid = cb.ReliabilityGrid.from_predictions(y, {"a": p, "b": p**2}, histogram=False)
    assert [ax.get_title() for ax in grid.plot().axes] == ["a", "b"]
    with pytest.raises(OptionError, match="at least one model"):
        cb.ReliabilityGrid.from_predictions(y, {})


def test_axes_say_what_is_predicted():
    prob, y = cb.datasets.load_multiclass("forest")
    top = DISPLAY(y, prob, task="confidence", histogram=False).plot()
    assert (top.get_xlabel(), top.get_ylabel()) == ("Confidence", "Accuracy")
    assert DISPLAY(y, prob, task=3).plot().get_ylabel() == "Observed rate of class 3"


def test_classifiers_without_probabilities_are_refused():
    with pytest.raises(OptionError, match="LinearSVC has none"):
        cb.ReliabilityDisplay.from_estimator(LinearSVC(), [[0.0]], [0])


def test_true_map_lines_up_where_rows_have_no_weight():
    p, y, c = cb.experiments.synthetic.sample("square", 0.1, 400, seed=0)
    weight = (np.arange(400) % 2).astype(float)
    truth = DISPLAY(y, p, true_map=c, sample_weight=weight).frame("true_map")
    assert_allclose(truth["calibrated"], c)


def test_long_objects_have_short_names(sample):
    p, y = sample
    grid = cb.ReliabilityGrid.from_predictions(y, {"a": p, "b": p})
    assert repr(grid) == "<ReliabilityGrid of 2 diagrams>"
    assert str(grid).startswith("a, smooth: error 0.0")
    assert repr(grid.displays[0]).startswith("<ReliabilityDisplay a, smooth")
    assert repr(cb.evaluate(y, p)).startswith("<Evaluation, alpha = 1>\nsmooth")


def test_histogram_takes_no_room_from_neighbours(sample):
    p, y = sample
    figure, axes = plt.subplots(2, 1, figsize=(4, 8))
    for ax in axes:
        DISPLAY(y, p, ax=ax)
    figure.canvas.draw()
    boxes = [ax.get_position() for ax in figure.axes]
    upper = [box for box in boxes if box.y0 > 0.5]
    assert len(upper) == 2


def test_bands_of_smooth_maps_are_drawn_as_tabled(smooth_sample):
    p, y = smooth_sample
    display = DISPLAY(y, p, method="smooth", confidence=0.8)
    band, curve = display.frame("band"), display.frame("curve")
    map_ = np.interp(band["p"], curve["p"], curve["calibrated"])
    assert (band["low"] <= map_ + 1e-9).all()
    assert (map_ <= band["high"] + 1e-9).all()
    assert band["p"].min() >= p.min()
    assert band["p"].max() <= p.max()
    ax = display.plot()
    (drawn,) = [c for c in ax.collections if c.get_label() == "80 % band, point-wise"]
    corners = drawn.get_paths()[0].vertices
    assert np.isin(band["high"].round(9), corners[:, 1].round(9)).all()


def test_bands_hold_the_rates_of_predictions_next_to_1():
    """Where logits rise on beyond the axes, rates do not."""
    rng = np.random.default_rng(0)
    p = 1.0 - 10.0 ** -rng.uniform(1.0, 12.0, 4000)
    y = (rng.random(4000) < np.minimum(p, 0.99)).astype(int)
    band = DISPLAY(y, p).frame("band")
    near_1 = band["p"] > 1.0 - 1e-4
    assert band["low"][near_1].min() > 0.95
    assert band["high"][near_1].max() < 1.0


def test_simultaneous_bands_are_wider_and_none_is_none(smooth_sample):
    p, y = smooth_sample
    one, all_, none = (
        DISPLAY(y, p, method="smooth", band=band).frame("band")
        for band in ("point-wise", "simultaneous", None)
    )
    assert (all_["high"] >= one["high"]).all()
    assert (all_["high"] > one["high"]).any()
    assert none["p"].size == 0
    assert DISPLAY(y, p, method="es15").band is None
    with pytest.raises(OptionError, match="unknown band 'both'"):
        DISPLAY(y, p, band="both")
    with pytest.raises(OptionError, match="confidence must lie"):
        DISPLAY(y, p, confidence=90)


def test_diagrams_of_labels_that_are_not_numbers_name_their_event():
    X, y = load_breast_cancer(return_X_y=True)
    words = np.array(["malignant", "benign"])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, words)
    estimated = cb.ReliabilityDisplay.from_estimator(model, X, words, histogram=False)
    p = model.predict_proba(X)[:, 1]
    given = DISPLAY(words, p, pos_label="malignant", histogram=False)
    for display in (estimated, given):
        ax = display.plot()
        assert ax.get_xlabel() == "Predicted probability of class malignant"
        assert ax.get_ylabel() == "Observed rate of class malignant"


@pytest.mark.parametrize("label", ["confidence", "binary", "classwise", ""])
def test_axes_name_labels_that_are_called_like_tasks(label):
    p, y = np.tile([0.2, 0.7, 0.4, 0.9], 20), np.tile([0, 1, 0, 1], 20)
    words = np.where(y == 1, label, "other")
    display = DISPLAY(words, p, pos_label=label, method="es2", histogram=False)
    shown = label or "''"
    assert display.plot().get_ylabel() == f"Observed rate of class {shown}"
    report = cb.Report.from_predictions(words, p, pos_label=label, methods="es2")
    assert f"Predicted probability of class {Markup.escape(shown)}" in report.to_html()


def test_several_models_lead_to_the_grid(smooth_sample):
    p, y = smooth_sample
    with pytest.raises(OptionError, match="ReliabilityGrid takes all of them"):
        cb.ReliabilityDisplay.from_predictions(y, {"a": p, "b": p})
