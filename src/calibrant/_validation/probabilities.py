"""Probabilities, as a vector or with one column per class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calibrant._typing import Scale
from calibrant._validation.arrays import as_array, as_float, as_vector, refuse_empty
from calibrant._validation.options import check_choice
from calibrant.exceptions import ProbabilityRangeError, RowSumError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant._typing import ArrayLike, FloatMatrix, FloatVector

ROW_SUM_TOLERANCE = 1e-3
"""How far a row may sum from 1: room for rounding to four digits, not for scores."""

ULPS = 4
"""Rounding, in units of the input's own precision, that counts as 0 or as 1."""

LOGIT_HINT = 'If these are logits, pass scale="logit".'


def check_probabilities(
    values: ArrayLike,
    *,
    scale: Scale = "prob",
    name: str = "y_prob",
    hint: str = LOGIT_HINT,
) -> FloatVector:
    """Return `values` as a vector of probabilities.

    Examples
    --------
    >>> check_probabilities([0.2, 1.0])
    array([0.2, 1. ])
    >>> check_probabilities([0.2, 0.9, 1.7])
    Traceback (most recent call last):
    ...
    calibrant.exceptions.ProbabilityRangeError: y_prob must hold probabilities in
    [0, 1]; row 2 is 1.7 (1 of 3 values are outside). If these are logits, pass
    scale="logit".
    """
    array = _as_probability_vector(values, name=name)
    numbers = as_float(array, name=name)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        from scipy.special import expit

        return np.asarray(expit(numbers), dtype=np.float64)
    return _within_unit_interval(numbers, array.dtype, name=name, hint=hint)


def _as_probability_vector(values: ArrayLike, *, name: str) -> NDArray[Any]:
    array = as_array(values, name=name)
    if array.ndim == 2 and array.shape[1] > 1:  # noqa: PLR2004
        raise ShapeError(
            f"{name} must be a vector of shape (n,) for a binary task; it has shape "
            f"{array.shape}. Pass the column of the positive class, or say what to "
            f'look at: task="confidence", task="classwise" or a class.'
        )
    return as_vector(array, name=name)


def check_probability_matrix(
    values: ArrayLike,
    *,
    scale: Scale = "prob",
    name: str = "y_prob",
    hint: str = LOGIT_HINT,
) -> FloatMatrix:
    """Return `values` as (n, k) probabilities whose rows sum to 1."""
    array = as_array(values, name=name)
    if array.ndim != 2 or array.shape[1] < 2:  # noqa: PLR2004
        raise ShapeError(
            f"{name} must have one column per class, shape (n, k) with k >= 2, for "
            f"this task; it has shape {array.shape}. For a vector of probabilities "
            f"of one event leave task=None."
        )
    refuse_empty(array, name=name)
    numbers = as_float(array, name=name)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        from scipy.special import softmax

        return np.asarray(softmax(numbers, axis=1), dtype=np.float64)
    prob = _within_unit_interval(numbers, array.dtype, name=name, hint=hint)
    _refuse_row_sums(prob, name=name, hint=hint)
    return prob


def _within_unit_interval(
    prob: NDArray[np.float64], dtype: np.dtype[Any], *, name: str, hint: str
) -> NDArray[np.float64]:
    low, high = prob.min(), prob.max()
    if low >= 0.0 and high <= 1.0:
        return prob
    precision = np.finfo(dtype).eps if dtype.kind == "f" else np.finfo(float).eps
    slack = ULPS * float(precision)
    if low >= -slack and high <= 1.0 + slack:
        return np.clip(prob, 0.0, 1.0)
    outside = (prob < -slack) | (prob > 1.0 + slack)
    first = tuple(int(i) for i in np.argwhere(outside)[0])
    where = f"row {first[0]}" + (f", column {first[1]}" if len(first) > 1 else "")
    raise ProbabilityRangeError(
        f"{name} must hold probabilities in [0, 1]; {where} is {prob[first]:g} "
        f"({int(outside.sum())} of {prob.size} values are outside). {hint}"
    )


def _refuse_row_sums(prob: FloatMatrix, *, name: str, hint: str) -> None:
    sums = prob.sum(axis=1)
    off = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise RowSumError(
            f"each row of {name} must sum to 1 (within {ROW_SUM_TOLERANCE:g}); row "
            f"{row} sums to {sums[row]:g} ({int(off.sum())} of {off.size} rows are "
            f"off). Normalise the rows, or pass all class columns. {hint}"
        )
