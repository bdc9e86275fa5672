"""What recalibration of all classes at once would bring, on rows left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.registry import find_method
from calibrant.core.options import generator
from calibrant.measures.estimate import FittedTasks
from calibrant.numerics.class_probabilities import class_probabilities
from calibrant.numerics.links import clip_probability
from calibrant.numerics.scores import brier_score, log_loss
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS
from calibrant.predictions.input_spec import InputSpec
from calibrant.report.plain import number
from calibrant.report.repairs import FEWEST_ROWS, FOLDS, FOLDS_OF_MANY, NONE, advised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.core.class_sample import ClassSample
    from calibrant.measures.estimate import ErrorSettings

CLASS_REPAIRS = {
    "confidence": ("temperature", "vector", "top-smooth"),
    "classwise": ("temperature", "vector", "top-smooth", "ovr-smooth"),
}
MAX_CLASSES = 20
"""With more classes than this the error of each class after a repair is left out, and
no class is repaired by a map of its own."""


def class_repairs_of(
    sample: ClassSample,
    task: str,
    *,
    measure: str,
    estimator: ErrorSettings,
    methods: Sequence[str] | None = None,
) -> dict[str, Any] | None:
    """Return what each repair of all classes would bring; keys as of `repairs_of`.

    "error" and scores of the "event" are those of the task; "brier" and "log_loss" are
    those of all classes.
    """
    if sample.n < FEWEST_ROWS or task not in ("confidence", "classwise"):
        return None
    folds = FOLDS if sample.n <= MAX_EXACT_ROWS else FOLDS_OF_MANY
    fold = generator(estimator.random_state).permutation(sample.n) % folds
    before = class_probabilities(sample.scores, sample.scale)

    def row(name: str, prob: FloatMatrix) -> dict[str, Any]:
        gain, gain_error = _gain(before, prob, sample)
        return {
            "method": name,
            "summary": "as they are" if name == NONE else find_method(name).summary,
            **_error(prob, sample, task, measure, estimator),
            "brier": _brier(prob, sample),
            "log_loss": _mean(_losses(prob, sample.column), sample),
            **_event_scores(prob, sample, task),
            "gain": gain,
            "gain_error": gain_error,
        }

    tried = _tried(task, sample.n_classes) if methods is None else methods
    rows = [row(NONE, before)]
    rows += [row(name, _repaired(name, sample, fold)) for name in tried]
    scored = "all classes"
    return {"folds": folds, "rows": rows, "advised": advised(rows), "scored": scored}


def _tried(task: str, n_classes: int) -> list[str]:
    """Return the repairs to try; a map for each of many classes would take long."""
    names = CLASS_REPAIRS[task]
    return [n for n in names if n_classes <= MAX_CLASSES or not n.startswith("ovr-")]


def _repaired(name: str, sample: ClassSample, fold: IntVector) -> FloatMatrix:
    """Return calibrated probabilities, each row's by a fit on the other folds."""
    found = np.empty(sample.scores.shape)
    for number_ in range(int(fold.max()) + 1):
        held = fold == number_
        family: Any = find_method(name).build()
        fitted = fit_family(family, sample.rows(~held))
        found[held] = fitted.map.calibrated(sample.scores[held])
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _event_scores(
    prob: FloatMatrix, sample: ClassSample, task: str
) -> dict[str, float]:
    events = InputSpec(task=task).tasks(sample.column, prob, sample.weight)
    scores = {"event_brier": brier_score, "event_log_loss": log_loss}
    return {
        name: float(np.mean([score(s.p, s.y, s.weight) for s in events.samples]))
        for name, score in scores.items()
    }


def _error(
    prob: FloatMatrix,
    sample: ClassSample,
    task: str,
    measure: str,
    estimator: ErrorSettings,
) -> dict[str, float | None]:
    if task == "classwise" and sample.n_classes > MAX_CLASSES:
        return dict.fromkeys(("error", "low", "high"))
    events = InputSpec(task=task).tasks(sample.column, prob, sample.weight)
    found = FittedTasks(events, estimator).estimates(measure)[0]
    ends = {"low": number(found.low), "high": number(found.high)}
    return {"error": number(found.value), **ends}


def _mean(values: FloatVector, sample: ClassSample) -> float:
    return float(np.average(values, weights=sample.weight))


def _losses(prob: FloatMatrix, column: IntVector) -> FloatVector:
    return -np.log(clip_probability(prob[np.arange(column.size), column]))


def _brier(prob: FloatMatrix, sample: ClassSample) -> float:
    happened = prob[np.arange(sample.n), sample.column]
    return _mean((prob**2).sum(axis=1) - 2.0 * happened + 1.0, sample)


def _gain(
    before: FloatMatrix, after: FloatMatrix, sample: ClassSample
) -> tuple[float, float]:
    falls = _losses(before, sample.column) - _losses(after, sample.column)
    mean = _mean(falls, sample)
    square = _mean(falls**2, sample)
    return mean, float(np.sqrt(max(square - mean**2, 0.0) / sample.total))
