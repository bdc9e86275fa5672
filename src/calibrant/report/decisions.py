"""What decisions by predictions are worth: the numbers of the decision curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.core.tasks import NAMED_TASKS
from calibrant.exceptions import TooFewRowsError, WeightError
from calibrant.measures.decision_curve import PERCENTAGES, join_units, units_of
from calibrant.report.json_numbers import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.tasks import BinaryTasks
    from calibrant.measures.decision_curve import DecisionUnit

MAX_MODELS = 8
"""There are so many colours."""


def decisions_of(
    models: Mapping[str, BinaryTasks], confidence: float
) -> dict[str, Any] | None:
    """Return net benefits by threshold, None where there is no single event.

    Keys: "thresholds"; "curves", one per model and then one for acting always, or one
    for each model if their base rates differ. Each has "name", "net_benefit", "low",
    "high" and "always", whether it is one for acting always.
    """
    if any(one.task in NAMED_TASKS for one in models.values()):
        return None
    try:
        parts = [
            units_of(name or "model", {}, one.samples[0], PERCENTAGES)
            for name, one in list(models.items())[:MAX_MODELS]
        ]
        # Never to act is worth nothing at any threshold.
        curves = [_curve(unit, confidence) for unit in join_units(parts)[:-1]]
    except (TooFewRowsError, WeightError):
        return None
    return {"thresholds": numbers(PERCENTAGES), "curves": curves}


def _curve(unit: DecisionUnit, confidence: float) -> dict[str, Any]:
    low, high = unit.benefit.limits(confidence)
    return {
        "name": unit.model,
        "net_benefit": numbers(unit.benefit.value),
        "low": numbers(low),
        "high": numbers(high),
        "always": unit.sample is None,
    }
