"""Who is better calibrated: models in pairs, on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.measures.comparison import MIN_MODELS, compare_fitted
from calibrant.report.plain import number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import Frame
    from calibrant.measures.estimate import FittedTasks
    from calibrant.report.models import Plan

MAX_MODELS = 12
"""Of more models the pairs would be too many to read."""


def comparison_of(
    models: Mapping[str, FittedTasks], plan: Plan
) -> dict[str, Any] | None:
    """Return ranks and paired differences, None for one model or very many.

    Keys: "method"; "models" with model, rank, value, low, high; "pairs" with model_a,
    model_b, difference (error of a less that of b), low, high, probability that a is
    the better one, and distinct, whether the rows tell them apart.
    """
    if not MIN_MODELS <= len(models) <= MAX_MODELS:
        return None
    found = compare_fitted(models, plan.measure)
    return {
        "method": plan.measure_name,
        "models": _rows(found.frame(), ("model", "rank", "value", "low", "high")),
        "pairs": _rows(found.pairs(), tuple(found.pairs())),
    }


def _rows(frame: Frame, names: tuple[str, ...]) -> list[dict[str, Any]]:
    columns = {name: frame[name].tolist() for name in names}
    return [
        {
            name: number(value) if isinstance(value, float) else value
            for name, value in zip(names, row, strict=True)
        }
        for row in zip(*columns.values(), strict=True)
    ]
