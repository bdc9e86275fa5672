"""Aggregated predictions: sums over rows, which can be added and stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.labels import check_label_order
from calibrant.core.tasks import BinaryTasks
from calibrant.core.warn import warn
from calibrant.core.weights import warn_if_fractional
from calibrant.engines.aggregation_spec import AggregationSpec
from calibrant.engines.dropped_rows import listed_reasons
from calibrant.engines.groups import Group, format_group_value
from calibrant.engines.memory import MemoryTable
from calibrant.engines.opening import needs_memory
from calibrant.exceptions import (
    DroppedRowsWarning,
    OptionError,
    Setting,
    ShapeError,
    UnknownNameError,
)
from calibrant.predictions.columns import NOT_A_CLASS, class_labels, models_of_table
from calibrant.predictions.store import Store, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.sample import BinarySample
    from calibrant.core.tasks import InputSpec
    from calibrant.engines.aggregation_spec import ModelColumns, Table
    from calibrant.engines.cells import AggregatedCells
    from calibrant.predictions.columns import TableRequest


@dataclass(frozen=True, eq=False)
class AggregatedPredictions(Store):
    """Sums over the rows of cells, read by model and group.

    Attributes
    ----------
    cells : AggregatedCells
        The sums.
    """

    cells: AggregatedCells
    paired = False

    @property
    def task(self) -> str:
        """Return the name of the task."""
        return self.cells.origin.task

    @property
    def event(self) -> str | None:
        """Return the label that is predicted, where it is one with a name."""
        return self.cells.origin.event

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return self.cells.n

    @property
    def by(self) -> tuple[str, ...]:
        """Return the columns of groups."""
        column = self.cells.origin.model_column
        return tuple(name for name in self.cells.origin.by if name != column)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models, in order."""
        if self.cells.origin.model_column:
            return tuple(dict.fromkeys(unit.model for unit in self._all_units))
        return tuple(dict.fromkeys(name for name, _ in self.cells.origin.events))

    @property
    def named(self) -> bool:
        """Tell whether results name their model."""
        return len(self.models) > 1 or bool(self.cells.origin.model_column)

    def units(self) -> list[Unit]:
        """Return each model in each group of rows."""
        return [u for name in self.models for u in self._all_units if u.model == name]

    def whole(self, model: str) -> BinaryTasks:
        """Return all rows of a model."""
        column = self.cells.origin.model_column
        cells = self.cells.grouped_by([column] if column else [])
        units = AggregatedPredictions(cells).units()
        return next(unit.read() for unit in units if unit.model == model)

    def all_rows(self) -> BinarySample:
        """Raise: there are no rows."""
        raise OptionError(
            "true maps cannot be drawn from aggregated predictions; pass the rows."
        )

    def paired_tasks(self) -> list[tuple[Group, dict[str, BinaryTasks]]]:
        """Raise: nothing pairs the rows of cells."""
        raise OptionError(
            "models of aggregated predictions cannot be compared, since it is not "
            "known which of their rows belong together; pass the rows."
        )

    def aggregate(self) -> AggregatedCells:
        """Return the cells themselves."""
        return self.cells

    @cached_property
    def _all_units(self) -> list[Unit]:
        origin = self.cells.origin
        units = []
        for place, values in enumerate(self.cells.groups):
            key = dict(zip(origin.by, values, strict=True))
            own = key.pop(origin.model_column, None) if origin.model_column else None
            for name in dict.fromkeys(name for name, _ in origin.events):
                model = format_group_value(own) if origin.model_column else name
                read = partial(self._tasks, name, place)
                units.append(Unit(model, Group(key, slice(None)), read))
        return units

    def _tasks(self, model: str, group: int) -> BinaryTasks:
        cells = self.cells
        own = [i for i, (name, _) in enumerate(cells.origin.events) if name == model]
        samples = tuple(cells.sample(group, event) for event in own)
        if cells.origin.weighted and samples[0].n:
            first = samples[0]
            weight = np.asarray(first.weight)
            average = weight.sum() / first.n_data
            if average >= 1.0:
                warn_if_fractional(weight, average, name="column of weights")
        names = tuple(cells.origin.events[event][1] for event in own)
        return BinaryTasks(cells.origin.task, names, samples, same_rows=False)


def aggregation_spec(table: Table, request: TableRequest) -> AggregationSpec:
    """Return what is to be aggregated, checked against the columns that there are."""
    spec = request.spec
    if not isinstance(request.y, str):
        raise OptionError(
            "models with different labels cannot be aggregated together; "
            "aggregate each model separately."
        )
    models = models_of_table(table, request.p, spec)
    request.check_one_model([model.name for model in models])
    every = [column for model in models for column in model.columns]
    weight = [] if request.weight is None else [request.weight]
    by = request.by if request.model is None else (request.model, *request.by)
    table.check_columns([request.y, *every, *by, *weight])
    one_class = spec.task not in NOT_A_CLASS and len(every) == len(models)
    if spec.task is None or one_class:
        own = _one_column_each(table, models, request.y, spec)
    else:
        spec.check_options()
        for model in models:
            if len(model.columns) == 1:  # an engine may say why, as where it is lists
                table.dtype_example(model.columns[0])
        labels = table.dtype_example(request.y)
        own = {"models": tuple(_class_columns(m, labels, spec) for m in models)}
    return AggregationSpec(
        y=request.y,
        weight=request.weight,
        by=by,
        task=spec.task_name,
        bad_rows=request.bad_rows,
        max_dropped=request.max_dropped,
        **own,
    )


def _second_column(model: ModelColumns) -> ModelColumns:
    """Return the column of the event, where a model is the two of `predict_proba`."""
    if not model.matrix or len(model.columns) != 2:  # noqa: PLR2004
        return model
    return replace(model, columns=model.columns[1:])


def _one_column_each(
    table: Table, models: list[ModelColumns], y: str, spec: InputSpec
) -> dict[str, Any]:
    """Return models of one column, and the label that counts as the event."""
    models = [
        _second_column(model) if spec.scale_of(model.name) != "logit" else model
        for model in models
    ]
    for model in models:
        if len(model.columns) > 1:
            raise ShapeError.of(
                str(model),
                "must be one column for a binary task",
                f"it has {len(model.columns)}",
                spec.wording.columns,
            )
    if spec.task is None:
        spec.check_options()
    elif not table.contains(y, spec.task):
        raise UnknownNameError(f"no row of column {y!r} has class {spec.task!r}.")
    events = (spec.task_name,)
    return {
        "models": tuple(
            replace(model, events=events, scale=spec.scale_of(model.name))
            for model in models
        ),
        "pos_label": spec.pos_label if spec.task is None else spec.task,
        "against_rest": spec.task is not None,
    }


def _class_columns(model: ModelColumns, like: Any, spec: InputSpec) -> ModelColumns:
    """Return a model with one column per class."""
    n_classes = len(model.columns)
    if n_classes == 1:
        raise ShapeError.of(
            str(model),
            "must have one column per class for this task",
            "it has one",
            spec.wording.vector,
        )
    given = spec.labels if spec.labels is not None else class_labels(model, like)
    labels = check_label_order(given, n_classes)
    columns, names = replace(spec, labels=labels).events(n_classes)
    return replace(
        model,
        labels=tuple(labels),
        watched=tuple(columns),
        events=names,
        scale=spec.scale_of(model.name),
    )


def aggregate_table(table: Table, request: TableRequest) -> AggregatedCells:
    """Return the sums over rows; those of a long table know its column of models."""
    for field, value in (("clusters", request.cluster), ("times", request.time)):
        if value is not None:
            raise OptionError(
                f"aggregated predictions do not keep {field} yet; read the rows into "
                f"memory without aggregating them, or leave {field} out."
            )
    _check_not_computed(table, request)
    cells = table.aggregate(aggregation_spec(table, request))
    origin = replace(
        cells.origin, model_column=request.model or "", event=request.spec.event
    )
    return replace(cells, origin=origin)


def _check_not_computed(table: Table, request: TableRequest) -> None:
    """Raise where a column would have to be computed from others, out of memory."""
    if isinstance(table, MemoryTable):
        return
    for name in request.other_columns:
        if name not in table.names and needs_memory([name]):
            raise OptionError(
                f"column {name!r} is computed from other columns or from file names, "
                "which is done in memory; pass ",
                Setting("engine", "memory"),
                ".",
            )


def warn_if_dropped(reasons: Mapping[str, int], total: int) -> None:
    """Warn how many rows were dropped, and why."""
    if reasons:
        warn(
            f"{sum(reasons.values()):,} of {total:,} rows were invalid and were "
            f"dropped: {listed_reasons(reasons)}.",
            DroppedRowsWarning,
        )
