"""The order of rows does not matter, whatever the method."""

import numpy as np
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws

QUICK = ("es5", "ew7", "es-sweep", "ew-sweep", "es-cv", "ew-cv", "platt", "beta")
QUICK += ("isotonic", "scaling-binning", "kde", "kce", "smooth")
QUICK += ("quadratic", "venn-abers")
SLOW = ("pl", "pl-mse", "pl3", "pl3-mse", "pl-de", "pl-de2")
SLOW += ("spline-natural", "spline-cubic", "spline-parabolic")


def case(rng):
    p, y = draws.sample(rng)
    weight = rng.uniform(1.0, 5.0, p.size) if rng.random() < 0.3 else None
    order = rng.permutation(p.size)
    turned = None if weight is None else weight[order]
    for method in (*rng.choice(QUICK, 3, replace=False), rng.choice(SLOW)):
        try:
            found = _numbers(str(method), p, y, weight)
        except TooFewRowsError:
            continue
        again = _numbers(str(method), p[order], y[order], turned)
        assert_allclose(again, found, rtol=1e-7, atol=1e-10, err_msg=str(method))
    found, again = (
        cb.calibration_test(b, a, sample_weight=c).pvalue
        for a, b, c in ((p, y, weight), (p[order], y[order], turned))
    )
    assert_allclose(again, found, rtol=1e-6, atol=1e-12)


def _numbers(method, p, y, weight):
    """Return the error, and the map at some places."""
    error = cb.calibration_error(y, p, method=method, sample_weight=weight)
    if method == "kce":
        return [error]
    fitted = cb.make_calibrator(method).fit(p, y, sample_weight=weight)
    return [error, *fitted.transform(np.linspace(0.005, 0.995, 21))]
