"""Log-losses of multi-class fits beside those of peers, from ``make golden``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant.numerics.class_probabilities import log_probabilities, weight_shares
from calibrant.numerics.softmax_regression import ClassTerms, SoftmaxProblem, minimise

GOLDEN = json.loads((Path(__file__).parent / "golden" / "class_peers.json").read_text())
LOGITS, Y = np.array(GOLDEN["logits"]), np.array(GOLDEN["y"])
PENALTY = GOLDEN["penalty"]


def fitted_loss(method, **params):
    calibrator = cb.make_calibrator(method, scale="logit", **params)
    prob = calibrator.fit(LOGITS, Y).transform(LOGITS)
    return -np.log(prob[np.arange(Y.size), Y]).mean()


@pytest.mark.parametrize(
    ("name", "peer", "method", "params"),
    [
        ("temperature", "netcal", "temperature", {}),
        ("temperature", "probmetrics", "temperature", {}),
        ("temperature", "dirichletcal", "temperature", {}),
        ("temperature", "scikit-learn", "temperature", {}),
        ("vector", "dirichletcal", "vector", {}),
        ("matrix-odir", "dirichletcal", "matrix-odir", {"penalty": PENALTY}),
        ("matrix-odir, no penalty", "scikit-learn", "matrix-odir", {"penalty": 0.0}),
        ("dirichlet-odir", "dirichletcal", "dirichlet-odir", {"penalty": PENALTY}),
        ("dirichlet-l2", "dirichletcal", "dirichlet-l2", {"penalty": PENALTY}),
    ],
)
def test_the_same_problem_has_the_same_optimum(name, peer, method, params):
    found = fitted_loss(method, **params)
    assert found == pytest.approx(GOLDEN["losses"][name][peer], abs=1e-6)


def test_vector_scaling_of_netcal_is_that_of_log_probabilities():
    """netcal scales log-probabilities, ours are centred logits.

    On its inputs our solver gives its loss. probmetrics ends a little before ours.
    """
    terms = ClassTerms.vector(log_probabilities(LOGITS, "logit"))
    start = terms.identity
    share = weight_shares(None, Y.size)
    task = SoftmaxProblem(terms, Y, share, np.full_like(start, 1e-12), start)
    found = minimise(task, start, tolerance=1e-9).loss
    recorded = GOLDEN["losses"]["vector"]
    assert found == pytest.approx(recorded["netcal"], abs=1e-6)
    assert fitted_loss("vector") <= recorded["probmetrics"] + 1e-9
