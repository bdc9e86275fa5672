"""The kernel calibration error as a sum over all pairs of rows."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws

FACTORS = {"rbf": 2.0 - 2.0 * np.exp(-0.5), "white": 2.0, "linear": 1.0}


def median_distance(p):
    """Return the median distance of different rows; their mean, or 1, where it is 0."""
    above, below = np.triu_indices(p.size, 1)
    distance = np.sort(np.abs(p[above] - p[below]))
    middle = distance[(distance.size - 1) // 2] if distance.size else 0.0
    if middle > 0.0:
        return middle
    return distance.mean() if distance.any() else 1.0


def kernel_error(p, y, kernel, bandwidth, estimator):
    """Return the mean over pairs of (y - p)(y' - p') k(p, p')."""
    distance = np.abs(p[:, np.newaxis] - p) / bandwidth
    near = np.exp(-(distance**2) / 2.0 if kernel == "rbf" else -distance)
    off = (y - p)[:, np.newaxis] * (y - p) * near
    if estimator == "biased":
        return off.mean()
    return (off.sum() - np.trace(off)) / (p.size * (p.size - 1.0))


def case(rng):
    p, y = draws.sample(rng, most=120)
    weighted = rng.random() < 0.4
    count = draws.counts(rng, p.size) if weighted else np.ones(p.size, int)
    kernel = str(rng.choice(["rbf", "laplace"]))
    outcome = str(rng.choice(list(FACTORS)))
    estimator = str(rng.choice(["biased", "unbiased"]))
    bandwidth = float(10.0 ** rng.uniform(-3.0, 1.0))
    p_all, y_all = p.repeat(count), y.repeat(count)
    given = {"sample_weight": count} if weighted else {}
    given |= {"kernel": kernel, "outcome_kernel": outcome, "estimator": estimator}
    if p_all.size == 1 and estimator == "unbiased":
        with pytest.raises(TooFewRowsError):
            cb.kernel_calibration_error(y, p, bandwidth=bandwidth, **given)
        return
    wanted = kernel_error(p_all, y_all, kernel, bandwidth, estimator)
    found = cb.kernel_calibration_error(y, p, bandwidth=bandwidth, **given)
    assert found == pytest.approx(FACTORS[outcome] * wanted, rel=1e-9, abs=1e-12)
    median = median_distance(p_all)
    if median > 1e-6:
        wanted = kernel_error(p_all, y_all, kernel, median, estimator)
        found = cb.kernel_calibration_error(y, p, bandwidth="median", **given)
        assert found == pytest.approx(FACTORS[outcome] * wanted, rel=1e-6, abs=1e-9)
