"""The adapter for CalArena takes what CalArena gives."""

import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from calarena_adapter import CALIBRATORS, CalibrantCalibrator

RNG = np.random.default_rng(0)
P = RNG.random(300, dtype=np.float32)
P[:40], P[40:60] = 0.0, 1.0
Y = RNG.random(300) < P


@pytest.mark.parametrize("shape", ["vector", "column", "two columns"])
def test_one_event_in_any_shape_has_two_columns(shape):
    shaped = {"vector": P, "column": P[:, None], "two columns": np.c_[1 - P, P]}[shape]
    q = CalibrantCalibrator("platt").fit(shaped, Y.astype(int)).predict_proba(shaped)
    expected = cb.make_calibrator("platt").fit(P.astype(float), Y).transform(P)
    np.testing.assert_allclose(q, np.column_stack([1 - expected, expected]), atol=1e-9)


@pytest.mark.parametrize("method", ["temperature", "vector", "ovr-isotonic"])
def test_classes_may_be_missing_and_probabilities_zero(method):
    prob = RNG.dirichlet([0.3] * 4, 300).astype(np.float32)
    prob[prob < 0.01] = 0.0
    y = prob[:, :3].argmax(axis=1)  # the last class never occurs
    q = CalibrantCalibrator(method).fit(prob, y).predict_proba(prob)
    assert q.shape == (300, 4)
    np.testing.assert_allclose(q.sum(axis=1), 1.0)


def test_every_method_is_registered():
    assert {f"calibrant-{name}" for name in cb.calibrator_names()} == set(CALIBRATORS)
    assert CALIBRATORS["calibrant-beta"]().method == "beta"
