"""A row of weight 2 is the row twice, and one of weight 0 is no row."""

import numpy as np
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws

METHODS = ("es4", "ew9", "es-sweep", "ew-sweep", "platt", "beta", "isotonic")
METHODS += ("quadratic", "venn-abers", "scaling-binning", "kde", "smooth", "kce")
AT = np.linspace(0.005, 0.995, 21)


def case(rng):
    p, y = draws.sample(rng, most=150)
    count = draws.counts(rng, p.size)
    copies = p.repeat(count), y.repeat(count)
    method = str(rng.choice(METHODS))
    debias = bool(rng.integers(2)) and "auto"
    try:
        settings = {"methods": method, "debias": debias, "n_resamples": 50}
        found = cb.evaluate(y, p, sample_weight=count, **settings).frame()
    except TooFewRowsError:
        return
    again = cb.evaluate(copies[1], copies[0], **settings).frame()
    for name in ("value", "low", "high"):
        assert_allclose(again[name], found[name], rtol=1e-6, atol=1e-8, err_msg=name)
    if method != "kce":
        one = cb.make_calibrator(method).fit(p, y, sample_weight=count)
        other = cb.make_calibrator(method).fit(*copies)
        assert_allclose(one.transform(AT), other.transform(AT), rtol=1e-6, atol=1e-8)
    for test in ("smooth", "spiegelhalter", "hosmer-lemeshow", "cox"):
        one = cb.calibration_test(y, p, method=test, sample_weight=count)
        other = cb.calibration_test(copies[1], copies[0], method=test)
        assert_allclose(one.pvalue, other.pvalue, rtol=1e-5, atol=1e-9, err_msg=test)
