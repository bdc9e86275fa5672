import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.displays.comparison import shortened

OPTIONS = {"method": "es5", "n_resamples": 50}


def compared(y, models, *, ax=None, **options):
    found = cb.compare(y, models, **OPTIONS, **options)
    return cb.ComparisonDisplay.from_comparison(found, ax=ax)


@pytest.fixture
def display(smooth_sample):
    p, y = smooth_sample
    models = {"own": p, "repaired": p**1.5, "raised": p**0.5}
    return compared(y, models)


def test_drawn_dots_and_lines_are_the_frame(display):
    ax = display.plot()
    frame = display.frame()
    dots = next(line for line in ax.lines if line.get_marker() == "o")
    assert_allclose(dots.get_xdata(), frame["value"])
    ends = np.array([path.vertices[:, 0] for path in ax.collections[0].get_paths()])
    assert_allclose(ends, np.column_stack([frame["low"], frame["high"]]))
    names = [label.get_text().split()[0] for label in ax.get_yticklabels()]
    assert names == frame["model"].tolist()


def test_the_best_model_is_on_top(display):
    bottom, top = display.plot().get_ylim()
    assert bottom > top


def test_the_matrix_holds_the_pairs(display):
    matrix = display.matrix()
    assert_allclose(
        matrix[np.triu_indices(3, 1)], display.comparison.pairs()["probability"]
    )
    assert_allclose((matrix + matrix.T)[np.triu_indices(3, 1)], 1.0)
    assert np.isnan(np.diag(matrix)).all()
    beside = display.plot().figure.axes[1]
    assert len(beside.texts) == 6
    assert "1" in {text.get_text() for text in beside.texts}


def test_given_axes_are_drawn_on_and_settings_left_alone(smooth_sample):
    p, y = smooth_sample
    before = dict(mpl.rcParams)
    figure, axes = plt.subplots(1, 2, figsize=(12, 3))
    display = compared(y, {"a": p, "b": p**2}, ax=axes[0])
    figure.canvas.draw()
    assert figure.axes[0].get_xlabel() == "Calibration error (es5)"
    assert dict(mpl.rcParams) == before
    assert repr(display) == "<ComparisonDisplay of 2 models>"
    assert str(display) == str(display.comparison)


def test_many_models_with_hostile_names_are_drawn_without_a_warning(smooth_sample):
    p, y = smooth_sample
    names = ["$x_1$", "a" * 200, "two\nlines", "", "%s", "{0}", "<b>", "b", "c", "d"]
    models = {name: p ** (1 + i / 10) for i, name in enumerate(names)}
    figure = compared(y, models, alpha=2).plot().figure
    figure.canvas.draw()
    assert "alpha = 2" in figure.axes[0].get_xlabel()


def test_nothing_is_drawn_before_it_is_asked_for(display):
    assert plt.get_fignums() == []
    assert len(display.frame()["model"]) == 3


def test_short_names_stay_and_long_ones_keep_both_ends():
    assert shortened("forest", 12) == "forest"
    assert shortened("resnet-110-cifar-10-v2", 11) == "resne…10-v2"
    assert len(shortened("x" * 500, 24)) == 24


def test_only_comparisons_are_drawn():
    p, y = cb.datasets.load_binary("forest")
    evaluation = cb.evaluate(y, p, methods="es15")
    with pytest.raises(
        cb.exceptions.OptionError, match="what compare returned; got Evaluation"
    ):
        cb.ComparisonDisplay.from_comparison(evaluation)
