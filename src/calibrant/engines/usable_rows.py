"""Which rows of a table in memory can be used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.labels import is_missing
from calibrant._validation.probabilities import ROW_SUM_TOLERANCE, ULPS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    from calibrant._typing import BoolVector, FloatVector
    from calibrant.engines.gathering import Gathering
    from calibrant.engines.memory import MemoryTable

    Reader: TypeAlias = Callable[[str], NDArray[Any]]


def without_bad_rows(table: MemoryTable, wanted: Gathering) -> tuple[MemoryTable, int]:
    """Return the table without rows that cannot be used, and how many there were.

    Columns of text with numbers among it are numbers afterwards.
    """
    usable = usable_rows(table, wanted)
    numbers = {*wanted.columns, wanted.weight}
    if _wants_numbers(wanted):
        numbers.add(wanted.y)

    def read(name: str) -> NDArray[Any]:
        column = table.column(name)[usable]
        return _numbers(column) if name in numbers and _is_text(column) else column

    kept = replace(
        table,
        read=read,
        read_text=_some_rows(table.read_text, usable),
        read_keys=_some_rows(table.read_keys, usable),
    )
    return kept, int(usable.size - usable.sum())


def _some_rows(read: Reader | None, rows: BoolVector) -> Reader | None:
    return None if read is None else lambda name: read(name)[rows]


def usable_rows(table: MemoryTable, wanted: Gathering) -> BoolVector:
    """Return which rows have predictions, label and weight that can be used."""
    usable = _usable_labels(table.column(wanted.y), wanted)
    scores = {name: _numbers(table.column(name)) for name in wanted.columns}
    for name, values in scores.items():
        usable &= np.isfinite(values)
        if wanted.scale == "prob":
            kind = table.column(name).dtype
            slack = ULPS * float(np.finfo(kind if kind.kind == "f" else float).eps)
            usable &= (values >= -slack) & (values <= 1.0 + slack)
    for model in wanted.models:
        if model.labels and wanted.scale == "prob":
            total = np.sum([scores[name] for name in model.columns], axis=0)
            usable &= np.abs(total - 1.0) <= ROW_SUM_TOLERANCE
    if wanted.weight is not None:
        weight = _numbers(table.column(wanted.weight))
        usable &= np.isfinite(weight) & (weight >= 0.0)
    return usable


def _wants_numbers(wanted: Gathering) -> bool:
    """Tell whether labels are 0 and 1."""
    return wanted.pos_label is None and not wanted.models[0].labels


def _is_text(column: NDArray[Any]) -> bool:
    if column.dtype.kind == "O":
        return any(isinstance(value, str) for value in column.tolist())
    return column.dtype.kind == "U"


def _usable_labels(label: NDArray[Any], wanted: Gathering) -> BoolVector:
    if _wants_numbers(wanted) and _is_text(label):
        label = _numbers(label)
    if label.dtype.kind in "fO":
        there = np.array([not is_missing(value) for value in label.tolist()], bool)
    else:
        there = np.ones(label.size, dtype=bool)
    known: set[Any] | None = None
    if wanted.models[0].labels:
        known = set.intersection(*(set(model.labels) for model in wanted.models))
    elif wanted.pos_label is None:
        known = {0, 1}
    if known is not None:
        there &= np.array([value in known for value in label.tolist()], dtype=bool)
    return there


def _numbers(column: NDArray[Any]) -> FloatVector:
    """Return a column as doubles; what is no number is NaN."""

    def as_number(value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            return np.nan

    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    return np.array([as_number(value) for value in column.tolist()], dtype=np.float64)
