"""Every method on 1 to 10 rows, tied, certain, subnormal or neighbouring."""

import json
import re

import numpy as np

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws

BINNED = ("es1", "es2", "es5", "ew1", "ew3", "ew10")
FITTED = tuple(cb.calibrator_names("binary"))
GRID = np.concatenate(
    [[0.0, 5e-324, 1e-300, 1e-16], np.linspace(0, 1, 33), [1 - 2e-16]]
)


def case(rng):
    p, y = draws.sample(rng, most=10)
    weight = draws.counts(rng, p.size) if rng.random() < 0.3 else None
    for method in rng.choice([*BINNED, *FITTED], 4, replace=False):
        _check_method(str(method), p, y, weight)
    for test in ("smooth", "spiegelhalter", "hosmer-lemeshow", "cox"):
        found = cb.calibration_test(y, p, method=test, sample_weight=weight)
        assert np.isnan(found.pvalue) or 0.0 <= found.pvalue <= 1.0
    total = p.size if weight is None else weight.sum()
    if total > 1:
        error = cb.calibration_error(y, p, method="kce", sample_weight=weight)
        assert -1.0 <= error <= 1.0


def _check_method(method, p, y, weight):
    try:
        fitted = cb.make_calibrator(method).fit(p, y, sample_weight=weight)
    except TooFewRowsError:
        assert re.fullmatch("(es|ew)[0-9]+", method), method
        return
    for at in (GRID, p):
        value = fitted.transform(at)
        assert ((value >= 0.0) & (value <= 1.0)).all(), (method, value)
    stored = json.loads(json.dumps(fitted.map_.to_dict(), allow_nan=False))
    assert cb.map_from_dict(stored) == fitted.map_
    assert not re.search("nan|inf", fitted.map_.to_sql("p")), method
    error = cb.calibration_error(
        y, p, method=method, debias=False, sample_weight=weight
    )
    assert 0.0 <= error <= 1.0, (method, error)
