"""Tables that fit into memory: files, data frames, dicts of columns."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.core.arrays import as_array, as_vector, stack_lists
from calibrant.core.labels import check_binary_labels, check_class_labels, is_missing
from calibrant.core.probabilities import check_probabilities, check_probability_matrix
from calibrant.core.tasks import event_of_class
from calibrant.core.weights import check_raw_weights, check_total
from calibrant.core.wording import MEASURE_WORDING
from calibrant.engines.cells import (
    AggregatedCells,
    CellOrigin,
    exact_columns,
    keeps_exact_rows,
)
from calibrant.engines.dropped_rows import drop_invalid_rows
from calibrant.engines.file_formats import open_arrays, read_rows
from calibrant.engines.files import SEPARATORS, is_arrays, suffix_of
from calibrant.engines.groups import group_rows
from calibrant.engines.text_files import typed_column
from calibrant.exceptions import ShapeError, SourceError, UnknownNameError
from calibrant.numerics.cell_grid import sum_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import FloatVector
    from calibrant.core.wording import Wording
    from calibrant.engines.aggregation_spec import (
        AggregationSpec,
        BadRows,
        ModelColumns,
    )

    Reader: TypeAlias = Callable[[str], NDArray[Any]]

EQUAL = "=="
"""Between the names of two columns: whether their values are equal."""
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


def equal_values(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1 where two columns are equal, 0 where not, NaN where one is missing.

    Examples
    --------
    >>> equal_values(np.array(["cat", "dog"]), np.array(["cat", "owl"]))
    array([1., 0.])
    """
    missing = [
        np.array([is_missing(value) for value in column.tolist()], dtype=bool)
        for column in (first, second)
    ]
    return np.where(missing[0] | missing[1], np.nan, first == second)


@dataclass(frozen=True, eq=False)
class MemoryTable:
    """Columns by name.

    Attributes
    ----------
    names : tuple of str
        The columns, in order.
    read : callable
        Returns a column as an array.
    read_text : callable or None
        Returns a column of a text file as the text that it is.
    read_keys : callable or None
        Returns a column as values of groups, where these differ from what `read` gives.
    lines_left_out : int
        How many lines of a text file are not rows.
    files : tuple of str
        The files that it was read from, as they were named; none for other sources.
    parts : tuple of (str, int)
        Name and number of rows of each of several files, in order.
    """

    names: tuple[str, ...]
    read: Callable[[str], NDArray[Any]]
    read_text: Callable[[str], NDArray[Any]] | None = None
    read_keys: Callable[[str], NDArray[Any]] | None = None
    lines_left_out: int = 0
    files: tuple[str, ...] = ()
    parts: tuple[tuple[str, int], ...] = ()

    def describe_row(self, row: int) -> str:
        """Return where a row is: its number, within its file if there are several."""
        for name, size in self.parts:
            if row < size:
                return f"row {row} of {name}"
            row -= size
        return f"row {row}"

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the columns, in order."""
        return self.names

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
        compared = name.split(EQUAL)
        if len(compared) == 2 and set(compared) <= set(self.names):  # noqa: PLR2004
            return equal_values(*map(self.read, compared))
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

    def copy_of(self, names: Iterable[str], groups: Iterable[str]) -> MemoryTable:
        """Return a copy of some columns, and of the values of groups of some.

        Later changes of the source, such as a user's data frame, do not reach it.
        """
        groups = list(groups)

        def copied(read: Reader | None, chosen: Iterable[str]) -> Reader | None:
            if read is None:
                return None
            return {name: np.array(read(name)) for name in chosen}.__getitem__

        columns = {name: np.array(self.column(name)) for name in names}
        return replace(
            self,
            names=tuple(columns),
            read=columns.__getitem__,
            read_text=copied(self.read_text, groups),
            read_keys=copied(self.read_keys, groups),
        )

    def dtype_example(self, name: str) -> NDArray[Any]:
        """Return an empty array of the type of a column."""
        return self.column(name)[:0]

    def contains(self, name: str, value: Any) -> bool:
        """Tell whether a column contains a value."""
        return bool(np.any(self.column(name) == value))

    def aggregate(self, spec: AggregationSpec) -> AggregatedCells:
        """Return the cells of the rows."""
        if spec.bad_rows == "error":
            return MemoryRows(self, spec).cells()
        table, reasons = drop_invalid_rows(self, spec)
        cells = MemoryRows(table, spec).cells()
        return replace(cells, dropped=sum(reasons.values()), reasons=reasons)


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """The rows of a table in memory, read as a spec asks."""

    table: MemoryTable
    spec: AggregationSpec

    def cells(self) -> AggregatedCells:
        """Return the cells of all groups and events."""
        spec = self.spec
        groups = group_rows(self.table, spec.by)
        group = np.zeros(self._label.size, dtype=np.int64)
        for number, one in enumerate(groups):
            group[one.rows] = number
        weight = self._weight
        used = np.ones(group.size, bool) if weight is None else weight > 0.0
        events = [event for model in spec.models for event in self._events(model)]
        own = np.bincount(group[used], minlength=len(groups))
        exact = keeps_exact_rows(own, int(own.sum()) * len(events))[group]
        parts: list[dict[str, NDArray[Any]]] = []
        for number, (p, y) in enumerate(events):
            for kept_exactly, chosen in ((True, used & exact), (False, used & ~exact)):
                if chosen.any():
                    part = _cell_columns(
                        p[chosen],
                        y[chosen],
                        None if weight is None else weight[chosen],
                        group[chosen],
                        exact=kept_exactly,
                    )
                    parts.append(part | {"event": np.full(part["cell"].size, number)})
        columns = {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}
        keys = tuple(tuple(one.key.values()) for one in groups)
        return AggregatedCells.of_columns(CellOrigin.of(spec), keys, columns)

    @cached_property
    def _label(self) -> NDArray[Any]:
        return as_vector(self.table.column(self.spec.y), name=self._wording().label)

    @cached_property
    def _weight(self) -> FloatVector | None:
        if self.spec.weight is None:
            return None
        name = f"column {self.spec.weight!r}"
        weight = check_raw_weights(self.table.column(self.spec.weight), name=name)
        with np.errstate(over="ignore"):
            check_total(float(weight.sum()), float(weight.max()), name=name)
        return weight

    def _wording(self, prob: str = "") -> Wording:
        return replace(MEASURE_WORDING, label=f"column {self.spec.y!r}", prob=prob)

    def _events(self, model: ModelColumns) -> list[tuple[FloatVector, FloatVector]]:
        """Return predictions and outcomes of each event of a model."""
        words = self._wording(str(model))
        values = model.read(self.table)
        if not model.labels:
            p = check_probabilities(values, scale=model.scale, wording=words)
            pos_label = self.spec.pos_label
            if self.spec.against_rest:
                return [(p, np.asarray(self._label == pos_label, dtype=np.float64))]
            y = check_binary_labels(self._label, pos_label=pos_label, wording=words)
            return [(p, y)]
        prob = check_probability_matrix(values, scale=model.scale, wording=words)
        column = check_class_labels(
            self._label,
            n_classes=len(model.columns),
            labels=list(model.labels),
            wording=words,
        )
        return [event_of_class(prob, column, which) for which in model.watched]


def _cell_columns(
    p: FloatVector,
    y: FloatVector,
    weight: FloatVector | None,
    group: NDArray[Any],
    *,
    exact: bool,
) -> dict[str, NDArray[Any]]:
    """Return the columns of one cell per row, or of sums over each group and cell."""
    if exact:
        one = np.ones(p.size, dtype=np.int64)
        return exact_columns(p, one, y.astype(np.int64), weight) | {"group": group}
    sums = vars(sum_cells(p, y, weight, group))
    return {name: values for name, values in sums.items() if values is not None}


def open_table(source: Any, *, bad_rows: BadRows = "error") -> MemoryTable:
    """Open a file, files of arrays, a data frame or a mapping of columns.

    With `bad_rows` "drop", lines of text files that are not rows are left out.

    Examples
    --------
    >>> open_table({"p": np.array([0.5]), "y": np.array([1])}).names
    ('p', 'y')
    """
    if isinstance(source, MemoryTable):
        return source
    if is_arrays(source):
        paths = source if isinstance(source, list | tuple) else [source]
        return MemoryTable(*open_arrays(paths))
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        frame, lines = read_rows(path, leave_out=bad_rows == "drop")
        if frame.height == 0:
            raise SourceError(f"{path} has no rows.")
        return replace(table_of_file(frame, path), lines_left_out=lines)
    if isinstance(source, Mapping):
        return MemoryTable(
            tuple(source), lambda name: as_array(source[name], name=f"column {name!r}")
        )
    return _of_frame(source)


def table_of_file(frame: Any, path: Path) -> MemoryTable:
    """Return the table of what `read_rows` gave of a file, or of several like it."""
    if suffix_of(path) not in SEPARATORS:
        return _of_frame(frame)
    import narwhals as nw

    @cache
    def typed(name: str) -> NDArray[Any]:
        return _values(nw.from_native(typed_column(frame[name]), series_only=True))

    return MemoryTable(
        tuple(frame.columns),
        typed,
        read_text=lambda name: np.asarray(frame[name].to_numpy()),
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

    if column.dtype in {nw.Int128, nw.UInt128}:  # NumPy has none so large
        return np.array(column.to_list(), dtype=object)
    return stack_lists(np.asarray(column.to_numpy()))


def _keys(column: Any) -> NDArray[Any]:
    """Return values of groups: whole numbers stay so where some are missing."""
    if column.dtype.is_integer() and column.null_count():
        return np.array(column.to_list(), dtype=object)
    return _values(column)
