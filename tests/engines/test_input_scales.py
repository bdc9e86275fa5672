"""Scales of columns: every engine reads them alike, and each model may have its own."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

import calibrant as cb
from calibrant.exceptions import (
    OptionError,
    ProbabilityRangeError,
    RowSumError,
    ScaleWarning,
)

N = 500
TO = {
    "prob": lambda p: p,
    "logit": logit,
    "percent": lambda p: 100.0 * p,
    "logprob": np.log,
}


@pytest.fixture(scope="module")
def prob():
    rng = np.random.default_rng(12)
    p = rng.uniform(0.02, 0.98, N)
    return p, (rng.random(N) < p).astype(int)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(13)
    prob = rng.dirichlet([0.6, 0.6, 0.6], N)
    return prob, (rng.random((N, 1)) > prob.cumsum(axis=1)).sum(axis=1).clip(0, 2)


def evaluated(rows, folder, **columns):
    path = folder / "rows.parquet"
    pl.DataFrame(rows).write_parquet(path)
    preds = cb.Predictions.from_table(path, **columns)
    return cb.evaluate(preds, methods="ew10", confidence=None).frame()["value"]


def test_each_model_has_its_own_scale(prob, tmp_path, engine):
    p, y = prob
    models = {"prob": p, "logit": np.sqrt(p), "percent": p**2, "logprob": 1.0 - p}
    rows = {name: TO[name](values) for name, values in models.items()} | {"y": y}
    scale = {name: name for name in models}
    found = evaluated(rows, tmp_path, y="y", p=list(models), scale=scale, engine=engine)
    wanted = [cb.calibration_error(y, v, method="ew10") for v in models.values()]
    assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("task", ["confidence", "classwise", 2])
def test_classes_on_any_scale(classes, tmp_path, engine, task):
    matrix, y = classes
    rows = {
        f"{name}_{k}": TO[name](matrix[:, k])
        for name in ("percent", "logprob")
        for k in range(3)
    }
    options = {"y": "y", "task": task, "engine": engine}
    options |= {"p": {"a": "percent_*", "b": "logprob_*"}}
    options |= {"scale": {"a": "percent", "b": "logprob"}}
    found = evaluated(rows | {"y": y}, tmp_path, **options)
    wanted = cb.calibration_error(y, matrix, task=task, method="ew10")
    assert_allclose(found, [wanted, wanted], atol=1e-9)


def test_a_column_may_be_read_in_two_ways(prob, tmp_path, engine):
    """Percentages below one may be probabilities; what counts is what is said."""
    p, y = prob
    options = {"y": "y", "p": {"a": "p", "b": "p"}, "engine": engine}
    options |= {"scale": {"a": "prob", "b": "percent"}}
    with pytest.warns(ScaleWarning, match="column 'p' is 0") as told:
        found = evaluated({"p": p, "y": y}, tmp_path, **options)
    assert len(told) == 1
    wanted = [cb.calibration_error(y, v, method="ew10") for v in (p, p / 100)]
    assert_allclose(found, wanted, atol=1e-12)


def test_probabilities_that_are_said_to_be_logits(prob, tmp_path, engine):
    p, y = prob
    options = {"y": "y", "p": "p", "scale": "logit", "engine": engine}
    with pytest.warns(ScaleWarning, match="column 'p' lie in .0, 1.; .* scale is prob"):
        found = evaluated({"p": p, "y": y}, tmp_path, **options)
    assert_allclose(found, cb.calibration_error(y, expit(p), method="ew10"), atol=1e-9)


def test_logits_of_few_values_or_a_little_outside_are_logits(prob, tmp_path, engine):
    p, y = prob
    steps = np.round(8 * p) / 8
    options = {"y": "y", "scale": "logit", "engine": engine}
    for given in (steps, p + 0.03, p - 0.03):
        evaluated({"p": given, "y": y}, tmp_path, p="p", **options)


@pytest.mark.parametrize("task", ["confidence", "classwise", "canonical", 2])
def test_class_probabilities_that_are_said_to_be_logits(classes, task):
    prob, y = classes
    options = {"task": task, "scale": "logit"}
    options |= {"method": "temperature" if task == "canonical" else "ew10"}
    with pytest.warns(ScaleWarning, match="y_prob lie in .0, 1. and sum to 1 in each"):
        found = cb.calibration_error(y, prob, **options)
    same = cb.calibration_error(y, prob - 5.0, **options)  # softmax ignores a shift
    assert_allclose(found, same, rtol=1e-9)


def test_maps_of_logits_warn_of_probabilities(classes):
    prob, y = classes
    calibrator = cb.make_calibrator("temperature", scale="logit")
    with pytest.warns(ScaleWarning, match="scale is prob, not logit"):
        calibrator.fit(prob, y)
    calibrator.fit(np.log(prob), y)
    with pytest.warns(ScaleWarning, match="scale is prob, not logit"):
        calibrator.transform(prob)


def test_minus_infinity_is_a_probability_of_zero(prob, tmp_path, engine):
    p, y = prob
    p = p.copy()
    p[:50] = 0.0
    with np.errstate(divide="ignore"):
        rows = {"p": np.log(p), "y": y}
    found = evaluated(rows, tmp_path, y="y", p="p", scale="logprob", engine=engine)
    assert_allclose(found, cb.calibration_error(y, p, method="ew10"), atol=1e-9)


BAD = {
    "percent": (100.5, "column 'p' must contain percentages in .0, 100.; .*100.5"),
    "logprob": (0.25, "column 'p' must contain log-probabilities, at most 0; .*0.25"),
}


@pytest.mark.parametrize("scale", BAD)
def test_what_leaves_the_range_of_a_scale(prob, tmp_path, engine, scale):
    p, y = prob
    value, words = BAD[scale]
    given = TO[scale](p)
    given[3] = value
    options = {"y": "y", "p": "p", "scale": scale, "engine": engine}
    with pytest.raises(ProbabilityRangeError, match=words):
        evaluated({"p": given, "y": y}, tmp_path, **options)


@pytest.mark.parametrize("scale", ["percent", "logprob"])
def test_rows_of_classes_must_add_up(classes, tmp_path, local_engine, scale):
    matrix, y = classes
    given = TO[scale](0.5 * matrix)
    rows = {f"c_{k}": given[:, k] for k in range(3)} | {"y": y}
    options = {"y": "y", "p": "c_*", "task": "confidence", "scale": scale}
    unit = {"percent": "100 .within 0.1.", "logprob": "1 .within 0.001."}[scale]
    with pytest.raises(RowSumError, match=f"must sum to {unit}"):
        evaluated(rows, tmp_path, engine=local_engine, **options)


def test_scales_name_models_that_there_are(prob, tmp_path, local_engine):
    p, y = prob
    options = {"y": "y", "p": "p", "engine": local_engine}
    with pytest.raises(OptionError, match="unknown model in scale, 'q'"):
        evaluated({"p": p, "y": y}, tmp_path, scale={"q": "logit"}, **options)
