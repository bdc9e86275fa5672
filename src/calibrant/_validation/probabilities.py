"""Probabilities, as a vector or with one column per class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calibrant._typing import Scale
from calibrant._validation.arrays import as_array, as_float, as_vector, refuse_empty
from calibrant._validation.class_rows import softmax
from calibrant._validation.options import check_choice
from calibrant._validation.wording import (
    CALIBRATORS,
    MEASURES,
    Wording,
    shown,
    shown_place,
)
from calibrant.exceptions import ProbabilityRangeError, RowSumError, ShapeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant._typing import ArrayLike, FloatMatrix, FloatVector

ROW_SUM_TOLERANCE = 1e-3
"""How far a row may sum from 1: room for rounding to four digits, not for scores."""

ULPS = 4
"""Rounding, in units of the input's own precision, that counts as 0 or as 1."""

PERCENT = 100.0

LARGEST_LOGIT = 1e100
"""Squares of logits beyond it overflow in sums. Those that mask a class stay below."""


def check_probabilities(
    values: ArrayLike, *, scale: Scale = "prob", wording: Wording = MEASURES
) -> FloatVector:
    """Return `values` as a vector of probabilities.

    Examples
    --------
    >>> check_probabilities([0.2, 1.0])
    array([0.2, 1. ])
    >>> check_probabilities([0.2, -0.9, 1.7])
    Traceback (most recent call last):
    ...
    calibrant.exceptions.ProbabilityRangeError: y_prob must hold probabilities in
    [0, 1]; row 1 is -0.9 (2 of 3 values are outside). If these are logits, pass
    scale="logit".
    """
    array = as_array(values, name=wording.prob)
    if array.ndim == 2 and array.shape[1] > 1:  # noqa: PLR2004
        raise ShapeError(
            f"{wording.prob} must be a vector of shape (n,) for a binary task; it has "
            f"shape {array.shape}. {wording.columns}"
        )
    vector = as_vector(array, name=wording.prob)
    numbers = as_float(vector, name=wording.prob)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        from scipy.special import expit

        return np.asarray(expit(numbers), dtype=np.float64)
    return _within_unit_interval(numbers, vector.dtype, wording)


def probabilities_of_any_shape(values: ArrayLike) -> NDArray[np.float64]:
    """Return probabilities in the shape that they came in, a single one included."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return array
    return check_probabilities(array.reshape(-1), wording=CALIBRATORS).reshape(
        array.shape
    )


def check_probability_matrix(
    values: ArrayLike, *, scale: Scale = "prob", wording: Wording = MEASURES
) -> FloatMatrix:
    """Return `values` as (n, k) probabilities whose rows sum to 1."""
    scores = check_class_scores(values, scale=scale, wording=wording)
    if scale == "prob":
        return scores
    return softmax(scores)


def check_class_scores(
    values: ArrayLike, *, scale: Scale, wording: Wording
) -> FloatMatrix:
    """Return `values` as they are: (n, k) probabilities, or logits of any size."""
    array = as_array(values, name=wording.prob)
    if array.ndim != 2 or array.shape[1] < 2:  # noqa: PLR2004
        raise ShapeError(
            f"{wording.prob} must have one column per class, shape (n, k) with k >= 2, "
            f"for this {wording.purpose}; it has shape {array.shape}. {wording.vector}"
        )
    refuse_empty(array, name=wording.prob)
    numbers = as_float(array, name=wording.prob)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        _refuse_huge_logits(numbers, wording)
        return numbers
    prob = _within_unit_interval(numbers, array.dtype, wording)
    _refuse_row_sums(prob, wording)
    return prob


def _within_unit_interval(
    prob: NDArray[np.float64], dtype: np.dtype[Any], wording: Wording
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
    percent = "If these are percentages, divide by 100. "
    way_out = (percent if low >= 0.0 and high <= PERCENT else "") + wording.logits
    raise ProbabilityRangeError(
        f"{wording.prob} must hold probabilities in [0, 1]; {shown_place(first)} is "
        f"{shown(prob[first])} ({int(outside.sum())} of {prob.size} values are "
        f"outside). {way_out}"
    )


def _refuse_huge_logits(logits: FloatMatrix, wording: Wording) -> None:
    if max(logits.max(), -logits.min()) <= LARGEST_LOGIT:
        return
    huge = np.abs(logits) > LARGEST_LOGIT
    first = tuple(int(i) for i in np.argwhere(huge)[0])
    raise ProbabilityRangeError(
        f"{wording.prob} must hold logits within {LARGEST_LOGIT:g} of 0; "
        f"{shown_place(first)} is {shown(logits[first])} ({int(huge.sum())} of "
        f"{logits.size} values are beyond). Clip them, for example to [-1e9, 1e9]."
    )


def _refuse_row_sums(prob: FloatMatrix, wording: Wording) -> None:
    sums = prob.sum(axis=1)
    off = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise RowSumError(
            f"each row of {wording.prob} ({prob.shape[1]} columns) must sum to 1 "
            f"(within {ROW_SUM_TOLERANCE:g}); "
            f"row {row} sums to {sums[row]:.6g} ({int(off.sum())} of {off.size} rows "
            f"are off). Normalise the rows, or pass all class columns. {wording.logits}"
        )
