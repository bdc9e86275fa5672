"""Which rows are valid, as SQL; `row_checks` says why others are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.core.scales import ROW_SUM_TOLERANCE, SCALE_RULES
from calibrant.engines.aggregation_sql import (
    MAX_EXPONENT,
    balanced_sum,
    code,
    group_columns,
    number,
    probability,
    read_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibrant.core.array_types import Scale
    from calibrant.engines.aggregation_spec import AggregationSpec

HUGE = 1e300


def fault_sql(
    spec: AggregationSpec, precision: Sequence[float], *, nan_clusters: bool
) -> str:
    """Return a number that is 0 for valid rows; for others it is huge, NaN or NULL.

    `precision` is the rounding unit of each model's predictions; `nan_clusters` tells
    whether clusters may be NaN. Adding numbers up is faster than combining conditions.
    """
    margins = [*_margins(spec, precision)]
    if nan_clusters:
        margins.append(f"0 * ATAN({group_columns(spec)[-1]})")
    faults = [f"(ABS({margin}) - ({margin}))" for margin in margins]
    # Twice, as the smallest doubles are not yet huge after once.
    return f"{balanced_sum(faults)} * {number(HUGE)} * {number(HUGE)}"


def _margins(spec: AggregationSpec, precision: Sequence[float]) -> Iterator[str]:
    """Give a number for each condition: not negative if it is met.

    If it is not met, the number is negative, NaN, infinite or NULL.
    """
    alike: dict[tuple[Scale, float], dict[str, None]] = {}
    for model, unit in zip(spec.models, precision, strict=True):
        columns_alike = alike.setdefault((model.scale, unit), {})
        columns_alike |= dict.fromkeys(read_columns(spec, model))
    for (scale, unit), columns in alike.items():
        yield from _of_predictions(scale, unit, list(columns))
    for model in spec.models:
        if model.labels and model.scale != "logit":
            columns_of_model = read_columns(spec, model)
            parts = [probability(column, model.scale) for column in columns_of_model]
            yield f"{number(ROW_SUM_TOLERANCE)} - ABS({balanced_sum(parts)} - 1)"
    for place, model in enumerate(spec.models):
        label = code(place)
        yield label if model.labels else f"-ABS({label} * {label} - {label})"
        if not model.labels:
            break  # it is the same for all
    if spec.weight is not None:
        yield from ("0 * w", "w")
    if spec.cluster is not None:
        yield f"CASE WHEN {group_columns(spec)[-1]} IS NULL THEN -1 ELSE 0 END"


def _of_predictions(scale: Scale, precision: float, columns: list[str]) -> list[str]:
    """Return the margins of columns of one scale.

    Engines take long to plan a query with an expression for each of many columns.
    """
    # Not by ISNAN: statistics in files leave NaN out, and DuckDB trusts them.
    finite = balanced_sum([f"0 * {x}" for x in columns])
    if scale == "logit":
        return [finite]
    low, high = SCALE_RULES[scale].allowed_range(precision)
    if scale == "logprob":  # minus infinity is a probability of 0
        there = [f"COALESCE({x}, {number(HUGE)})" for x in columns]
        largest = f"LEAST({number(MAX_EXPONENT)}, {_any('GREATEST', there)})"
        return [f"{number(1.0 + high)} - EXP({largest})"]
    least, largest = _any("LEAST", columns), _any("GREATEST", columns)
    above, below = f"{least} - {number(low)}", f"{number(high)} - {largest}"
    if len(columns) == 1:  # shorter, and never positive for both reasons
        return [f"({above}) * ({below})"]
    return [finite, above, below]


def _any(function: str, expressions: list[str]) -> str:
    several = len(expressions) > 1
    return f"{function}({', '.join(expressions)})" if several else expressions[0]
