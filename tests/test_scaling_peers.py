"""Fits beside those of probmetrics and venn-abers, recorded by ``make golden``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb

FOLDER = Path(__file__).parent / "golden"
GOLDEN = json.loads((FOLDER / "scaling_peers.json").read_text())
EVENTS = json.loads((FOLDER / "calibrators.json").read_text())["data"]
CLASSES = json.loads((FOLDER / "class_peers.json").read_text())


def fitted(method, name):
    p, y = (np.array(EVENTS[name][column]) for column in "py")
    return cb.make_calibrator(method).fit(p, y).map_


@pytest.mark.parametrize("name", EVENTS)
def test_venn_abers_is_that_of_the_package(name):
    recorded = GOLDEN["events"][name]
    map_, ours = fitted("venn-abers", name), recorded["venn-abers"]
    assert_allclose(map_(recorded["at"]), ours["values"], atol=1e-11)
    assert_allclose(map_.intervals(recorded["at"]), ours["limits"], atol=1e-11)


# The solver of probmetrics stops where the gradient is still 1e-4; and where
# predictions fall its slope without an intercept is negative, ours 0.
@pytest.mark.parametrize(
    ("method", "peer", "name"),
    [("quadratic", "quadratic-scaling", name) for name in EVENTS]
    + [("temperature", "linear-scaling", name) for name in ("over", "under")],
)
def test_logistic_regressions_are_those_of_probmetrics(method, peer, name):
    recorded = GOLDEN["events"][name]
    ours = fitted(method, name)(recorded["at"])
    assert_allclose(ours, recorded[peer], atol=2e-4)


@pytest.mark.parametrize("method", ["svs", "sms"])
def test_structured_scaling_is_that_of_probmetrics(method):
    """It computes with numbers of 32 bits."""
    logits, y = np.array(CLASSES["logits"]), np.array(CLASSES["y"])
    ours = cb.make_calibrator(method, scale="logit").fit(logits, y).transform(logits)
    recorded = np.array(GOLDEN["classes"][method])
    assert_allclose(ours[: len(recorded)], recorded, atol=2e-5)
