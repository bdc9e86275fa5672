"""Sample weights are counts: a weight of 2 counts the row twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.arrays import as_float, as_vector
from calibrant.core.row_rules import NOT_NEGATIVE
from calibrant.core.warn import warn
from calibrant.core.wording import shown
from calibrant.exceptions import FractionalWeightsWarning, WeightError

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike, FloatVector

MAX_TOTAL = 2.0**53


def check_weights(
    values: ArrayLike | None, *, name: str = "sample_weight"
) -> FloatVector | None:
    """Return weights as doubles, or None where there are none.

    Weights below one on average cannot be counts (importance weights, or weights
    that sum to 1), so they are scaled to sum to the number of equally weighted rows
    that would be as informative, (sum w)^2 / sum w^2 (Kish). Debiasing and intervals
    then see as many rows as there are in effect.
    """
    if values is None:
        return None
    return effective_counts(check_counts(values, name=name))


def check_counts(values: ArrayLike, *, name: str) -> FloatVector:
    """Return weights as they are, with a warning if they should be counts but are not.

    Weights below one on average cannot be counts, and need none.
    """
    weight = check_raw_weights(values, name=name)
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    check_total(total, float(weight.max()), name=name)
    average = total / np.count_nonzero(weight)
    if average >= 1.0:
        warn_if_fractional(weight, average, name=name)
    return weight


def check_total(total: float, largest: float, *, name: str) -> None:
    """Raise where weights sum to more than can be counted."""
    if total > MAX_TOTAL:
        rule = "must sum to at most 2**53, the largest count that doubles hold exactly"
        divide = f"divide them by the largest, {largest:g}."
        remedy = (f"If your weights are not counts, {divide}",)
        raise WeightError.of(name, rule, f"it sums to {total:g}", remedy, value=total)


def warn_if_fractional(weight: FloatVector, average: float, *, name: str) -> None:
    """Warn where weights, or sums of them, are no whole numbers."""
    if (weight != np.round(weight)).any():
        warn(
            f"{name} averages {average:.3g} and is not in whole numbers; weights "
            "are counts, so intervals and p-values treat it as "
            f"{weight.sum():.6g} rows. If your weights are not counts, divide "
            "them by their sum.",
            FractionalWeightsWarning,
        )


def check_raw_weights(values: ArrayLike, *, name: str) -> FloatVector:
    """Return weights as they are: none negative, at least one positive."""
    weight = as_float(as_vector(values, name=name), name=name)
    if weight.min() < 0.0:
        row = int(np.argmax(weight < 0.0))
        raise NOT_NEGATIVE.broken(
            name,
            f"row {row} is {shown(weight[row])} "
            f"({(weight < 0.0).sum()} of {weight.size} rows)",
            place=(row,),
            value=weight[row],
        )
    if not weight.any():
        raise no_weight(weight.size, name=name)
    return weight


def no_weight(rows: int, *, name: str) -> WeightError:
    """Return the error about rows that all have weight 0."""
    fault = f"all {rows:,} weights are 0"
    rule = "must have at least one positive value"
    return WeightError.of(name, rule, fault, place=(0,), value=0.0)


def effective_counts(weight: FloatVector) -> FloatVector:
    """Return weights as they are, or scaled where they average below one."""
    if weight.sum() >= np.count_nonzero(weight):
        return weight
    relative: FloatVector = weight / weight.max()
    used = relative > 0.0
    if (relative[used] == 1.0).all():  # all alike: exactly one row each
        return np.asarray(used, dtype=np.float64)
    scaled: FloatVector = relative * (relative.sum() / np.square(relative).sum())
    return scaled
