"""The order of the classes does not matter."""

import numpy as np
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws

BINARY = ("es5", "ew10", "es-sweep", "isotonic", "platt", "beta", "smooth")
SEARCHED = {"temperature": {}, "one-temp": {}, "vector": {}}
SEARCHED["dirichlet-l2"] = {"penalty": 0.1}  # folds depend on the order


def case(rng):
    n, k = draws.size(rng, 2, 150), int(rng.integers(2, 6))
    prob, y = draws.class_rows(rng, n, k)
    order = rng.permutation(k)
    turned, new_y = prob[:, order], np.argsort(order)[y]
    method = str(rng.choice(BINARY))
    for task in ("classwise", "confidence"):
        # Of equal classes the first is on top: then the order does matter.
        if task == "classwise" or not _ties(prob):
            _check_error(method, task, (y, prob), (new_y, turned))
    name = str(rng.choice(list(SEARCHED)))
    for calibrator, digits in (
        (cb.make_calibrator(f"ovr-{method}"), 1e-9),
        (cb.make_calibrator(name, **SEARCHED[name]), 1e-4),
    ):
        _check_map(calibrator, digits, (prob, y), (turned, new_y), order)
    _check_logits(rng, n, k)


def _ties(prob):
    ordered = np.sort(prob, axis=1)
    return bool((ordered[:, -1] - ordered[:, -2] < 1e-12).any())


def _check_error(method, task, one, other):
    try:
        found = cb.calibration_error(*one, method=method, task=task)
    except TooFewRowsError:
        return
    again = cb.calibration_error(*other, method=method, task=task)
    assert_allclose(again, found, rtol=1e-7, atol=1e-10)


def _check_map(calibrator, digits, one, other, order):
    try:
        found = calibrator.fit(*one).transform(one[0])
    except TooFewRowsError:
        return
    again = calibrator.fit(*other).transform(other[0])
    assert_allclose(again, found[:, order], atol=digits, err_msg=str(calibrator))
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)


def _check_logits(rng, n, k):
    logits = np.round(rng.normal(0.0, 2.0, (n, k)), int(rng.integers(0, 2)))
    y, order = rng.integers(0, k, n), rng.permutation(k)
    settings = {"task": "classwise", "scale": "logit", "method": "es2"}
    found = cb.calibration_error(y, logits, **settings)
    again = cb.calibration_error(np.argsort(order)[y], logits[:, order], **settings)
    assert_allclose(again, found, atol=1e-10)
