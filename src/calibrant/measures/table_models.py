"""Models in a table: which columns they are, and how their rows become events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.arrays import refuse_different_lengths
from calibrant._validation.wording import MEASURES, shown
from calibrant.exceptions import OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calibrant._typing import Task
    from calibrant.engines.memory import MemoryTable
    from calibrant.measures.events import Events, Reading

Columns = str | Sequence[str]
NOT_A_CLASS = (None, "confidence", "classwise")


@dataclass(frozen=True)
class ModelColumns:
    """The probability columns of one model, and the classes that they stand for.

    Attributes
    ----------
    name : str
        Name of the model.
    columns : tuple of str
        One column, or one per class.
    classes : tuple of str
        What names the class of each column: what ``*`` stood for, or the column's
        own name.
    by_pattern : bool
        Whether a ``*`` named the classes.
    """

    name: str
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    by_pattern: bool = False

    def probabilities(self, table: MemoryTable) -> NDArray[Any]:
        """Read the columns: a vector, or one column per class."""
        columns = {f"column {name!r}": table.column(name) for name in self.columns}
        refuse_different_lengths(**columns)
        arrays = list(columns.values())
        return arrays[0] if len(arrays) == 1 else np.stack(arrays, axis=1)

    def labels(self, label: NDArray[Any]) -> list[Any] | None:
        """Return the label of each column, None where it is the column's number.

        Whole-number labels are column numbers, unless a pattern named the classes.
        """
        numbers = label.dtype.kind in "biu" and not self.by_pattern
        if len(self.columns) == 1 or numbers:
            return None
        return [typed_like(label, name) for name in self.classes]

    def __str__(self) -> str:
        if len(self.columns) == 1:
            return f"column {self.columns[0]!r}"
        return f"columns {self.columns[0]!r} .. {self.columns[-1]!r}"


def typed_like(column: NDArray[Any], text: str) -> Any:
    """Return a value written as text in the type that a column holds.

    Examples
    --------
    >>> typed_like(np.array([1, 2]), "2"), typed_like(np.array(["a", "b"]), "2")
    (2, '2')
    """
    kinds: dict[str, Callable[[str], Any]] = {"i": int, "u": int, "f": float}
    if column.dtype.kind == "b":
        return {"true": True, "1": True, "false": False, "0": False}.get(
            text.lower(), text
        )
    try:
        return kinds.get(column.dtype.kind, str)(text)
    except ValueError:
        return text


def model_columns(
    p: Columns | Mapping[str, Columns], *, task: Task, names: Sequence[str]
) -> list[ModelColumns]:
    """Return the columns of each model.

    A mapping names the models itself. Otherwise, with a multi-class task all columns
    belong to one model, one column a class; without one each column is a model. An
    entry with ``*`` stands for all columns of the table that match it, in order.

    Examples
    --------
    >>> there = ["y", "forest_0", "forest_1"]
    >>> model_columns("forest_*", task="confidence", names=there)[0].classes
    ('0', '1')
    >>> len(model_columns("forest_*", task=None, names=there))
    2
    """
    if isinstance(p, Mapping):
        return [_one_model(str(name), cols, names) for name, cols in p.items()]
    if task is None:
        found = _one_model("", p, names).columns
        return [ModelColumns(column, (column,), (column,)) for column in found]
    label = p if isinstance(p, str) else ",".join(p)
    return [_one_model(label, p, names)]


def has_pattern(p: Columns | Mapping[str, Columns]) -> bool:
    """Tell whether a name may stand for several columns.

    Examples
    --------
    >>> has_pattern("forest_*"), has_pattern({"rf": ["a", "b"]})
    (True, False)
    """
    models = p.values() if isinstance(p, Mapping) else [p]
    return any("*" in part for columns in models for part in columns)


def _one_model(name: str, columns: Columns, names: Sequence[str]) -> ModelColumns:
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise OptionError("p must name at least one column.")
    found: list[tuple[str, str]] = []
    for column in wanted:
        before, star, after = column.partition("*")
        matching = [
            (there, there[len(before) : len(there) - len(after)])
            for there in names
            if star and len(there) >= len(column) - 1
            if there.startswith(before) and there.endswith(after)
        ]
        exact = column in names or not matching
        found += [(column, column)] if exact else matching
    there, classes = zip(*found, strict=True)
    return ModelColumns(name, there, classes, by_pattern=there != tuple(wanted))


@dataclass(frozen=True, eq=False)
class TableReader:
    """A table, its columns of labels and weights, and how to read them.

    Attributes
    ----------
    table : MemoryTable
        The columns.
    y : str
        Column of labels.
    weight : str or None
        Column of weights.
    reading : Reading
        Task, labels and scale.
    """

    table: MemoryTable
    y: str
    weight: str | None
    reading: Reading

    def events(self, model: ModelColumns, rows: Any = slice(None)) -> Events:
        """Return the binary events of a model for some of the rows."""
        label, prob = self._label, self._prob(model)
        weight = None if self._weight is None else self._weight[rows]
        task = self.reading.task
        reading = replace(self.reading, wording=self._wording(model))
        if task not in NOT_A_CLASS and prob.ndim == 1:
            # One column of probabilities of one class: that class against the rest.
            alone = replace(reading, task=None, labels=None)
            happened = _is_class(label, task)[rows]
            return replace(alone.events(happened, prob[rows], weight), task=str(task))
        if task is not None and reading.labels is None:
            reading = replace(reading, labels=model.labels(label))
        return reading.events(label[rows], prob[rows], weight)

    @cached_property
    def _label(self) -> NDArray[Any]:
        return self.table.column(self.y)

    @cached_property
    def _weight(self) -> NDArray[Any] | None:
        return None if self.weight is None else self.table.column(self.weight)

    @cached_property
    def _read(self) -> dict[ModelColumns, NDArray[Any]]:
        return {}

    def _prob(self, model: ModelColumns) -> NDArray[Any]:
        if model not in self._read:  # once, not once a group
            self._read[model] = model.probabilities(self.table)
        return self._read[model]

    def _wording(self, model: ModelColumns) -> Any:
        return replace(
            MEASURES,
            label=f"column {self.y!r}",
            prob=str(model),
            weight=f"column {self.weight!r}",
        )


def _is_class(label: NDArray[Any], task: Any) -> NDArray[Any]:
    happened = np.asarray(label == task)
    if happened.ndim != 1 or not happened.any():
        there = list(dict.fromkeys(label.tolist()))
        raise UnknownNameError.among(f"class {shown(task)} as a task,", task, there)
    return happened
