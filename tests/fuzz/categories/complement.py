"""The event and its complement are the same question: 1 - y and 1 - p."""

import numpy as np
from numpy.testing import assert_allclose

import calibrant as cb
from fuzz import draws

# The knots of `smooth` and the polygon of `kde` are nearly symmetric.
SYMMETRIC = ("platt", "beta", "isotonic", "kce", "smooth", "kde")
STEP = 2.0**-31


def exact_predictions(rng, n):
    """Draw predictions whose complement is exact, and none on the edge of a bin."""
    p = draws.predictions(rng, n)
    return STEP * (2.0 * np.floor(p / (2.0 * STEP + STEP * STEP)) + 1.0)


def case(rng):
    bins, each = int(rng.integers(1, 12)), int(rng.integers(1, 20))
    p = exact_predictions(rng, bins * each)
    y = draws.labels(rng, p)
    weight = rng.integers(1, 4, p.size) if rng.random() < 0.3 else None
    known = [method for method in SYMMETRIC if p.size > 1 or method != "kce"]
    methods = [str(rng.choice(known)), f"ew{bins}", "ew-sweep"]
    if weight is None and np.unique(p).size == p.size:
        methods.append(f"es{bins}")  # else bins are not equally large
    for method in methods:
        settings = {"method": method, "sample_weight": weight}
        found = cb.calibration_error(y, p, **settings)
        again = cb.calibration_error(1.0 - y, 1.0 - p, **settings)
        loose = {"smooth": 2e-3, "kde": 1e-5}.get(method, 1e-9)
        assert_allclose(again, found, rtol=loose, atol=loose, err_msg=method)
    for score in ("brier", "log-loss"):
        one = cb.decompose_score(y, p, score=score, sample_weight=weight)
        other = cb.decompose_score(1.0 - y, 1.0 - p, score=score, sample_weight=weight)
        for part in ("score", "calibration", "discrimination", "uncertainty"):
            assert_allclose(getattr(one, part), getattr(other, part), atol=1e-9)
    for test in ("smooth", "spiegelhalter", "cox"):
        one = cb.calibration_test(y, p, method=test, sample_weight=weight)
        other = cb.calibration_test(1.0 - y, 1.0 - p, method=test, sample_weight=weight)
        assert_allclose(one.pvalue, other.pvalue, rtol=1e-4, atol=1e-9, err_msg=test)
