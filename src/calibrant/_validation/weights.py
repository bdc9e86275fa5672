"""Sample weights are counts: a weight of 2 equals the row twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant._validation.arrays import as_float, as_vector
from calibrant._validation.wording import shown
from calibrant.exceptions import WeightError

if TYPE_CHECKING:
    from calibrant._typing import ArrayLike, FloatVector


def check_weights(
    values: ArrayLike | None, *, name: str = "sample_weight"
) -> FloatVector | None:
    """Return weights as doubles, or None where there are none.

    Weights below one on average cannot be counts (importance weights, or weights
    that sum to 1), so they are scaled to an average of one over the rows that have
    any weight. Debiasing and intervals then see as many rows as there are.
    """
    if values is None:
        return None
    weight = as_float(as_vector(values, name=name), name=name)
    if weight.min() < 0.0:
        row = int(np.argmax(weight < 0.0))
        raise WeightError(
            f"{name} must not be negative; row {row} is {shown(weight[row])} "
            f"({int((weight < 0.0).sum())} of {weight.size} rows)."
        )
    positive = np.count_nonzero(weight)
    if positive == 0:
        raise WeightError(
            f"{name} must be positive somewhere; all {weight.size} weights are 0."
        )
    with np.errstate(over="ignore"):
        average = float(weight.sum()) / positive
    if not np.isfinite(average):
        raise WeightError(
            f"{name} must have a finite sum; it overflows. Divide the weights by "
            f"their largest, {weight.max():g}."
        )
    return weight / average if average < 1.0 else weight
