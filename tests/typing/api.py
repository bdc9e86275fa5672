"""What users write, checked by mypy and never run."""

import numpy as np

import calibrant as cb

p, y = cb.datasets.load_binary("forest")
error: float = cb.calibration_error(y, p, method="es15", alpha=2, debias=False)
evaluation: cb.Evaluation = cb.evaluate(
    y, p, methods=["es15", "ew-cv"], confidence=0.95
)
columns: dict[str, np.ndarray] = evaluation.frame()
calibrated: np.ndarray = cb.make_calibrator("es-cv").fit(p, y).transform(p)
display: cb.ReliabilityDisplay = cb.ReliabilityDisplay.from_predictions(y, p)
split: cb.ScoreDecomposition = cb.decompose_score(y, p, score="log-loss")
kernel_error: float = cb.kernel_calibration_error(y, p, kernel="laplace")
comparison: cb.Comparison = cb.compare(y, {"a": p, "b": p**2}, method="es15")
by_model: cb.Comparison = cb.compare(
    {"a": y, "b": 1 - y}, {"a": p, "b": 100.0 * p}, scale={"a": "prob", "b": "percent"}
)
drawn: cb.ComparisonDisplay = cb.ComparisonDisplay(comparison)
test: cb.CalibrationTest = cb.calibration_test(y, p, method="cox")
pvalue: float = test.pvalue
prob, digit = cb.datasets.load_multiclass("forest")
repaired: np.ndarray = (
    cb.make_calibrator("ovr-pl3", labels=range(10)).fit(prob, digit).transform(prob)
)


def misspelt() -> object:
    return cb.no_such_name  # type: ignore[attr-defined]
