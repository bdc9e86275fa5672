"""Tables that fit into memory: files, data frames, dicts of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import as_array, stack_lists
from calibrant.core.labels import is_missing
from calibrant.core.row_rules import list_values
from calibrant.core.warn import warn
from calibrant.core.wording import shown
from calibrant.engines.file_formats import array_names, read_array, read_frames
from calibrant.engines.files import (
    FILE_COLUMN,
    ROW_COLUMN,
    FileSet,
    check_distinct_names,
    check_in_every_file,
    names_of_files,
)
from calibrant.engines.text_files import typed_column
from calibrant.exceptions import (
    InputError,
    LabelWarning,
    OptionError,
    Setting,
    ShapeError,
    SourceError,
    UnknownNameError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import BadRows

EQUAL = "=="
"""Between the names of two columns: whether their values are equal."""
MAX_FILES_IN_MEMORY = 2**31
"""Several files are read into memory where that is asked for, up to so many bytes."""
PART = re.compile(r"(.+)\[(\d+)\]", re.DOTALL)
"""The name of a column of a matrix."""


def part_of_matrix(name: str, place: int | str) -> str:
    """Return what a column of a matrix is called.

    >>> table = open_table({"logits": np.array([[1.0, 2.0], [3.0, 4.0]])})
    >>> table.column(part_of_matrix("logits", 1))
    array([2., 4.])
    """
    return f"{name}[{place}]"


def equal_values(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 where two columns are equal, 0 where not, NaN where one is missing.

    >>> equal_values(np.array(["cat", "dog"]), np.array(["cat", "owl"]))
    array([1., 0.])
    """
    missing = [
        np.array([is_missing(value) for value in column.tolist()], dtype=bool)
        for column in (first, second)
    ]
    return np.where(missing[0] | missing[1], np.nan, first == second)


def compared_columns(name: str) -> list[str]:
    """Return the two columns that a name with == compares; else none.

    >>> compared_columns("answer == truth"), compared_columns("correct")
    (['answer', 'truth'], [])
    """
    names = [part.strip() for part in name.split(EQUAL)]
    return names if len(names) == 2 and all(names) else []  # noqa: PLR2004


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """Columns by name."""

    names: tuple[str, ...]
    read: Callable[[str], NDArray[Any]]  # returns a column as an array
    # returns a column as values of groups, where these differ from what `read` gives
    read_keys: Callable[[str], NDArray[Any]] | None = None
    # whether these are the text of a file, in which 007 and 7 are not the same
    is_text: bool = False
    lines_left_out: int = 0  # how many lines of a text file are not rows
    # the files that it was read from, as they were named; none for other sources
    files: tuple[str, ...] = ()
    # name and number of rows of each of several files, in order
    parts: tuple[tuple[str, int], ...] = ()
    # returns the number of rows of a column in each part, where columns may differ
    row_counts: Callable[[str], Sequence[int]] | None = None

    def describe_row(self, row: int) -> str:
        """Return where a row is: its number, within its file if there are several."""
        for name, size in self.parts[:-1]:
            if row < size:
                return f"row {row} of {name}"
            row -= size
        several = len(self.parts) > 1
        return f"row {row} of {self.parts[-1][0]}" if several else f"row {row}"

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise where a column does not exist."""
        for name in names:
            self.column(name)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column, or raise with the nearest names."""
        if name in self.names:
            array = self.read(name)
            if array.ndim not in (1, 2):
                raise ShapeError.of(
                    f"column {name!r}",
                    "must contain one value per row, or one per row and class",
                    f"its shape is {array.shape}",
                    ("Save it with one entry per row.",),
                    value=array.shape,
                )
            return array
        part = PART.fullmatch(name)
        if part is not None and part[1] in self.names:
            place = int(part[2])
            if place < self.width(part[1]):
                column: NDArray[Any] = self.read(part[1])[:, place]
                return column
        if name == FILE_COLUMN and self.parts:
            paths, sizes = zip(*self.parts, strict=True)
            return np.repeat(names_of_files(paths), sizes)
        compared = compared_columns(name)
        for one in compared:
            if one not in self.names:
                raise UnknownNameError.among("column", one, self.names)
        if compared:
            return equal_values(*map(self.read, compared))
        raise UnknownNameError.among("column", name, self.names)

    def with_rows_of(self, name: str) -> MemoryTable:
        """Return the table with the rows of a column, and of those as long as it.

        The arrays of an npz file may differ in length, as those of a validation and a
        test set do.
        """
        if self.row_counts is None:
            return self
        self.check_columns([name])
        part = PART.fullmatch(name)
        first = part[1] if part is not None and name not in self.names else name
        if first not in self.names:
            first = name.split(EQUAL, maxsplit=1)[0].strip()
        counts = self.row_counts(first)
        files = [path for path, _ in self.parts]
        return replace(self, parts=tuple(zip(files, counts, strict=True)))

    def with_row_numbers(self, labels: Iterable[str]) -> MemoryTable:
        """Return the table with a column of the number of each row in its file.

        Raise unless rows of the same number can be the same case: as many in every
        file, with the same labels.
        """

        def refusal(why: str) -> OptionError:
            return OptionError(
                Setting("id", ROW_COLUMN),
                f" pairs rows by number across files, {why} Pass a column that "
                "identifies each case.",
            )

        if len(self.parts) < 2:  # noqa: PLR2004
            raise refusal("one per model, but there is only one file.")
        (first, size), *others = self.parts
        for name, own in others:
            if own != size:
                raise refusal(
                    "so all files must have the same number of rows; "
                    f"{first} has {size:,} and {name} has {own:,}."
                )
        for label in labels:
            column = self.column(label).reshape(len(self.parts), size, -1)
            differ = (column != column[0]).any(axis=2)
            if differ.any():
                file, row = np.argwhere(differ)[0].tolist()
                raise refusal(
                    "so all files must have the same labels in the same order; row "
                    f"{row} is {list_values(column[0, row].tolist())} in {first} and "
                    f"{list_values(column[file, row].tolist())} in "
                    f"{self.parts[file][0]}."
                )
        numbers = np.tile(np.arange(size), len(self.parts))
        return replace(
            self,
            names=(*self.names, ROW_COLUMN),
            read=lambda name: numbers if name == ROW_COLUMN else self.read(name),
            read_keys=lambda name: numbers if name == ROW_COLUMN else self.keys(name),
        )

    def take(self, rows: Any) -> MemoryTable:
        """Return some of the rows; which part each is of is no longer known."""
        return replace(
            self,
            read=lambda name: self.column(name)[rows],
            read_keys=lambda name: self.keys(name)[rows],
            lines_left_out=0,
            parts=(),
        )

    def warn_if_never_equal(self, name: str) -> None:
        """Warn where a comparison of two columns is never true."""
        compared = [] if name in self.names else compared_columns(name)
        if not compared or (self.column(name) == 1.0).any():
            return
        known = np.flatnonzero(~np.isnan(self.column(name)))
        if not known.size:
            return
        row = known[0]
        shown_values = " and ".join(
            f"{shown(self.read(part)[row])} in {part!r}" for part in compared
        )
        warn(
            f"columns {compared[0]!r} and {compared[1]!r} are never equal; the first "
            f"values are {shown_values}. If they mean the same, write them alike: "
            "spaces, brackets and capitals count.",
            LabelWarning,
        )

    def __len__(self) -> int:
        return len(self.read(self.names[0]))

    def width(self, name: str) -> int:
        """Return how many columns an array has: one, unless it is a matrix."""
        array = self.column(name)
        return int(array.shape[1]) if array.ndim == 2 else 1  # noqa: PLR2004

    def keys(self, name: str) -> NDArray[Any]:
        """Return a column of groups."""
        column = self.column(name)
        if self.read_keys is None or name not in self.names:
            return column
        return self.read_keys(name)

    def copy_of(self, names: Iterable[str], groups: Iterable[str]) -> MemoryTable:
        """Return a copy of some columns, and of the values of groups of some.

        Later changes of the source, such as a user's data frame, do not reach it.
        """
        columns = {name: np.array(self.column(name)) for name in names}
        keys = {name: np.array(self.keys(name)) for name in groups}
        return replace(
            self,
            names=tuple(columns),
            read=columns.__getitem__,
            read_keys=keys.__getitem__,
        )

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type of a column."""
        return self.column(name)[:0]

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column contains a value."""
        return bool(np.any(self.column(name) == value))


def open_table(source: Any, *, bad_rows: BadRows = "error") -> MemoryTable:
    """Open files that were found, a data frame or a mapping of columns.

    With `bad_rows` "drop", lines of text files that are not rows are left out.

    >>> open_table({"p": np.array([0.5]), "y": np.array([1])}).names
    ('p', 'y')
    """
    if isinstance(source, FileSet):
        if source.kind == "arrays":
            return _of_arrays(source)
        return read_files(source, bad_rows=bad_rows)[1]
    if isinstance(source, Mapping):
        return MemoryTable(
            tuple(source), lambda name: as_array(source[name], name=f"column {name!r}")
        )
    return _of_frame(source)


def _of_arrays(files: FileSet) -> MemoryTable:
    """Return arrays of different names, or the rows of files with the same arrays."""
    paths = [Path(path) for path in files.paths]
    names = [array_names(path) for path in paths]
    if len(names) > 1 and all(set(own) == set(names[0]) for own in names):

        def counts(name: str) -> list[int]:
            return [len(read_array(path, name)) for path in paths]

        return MemoryTable(
            tuple(names[0]),
            cache(partial(_stacked, paths)),
            files=files.given,
            parts=tuple(zip(files.paths, counts(names[0][0]), strict=True)),
            row_counts=counts,
        )
    has = "the files together have" if len(paths) > 1 else f"{paths[0]} has"
    check_distinct_names(has, [*chain(*names)])
    path_of = {n: path for path, own in zip(paths, names, strict=True) for n in own}
    read = cache(lambda name: read_array(path_of[name], name))
    return MemoryTable(
        tuple(path_of),
        read,
        files=files.given,
        parts=((files.paths[0], 0),),
        row_counts=lambda name: [len(read(name))],
    )


def _stacked(paths: Sequence[Path], name: str) -> NDArray[Any]:
    """Return the rows of an array that is in all files."""
    parts = [read_array(path, name) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if part.shape[1:] != parts[0].shape[1:]:
            raise SourceError(
                f"array {name!r} has shape {parts[0].shape} in {paths[0]} and "
                f"{part.shape} in {path}; files of one table must have the same "
                "columns."
            )
    return np.concatenate(parts)


def read_files(
    files: FileSet,
    *,
    bad_rows: BadRows = "error",
    max_size: int = MAX_FILES_IN_MEMORY,
) -> tuple[Any, MemoryTable]:
    """Return the rows of files as a polars data frame, and as a table."""
    if len(files.paths) > 1 and files.size > max_size:
        raise OptionError(
            f"{files}: {len(files.paths)} files of {files.size / 2**30:.1f} GiB "
            "are too large for memory. Aggregate their rows with 'calibrant "
            "aggregate', or pass fewer files."
        )
    frame, frames, lines = read_frames(files, leave_out=bad_rows == "drop")
    if frame.height == 0:
        raise SourceError(f"{files} has no rows.")
    table = _of_text(frame) if files.is_text else _of_frame(frame)
    columns = {p: set(f.columns) for p, f in zip(files.paths, frames, strict=True)}

    def read(name: str) -> NDArray[Any]:
        if files.kind not in ("json", "records"):  # where a value may be missing
            check_in_every_file(name, columns)
        return table.read(name)

    parts = tuple((p, f.height) for p, f in zip(files.paths, frames, strict=True))
    return frame, replace(
        table, read=read, lines_left_out=lines, files=files.given, parts=parts
    )


def _of_text(frame: Any) -> MemoryTable:
    import narwhals as nw

    @cache
    def typed(name: str) -> NDArray[Any]:
        return _values(nw.from_native(typed_column(frame[name]), series_only=True))

    return MemoryTable(
        tuple(frame.columns),
        typed,
        read_keys=lambda name: np.asarray(frame[name].to_numpy()),
        is_text=True,
    )


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

    if isinstance(column.dtype, nw.Struct):
        fields = ", ".join(repr(field.name) for field in column.dtype.fields)
        raise InputError.of(
            f"column {column.name!r}",
            "must contain simple values",
            f"it contains objects with the fields {fields}",
            ("Write the value of one field to a column of its own.",),
        )
    large = column.dtype in {nw.Int128, nw.UInt128}  # NumPy has none so large
    # NumPy's text loses NULs at its end, so that "0\0" would become "0".
    if large or (column.dtype == nw.String and column.str.ends_with("\0").any()):
        return np.array(column.to_list(), dtype=object)
    return stack_lists(np.asarray(column.to_numpy()))


def _keys(column: Any) -> NDArray[Any]:
    """Return values of groups: whole numbers stay so where some are missing."""
    if column.dtype.is_integer() and column.null_count():
        return np.array(column.to_list(), dtype=object)
    return _values(column)
