"""Probabilities, as a vector or with one column per class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calibrant.core.array_types import Scale
from calibrant.core.arrays import (
    as_array,
    as_float,
    as_numbers,
    as_vector,
    check_not_empty,
    check_nothing_missing,
)
from calibrant.core.class_rows import softmax
from calibrant.core.options import check_choice
from calibrant.core.scales import RULES, Spread, precision_of
from calibrant.core.wording import (
    CALIBRATORS,
    MEASURES,
    Wording,
    shown,
    shown_place,
)
from calibrant.exceptions import (
    ProbabilityRangeError,
    RowSumError,
    ScaleError,
    ShapeError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector

ROW_SUM_TOLERANCE = 1e-3
"""How far a row may sum from 1: room for rounding to four digits, not for scores."""

MAX_LOGIT = 1e100
"""Squares of logits beyond it overflow in sums. Those that mask a class stay below."""


def check_probabilities(
    values: ArrayLike, *, scale: Scale = "prob", wording: Wording = MEASURES
) -> FloatVector:
    """Return `values`, on any scale, as a vector of probabilities.

    Examples
    --------
    >>> check_probabilities([0.2, 1.0])
    array([0.2, 1. ])
    >>> check_probabilities([20, 100], scale="percent")
    array([0.2, 1. ])
    >>> check_probabilities([0.2, -0.9, 1.7])
    Traceback (most recent call last):
    ...
    calibrant.exceptions.ScaleError: y_prob must hold probabilities in [0, 1]; row 1 is
    -0.9 (2 of 3 values are outside). If these are logits, pass scale="logit".
    """
    array = as_array(values, name=wording.prob)
    if array.ndim == 2 and array.shape[1] > 1:  # noqa: PLR2004
        raise ShapeError(
            f"{wording.prob} must be a vector of shape (n,) for a binary task; it has "
            f"shape {array.shape}. {wording.columns}"
        )
    vector = as_vector(array, name=wording.prob)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        from scipy.special import expit

        return np.asarray(expit(as_float(vector, name=wording.prob)), dtype=np.float64)
    return _as_probabilities(vector, scale, wording)


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
    """Return `values`, on any scale, as (n, k) probabilities whose rows sum to 1."""
    scores = check_class_scores(values, scale=scale, wording=wording)
    if scale != "logit":
        return scores
    return softmax(scores)


def check_class_scores(
    values: ArrayLike, *, scale: Scale, wording: Wording
) -> FloatMatrix:
    """Return `values` as (n, k) logits of any size, or else as probabilities."""
    array = as_array(values, name=wording.prob)
    if array.ndim != 2 or array.shape[1] < 2:  # noqa: PLR2004
        raise ShapeError(
            f"{wording.prob} must have one column per class, shape (n, k) with k >= 2, "
            f"for this {wording.purpose}; it has shape {array.shape}. {wording.vector}"
        )
    check_not_empty(array, name=wording.prob)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        logits = as_float(array, name=wording.prob)
        _check_logit_size(logits, wording)
        return logits
    prob = _as_probabilities(array, scale, wording)
    _check_row_sums(prob, scale, wording)
    return prob


def _as_probabilities(
    array: NDArray[Any], scale: Scale, wording: Wording
) -> NDArray[np.float64]:
    """Return probabilities; what is out of range by rounding is 0 or 1."""
    numbers, rule = as_numbers(array, name=wording.prob), RULES[scale]
    with np.errstate(invalid="ignore"):
        low, high = numbers.min(), numbers.max()  # NaN where any is
    if low >= rule.low and high <= rule.high:
        return rule.to_prob(numbers)
    ends = rule.ends(precision_of(array.dtype))
    spread = Spread.of(numbers, ends)
    # Before anything is said of values that are missing.
    if spread.are_many_outside() or spread.is_clearly_other(scale):
        raise _out_of_range(ScaleError, numbers, ends, spread, scale, wording)
    missing = ~np.isfinite(numbers) & ~(numbers == rule.low)
    check_nothing_missing(missing, name=wording.prob, found=numbers)
    if spread.outside:
        error = ProbabilityRangeError
        raise _out_of_range(error, numbers, ends, spread, scale, wording)
    return np.clip(rule.to_prob(numbers), 0.0, 1.0)


def _out_of_range(
    error: type[ProbabilityRangeError],
    numbers: NDArray[np.float64],
    ends: tuple[float, float],
    spread: Spread,
    scale: Scale,
    wording: Wording,
) -> ProbabilityRangeError:
    finite = np.isfinite(numbers)
    outside = finite & ((numbers < ends[0]) | (numbers > ends[1]))
    first = tuple(int(i) for i in np.argwhere(outside)[0])
    missing = numbers.size - int(finite.sum())
    also = f", {missing} are missing or infinite" if missing else ""
    return error(
        f"{wording.prob} must hold {RULES[scale].what}; {shown_place(first)} is "
        f"{shown(numbers[first])} ({int(outside.sum())} of {numbers.size} values are "
        f"outside{also}). {spread.hint(scale, wording)}"
    )


def _check_logit_size(logits: FloatMatrix, wording: Wording) -> None:
    if max(logits.max(), -logits.min()) <= MAX_LOGIT:
        return
    huge = np.abs(logits) > MAX_LOGIT
    first = tuple(int(i) for i in np.argwhere(huge)[0])
    raise ProbabilityRangeError(
        f"{wording.prob} must hold logits within {MAX_LOGIT:g} of 0; "
        f"{shown_place(first)} is {shown(logits[first])} ({int(huge.sum())} of "
        f"{logits.size} values are beyond). Clip them, for example to [-1e9, 1e9]."
    )


def _check_row_sums(prob: FloatMatrix, scale: Scale, wording: Wording) -> None:
    sums = prob.sum(axis=1)
    off = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if off.any():
        row, unit = int(np.argmax(off)), RULES[scale].unit
        what = "the exponentials of each row" if scale == "logprob" else "each row"
        raise RowSumError(
            f"{what} of {wording.prob} ({prob.shape[1]} columns) must sum to {unit:g} "
            f"(within {ROW_SUM_TOLERANCE * unit:g}); row {row} sums to "
            f"{unit * sums[row]:.6g} ({int(off.sum())} of {off.size} rows are off). "
            f"Normalise the rows, or pass all class columns. If these are logits, "
            f"{wording.way_out('logit')}."
        )
