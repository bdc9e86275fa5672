"""Calibrators of calibrant in CalArena (https://github.com/probkit/CalArena).

Copy this file beside CalArena's ``custom_calibrators.py``, install calibrant, and
register what is to run there::

    from calarena_adapter import CALIBRATORS

    CUSTOM_CALIBRATORS = {**CALIBRATORS}

Then run ``python run_benchmark.py --benchmark tabrepo-binary --calibrator
calibrant-smooth``, and the same for the other benchmarks. CalArena passes 32-bit
probabilities, among them exact zeros: of one event, (n,), (n, 1) or (n, 2), or of k
classes, (n, k); labels are column numbers, and some may not occur.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

import calibrant as cb
from calibrant.core.defaults import DEFAULT_REPAIR

METHODS = sorted({*cb.calibrator_names("binary"), *cb.calibrator_names("multi-class")})


class CalibrantCalibrator:
    """A method of calibrant with the interface of CalArena.

    Parameters
    ----------
    method : str
        Name of the method; see `calibrant.calibrator_names`.
    **params
        Its hyper-parameters.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500, dtype=np.float32)
    >>> calibrator = CalibrantCalibrator("platt").fit(p, rng.random(500) < p**2)
    >>> calibrator.predict_proba(p).shape
    (500, 2)
    """

    def __init__(self, method=DEFAULT_REPAIR, **params):
        self.method, self.params = method, params

    def fit(self, p_cal, y_cal):
        """Fit on predicted probabilities and true classes."""
        calibrator = cb.make_calibrator(self.method, **self.params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cb.exceptions.CalibrantWarning)
            self.calibrator_ = calibrator.fit(_probabilities(p_cal), np.asarray(y_cal))
        return self

    def predict_proba(self, p_test):
        """Return calibrated probabilities, one column per class."""
        q = self.calibrator_.transform(_probabilities(p_test))
        return q if q.ndim == 2 else np.column_stack([1.0 - q, q])


def _probabilities(p):
    """Return one column for an event; rows of sum 1 for several classes."""
    p = np.asarray(p, dtype=np.float64)
    if p.ndim == 1 or p.shape[1] <= 2:
        return p if p.ndim == 1 else p[:, -1]
    return p / p.sum(axis=1, keepdims=True)


CALIBRATORS = {
    f"calibrant-{method}": partial(CalibrantCalibrator, method) for method in METHODS
}
