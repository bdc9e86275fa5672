"""What decisions by predictions are worth: the numbers of the decision curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.exceptions import TooFewRowsError, WeightError
from calibrant.measures.decision_curve import PERCENTAGES, units_of
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

    Keys: "thresholds"; "curves", one per model and one for acting always, each with
    "name", "net_benefit", "low" and "high".
    """
    if any(one.task in ("confidence", "classwise") for one in models.values()):
        return None
    units: list[DecisionUnit] = []
    always: list[DecisionUnit] = []
    try:
        for name, one in list(models.items())[:MAX_MODELS]:
            unit, *always = units_of(name or "model", {}, one.samples[0], PERCENTAGES)
            units.append(unit)
        # Never to act is worth nothing at any threshold.
        curves = [_curve(unit, confidence) for unit in (*units, always[0])]
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
    }
