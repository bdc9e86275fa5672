"""Predictions whose rows are in memory."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.arrays import check_same_length
from calibrant.core.sample import check_class_sample, cluster_codes
from calibrant.core.scales import warn_if_not_percent
from calibrant.core.warn import warn
from calibrant.core.weights import check_counts, effective_counts, no_weight
from calibrant.core.wording import MEASURE_WORDING
from calibrant.engines.cells import CellOrigin, cells_of_rows
from calibrant.engines.files import ROW_COLUMN
from calibrant.engines.groups import (
    Group,
    format_group_value,
    group_rows,
    key_values,
    numbered_rows,
    warn_of_missing,
    warn_of_weightless,
)
from calibrant.engines.memory import MemoryTable
from calibrant.engines.row_checks import drop_invalid_rows
from calibrant.exceptions import (
    Argument,
    InputError,
    MissingValueError,
    OptionError,
    ProbabilityRangeError,
    RowSumError,
    Setting,
    ShapeError,
    UnpairedRowsWarning,
)
from calibrant.predictions.aggregates import (
    Store,
    Unit,
    aggregation_spec,
    check_can_be_aggregated,
    warn_if_dropped,
)
from calibrant.predictions.columns import (
    NOT_A_CLASS,
    class_labels,
    is_class,
    models_of_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.engines.aggregation_spec import ModelColumns
    from calibrant.engines.cells import AggregatedCells
    from calibrant.predictions.columns import TableRequest

GROUP = "group"
"""What results call the column of an array of groups."""
ABOUT_ROWS = (InputError, MissingValueError, ProbabilityRangeError, RowSumError)
"""Errors about some of the rows, which can be dropped instead."""


@dataclass(frozen=True, eq=False)
class RowPredictions(Store):
    """Rows in memory: validated once, read by model and group."""

    table: MemoryTable  # the columns, without invalid rows if these were to be dropped
    request: TableRequest
    # columns of the predictions of each model; one entry where the models of a long
    # table share their columns
    columns: tuple[ModelColumns, ...]
    # whether columns are arguments of the user's, which errors call by their names
    of_arrays: bool = False
    # how many rows were dropped by reason
    reasons: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_columns(
        cls, arrays: dict[str, NDArray[Any]], request: TableRequest
    ) -> RowPredictions:
        """Validate arrays, which are copies of the user's."""
        table = MemoryTable(tuple(arrays), arrays.__getitem__)
        for name, array in arrays.items():
            if array.ndim not in (1, 2):
                raise ShapeError.of(
                    name,
                    "must be a vector or a table",
                    f"it has shape {array.shape}",
                    value=array.shape,
                )
        columns = tuple(models_of_table(table, request.p, request.spec))
        return cls(table, request, columns, of_arrays=True).validated()

    @classmethod
    def of_table(cls, table: MemoryTable, request: TableRequest) -> RowPredictions:
        """Find the columns, drop invalid rows if asked to, and validate the rest."""
        reasons: dict[str, int] = {}
        labels = request.label_columns
        table = table.with_rows_of(labels[0])
        if ROW_COLUMN in request.id and ROW_COLUMN not in table.names:
            table = table.with_row_numbers(labels)
        if request.bad_rows == "drop":
            specs = [aggregation_spec(table, one) for one in request.by_label(table)]
            total = table.column(specs[0].y).shape[0] + table.lines_left_out
            table, reasons = drop_invalid_rows(table, *specs)
            warn_if_dropped(reasons, total)
        columns = tuple(models_of_table(table, request.p, request.spec))
        with _errors_about_rows(table):
            predictions = [name for model in columns for name in model.named]
            request.check_no_labels(predictions)
            used = dict.fromkeys([*predictions, *request.other_columns])
            source, table = table, table.copy_of(used, request.key_columns)
            for name in request.label_columns:
                source.warn_if_never_equal(name)
            return cls(table, request, columns, reasons=reasons).validated()

    def validated(self) -> RowPredictions:
        """Look at all values once, and raise where some cannot be used."""
        request = self.request
        names = [model.name for model in self.columns]
        request.check_labels(names, "y_true" if self.of_arrays else "y")
        self.tasks  # noqa: B018
        self._check_percentages_of_models()
        self.weight  # noqa: B018
        self.clusters  # noqa: B018
        used = dict.fromkeys(request.other_columns)
        if len(used) > 1:
            check_same_length(**{self._word(n): self.table.column(n) for n in used})
        return self

    def _check_percentages_of_models(self) -> None:
        """Warn where a model of a long table has no percentage above 1."""
        if self.request.model is None or self.request.spec.scale != "percent":
            return
        for columns in self.columns:
            values = columns.read(self.table)
            if values.max() <= 1.0:  # which was said of the column already
                continue
            for model in self.models:
                rows = self._rows(model)
                warn_if_not_percent(
                    values[rows].max(),
                    name=f"model {model!r}",
                    remedy="multiply those of this model by 100 in the file",
                )

    @cached_property
    def tasks(self) -> tuple[BinaryTasks, ...]:
        """Return the binary tasks of each entry of `columns`, without weights."""
        return tuple(self._validate(model) for model in self.columns)

    @cached_property
    def weight(self) -> FloatVector | None:
        """Return weights as they are, with a warning if they are not counts."""
        name = self.request.weight
        if name is None:
            return None
        return check_counts(self.table.column(name), name=self._word(name))

    @cached_property
    def clusters(self) -> IntVector | None:
        """Return a number for each row, the same for rows that belong together."""
        name = self.request.cluster
        if name is None:
            return None
        return cluster_codes(self.table.keys(name), name=self._word(name))

    @property
    def by(self) -> tuple[str, ...]:
        """Return the columns of groups."""
        return self.request.by

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that rows were read from, as they were named."""
        return self.table.files

    @property
    def n_parts(self) -> int | None:
        """Return the number of files whose rows are one table."""
        return len(self.table.parts)

    @cached_property
    def origin(self) -> CellOrigin:
        """Return what the predictions are, of which aggregates are the sums."""
        request = self.request
        pairs = list(zip(self.columns, self.tasks, strict=True))
        return CellOrigin(
            request.spec.task_name,
            tuple((model.name, name) for model, own in pairs for name in own.names),
            request.all_groups,
            weighted=request.weight is not None,
            model_column=request.model or "",
            event=request.spec.event,
            limits=request.cell_limits,
            cluster_column=request.cluster or "",
        )

    @property
    def n(self) -> int:
        """Return the number of rows, without those of weight 0."""
        if self.weight is not None:
            return int(np.count_nonzero(self.weight))
        return self.tasks[0].samples[0].n

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models, in order."""
        if self.request.model is None:
            return tuple(model.name for model in self.columns)
        return tuple(self._groups)

    @property
    def named(self) -> bool:
        """Tell whether results name their model."""
        several = len(self.models) > 1 or self.request.model is not None
        return several or hasattr(self.request.p, "items")

    @property
    def paired(self) -> bool:
        """Tell whether it is known which rows of models belong together."""
        return self.request.model is None or bool(self.request.id)

    def units(self) -> list[Unit]:
        """Return each model in each group of rows."""
        return [
            Unit(name, group, partial(self._tasks, name, group.rows))
            for name, groups in self._groups.items()
            for group in groups
        ]

    def whole(self, model: str) -> BinaryTasks:
        """Return all rows of a model."""
        return self._tasks(model, self._rows(model))

    def all_rows(self) -> BinarySample:
        """Return the first event of the only model, rows of weight 0 included."""
        return self.tasks[0].weighted(None, self._rows(self.models[0])).samples[0]

    def class_counts(self) -> dict[str, int]:
        """Return the number of classes of each model that has one column per class."""
        if self.request.spec.task is None:
            return {}
        sizes = {model.name: len(model.columns) for model in self.columns}
        return {name: size for name, size in sizes.items() if size > 1}

    def display_name(self, model: str) -> str:
        """Return what a page calls a model: empty where it was given no name."""
        column_is_name = not self.of_arrays and self.request.spec.task is None
        return model if self.named or column_is_name else ""

    def columns_of(self, model: str) -> ModelColumns:
        """Return the columns of a model."""
        return self.columns[self._place(model)]

    def _place(self, model: str) -> int:
        if len(self.columns) == 1:  # shared by the models of a long table
            return 0
        return [one.name for one in self.columns].index(model)

    def class_sample(self, model: str) -> ClassSample | None:
        """Return the predictions of all classes, where a model has several columns."""
        columns, spec = self.columns_of(model), self.request.spec
        if spec.task is None or len(columns.columns) == 1:
            return None
        rows, weight = self._rows(model), self.request.weight
        return check_class_sample(
            columns.read(self.table)[rows],
            self._labels(columns)[rows],
            scale=spec.scale_of(columns.name),
            labels=self.class_labels(model),
            sample_weight=None if weight is None else self.table.column(weight)[rows],
        )

    def class_labels(self, model: str) -> Sequence[Any] | None:
        """Return the label of each class column, None where it is its number."""
        columns, labels = self.columns_of(model), self.request.spec.labels
        if labels is not None:
            return labels
        return class_labels(columns, self._labels(columns))

    def paired_tasks(self) -> list[tuple[Group, dict[str, BinaryTasks]]]:
        """Return the same rows of all models, group by group."""
        parts: dict[tuple[Any, ...], tuple[Group, dict[str, Any]]] = {}
        for model, groups in self._groups.items():
            for group in groups:
                key = tuple(group.key.values())
                parts.setdefault(key, (group, {}))[1][model] = group.rows
        if self.request.model is not None:
            return [(group, self._pair_by_id(rows)) for group, rows in parts.values()]
        return [
            (group, {model: self._tasks(model, own) for model, own in rows.items()})
            for group, rows in parts.values()
        ]

    def paired_by_id(self) -> dict[str, BinaryTasks]:
        """Return the rows that models of a long table share, of all groups."""
        if self.request.model is None:
            return {}
        return self._pair_by_id({model: self._rows(model) for model in self.models})

    def aggregate(self) -> AggregatedCells:
        """Return the cells of the rows, of which invalid ones are gone already."""
        request = self.request
        check_can_be_aggregated(request)
        groups = group_rows(self.table, request.all_groups)
        events = [(s.p, s.y) for tasks in self.tasks for s in tasks.samples]
        cells = cells_of_rows(self.origin, groups, events, self.weight)
        dropped = sum(self.reasons.values())
        return replace(cells, dropped=dropped, reasons=self.reasons)

    def _pair_by_id(self, rows: dict[str, Any]) -> dict[str, BinaryTasks]:
        """Return the rows of models whose id all of them have, in the same order."""
        if not self.request.id:
            raise OptionError(
                "to compare models, their rows must be paired; pass ",
                Argument("id"),
                ", the column that identifies the same case across models, such as the "
                "question; or pass ",
                Setting("id", ROW_COLUMN),
                " to pair rows by their number, if each model has a file with the same "
                "rows in the same order.",
            )
        places = {model: self._places_by_id(model, own) for model, own in rows.items()}
        first, *others = places.values()
        shared = [key for key in first if all(key in other for other in others)]
        common, _ = numbered_rows(shared)  # in order of the ids
        columns = _in_words(self.request.id)
        if not common:
            raise OptionError(
                f"no value of {columns} occurs for all models, and models "
                "are compared only on values that they share. Leave out models with "
                "few rows, or compare two at a time."
            )
        known = len(set().union(*places.values()))
        if len(common) < known:
            sizes = {model: len(own) for model, own in places.items()}
            text = _describe_shared(len(common), known, sizes, columns)
            warn(text, UnpairedRowsWarning)
        return {
            model: self._tasks(model, np.array([own[key] for key in common]))
            for model, own in places.items()
        }

    def _places_by_id(self, model: str, rows: Any) -> dict[tuple[Any, ...], int]:
        names = self.request.id
        columns = [key_values(self.table.keys(name)[rows]) for name in names]
        keys = list(zip(*columns, strict=True))
        places = dict(zip(keys, rows.tolist(), strict=True))
        if len(places) < len(keys):
            twice = next(key for key, times in Counter(keys).items() if times > 1)
            raise OptionError(
                f"{_in_words(names)} must have each value at most once per model; "
                f"model {model!r} has {', '.join(map(repr, twice))} more than once. "
                "If models answer the same case several times, name a further column "
                "that tells the answers apart, such as ",
                Setting("id", [*names, "sample"]),
                *(
                    ()
                    if self.request.cluster
                    else (
                        ", and, because answers to the same case are not independent, ",
                        Setting("cluster", names[0]),
                    )
                ),
                ".",
            )
        return places

    def of_model(self, model: str) -> RowPredictions:
        """Return the rows of one of several models, as of a single one."""
        columns, request = self.columns_of(model), self.request
        named: Any = columns.matrix or list(columns.columns)
        spec = replace(request.spec, scale=request.spec.scale_of(columns.name))
        single = replace(
            request,
            y=request.label_of(columns.name),
            p={columns.name: named},
            spec=spec,
            model=None,
            id=(),
        )
        part = self.table.take(self._rows(model))
        return RowPredictions(part, single, (columns,), self.of_arrays).validated()

    def _rows(self, model: str) -> Any:
        """Return which rows are those of a model."""
        if self.request.model is None:
            return slice(None)
        return np.sort(np.concatenate([group.rows for group in self._groups[model]]))

    @cached_property
    def _groups(self) -> dict[str, list[Group]]:
        """Return the groups of rows of each model; one of all rows without columns."""
        column, by = self.request.model, self.request.by
        if column is None:
            groups = [Group({}, slice(None))]
            if by:
                groups = self._weighted(group_rows(self.table, by))
            return {model.name: groups for model in self.columns}
        of_models: dict[str, list[Group]] = {}
        for group in self._weighted(group_rows(self.table, (column, *by))):
            key = dict(group.key)
            own = of_models.setdefault(format_group_value(key.pop(column)), [])
            own.append(Group(key, group.rows))
        return of_models

    def _weighted(self, groups: list[Group]) -> list[Group]:
        """Return groups that have a weight, and warn of others; never leave none.

        Rows without a value of a group are warned of, too.
        """
        by = self.request.by
        warn_of_missing(
            ({name: group.key[name] for name in by}, np.asarray(group.rows).size)
            for group in groups
        )
        weight = self.weight
        if weight is None:
            return groups
        kept = [group for group in groups if weight[group.rows].any()]
        warn_of_weightless([group for group in groups if not weight[group.rows].any()])
        return kept

    def _tasks(self, model: str, rows: Any) -> BinaryTasks:
        """Return the binary tasks of some rows of a model, with their weights."""
        weight = self.weight
        if weight is not None:
            weight = weight[rows]
            if not weight.any():
                word = self._word(str(self.request.weight))
                raise no_weight(weight.size, name=word)
            weight = effective_counts(weight)
        clusters = None if self.clusters is None else self.clusters[rows]
        return self.tasks[self._place(model)].weighted(weight, rows, clusters)

    def _validate(self, model: ModelColumns) -> BinaryTasks:
        """Return the binary tasks of all rows without weights."""
        column = self.request.label_of(model.name)
        words = (column, model.named[0]) if self.of_arrays else (None, str(model))
        wording = replace(
            MEASURE_WORDING, label=words[0] or self._word(column), prob=words[1]
        )
        label, prob = self.table.column(column), model.read(self.table)
        spec = self.request.spec
        if not self.of_arrays:
            compare = (" To compare the answers of models with the true ones, name ",)
            both = (*compare, "both columns: ", Setting("y", "truth==answer"), ".")
            several = (*wording.several_labels, *both)
            wording = replace(wording, several_labels=several)
        spec = replace(spec, scale=spec.scale_of(model.name), wording=wording)
        if spec.task not in NOT_A_CLASS and prob.ndim == 1:
            # One column of probabilities of one class: that class against the rest.
            binary = replace(spec, task=None, labels=None)
            happened = is_class(label, spec.task, wording.label)
            tasks = binary.tasks_of_arrays(happened, prob)
            return replace(tasks, task=str(spec.task), names=(str(spec.task),))
        if spec.task is not None and spec.labels is None:
            spec = replace(spec, labels=class_labels(model, label))
        return spec.tasks_of_arrays(label, prob)

    def _labels(self, model: ModelColumns) -> NDArray[Any]:
        return self.table.column(self.request.label_of(model.name))

    def _word(self, column: str) -> str:
        """Return what error messages call a column."""
        if not self.of_arrays:
            return f"column {column!r}"
        return "groups" if column == GROUP else column


def _in_words(columns: Sequence[str]) -> str:
    plural = "s" if len(columns) > 1 else ""
    return f"column{plural} {' and '.join(map(repr, columns))}"


@contextmanager
def _errors_about_rows(table: MemoryTable) -> Iterator[None]:
    """Name the file of rows of a table in errors, and that they can be dropped."""
    try:
        yield
    except InputError as error:
        if error.place is None:
            raise
        row = error.place[0]
        found = error.with_fault(
            error.fault.replace(f"row {row}", table.describe_row(row), 1)
        )
        suggested = Setting("bad_rows", "drop") in error.remedy
        about_rows = type(error) in ABOUT_ROWS and not suggested
        raise found.suggest_dropping() if about_rows else found from None


HALF = 0.5
"""Below this share of the rows of the smallest model, the way out is told."""


def _describe_shared(
    shared: int, known: int, sizes: Mapping[str, int], columns: str
) -> str:
    """Return how many cases all models share, and how many each has."""
    each = ", ".join(f"{model} {size:,}" for model, size in sizes.items())
    text = (
        f"{shared:,} of {known:,} values of {columns} occur for all "
        f"{len(sizes)} models; only these are compared. Rows of each model: {each}."
    )
    if shared >= HALF * min(sizes.values()):
        return text
    return (
        f"{text} Fewer than half of the rows of each model are left: leave out models "
        "with few rows, compare fewer models at a time, or fill in missing predictions."
    )
