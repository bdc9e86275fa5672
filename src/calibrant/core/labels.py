"""Labels: two values for a binary event, k values for classes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import as_array, check_vector
from calibrant.core.row_rules import (
    BINARY_LABEL,
    HAS_LABEL,
    class_label,
    list_values,
)
from calibrant.core.wording import MEASURE_WORDING, Wording, shown
from calibrant.exceptions import Argument, LabelError, Setting, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import ArrayLike, FloatVector, IntVector


def event_labels(
    array: NDArray[Any], *, pos_label: Any = None, wording: Wording = MEASURE_WORDING
) -> FloatVector:
    """Return a vector of labels as 0.0 and 1.0.

    Without `pos_label` the values must be 0 and 1, or booleans. With it they may be
    any two values, and `pos_label` is the one that becomes 1.

    >>> event_labels(np.array(["no", "yes", "no"]), pos_label="yes")
    array([0., 1., 0.])
    """
    if pos_label is None:
        return _zero_one(array, wording)
    distinct = distinct_values(array, name=wording.label)
    check_label_values(distinct, pos_label=pos_label, wording=wording)
    return np.asarray(array == pos_label, dtype=np.float64)


def check_label_values(
    distinct: Sequence[Any], *, pos_label: Any, wording: Wording = MEASURE_WORDING
) -> None:
    """Raise unless labels are `pos_label` and at most one other."""
    there, several = pos_label in distinct, len(distinct) > 2  # noqa: PLR2004
    alike = [value for value in distinct if _folded(value) == _folded(pos_label)]
    if several or (not there and (alike or len(distinct) == 2)):  # noqa: PLR2004
        remedy = wording.several_labels
        if several and len({_folded(value) for value in distinct}) == 2:  # noqa: PLR2004
            remedy = ("Some differ only in case or spaces; make them one value.",)
        elif alike and not there:
            as_it_stands = Setting("pos_label", alike[0])
            remedy = ("Pass the value exactly as it appears there: ", as_it_stands, ".")
        elif not several:
            first, second = (Setting("pos_label", value) for value in distinct)
            remedy = ("Pass one of these as the event: ", first, " or ", second, ".")
        raise LabelError.of(
            wording.label,
            f"must contain two values, one of them the event {pos_label!r}",
            f"it contains {list_values(distinct)}",
            remedy,
            value=pos_label,
        )


def _folded(value: Any) -> str:
    """Return a label as text, without what people overlook: case and spaces.

    >>> _folded(" Churned"), _folded(1)
    ('churned', '1')
    """
    return str(value).strip().casefold()


def check_second_column(
    array: NDArray[Any], pos_label: Any, *, wording: Wording
) -> None:
    """Raise where the second of two columns belongs to the other label.

    Columns of scikit-learn's `predict_proba` are in the order of the sorted labels.
    """
    distinct = distinct_values(array, name="labels")
    if len(distinct) == 2 and distinct[0] == pos_label:  # noqa: PLR2004
        raise LabelError.of(
            wording.prob,
            f"must have the event {pos_label!r} in its second column",
            "in scikit-learn's predict_proba that column belongs to "
            f"{distinct[1]!r}, the last of the sorted labels",
            ("Pass only the first column, as an array or as the column of a table.",),
        )


def _zero_one(array: NDArray[Any], wording: Wording) -> FloatVector:
    if array.dtype.kind in "biuf":
        labels = array.astype(np.float64, copy=False)
        if ((labels == 0.0) | (labels == 1.0)).all():
            return labels
    distinct = distinct_values(array, name=wording.label)
    if set(distinct) <= {0, 1}:  # as objects: decimals, fractions, NumPy's own
        return array.astype(np.float64)
    row = next(i for i, value in enumerate(array) if value not in (0, 1))
    two = len(distinct) <= 2  # noqa: PLR2004
    raise BINARY_LABEL.broken(
        wording.label,
        f"row {row} is {shown(array[row])} and the distinct values are "
        f"{list_values(distinct)}",
        wording.two_labels if two else wording.several_labels,
        place=(row,),
        value=array[row],
    )


def check_class_labels(
    values: ArrayLike,
    *,
    n_classes: int,
    labels: Sequence[Any] | None = None,
    wording: Wording = MEASURE_WORDING,
) -> IntVector:
    """Return the column number of each label.

    `labels` states the class of each probability column, in order. Without it the
    labels must be the column numbers 0 .. k-1 themselves: the order is not guessed.
    """
    array = as_array(values, name=wording.label)
    if array.ndim == 2 and array.shape[1] == n_classes:  # noqa: PLR2004
        raise ShapeError.of(
            wording.label,
            "must be a vector of shape (n,)",
            f"it has shape {array.shape}",
            (f"If its rows are one-hot, pass {wording.label}.argmax(axis=1).",),
            value=array.shape,
        )
    array = check_vector(array, name=wording.label)
    order = check_label_order(labels, n_classes)
    distinct, codes = _distinct_codes(array, name=wording.label)
    position = {value: column for column, value in enumerate(order)}
    unknown = np.array([value not in position for value in distinct])
    if unknown.any():
        row = int(np.argmax(unknown[codes]))
        value, remedy = distinct[codes[row]], None
        if labels is not None and set(distinct) <= set(range(n_classes)):
            remedy = (
                "If these are column numbers, remove ",
                Argument("labels"),
                f", or pass the classes: np.array(labels)[{wording.label}].",
            )
        raise class_label(order).broken(
            wording.label, f"row {row} is {value!r}", remedy, place=(row,), value=value
        )
    columns = np.array([position[value] for value in distinct], dtype=np.intp)
    return np.asarray(columns[codes], dtype=np.intp)


def check_label_order(labels: Sequence[Any] | None, n_classes: int) -> list[Any]:
    """Return the label of each probability column, by default the column's number."""
    if isinstance(labels, set | frozenset):
        raise LabelError.of(
            Argument("labels"),
            "must be in the order of the columns",
            "a set has no order",
        )
    order = list(range(n_classes)) if labels is None else list(labels)
    if len(order) != n_classes or len(set(order)) != len(order):
        raise LabelError.of(
            Argument("labels"),
            f"must name each of the {n_classes} probability columns once",
            f"got {order!r}",
            value=order,
        )
    return order


def _distinct_codes(
    array: NDArray[Any], *, name: str
) -> tuple[list[Any], NDArray[np.intp]]:
    _check_no_missing_labels(array, name=name)
    check_single_labels(array, name=name)
    try:
        distinct, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise LabelError.of(
            name,
            "must contain labels of one type",
            f"it mixes {list_values(sorted({type(v).__name__ for v in array}))}",
        ) from None
    return distinct.tolist(), codes.reshape(-1).astype(np.intp, copy=False)


def distinct_values(array: NDArray[Any], *, name: str) -> list[Any]:
    """Return the distinct values of a column as Python objects, sorted."""
    return _distinct_codes(array, name=name)[0]


def _check_no_missing_labels(array: NDArray[Any], *, name: str) -> None:
    if array.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in array], dtype=bool)
    elif array.dtype.kind in "fmM":
        missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
    else:
        return
    if missing.any():
        row = int(np.argmax(missing))
        raise HAS_LABEL.broken(
            name,
            f"row {row} is {shown(array[row])} ({missing.sum()} of {array.size} rows)",
            place=(row,),
            value=array[row],
        )


def check_single_labels(array: NDArray[Any], *, name: str) -> None:
    """Raise where a row holds a list, or something else that is not one label."""
    if array.ndim != 1:
        raise ShapeError.of(
            name,
            "must contain one label per row",
            f"it has shape {array.shape}",
            ("Pass one column of labels.",),
            value=array.shape,
        )
    if array.dtype.kind != "O":
        return
    for row, value in enumerate(array):
        if not isinstance(value, Hashable):
            held = value.tolist() if isinstance(value, np.ndarray) else value
            raise LabelError.of(
                name,
                "must contain one label per row",
                f"row {row} is {shown(held)}, a {type(held).__name__}",
                ("Extract the label from it, or pass other labels.",),
                place=(row,),
                value=held,
            )


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for a missing one: None, NaN, NaT or pandas' NA.

    >>> [is_missing(value) for value in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except TypeError:  # only pandas' NA refuses to say whether it differs from itself
        return True
    except ValueError:  # a list, whose values each differ or not
        return False
