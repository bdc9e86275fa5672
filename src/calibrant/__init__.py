"""Tell whether a classifier's probabilities can be trusted, and repair them if not.

Public names are resolved at first use, so that importing the package is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant.__about__ import __version__

if TYPE_CHECKING:
    from calibrant import datasets, exceptions, experiments
    from calibrant.calibrators.base import Calibrator
    from calibrant.calibrators.calibrated_classifier import CalibratedClassifier
    from calibrant.calibrators.registry import calibrator_names, make_calibrator
    from calibrant.checks.check import Finding
    from calibrant.checks.diagnosis import Diagnosis, diagnose
    from calibrant.core.defaults import DEFAULT_METHODS
    from calibrant.displays.comparison import ComparisonDisplay
    from calibrant.displays.decision import DecisionCurveDisplay
    from calibrant.displays.grid import ReliabilityGrid
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.maps.binned import BinnedMap
    from calibrant.maps.parametric import adjust_prior
    from calibrant.maps.stored import load_map, map_from_dict, save_map
    from calibrant.measures.calibration_error import calibration_error
    from calibrant.measures.calibration_test import CalibrationTest, calibration_test
    from calibrant.measures.comparison import Comparison, compare
    from calibrant.measures.decision_curve import DecisionCurve, decision_curve
    from calibrant.measures.evaluation import Evaluation, evaluate
    from calibrant.measures.kernel import kernel_calibration_error
    from calibrant.measures.score_decomposition import (
        ScoreDecomposition,
        decompose_score,
    )
    from calibrant.measures.summary import CalibrationSummary, summary
    from calibrant.predictions.predictions import Predictions
    from calibrant.report.report import Report

_HOME = {
    "BinnedMap": "maps.binned",
    "CalibratedClassifier": "calibrators.calibrated_classifier",
    "CalibrationSummary": "measures.summary",
    "CalibrationTest": "measures.calibration_test",
    "Calibrator": "calibrators.base",
    "Comparison": "measures.comparison",
    "ComparisonDisplay": "displays.comparison",
    "DEFAULT_METHODS": "core.defaults",
    "DecisionCurve": "measures.decision_curve",
    "DecisionCurveDisplay": "displays.decision",
    "Diagnosis": "checks.diagnosis",
    "Evaluation": "measures.evaluation",
    "Finding": "checks.check",
    "Predictions": "predictions.predictions",
    "ReliabilityDisplay": "displays.reliability",
    "ReliabilityGrid": "displays.grid",
    "Report": "report.report",
    "ScoreDecomposition": "measures.score_decomposition",
    "adjust_prior": "maps.parametric",
    "calibration_error": "measures.calibration_error",
    "calibration_test": "measures.calibration_test",
    "calibrator_names": "calibrators.registry",
    "compare": "measures.comparison",
    "decision_curve": "measures.decision_curve",
    "diagnose": "checks.diagnosis",
    "evaluate": "measures.evaluation",
    "kernel_calibration_error": "measures.kernel",
    "load_map": "maps.stored",
    "make_calibrator": "calibrators.registry",
    "map_from_dict": "maps.stored",
    "save_map": "maps.stored",
    "decompose_score": "measures.score_decomposition",
    "summary": "measures.summary",
}
"""Where each public name lives."""

_SUBPACKAGES = ("datasets", "exceptions", "experiments")

__all__ = [
    "DEFAULT_METHODS",
    "BinnedMap",
    "CalibratedClassifier",
    "CalibrationSummary",
    "CalibrationTest",
    "Calibrator",
    "Comparison",
    "ComparisonDisplay",
    "DecisionCurve",
    "DecisionCurveDisplay",
    "Diagnosis",
    "Evaluation",
    "Finding",
    "Predictions",
    "ReliabilityDisplay",
    "ReliabilityGrid",
    "Report",
    "ScoreDecomposition",
    "__version__",
    "adjust_prior",
    "calibration_error",
    "calibration_test",
    "calibrator_names",
    "compare",
    "datasets",
    "decision_curve",
    "decompose_score",
    "diagnose",
    "evaluate",
    "exceptions",
    "experiments",
    "kernel_calibration_error",
    "load_map",
    "make_calibrator",
    "map_from_dict",
    "save_map",
    "summary",
]


if not TYPE_CHECKING:  # type checkers would let any name pass

    def __getattr__(name: str) -> Any:
        if name in _SUBPACKAGES:
            return import_module(f"calibrant.{name}")
        if name in _HOME:
            value = getattr(import_module(f"calibrant.{_HOME[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
