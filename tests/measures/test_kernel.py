import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.calibrators.kernel_error import KernelError
from calibrant.core.sample import BinarySample
from calibrant.exceptions import OptionError, TooFewRowsError, UnknownNameError
from calibrant.experiments.synthetic import PAPER_SHAPES, sample
from calibrant.numerics.resampling import RowGroups, bootstrap_cells

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "kernel.json").read_text(encoding="ascii")
)
PRINTED = {"square": 1.62, "sqrt": 1.56, "beta1": 4.0, "beta2": 3.93, "stairs": 4.11}


def load(name):
    if name == "forest":
        return cb.datasets.load_binary("forest")
    return np.array(GOLDEN["data"]["p"]), np.array(GOLDEN["data"]["y"])


@pytest.mark.slow
@pytest.mark.parametrize("shape", PAPER_SHAPES)
def test_the_papers_printed_column(shape):
    """Mean distance to the true squared error, in thousandths, over 315 data sets."""
    distances = []
    for error in np.arange(0, 0.1001, 0.005).round(3):
        for n in (1000, 3000, 10_000):
            for seed in range(5):
                p, y, c = sample(shape, float(error), n, seed)
                found = cb.calibration_error(y, p, method="kce", alpha=2)
                distances.append(abs(found - np.mean((p - c) ** 2)))
    assert len(distances) == 315
    assert round(1000 * float(np.mean(distances)), 2) == PRINTED[shape]


@pytest.mark.parametrize("name", ["drawn", "forest"])
def test_probcal_gives_the_same_numbers(name):
    p, y = load(name)
    for key, wanted in GOLDEN["values"][name]["skce"].items():
        kernel, bandwidth, estimator = key.split()
        found = cb.kernel_calibration_error(
            y,
            p,
            kernel=kernel,
            bandwidth=float(bandwidth),
            estimator=estimator,
            outcome_kernel="white",
        )
        assert_allclose(found, wanted, rtol=1e-9)


def test_kernels_of_labels_are_factors():
    p, y = load("drawn")
    linear = cb.kernel_calibration_error(y, p, outcome_kernel="linear")
    white = cb.kernel_calibration_error(y, p, outcome_kernel="white")
    rbf = cb.kernel_calibration_error(y, p, outcome_kernel="rbf")
    assert_allclose([white, rbf], [2 * linear, (2 - 2 * np.exp(-0.5)) * linear])


def test_the_named_method_is_the_function_with_its_defaults():
    p, y = load("drawn")
    function = cb.kernel_calibration_error
    for alpha in (1, 2):
        found = cb.calibration_error(y, p, method="kce", alpha=alpha)
        assert found == function(y, p)
    raw = cb.calibration_error(y, p, method="kce", debias=False)
    assert raw == function(y, p, estimator="biased")


def test_block_estimates_average_to_the_unbiased_one():
    p, y = load("drawn")
    wanted = cb.kernel_calibration_error(y, p, bandwidth="median")
    for size in (2, 50):
        found = [
            cb.kernel_calibration_error(
                y, p, bandwidth="median", estimator="block", block_size=size,
                random_state=seed,
            )
            for seed in range(400)
        ]  # fmt: skip
        assert abs(np.mean(found) - wanted) < 3 * np.std(found) / np.sqrt(400)


def test_one_block_of_all_rows_is_the_unbiased_estimate():
    p, y = load("drawn")
    weight = np.random.default_rng(0).integers(1, 3, p.size)
    size = int(weight.sum())
    found = cb.kernel_calibration_error(
        y, p, estimator="block", block_size=size, sample_weight=weight
    )
    wanted = cb.kernel_calibration_error(y, p, sample_weight=weight)
    assert_allclose(found, wanted, rtol=1e-9)


def test_tasks_are_binary_events():
    rng = np.random.default_rng(3)
    prob = rng.dirichlet([1, 1, 1], 300)
    y = np.array([rng.choice(3, p=row) for row in prob])
    error = cb.kernel_calibration_error
    each = [error(y == k, prob[:, k]) for k in range(3)]
    assert_allclose([error(y, prob, task=k) for k in range(3)], each, rtol=1e-12)
    assert_allclose(error(y, prob, task="classwise"), np.mean(each), rtol=1e-12)
    top = error(y == prob.argmax(axis=1), prob.max(axis=1))
    assert_allclose(error(y, prob, task="confidence"), top, rtol=1e-12)
    found = cb.evaluate(y, prob, methods="kce", task="classwise", n_resamples=20)
    assert_allclose(found.per_class()["value"], np.maximum(each, 0.0), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.02, 0.05])
def test_intervals_hold_the_true_squared_error(error):
    """The truth is the error of labels without noise, the calibrated shares."""
    p, _, c = sample("square", error, 200_000, seed=7)
    kernel = KernelError().fit_sample(BinarySample(p, c)).kernel
    truth = kernel.errors(p, c[None], np.ones(p.size), debias=False)[0]
    held = 0
    for seed in range(100):
        p, y, _ = sample("square", error, 1000, seed=seed)
        found = cb.evaluate(y, p, methods="kce", n_resamples=200, random_state=seed)
        row = {name: values[0] for name, values in found.frame().items()}
        assert (row["bins"], row["debiased"]) == (0, True)
        held += row["low"] <= truth <= row["high"]
    assert held >= 81  # 90 percent less three standard errors


def test_intervals_of_calibrated_data_reach_zero():
    rng = np.random.default_rng(0)
    lows = []
    for seed in range(60):
        p = rng.random(500)
        y = rng.random(500) < p
        found = cb.evaluate(y, p, methods="kce", n_resamples=200, random_state=seed)
        lows.append(found.frame()["low"][0])
    assert np.mean(np.array(lows) == 0.0) >= 0.85  # 95 percent but for noise


def test_resampling_cells_agrees_with_resampling_rows():
    p, y = load("drawn")
    rng = np.random.default_rng(0)
    rows = rng.integers(0, p.size, (1500, p.size))
    draws = [cb.kernel_calibration_error(y[i], p[i]) for i in rows]
    fit = KernelError().fit_sample(BinarySample(p, y))
    cells = bootstrap_cells(p, y, None, fit.edges)
    weights = RowGroups.draw(p.size, 1500, rng).weights(cells)
    found = fit.resampled_errors(cells, weights, alpha=1.0, debias=True)
    levels = [0.25, 0.95]
    assert_allclose(np.quantile(found, levels), np.quantile(draws, levels), rtol=0.1)


def test_kce_is_for_measuring_only():
    assert "kce" not in cb.calibrator_names()
    p, y = load("drawn")
    words = "only measures: it has no calibration map"
    with pytest.raises(OptionError, match=words):
        cb.make_calibrator("kce")
    with pytest.raises(OptionError, match=words):
        cb.ReliabilityDisplay.from_predictions(y, p, method="kce")
    with pytest.raises(UnknownNameError, match="did you mean 'kce'"):
        cb.calibration_error(y, p, method="KCE")


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.FractionalWeightsWarning")
@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"kernel": "gauss"}, UnknownNameError, "unknown kernel 'gauss'"),
        ({"outcome_kernel": "x"}, UnknownNameError, "unknown outcome_kernel"),
        ({"estimator": "x"}, UnknownNameError, "unknown estimator"),
        ({"bandwidth": "mean"}, OptionError, "0 or \"median\"; got 'mean'"),
        ({"bandwidth": 0}, OptionError, "bandwidth must be a number above 0"),
        ({"block_size": 1}, OptionError, "block_size must be a whole number"),
        ({"estimator": "block", "block_size": 601}, TooFewRowsError, "got 600"),
        (
            {"estimator": "block", "sample_weight": np.full(600, 1.5)},
            OptionError,
            "whole numbers",
        ),
    ],
)
def test_bad_options_are_named(options, kind, words):
    p, y = load("drawn")
    with pytest.raises(kind, match=words):
        cb.kernel_calibration_error(y, p, **options)


@pytest.mark.filterwarnings("ignore:only 1 row")
def test_one_row_has_no_pairs():
    with pytest.raises(TooFewRowsError, match="at least 2 rows; got 1"):
        cb.calibration_error([1], [0.5], method="kce")
    found = cb.kernel_calibration_error(
        [1], [0.5], estimator="biased", outcome_kernel="linear"
    )
    assert found == 0.25
