"""Anything array-like to NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.row_rules import FINITE
from calibrant.core.wording import shown, shown_place
from calibrant.exceptions import (
    EmptyInputError,
    InputError,
    LengthMismatchError,
    ShapeError,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from calibrant.core.array_types import (
        ArrayLike,
        BoolMatrix,
        BoolVector,
        FloatVector,
    )


VALUES_NOT_NAME = ("Pass one value per row, not the name of a column.",)


def as_array(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return `values` as a NumPy array; masked entries count as missing.

    pandas, polars and pyarrow columns and tables go through narwhals; everything
    else, such as PyTorch tensors without gradients, through ``np.asarray``.
    """
    if isinstance(values, np.ma.MaskedArray):
        check_nothing_missing(np.ma.getmaskarray(values), name=name)
        return np.asarray(values.data)
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, list | tuple):
        return _from_sequence(values, name=name)
    if callable(getattr(values, "detach", None)):
        return _from_tensor(values)
    return _from_native(values)


def _from_tensor(tensor: Any) -> NDArray[Any]:
    """Return the numbers of a PyTorch tensor, on whichever device they are."""
    numbers = tensor.detach().cpu()
    # NumPy has no such type.
    numbers = numbers.float() if str(numbers.dtype) == "torch.bfloat16" else numbers
    return np.asarray(numbers)


def _from_sequence(values: ArrayLike, *, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise ShapeError.of(
            name,
            "must be a vector or a table",
            "its rows differ in length",
            ("Give every row the same number of values.",),
        ) from None


def _from_native(values: ArrayLike) -> NDArray[Any]:
    import narwhals as nw

    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if isinstance(native, nw.DataFrame | nw.Series):
        return stack_lists(np.asarray(native.to_numpy()))
    return np.asarray(values)


def stack_lists(values: NDArray[Any]) -> NDArray[Any]:
    """Return equally long lists of numbers as a matrix, anything else as it is."""
    lists = values.dtype.kind == "O" and values.ndim == 1 and values.size > 0
    if not lists or not isinstance(values[0], list | tuple | np.ndarray):
        return values
    try:
        matrix = np.stack(values.tolist())
    except (TypeError, ValueError):
        return values
    several = matrix.dtype.kind in "biuf" and matrix[0].size > 1
    return matrix if several else values


def as_vector(values: ArrayLike, *, name: str) -> NDArray[Any]:
    """Return `values` as a vector; a table of one column counts as one."""
    return check_vector(as_array(values, name=name), name=name)


def check_vector(array: NDArray[Any], *, name: str) -> NDArray[Any]:
    """Return an array as a vector with at least one row."""
    if array.ndim == 2 and array.shape[1] == 1:  # noqa: PLR2004
        array = array[:, 0]
    if array.ndim != 1:
        raise ShapeError.of(
            name,
            "must be a vector of shape (n,)",
            f"it has shape {array.shape}",
            VALUES_NOT_NAME if array.ndim == 0 and array.dtype.kind in "US" else (),
            value=array.shape,
        )
    if not len(array):
        raise no_rows(name)
    return array


def as_float(array: NDArray[Any], *, name: str) -> FloatVector:
    """Return a numeric array as native doubles without NaN or infinities."""
    numbers = as_numbers(array, name=name)
    # A sum is finite only if every term is: one cheap pass where all is well.
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum()
    if not np.isfinite(total):
        check_nothing_missing(~np.isfinite(numbers), name=name, values=numbers)
    return numbers


def as_numbers(array: NDArray[Any], *, name: str) -> FloatVector:
    """Return a numeric array as native doubles, NaN and infinities included."""
    if array.dtype.kind in "biufO":
        try:
            return array.astype(np.float64, copy=False)
        except (TypeError, ValueError):
            pass
    elif array.dtype.kind != "U" or not array.size:
        raise InputError.of(name, "must contain numbers", f"it contains {array.dtype}")
    raise _not_numeric(array, name=name)


def _not_numeric(array: NDArray[Any], *, name: str) -> InputError:
    """Return the error that names the value which made a column something else."""
    text = array.dtype.kind == "U"
    values = array.reshape(-1) if text else array
    wrong = [not _is_number(value) for value in values]
    row = wrong.index(True) if any(wrong) else 0
    return InputError.of(
        name,
        "must contain numbers, but is text" if text else "must contain numbers",
        f"row {row} is {shown(values[row])}",
        (
            "Remove the percent signs, so that values are numbers."
            if str(values[row]).rstrip().endswith("%")
            else "Convert the values to numbers, or choose another column.",
        ),
        place=None if all(wrong) else (row,),
        value=values[row],
    )


def _is_number(value: Any) -> bool:
    try:
        number = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return number.ndim == 0 and (
        not isinstance(value, str) or bool(np.isfinite(number))
    )


def check_nothing_missing(
    missing: BoolVector, *, name: str, values: NDArray[Any] | None = None
) -> None:
    """Raise where values, as `values`, are missing."""
    if not missing.any():
        return
    place = first_place(missing)
    value = "masked" if values is None else shown(values[place])
    raise FINITE.broken(
        name,
        f"{shown_place(place)} is {value} ({missing.sum()} of {missing.size} values)",
        place=place,
        value=None if values is None else values[place],
    )


def first_place(which: BoolVector | BoolMatrix) -> tuple[int, ...]:
    """Return the row, and the column of a matrix, of the first value that is true."""
    return tuple(int(i) for i in np.argwhere(which)[0])


def no_rows(name: str) -> EmptyInputError:
    """Return the error about an array without rows."""
    return EmptyInputError.of(name, "must have at least one row", "it is empty")


def check_same_length(**arrays: NDArray[Any] | None) -> None:
    """Raise where the arrays, given by name, do not have the same length."""
    lengths = {name: len(a) for name, a in arrays.items() if a is not None}
    if len(set(lengths.values())) > 1:
        each = ", ".join(f"{name} has {n}" for name, n in lengths.items())
        raise LengthMismatchError.of(
            " and ".join(lengths),
            "must have the same number of rows",
            each,
            place=(min(lengths.values()),),
        )


HASHED_AT_ONCE = 2**14
"""Rows that are hashed at once: so few stay in the cache of a processor."""


def row_hash(*columns: NDArray[Any] | None) -> str:
    """Return 16 hexadecimal digits that depend on the rows, but not on their order.

    Columns, or matrices of them, are as long as each other; None stands for ones.
    """
    rows = max(len(column) for column in columns if column is not None)
    total = np.zeros(1, dtype=np.uint64)
    for start in range(0, rows, HASHED_AT_ONCE):
        part = slice(start, min(start + HASHED_AT_ONCE, rows))
        mixed = np.zeros(part.stop - start, dtype=np.uint64)
        for column in columns:
            values = np.ones(mixed.size) if column is None else column[part]
            for one in values.reshape(mixed.size, -1).T:
                bits = np.ascontiguousarray(one, dtype=np.float64).view(np.uint64)
                mixed = _mixed(mixed ^ _mixed(bits))
        total += np.add.reduce(mixed)
    return f"{int(total[0]):016x}"


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scatter the bits of each number (Steele, Lea and Flood 2014)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
