"""Multi-class methods on the logits of real networks, where they are at hand."""

import numpy as np
import pytest
from scipy.special import softmax

import calibrant as cb

pytestmark = pytest.mark.shared

NETWORKS = [
    "nn_calibration_valtest/probs_resnet110_c10_logits",
    "focalcal_valtest/focal_cifar10_resnet50",
]
CONVEX = [m for m in cb.calibrator_names("multi-class") if not m.startswith("iop")]


def log_loss(prob, y):
    return -np.log(np.maximum(prob[np.arange(y.size), y], 1e-16)).mean()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("method", CONVEX)
def test_fitted_rows_get_no_worse_and_test_rows_better(shared_data, network, method):
    stored = np.load(shared_data / f"{network}.npz")
    logits, y = stored["logits_val"], stored["y_val"].reshape(-1)
    fitted = cb.make_calibrator(method, scale="logit").fit(logits, y)
    before = log_loss(softmax(logits, axis=1), y)
    assert log_loss(fitted.transform(logits), y) < before
    new, new_y = stored["logits_test"], stored["y_test"].reshape(-1)
    assert log_loss(fitted.transform(new), new_y) < log_loss(
        softmax(new, axis=1), new_y
    )
    if method == "temperature":
        kept = fitted.transform(new).argmax(axis=1)
        assert (kept == new.argmax(axis=1)).all()


def test_extreme_logits_survive(shared_data):
    stored = np.load(shared_data / "cifar10_zoo_saurabh" / "L2914.npz")
    logits, y = stored["logits"], stored["y"].reshape(-1)
    assert np.ptp(logits) > 500
    for method in ("temperature", "vector", "matrix-odir"):
        prob = cb.make_calibrator(method, scale="logit").fit_transform(logits, y)
        assert log_loss(prob, y) < 0.6 * log_loss(softmax(logits, axis=1), y)
