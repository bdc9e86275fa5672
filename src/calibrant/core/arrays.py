"""Anything array-like to NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.wording import shown, shown_place
from calibrant.exceptions import (
    EmptyInputError,
    InputError,
    LengthMismatchError,
    MissingValueError,
    ShapeError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import ArrayLike, BoolVector, FloatVector


def as_array(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return `values` as a NumPy array; masked entries count as missing.

    pandas, polars and pyarrow columns and tables go through narwhals; everything
    else through ``np.asarray``.
    """
    if isinstance(values, np.ma.MaskedArray):
        check_nothing_missing(np.ma.getmaskarray(values), name=name)
        return np.asarray(values.data)
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, list | tuple):
        return _from_sequence(values, name=name)
    return _from_native(values)


def _from_sequence(values: ArrayLike, *, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise ShapeError(
            f"{name} must be a vector or a table; its rows differ in length. "
            f"Give every row the same number of values."
        ) from None


def _from_native(values: ArrayLike) -> NDArray[Any]:
    import narwhals as nw

    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if isinstance(native, nw.DataFrame | nw.Series):
        return np.asarray(native.to_numpy())
    return np.asarray(values)


def as_vector(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return `values` as a vector; a table of one column counts as one."""
    array = as_array(values, name=name)
    if array.ndim == 2 and array.shape[1] == 1:  # noqa: PLR2004
        array = array[:, 0]
    if array.ndim != 1:
        raise ShapeError(
            f"{name} must be a vector of shape (n,); it has shape {array.shape}."
        )
    check_not_empty(array, name=name)
    return array


def as_float(array: NDArray[Any], *, name: str) -> FloatVector:
    """Return a numeric array as native doubles without NaN or infinities."""
    numbers = as_numbers(array, name=name)
    # A sum is finite only if every term is: one cheap pass where all is well.
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum()
    if not np.isfinite(total):
        check_nothing_missing(~np.isfinite(numbers), name=name, found=numbers)
    return numbers


def as_numbers(array: NDArray[Any], *, name: str) -> FloatVector:
    """Return a numeric array as native doubles, NaN and infinities included."""
    if array.dtype.kind == "U" and array.size:
        raise _text(array.reshape(-1), name=name)
    if array.dtype.kind not in "biufO":
        raise InputError(f"{name} must hold numbers; it holds {array.dtype}.")
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise _not_numeric(array, name=name) from None


def _text(array: NDArray[Any], *, name: str) -> InputError:
    """Return the error for text, with the entry that made a column of numbers text."""

    def is_number(value: str) -> bool:
        try:
            return bool(np.isfinite(float(value)))
        except ValueError:
            return False

    row = next((i for i, value in enumerate(array) if not is_number(value)), 0)
    return InputError(
        f"{name} must hold numbers, but is text; row {row} is {shown(array[row])}. "
        f"Convert the column, or pass another one."
    )


def _not_numeric(array: NDArray[Any], *, name: str) -> InputError:
    for row, value in enumerate(array):
        try:
            np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return InputError(
                f"{name} must hold numbers; row {row} is {shown(value)}. "
                f"Convert the column, or pass another one."
            )
    return InputError(f"{name} must hold numbers; it holds {array.dtype}.")


def check_nothing_missing(
    missing: BoolVector, *, name: str, found: NDArray[Any] | None = None
) -> None:
    """Raise where values, as `found`, are missing."""
    if not missing.any():
        return
    first = tuple(int(i) for i in np.argwhere(missing)[0])
    value = "masked" if found is None else shown(found[first])
    raise MissingValueError(
        f"{name} must not hold missing or infinite values; {shown_place(first)} is "
        f"{value} "
        f"({int(missing.sum())} of {missing.size} values). "
        f"Drop or repair these rows first."
    )


def check_not_empty(array: NDArray[Any], *, name: str) -> None:
    """Raise where there are no rows."""
    if array.shape[0] == 0:
        raise EmptyInputError(f"{name} is empty; at least one row is needed.")


def check_same_length(**arrays: NDArray[Any] | None) -> None:
    """Raise where the arrays, given by name, do not have the same length."""
    lengths = {name: len(a) for name, a in arrays.items() if a is not None}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise LengthMismatchError(
            f"{' and '.join(lengths)} must have one row per prediction; {told} rows."
        )
