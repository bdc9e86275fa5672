"""Multi-class calibrators of other libraries, as ``probabilities(logits, y)``.

Each function fits a calibrator and returns calibrated probabilities of the same rows.
Libraries are imported at the first call. Those that expect probabilities get the
softmax of the logits.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

PENALTY = 10.0
"""Penalty on the mean squares of off-diagonal weights and of intercepts."""


def centred(logits):
    return logits - logits.mean(axis=1, keepdims=True)


def netcal_temperature(logits, y):
    return _netcal("TemperatureScaling", logits, y)


def netcal_vector(logits, y):
    """Fit one slope and one intercept per class, on log-probabilities."""
    return _netcal("LogisticCalibration", logits, y)


def _netcal(name, logits, y):
    prob = softmax(logits, axis=1)
    calibrator = getattr(import_module("netcal.scaling"), name)()
    calibrator.fit(prob, y)
    return calibrator.transform(prob)


def probmetrics_temperature(logits, y):
    return _probmetrics("temp-scaling", logits, y)


def probmetrics_vector(logits, y):
    """Fit one slope and one intercept per class, on log-probabilities, no penalty."""
    free = {"svs_lambda_intercept": 0.0, "svs_lambda_diagonal": 0.0}
    return _probmetrics("svs", logits, y, svs_print_init_info=False, **free)


def probmetrics_matrix(logits, y):
    """Fit a matrix on log-probabilities, no penalty."""
    parts = ("intercept", "diagonal", "off_diagonal")
    free = {f"sms_lambda_{part}": 0.0 for part in parts}
    return _probmetrics("sms", logits, y, sms_print_init_info=False, **free)


def _probmetrics(name, logits, y, **options):
    prob = softmax(logits, axis=1)
    calibrators = import_module("probmetrics.calibrators")
    calibrator = calibrators.get_calibrator(name, **options)
    calibrator.fit(prob, y)
    return calibrator.predict_proba(prob)


def dirichletcal_temperature(logits, y):
    scaling = import_module("dirichletcal.calib.tempscaling").TemperatureScaling
    return _dirichletcal(scaling(logit_input=True, logit_constant=0.0), logits, y)


def dirichletcal_vector(logits, y):
    scaling = import_module("dirichletcal.calib.vectorscaling").VectorScaling
    calibrator = scaling(logit_input=True, logit_constant=0.0)
    return _dirichletcal(calibrator, centred(logits), y)


def dirichletcal_matrix_odir(logits, y):
    regression = import_module("dirichletcal.calib.multinomial").MultinomialRegression
    calibrator = regression(
        reg_lambda=PENALTY, reg_mu=PENALTY, reg_norm=True, ref_row=False
    )
    return _dirichletcal(calibrator, centred(logits), y)


def dirichletcal_odir(logits, y):
    return _dirichletcal(_full_dirichlet(reg_mu=PENALTY), softmax(logits, axis=1), y)


def dirichletcal_l2(logits, y):
    return _dirichletcal(_full_dirichlet(), softmax(logits, axis=1), y)


def _full_dirichlet(**options):
    module = import_module("dirichletcal.calib.fulldirichlet")
    return module.FullDirichletCalibrator(
        reg_lambda=PENALTY, reg_norm=True, ref_row=False, **options
    )


def _dirichletcal(calibrator, inputs, y):
    return np.asarray(calibrator.fit(inputs, y).predict_proba(inputs))


def sklearn_temperature(logits, y):
    calibration = import_module("sklearn.calibration")
    frozen = import_module("sklearn.frozen").FrozenEstimator

    class Logits(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.arange(X.shape[1])
            self.fitted_ = y is not None
            return self

        def decision_function(self, X):
            return X

        def predict(self, X):
            return X.argmax(axis=1)

    model = calibration.CalibratedClassifierCV(
        frozen(Logits().fit(logits, y)), method="temperature"
    )
    return model.fit(logits, y).predict_proba(logits)


def sklearn_matrix(logits, y):
    """Fit a matrix without any penalty."""
    model = import_module("sklearn.linear_model").LogisticRegression(
        C=np.inf, tol=1e-8, max_iter=5000, solver="newton-cg"
    )
    return model.fit(centred(logits), y).predict_proba(centred(logits))


def sklearn_dirichlet(logits, y):
    """Fit a matrix on log-probabilities without any penalty."""
    model = import_module("sklearn.linear_model").LogisticRegression(
        C=np.inf, tol=1e-8, max_iter=5000, solver="newton-cg"
    )
    inputs = np.log(softmax(logits, axis=1))
    return model.fit(inputs, y).predict_proba(inputs)


RIVALS = {
    "temperature": {
        "netcal": netcal_temperature,
        "probmetrics": probmetrics_temperature,
        "dirichletcal": dirichletcal_temperature,
        "scikit-learn": sklearn_temperature,
    },
    "vector": {
        "netcal": netcal_vector,
        "probmetrics": probmetrics_vector,
        "dirichletcal": dirichletcal_vector,
    },
    "matrix-odir": {"dirichletcal": dirichletcal_matrix_odir},
    "matrix-odir, no penalty": {"scikit-learn": sklearn_matrix},
    "dirichlet-odir": {"dirichletcal": dirichletcal_odir},
    "dirichlet-odir, no penalty": {
        "probmetrics": probmetrics_matrix,
        "scikit-learn": sklearn_dirichlet,
    },
    "dirichlet-l2": {"dirichletcal": dirichletcal_l2},
}
"""Functions of other libraries that fit the same problem, by our method."""

OURS = {
    "temperature": ("temperature", {}),
    "vector": ("vector", {}),
    "matrix-odir": ("matrix-odir", {"penalty": PENALTY}),
    "matrix-odir, no penalty": ("matrix-odir", {"penalty": 0.0}),
    "dirichlet-odir": ("dirichlet-odir", {"penalty": PENALTY}),
    "dirichlet-odir, no penalty": ("dirichlet-odir", {"penalty": 0.0}),
    "dirichlet-l2": ("dirichlet-l2", {"penalty": PENALTY}),
}
"""Our method and its hyper-parameters for the same problem."""


def log_loss(prob, y):
    own = np.asarray(prob, dtype=np.float64)[np.arange(len(y)), y]
    return float(-np.log(np.maximum(own, 1e-300)).mean())
