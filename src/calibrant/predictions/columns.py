"""Which columns of a table hold what, and which are those of which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.defaults import MAX_DROPPED
from calibrant.core.labels import check_single_labels
from calibrant.core.tasks import NAMED_TASKS
from calibrant.engines.aggregation_spec import ModelColumns
from calibrant.engines.cells import USUAL_LIMITS, ExactLimits
from calibrant.engines.file_formats import APPLIED
from calibrant.engines.memory import EQUAL, MemoryTable, part_of_matrix
from calibrant.exceptions import Argument, OptionError, Setting, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from calibrant.core.array_types import Task
    from calibrant.core.tasks import InputSpec
    from calibrant.engines.aggregation_spec import BadRows
    from calibrant.engines.opening import Table

Columns = str | Sequence[str]
NOT_A_CLASS = (None, *NAMED_TASKS)


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """Which columns of a table hold what: parameters of `Predictions.from_table`."""

    y: str | Mapping[str, str]
    p: Columns | Mapping[str, Columns]
    spec: InputSpec
    by: tuple[str, ...] = ()
    model: str | None = None
    id: tuple[str, ...] = ()
    weight: str | None = None
    cluster: str | None = None
    time: str | None = None
    bad_rows: BadRows = "error"
    max_dropped: float = MAX_DROPPED
    limits: ExactLimits = USUAL_LIMITS

    def __post_init__(self) -> None:
        """Raise where scales are those of models that share a column."""
        if self.model is not None and isinstance(self.p, str | Mapping):
            self.spec.check_one_scale([self.p] if isinstance(self.p, str) else self.p)

    @property
    def key_columns(self) -> list[str]:
        """Return the columns whose values name models, groups, clusters and such."""
        keys = (self.model, *self.id, self.cluster, self.time, *self.by)
        return list(dict.fromkeys(name for name in keys if name is not None))

    @property
    def label_columns(self) -> list[str]:
        """Return the columns of labels."""
        return [self.y] if isinstance(self.y, str) else list(self.y.values())

    @property
    def other_columns(self) -> list[str]:
        """Return all columns but those of predictions."""
        labels = self.label_columns
        weight = [] if self.weight is None else [self.weight]
        return [*labels, *weight, *self.key_columns]

    @property
    def all_groups(self) -> tuple[str, ...]:
        """Return the columns of groups: of models first, and of clusters last."""
        columns = (self.model, *self.by, self.cluster)
        return tuple(name for name in columns if name is not None)

    @property
    def cell_limits(self) -> ExactLimits:
        """Return how many rows are kept exactly; with clusters, all or none."""
        return self.limits if self.cluster is None else replace(self.limits, in_group=0)

    def label_of(self, model: str) -> str:
        """Return the column of labels of a model."""
        return self.y if isinstance(self.y, str) else self.y[model]

    def check_one_model(self, models: Sequence[str]) -> None:
        """Raise where both a column and columns of p, or neither, name the models."""
        if self.model is not None and len(models) > 1:
            raise OptionError(
                "with ",
                Argument("model"),
                ", whose column names the models, ",
                Argument("p"),
                f" must be one model; it names {len(models)}: "
                f"{', '.join(map(repr, models))}.",
            )
        if self.model is None and self.id:
            raise OptionError(
                Argument("id"),
                " pairs the rows of models that share a column; pass ",
                Argument("model"),
                " too, or remove it.",
            )
        if self.model is not None and self.model in self.by:
            raise OptionError(
                f"column {self.model!r} names the models already; remove it from ",
                Argument("by"),
                ".",
            )

    def check_no_labels(self, predictions: Sequence[str]) -> None:
        """Raise where labels are named as predictions, whose error would be 0."""
        both = next((name for name in predictions if name in self.label_columns), None)
        if both is not None:
            raise OptionError(
                Argument("p"),
                " must name predictions, but ",
                Argument("y"),
                f" names the column {both!r} too.",
            )

    def check_labels(self, models: Sequence[str], name: str) -> None:
        """Raise unless all models have labels, of their own or together."""
        self.check_one_model(models)
        if not isinstance(self.y, str) and set(self.y) != set(models):
            remedy: list[str | Argument] = []
            if len(self.y) == 1 and not set(self.y) & set(models):
                ((first, second),) = self.y.items()
                equal = Setting(name, f"{first}{EQUAL}{second}")
                remedy = [" To test whether two columns are equal, pass ", equal, "."]
            raise OptionError(
                Argument(name),
                " must have the labels of each model by its name, "
                f"{', '.join(map(repr, models))}; it has "
                f"{', '.join(map(repr, self.y))}.",
                *remedy,
            )

    def by_label(self, table: Table) -> list[TableRequest]:
        """Return one request per model where models have labels of their own."""
        if isinstance(self.y, str):
            return [self]
        names = [model.name for model in models_of_table(table, self.p, self.spec)]
        self.check_labels(names, "y")
        columns: Any = self.p if isinstance(self.p, Mapping) else {n: n for n in names}
        return [
            replace(
                self,
                y=self.y[name],
                p={name: columns[name]},
                spec=replace(self.spec, scale=self.spec.scale_of(name)),
            )
            for name in names
        ]


def class_labels(model: ModelColumns, label: NDArray[Any]) -> list[Any] | None:
    """Return the label of each column, None where it is the column's number.

    Whole-number labels are column numbers, unless a pattern named the classes.
    """
    numbers = label.dtype.kind in "biu" and not model.by_pattern
    if len(model.columns) == 1 or numbers or model.matrix:
        return None
    return [typed_like(label, name) for name in model.classes]


def typed_like(column: NDArray[Any], text: str) -> Any:
    """Return a value written as text in the type that a column holds.

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


def models_of_table(
    table: Table, p: Columns | Mapping[str, Columns], spec: InputSpec
) -> list[ModelColumns]:
    """Return the columns of each model, checked against the table and the scales."""
    width = table.width if isinstance(table, MemoryTable) else _one_column
    models = model_columns(p, task=spec.task, names=table.names, width=width)
    names = [model.name for model in models]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise OptionError(Argument("p"), f" names the model {twice[0]!r} twice.")
    spec.check_scales(names)
    return models


def _one_column(_name: str) -> int:
    return 1


def model_columns(
    p: Columns | Mapping[str, Columns],
    *,
    task: Task,
    names: Sequence[str],
    width: Callable[[str], int] = _one_column,
) -> list[ModelColumns]:
    """Return the columns of each model.

    A mapping names the models itself. Otherwise, with a multi-class task all columns
    belong to one model, one column per class; without one each column is a model. An
    entry with ``*`` stands for all columns of the table that match it, in order. Among
    the classes of a model, columns that ``calibrant apply`` added to others which match
    too do not count. `width` gives the number of columns of an array.

    >>> there = ["y", "forest_0", "forest_1", "forest_0_calibrated"]
    >>> model_columns("forest_*", task="confidence", names=there)[0].classes
    ('0', '1')
    >>> len(model_columns("forest_*", task=None, names=there))
    3
    """
    if isinstance(p, Mapping):
        return [_one_model(str(m), _entries(c), names, width) for m, c in p.items()]
    entries = _entries(p)
    if task is None:
        matching = [match for entry in entries for match in _matching(entry, names)]
        return [_of_columns(column, (column,), names, width) for column, _ in matching]
    return [_one_model(",".join(entries), entries, names, width)]


def _entries(columns: Columns) -> list[str]:
    entries = [columns] if isinstance(columns, str) else list(columns)
    if not entries:
        raise OptionError(Argument("p"), " must name at least one column.")
    return entries


def _one_model(
    name: str, entries: list[str], names: Sequence[str], width: Callable[[str], int]
) -> ModelColumns:
    """Return the model whose columns are all that match its entries."""
    matching = [m for entry in entries for m in _not_applied(_matching(entry, names))]
    columns, classes = zip(*matching, strict=True)
    model = _of_columns(name, columns, names, width)
    if model.matrix or columns == tuple(entries):
        return model
    return replace(model, classes=classes, by_pattern=True)


def _of_columns(
    name: str,
    columns: tuple[str, ...],
    names: Sequence[str],
    width: Callable[[str], int],
) -> ModelColumns:
    """Return a model of columns, or of a matrix with one column per class."""
    first = columns[0]
    sizes = {column: width(column) for column in columns if column in names}
    if len(columns) > 1 and max(sizes.values(), default=1) > 1:
        raise OptionError(
            Argument("p"),
            " must be one matrix per model; it names "
            f"{', '.join(map(repr, columns))} for one. Pass one of them, ",
            Setting("p", first),
            ", or each as a model of its own.",
        )
    size = sizes.get(first, 1)
    if len(columns) > 1 or size == 1:
        return ModelColumns(name, columns, columns)
    numbers = tuple(map(str, range(size)))
    parts = tuple(part_of_matrix(first, number) for number in numbers)
    return ModelColumns(name, parts, numbers, matrix=first)


def _matching(entry: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns that an entry stands for, and what ``*`` stands for in each.

    Without a ``*``, or where a column has that very name, it is the column itself.
    """
    before, star, after = entry.partition("*")
    matching = [
        (name, name[len(before) : len(name) - len(after)])
        for name in names
        if star and len(name) >= len(entry) - 1
        if name.startswith(before) and name.endswith(after)
    ]
    return [(entry, entry)] if entry in names or not matching else matching


def _not_applied(matching: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return columns without those that `calibrant apply` added to others among them.

    It adds one to each column, named by any ending.
    """
    there = {column for column, _ in matching}
    matching = [
        match
        for match in matching
        if not (match[0].endswith(APPLIED) and match[0].removesuffix(APPLIED) in there)
    ]
    names = {column for column, _ in matching}
    endings = {
        name[place:]
        for name in names
        for place, sign in enumerate(name)
        if sign == "_" and name[:place] in names
    }
    for ending in sorted(endings):
        plain = [match for match in matching if not match[0].endswith(ending)]
        kept = {column for column, _ in plain}
        if {f"{column}{ending}" for column in kept} == names - kept:
            return plain
    return matching


def is_class(label: NDArray[Any], task: Any, name: str) -> NDArray[Any]:
    """Tell which labels are a class, or raise where none is."""
    check_single_labels(label, name=name)
    happened = np.asarray(label == task)
    if happened.ndim != 1 or not happened.any():
        there = list(dict.fromkeys(label.tolist()))
        raise UnknownNameError.among("class", task, there)
    return happened
