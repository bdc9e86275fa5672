"""Calibrant's calibrators next to those of its peers, recorded by ``make golden``.

Where definitions and solvers agree, so must the maps. Where a peer stops before its
optimum, ours must not have a higher loss, and the losses must agree nearly.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.numerics import log_odds
from calibrant.numerics.links import WIDEST_ENDS
from calibrant.numerics.scores import log_loss

GOLDEN = json.loads((Path(__file__).parent / "golden" / "calibrators.json").read_text())
GRID = np.array(GOLDEN["grid"])
DRAWN = ["over", "under", "falling"]
BUNDLED = ["forest", "bayes"]
EVERY = 7


@pytest.fixture(autouse=True)
def exact_predictions_at_machine_precision(monkeypatch):
    """Take predictions of exactly 0 and 1, which bayes has, as the peers do."""
    monkeypatch.setattr(log_odds, "regression_ends", lambda *_: WIDEST_ENDS)


def load(name):
    if name in BUNDLED:
        p, y = cb.datasets.load_binary(name)
    else:
        p, y = (np.array(GOLDEN["data"][name][column]) for column in "py")
    return p, y.astype(float)


def fitted(name, method, **params):
    return cb.make_calibrator(method, **params).fit(*load(name))


def recorded(name, peer, what):
    return np.array(GOLDEN["values"][name][peer][what])


def loss_of(calibrator, name):
    p, y = load(name)
    return log_loss(calibrator.transform(p), y, None)


@pytest.mark.parametrize("name", DRAWN + BUNDLED)
@pytest.mark.parametrize(
    ("peer", "method", "params", "close"),
    [
        ("sklearn platt", "platt", {}, 1e-8),
        ("sklearn smoothed platt", "platt", {"smoothing": True}, 1e-8),
        ("sklearn isotonic", "isotonic", {}, 1e-11),
        ("KDEpy kde", "kde", {}, 3e-5),  # the map is a polygon this near
    ],
)
def test_the_same_map_as_the_peer(name, peer, method, params, close):
    ours = fitted(name, method, **params).transform(GRID)
    assert_allclose(ours, recorded(name, peer, "values"), rtol=0, atol=close)


# These stop where the gradient is still 1e-4.
@pytest.mark.parametrize("name", ["over", "under", *BUNDLED])
@pytest.mark.parametrize(
    ("peer", "variant"),
    [
        ("betacal abm", "abm"),
        ("betacal ab", "ab"),
        ("betacal am", "am"),
        ("netcal beta", "abm"),
    ],
)
def test_beta_has_the_peer_s_optimum_and_no_higher_loss(name, peer, variant):
    ours = fitted(name, "beta", variant=variant)
    peer_loss = recorded(name, peer, "log-loss")
    assert loss_of(ours, name) <= peer_loss + 1e-12
    # betacal's ab ends 2e-6 above its optimum on the forest, all others within 1e-6.
    assert_allclose(loss_of(ours, name), peer_loss, rtol=0, atol=2.1e-6)


def test_beta_does_not_fall_where_betacal_does():
    ours = fitted("falling", "beta").transform(GRID)
    assert (np.diff(ours) >= 0).all()
    assert (np.diff(recorded("falling", "betacal abm", "values")) < 0).any()
    assert_allclose(ours, recorded("falling", "netcal beta", "values"), atol=1e-6)


# Their Platt scaling stops early too; of rows that tie, ours go into one bin.
@pytest.mark.parametrize("name", DRAWN)
def test_scaling_binning_is_that_of_uncertainty_calibration(name):
    p, _ = load(name)
    ours = fitted(name, "scaling-binning").transform(np.sort(p)[::EVERY])
    theirs = recorded(name, "uncertainty-calibration scaling-binning", "values")
    assert_allclose(ours, theirs, rtol=0, atol=3e-4)


@pytest.mark.parametrize("name", BUNDLED)
def test_scaling_binning_with_ties_is_nearly_that_of_the_peer(name):
    p, _ = load(name)
    ours = fitted(name, "scaling-binning").transform(np.sort(p)[::EVERY])
    theirs = recorded(name, "uncertainty-calibration scaling-binning", "values")
    assert np.median(np.abs(ours - theirs)) < 1e-4


@pytest.mark.parametrize("name", DRAWN + BUNDLED)
@pytest.mark.parametrize("score", ["brier", "log-loss"])
def test_score_splits_are_those_of_model_diagnostics(name, score):
    p, y = load(name)
    weight = np.arange(p.size) % 3 + 1.0
    ours = cb.decompose_score(y, p, score=score, sample_weight=weight)
    theirs = GOLDEN["values"][name]["model-diagnostics"][score]
    assert_allclose(
        [ours.score, ours.calibration, ours.discrimination, ours.uncertainty],
        [
            theirs[part]
            for part in ("score", "miscalibration", "discrimination", "uncertainty")
        ],
        rtol=0,
        atol=1e-12,
    )
