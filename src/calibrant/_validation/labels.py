"""Labels: two values for a binary event, k values for classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.arrays import as_vector
from calibrant.exceptions import LabelError, MissingValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant._typing import ArrayLike, FloatVector, IntVector

SHOWN = 6
"""How many distinct values an error message lists."""


def check_binary_labels(
    values: ArrayLike, *, pos_label: Any = None, name: str = "y_true"
) -> FloatVector:
    """Return labels as 0.0 and 1.0.

    Without `pos_label` the values must be 0 and 1, or booleans. With it they may be
    any two values, and `pos_label` is the one that becomes 1.

    Examples
    --------
    >>> check_binary_labels(["no", "yes", "no"], pos_label="yes")
    array([0., 1., 0.])
    """
    array = as_vector(values, name=name)
    if pos_label is None:
        return _zero_one(array, name=name)
    distinct = distinct_values(array, name=name)
    if len(distinct) > 2 or (len(distinct) == 2 and pos_label not in distinct):  # noqa: PLR2004
        raise LabelError(
            f"{name} must hold two values, one of them pos_label={pos_label!r}; it "
            f"holds {_listed(distinct)}. For more than two classes pass class "
            f"probabilities and a task."
        )
    return np.asarray(array == pos_label, dtype=np.float64)


def _zero_one(array: NDArray[Any], *, name: str) -> FloatVector:
    if array.dtype.kind in "biuf":
        labels = array.astype(np.float64, copy=False)
        if np.array_equal(labels, labels.astype(bool)):
            return labels
    distinct = distinct_values(array, name=name)
    if all(isinstance(value, bool | int | float) for value in distinct) and (
        set(distinct) <= {0, 1}
    ):
        return array.astype(np.float64)
    row = next(i for i, value in enumerate(array) if value not in (0, 1))
    way_out = (
        "Say which is the event: pos_label=..."
        if len(distinct) <= 2  # noqa: PLR2004
        else "For several classes pass class probabilities and a task."
    )
    raise LabelError(
        f"{name} must hold binary labels, 0 and 1; row {row} is {array[row]!r} and the "
        f"distinct values are {_listed(distinct)}. {way_out}"
    )


def check_class_labels(
    values: ArrayLike,
    *,
    n_classes: int,
    labels: Sequence[Any] | None = None,
    name: str = "y_true",
) -> IntVector:
    """Return the column number of each label.

    `labels` states the class of each probability column, in order. Without it the
    labels must be the column numbers 0 .. k-1 themselves: the order is not guessed.
    """
    array = as_vector(values, name=name)
    order = list(range(n_classes)) if labels is None else list(labels)
    if len(order) != n_classes or len(set(order)) != len(order):
        raise LabelError(
            f"labels must name each of the {n_classes} probability columns once; "
            f"got {order!r}."
        )
    distinct, codes = _distinct_codes(array, name=name)
    position = {value: column for column, value in enumerate(order)}
    unknown = np.array([value not in position for value in distinct])
    if unknown.any():
        row = int(np.argmax(unknown[codes]))
        way_out = (
            "State the class of each column: labels=[...]"
            if labels is None
            else "Add the class to labels, or drop these rows."
        )
        raise LabelError(
            f"{name} must hold the classes {_listed(order)}; row {row} is "
            f"{distinct[codes[row]]!r}. {way_out}"
        )
    columns = np.array([position[value] for value in distinct], dtype=np.intp)
    return np.asarray(columns[codes], dtype=np.intp)


def _distinct_codes(
    array: NDArray[Any], *, name: str
) -> tuple[list[Any], NDArray[np.intp]]:
    _refuse_missing_labels(array, name=name)
    try:
        distinct, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise LabelError(
            f"{name} must hold labels of one type; it mixes "
            f"{_listed(sorted({type(v).__name__ for v in array}))}."
        ) from None
    return distinct.tolist(), codes.reshape(-1).astype(np.intp, copy=False)


def distinct_values(array: NDArray[Any], *, name: str) -> list[Any]:
    """Return the distinct values of a column as Python objects, sorted."""
    return _distinct_codes(array, name=name)[0]


def _refuse_missing_labels(array: NDArray[Any], *, name: str) -> None:
    if array.dtype.kind == "O":
        missing = np.array([v is None or v != v for v in array], dtype=bool)  # noqa: PLR0124
    elif array.dtype.kind in "fmM":
        missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
    else:
        return
    if missing.any():
        row = int(np.argmax(missing))
        raise MissingValueError(
            f"{name} must not hold missing values; row {row} is {array[row]!r} "
            f"({int(missing.sum())} of {array.size} rows). Drop these rows first."
        )


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, values[:SHOWN]))
    more = len(values) - SHOWN
    return shown + (f" and {more} more" if more > 0 else "")
