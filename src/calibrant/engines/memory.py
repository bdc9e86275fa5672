"""Tables that fit into memory: files, data frames, dicts of columns."""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from calibrant.core.arrays import as_array
from calibrant.engines.files import (
    SEPARATORS,
    check_file,
    read_rows,
    suffix_of,
)
from calibrant.engines.text_columns import typed_column
from calibrant.engines.usable_rows import without_bad_rows
from calibrant.exceptions import ShapeError, SourceError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import AggregationSpec, BadRows
    from calibrant.engines.cells import AggregatedCells


PART = re.compile(r"(.+)\[(\d+)\]", re.DOTALL)
"""The name of a column of a matrix."""


def part_of_matrix(name: str, place: int | str) -> str:
    """Return what a column of a matrix is called.

    Examples
    --------
    >>> table = open_table({"logits": np.array([[1.0, 2.0], [3.0, 4.0]])})
    >>> table.column(part_of_matrix("logits", 1))
    array([2., 4.])
    """
    return f"{name}[{place}]"


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """Columns by name.

    Attributes
    ----------
    names : tuple of str
        The columns that there are, in order.
    read : callable
        Gives a column as an array.
    read_text : callable or None
        Gives a column of a text file as the text that it is.
    read_keys : callable or None
        Gives a column as values of groups, where these are others than `read` gives.
    lines_left_out : int
        How many lines of a text file are no rows.
    """

    names: tuple[str, ...]
    read: Callable[[str], NDArray[Any]]
    read_text: Callable[[str], NDArray[Any]] | None = None
    read_keys: Callable[[str], NDArray[Any]] | None = None
    lines_left_out: int = 0

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns that there are, in order."""
        return self.names

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column is not there."""
        for name in names:
            self.column(name)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column, or raise with the nearest names."""
        if name in self.names:
            return _checked(name, self.read(name))
        part = PART.fullmatch(name)
        if part is not None and part[1] in self.names:
            place = int(part[2])
            if place < self.width(part[1]):
                column: NDArray[Any] = self.read(part[1])[:, place]
                return column
        raise UnknownNameError.among("column", name, self.names)

    def width(self, name: str) -> int:
        """Return how many columns an array has: one, unless it is a matrix."""
        array = self.column(name)
        return int(array.shape[1]) if array.ndim == 2 else 1  # noqa: PLR2004

    def keys(self, name: str) -> NDArray[Any]:
        """Return a column of groups: in a text file, 007 and 7 are not the same."""
        column = self.column(name)
        if self.read_text is not None:
            return self.read_text(name)
        return column if self.read_keys is None else self.read_keys(name)

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type that a column holds."""
        return self.column(name)[:0]

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column holds a value."""
        return bool(np.any(self.column(name) == value))

    def aggregate(self, wanted: AggregationSpec) -> AggregatedCells:
        """Return the cells of the rows."""
        from calibrant.engines.memory_cells import MemoryRows

        if wanted.bad_rows == "error":
            return MemoryRows(self, wanted).cells()
        table, reasons = without_bad_rows(self, wanted)
        cells = MemoryRows(table, wanted).cells()
        return replace(cells, dropped=sum(reasons.values()), reasons=reasons)


def open_table(source: Any, *, bad_rows: BadRows = "error") -> MemoryTable:
    """Open a file, a data frame or a mapping of columns.

    With `bad_rows` "drop", lines of text files that are no rows are left out.

    Examples
    --------
    >>> open_table({"p": np.array([0.5]), "y": np.array([1])}).names
    ('p', 'y')
    """
    if isinstance(source, MemoryTable):
        return source
    if isinstance(source, str | os.PathLike):
        return _open_file(Path(source), leave_out=bad_rows == "drop")
    if isinstance(source, Mapping):
        return MemoryTable(
            tuple(source), lambda name: as_array(source[name], name=f"column {name!r}")
        )
    return _of_frame(source)


def _checked(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that may be a column, or a matrix of one column per class."""
    if array.ndim not in (1, 2):
        raise ShapeError(
            f"column {name!r} must hold one value per row, or one per row and class; "
            f"its shape is {array.shape}. Save it with one entry or line for each row."
        )
    return array


def _of_frame(source: Any) -> MemoryTable:
    import narwhals as nw

    try:
        frame = nw.from_native(source, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise SourceError("the table has two columns of the same name.") from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise SourceError(
            f"source must be a path, a data frame or a dict of columns; got "
            f"{type(source).__name__}."
        )
    return MemoryTable(
        tuple(frame.columns),
        lambda name: _values(frame[name]),
        read_keys=lambda name: _keys(frame[name]),
    )


def _values(column: Any) -> NDArray[Any]:
    import narwhals as nw

    if column.dtype in {nw.Int128, nw.UInt128}:  # NumPy has none so large
        return np.array(column.to_list(), dtype=object)
    return np.asarray(column.to_numpy())


def _keys(column: Any) -> NDArray[Any]:
    """Return values of groups: whole numbers stay so where some are missing."""
    if column.dtype.is_integer() and column.null_count():
        return np.array(column.to_list(), dtype=object)
    return _values(column)


def _open_file(path: Path, *, leave_out: bool) -> MemoryTable:
    check_file(path)
    if path.suffix.lower() == ".npz":
        return _open_npz(path)
    frame, lines = read_rows(path, leave_out=leave_out)
    if frame.height == 0:
        raise SourceError(f"{path} has no rows.")
    return replace(table_of_file(frame, path), lines_left_out=lines)


def table_of_file(frame: Any, path: Path) -> MemoryTable:
    """Return the table of what `read_frame` gave of a file, or of several like it."""
    return _of_text(frame) if suffix_of(path) in SEPARATORS else _of_frame(frame)


def _of_text(frame: Any) -> MemoryTable:
    """Return the table of a polars data frame of text."""
    import narwhals as nw

    @cache
    def typed(name: str) -> Any:
        return nw.from_native(typed_column(frame[name]), series_only=True)

    return MemoryTable(
        tuple(frame.columns),
        lambda name: _values(typed(name)),
        read_text=lambda name: np.asarray(frame[name].to_numpy()),
    )


DAMAGED = (
    ValueError,
    OSError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    struct.error,
    zlib.error,
    BadZipFile,
)
"""What reading a damaged npz file may raise."""


def _open_npz(path: Path) -> MemoryTable:
    try:
        with path.open("rb") as file:
            arrays = np.load(file, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise SourceError(f"{path} holds one array, not several by name (npz).")
        names = tuple(arrays.files)
    except DAMAGED as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path} cannot be read: {error}") from None

    @cache  # a matrix is asked for as often as it has columns
    def read(name: str) -> NDArray[Any]:
        try:
            # Opened each time, so that no file stays open; it closes in any case.
            with path.open("rb") as file:
                array = np.asarray(np.load(file, allow_pickle=False)[name])
        except DAMAGED as error:
            hint = "; save text as text, array.astype(str)"
            pickled = isinstance(error, ValueError) and "pickle" in str(error)
            raise SourceError(
                f"{path}, array {name!r}: {error}{hint if pickled else ''}."
            ) from None
        return array

    return MemoryTable(names, read)
