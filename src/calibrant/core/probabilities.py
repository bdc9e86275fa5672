"""Validation of predictions: arrays on any scale become probabilities, or an error.

They are a vector for one event, or a matrix with one column per class.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calibrant.core.array_types import Scale
from calibrant.core.arrays import (
    as_array,
    as_float,
    as_numbers,
    check_nothing_missing,
    check_vector,
    first_place,
    no_rows,
)
from calibrant.core.parameters import check_choice
from calibrant.core.row_rules import RowRule, in_range, sums_to_one
from calibrant.core.scales import (
    ROW_SUM_TOLERANCE,
    SCALE_RULES,
    ValueSummary,
    precision_of,
    warn_if_not_logits,
    warn_if_not_percent,
)
from calibrant.core.wording import (
    CALIBRATOR_WORDING,
    MEASURE_WORDING,
    Wording,
    shown,
    shown_place,
)
from calibrant.exceptions import (
    InputError,
    MissingValueError,
    ProbabilityRangeError,
    ScaleError,
    ShapeError,
    Text,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector

EXACT_DIGITS = 52
"""Whole numbers of one binary digit more are exact, and so are their sums."""

CLIP_LOGITS = "Clip them, for example to [-1e9, 1e9]."

MAX_LOGIT = 1e100
"""Squares of logits beyond it overflow in sums. Those that mask a class stay below."""


def check_probabilities(
    values: ArrayLike, *, scale: Scale = "prob", wording: Wording = MEASURE_WORDING
) -> FloatVector:
    """Return `values`, on any scale, as a vector of probabilities.

    Of two columns, as `predict_proba` of scikit-learn returns them, the second one
    is taken.

    >>> check_probabilities([0.2, 1.0])
    array([0.2, 1. ])
    >>> check_probabilities([20, 100], scale="percent")
    array([0.2, 1. ])
    >>> check_probabilities([0.2, -0.9, 1.7])
    Traceback (most recent call last):
    ...
    calibrant.exceptions.ScaleError: y_prob must contain probabilities in [0, 1]; row 1
    is -0.9 (2 of 3 values outside). If these are logits, pass scale="logit".
    """
    return event_probabilities(
        as_array(values, name=wording.prob), scale=scale, wording=wording
    )


def event_probabilities(
    array: NDArray[Any], *, scale: Scale, wording: Wording
) -> FloatVector:
    """Return what `check_probabilities` does, of an array."""
    if has_two_columns(array):
        matrix = check_probability_matrix(array, scale=scale, wording=wording)
        return np.ascontiguousarray(matrix[:, 1])
    if array.ndim == 2 and array.shape[1] > 1:  # noqa: PLR2004
        raise ShapeError.of(
            wording.prob,
            "must be a vector of shape (n,) for a binary task",
            f"it has shape {array.shape}",
            wording.columns,
        )
    vector = check_vector(array, name=wording.prob)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        from scipy.special import expit

        logits = _finite_logits(vector, wording)
        warn_if_not_logits(logits, name=wording.prob)
        return np.asarray(expit(logits), dtype=np.float64)
    numbers = as_numbers(vector, name=wording.prob)
    p = _probabilities(numbers, precision_of(array.dtype), scale, wording)
    if scale == "percent":
        warn_if_not_percent(numbers.max(), name=wording.prob)
    return p


def has_two_columns(array: NDArray[Any]) -> bool:
    """Tell whether an array holds the probabilities of an event and its complement."""
    return array.shape[1:] == (2,)


def probabilities_of_any_shape(values: ArrayLike) -> NDArray[np.float64]:
    """Return probabilities in the shape that they came in, a single one included."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return array
    return check_probabilities(array.reshape(-1), wording=CALIBRATOR_WORDING).reshape(
        array.shape
    )


def check_probability_matrix(
    values: ArrayLike, *, scale: Scale = "prob", wording: Wording = MEASURE_WORDING
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
        raise ShapeError.of(
            wording.prob,
            f"must have one column per class, shape (n, k) with k >= 2, for this "
            f"{wording.purpose}",
            f"it has shape {array.shape}",
            wording.vector,
        )
    if not len(array):
        raise no_rows(wording.prob)
    if check_choice(scale, get_args(Scale), name="scale") == "logit":
        logits = _finite_logits(array, wording)
        _check_logit_size(logits, wording)
        warn_if_not_logits(logits, name=wording.prob)
        return logits
    numbers = as_numbers(array, name=wording.prob)
    prob = _probabilities(numbers, precision_of(array.dtype), scale, wording)
    _check_row_sums(prob, scale, wording)
    return prob


def _probabilities(
    numbers: NDArray[np.float64], precision: float, scale: Scale, wording: Wording
) -> NDArray[np.float64]:
    """Return probabilities; what is out of range by rounding is 0 or 1."""
    rule = SCALE_RULES[scale]
    with np.errstate(invalid="ignore"):
        low, high = numbers.min(), numbers.max()  # NaN where any is
    if low >= rule.low and high <= rule.high:
        return rule.to_prob(numbers)
    allowed = rule.allowed_range(precision)
    summary = ValueSummary.of(numbers, allowed)
    # Before anything is said of values that are missing.
    within, remedy = in_range(scale), summary.remedy(scale, wording)
    if summary.are_many_outside() or summary.is_clearly_other(scale):
        within = replace(within, error=ScaleError)
        raise _out_of_range(within, numbers, allowed, remedy, wording)
    missing = ~np.isfinite(numbers) & ~(numbers == rule.low)
    check_nothing_missing(missing, name=wording.prob, values=numbers)
    if summary.outside:
        raise _out_of_range(within, numbers, allowed, remedy, wording)
    return np.clip(rule.to_prob(numbers), 0.0, 1.0)


def _out_of_range(
    rule: RowRule,
    numbers: NDArray[np.float64],
    allowed: tuple[float, float],
    remedy: Text,
    wording: Wording,
) -> InputError:
    finite = np.isfinite(numbers)
    outside = finite & ((numbers < allowed[0]) | (numbers > allowed[1]))
    place = first_place(outside)
    missing = numbers.size - int(finite.sum())
    also = f", {missing} missing or infinite" if missing else ""
    return rule.broken(
        wording.prob,
        f"{shown_place(place)} is {shown(numbers[place])} "
        f"({outside.sum()} of {numbers.size} values outside{also})",
        remedy,
        place=place,
        value=numbers[place],
    )


def _finite_logits(array: NDArray[Any], wording: Wording) -> NDArray[np.float64]:
    """Return logits as numbers; those that mask a class must be finite."""
    try:
        return as_float(array, name=wording.prob)
    except MissingValueError as error:
        if error.value not in (np.inf, -np.inf):
            raise
        raise error.with_remedy(CLIP_LOGITS) from None


def _check_logit_size(logits: FloatMatrix, wording: Wording) -> None:
    if max(logits.max(), -logits.min()) <= MAX_LOGIT:
        return
    huge = np.abs(logits) > MAX_LOGIT
    place = first_place(huge)
    raise ProbabilityRangeError.of(
        wording.prob,
        f"must contain logits within {MAX_LOGIT:g} of 0",
        f"{shown_place(place)} is {shown(logits[place])} ({huge.sum()} of "
        f"{logits.size} values are beyond)",
        (CLIP_LOGITS,),
        place=place,
        value=logits[place],
    )


def _check_row_sums(prob: FloatMatrix, scale: Scale, wording: Wording) -> None:
    sums = prob.sum(axis=1)
    off = np.abs(sums - 1.0) > ROW_SUM_TOLERANCE
    if off.any():
        row, unit = int(np.argmax(off)), SCALE_RULES[scale].unit
        raise sums_to_one(scale).broken(
            f"{wording.prob} ({prob.shape[1]} columns)",
            f"row {row} sums to {unit * sums[row]:.6g} "
            f"({off.sum()} of {off.size} rows are off)",
            (*_columns_of_models(prob), *row_sum_remedy(wording)),
            place=(row,),
            value=unit * sums[row],
        )


def _columns_of_models(prob: FloatMatrix) -> Text:
    """Return what to do where two columns may be those of two models."""
    if prob.shape[1] != 2:  # noqa: PLR2004
        return ()
    return ("For two models, pass a dict of their predictions by name. ",)


def row_sum_remedy(wording: Wording) -> Text:
    """Return what to do about rows that do not sum to 1."""
    logits = wording.pass_scale("logit")
    ways = "Normalise the rows, or pass all class columns. If these are logits, "
    return (ways, *logits, *wording.independent, ".")


def row_sums(values: FloatMatrix) -> FloatMatrix:
    """Return the sum of each row as a column, for values from 0 to about 1.

    The same to the last digit in any order of the classes: a row that is divided by a
    sum which depends on their order may fall on either side of the edge of a bin.
    Values are split into two whole numbers, of a large and of a tiny unit, whose sums
    are exact.

    >>> row_sums(np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2]])).ravel().tolist()
    [1.0, 1.0]
    >>> 0.7 + 0.2 + 0.1 == 0.1 + 0.7 + 0.2
    False
    """
    unit = 2.0 ** (EXACT_DIGITS - int(values.shape[1]).bit_length())
    scaled = values * unit
    large = np.rint(scaled)
    tiny = np.rint((scaled - large) * unit)
    totals = [part.sum(axis=1, keepdims=True) for part in (large, tiny)]
    return np.asarray((totals[0] + totals[1] / unit) / unit)


def softmax(scores: FloatMatrix) -> FloatMatrix:
    """Return the softmax of each row.

    >>> softmax(np.array([[5000.0, 5000.0, -5000.0]]))
    array([[0.5, 0.5, 0. ]])
    """
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / row_sums(raised))
