"""What all predictions can do, and those that are sums over rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit

from calibrant.core.labels import check_label_order
from calibrant.core.scales import warn_if_not_event_logits, warn_if_not_percent
from calibrant.core.tasks import CANONICAL, BinaryTasks
from calibrant.core.warn import warn
from calibrant.core.weights import warn_if_fractional
from calibrant.engines.aggregation_spec import AggregationSpec
from calibrant.engines.groups import Group, format_group_value, warn_of_missing
from calibrant.engines.opening import needs_memory
from calibrant.engines.row_checks import listed_reasons
from calibrant.exceptions import (
    DroppedRowsWarning,
    OptionError,
    Setting,
    ShapeError,
    UnknownNameError,
)
from calibrant.predictions.columns import NOT_A_CLASS, class_labels, models_of_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.core.tasks import InputSpec
    from calibrant.engines.aggregation_spec import ModelColumns
    from calibrant.engines.cells import AggregatedCells, CellOrigin
    from calibrant.engines.opening import Table
    from calibrant.engines.sql_tables import SqlTable
    from calibrant.predictions.columns import TableRequest


CLUSTERS = "clusters"
"""What an array of clusters is called."""
LOGIT_DECIMALS = 12
"""Digits of a logit that survive as a probability."""


@dataclass(frozen=True, eq=False)
class Unit:
    """The predictions of one model in one group of rows, evaluated by themselves."""

    model: str  # name of the model; empty where there is one without a name
    group: Group  # which rows; one without values stands for all rows
    read: Callable[[], BinaryTasks]  # returns the binary tasks of these rows


class Store(ABC):
    """What public functions read from rows in memory and from aggregates alike.

    The methods here are those of aggregates; rows know more.
    """

    request: TableRequest | None
    """Which columns hold what; None where that is not known."""

    @property
    @abstractmethod
    def origin(self) -> CellOrigin:
        """Return what the predictions are, of which aggregates are the sums."""

    @property
    def by(self) -> tuple[str, ...]:
        """Return the columns of groups."""
        origin = self.origin
        return tuple(n for n in origin.group_columns if n != origin.model_column)

    @abstractmethod
    def units(self) -> list[Unit]:
        """Return each model in each group of rows."""

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files that rows were read from, as they were named."""
        return ()

    @property
    def n_parts(self) -> int | None:
        """Return the number of files whose rows are one table; None if unknown."""
        return None

    def class_sample(self, model: str) -> ClassSample | None:  # noqa: ARG002
        """Return the predictions of all classes; None where there are no rows."""
        return None

    def columns_of(self, model: str) -> ModelColumns | None:  # noqa: ARG002
        """Return the columns of a model; None where that is not known."""
        return None

    @property
    def cluster_column(self) -> str:
        """Return the column of clusters; empty without one, as for arrays."""
        column = self.origin.cluster_column
        return "" if column == CLUSTERS else column

    def class_labels(self, model: str) -> Sequence[Any] | None:  # noqa: ARG002
        """Return the label of each class column, None where it is its number."""
        return None

    def class_counts(self) -> dict[str, int]:
        """Return the number of classes of each model that has one column per class."""
        return {}

    def display_name(self, model: str) -> str:
        """Return what a page calls a model: empty where it was given no name."""
        return model

    def groups_of(self, model: str) -> dict[str, BinaryTasks]:
        """Return the groups of rows of a model by their name, empty without groups."""
        own = [unit for unit in self.units() if unit.model == model]
        return {unit.group.name: unit.read() for unit in own if unit.group.key}

    def paired_by_id(self) -> dict[str, BinaryTasks]:
        """Return the rows that models of a long table share; empty for others."""
        return {}

    def single_tasks(self, verb: str, several: str = "") -> BinaryTasks:
        """Return all rows of the only model; raise where there are several units.

        `several` is what takes several units.
        """
        units = self.units()
        if len(units) > 1 or self.by:
            ways = [
                'preds.model("name") has the rows of one model'
                if len({unit.model for unit in units}) > 1
                else "",
                "predictions made without by= (or groups=) have all rows together"
                if self.by
                else "",
                several and f"{several} takes all of them",
            ]
            raise OptionError(
                f"{verb} takes one model without groups; got {len(units)} models "
                f"or groups: {'; '.join(filter(None, ways))}."
            )
        return units[0].read()


@dataclass(frozen=True, eq=False)
class AggregatedPredictions(Store):
    """Sums over the rows of cells, read by model and group."""

    cells: AggregatedCells
    request = None
    paired = False

    @property
    def reasons(self) -> Mapping[str, int]:
        """Return how many rows were dropped by reason."""
        return self.cells.reasons

    @property
    def origin(self) -> CellOrigin:
        """Return what was aggregated."""
        return self.cells.origin

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return self.cells.n

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models, in order."""
        if self.origin.model_column:
            return tuple(dict.fromkeys(unit.model for unit in self._all_units))
        return tuple(dict.fromkeys(name for name, _ in self.origin.events))

    @property
    def named(self) -> bool:
        """Tell whether results name their model."""
        return len(self.models) > 1 or bool(self.origin.model_column)

    def units(self) -> list[Unit]:
        """Return each model in each group of rows."""
        return [u for name in self.models for u in self._all_units if u.model == name]

    def whole(self, model: str) -> BinaryTasks:
        """Return all rows of a model."""
        column = self.origin.model_column
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
        origin = self.origin
        units = []
        for place, values in enumerate(self.cells.unit_keys):
            key = dict(zip(origin.group_columns, values, strict=True))
            own = key.pop(origin.model_column, None) if origin.model_column else None
            for name in dict.fromkeys(name for name, _ in origin.events):
                model = format_group_value(own) if origin.model_column else name
                read = partial(self._tasks, name, place)
                units.append(Unit(model, Group(key, slice(None)), read))
        first = units[0].model if units else ""
        warn_of_missing(
            (unit.group.key, unit.read().samples[0].n_data)
            for unit in units
            if None in unit.group.key.values()
            and (origin.model_column or unit.model == first)
        )
        return units

    def _tasks(self, model: str, unit: int) -> BinaryTasks:
        cells = self.cells
        own = [i for i, (name, _) in enumerate(cells.origin.events) if name == model]
        samples = tuple(cells.sample(unit, event) for event in own)
        if cells.origin.weighted and samples[0].n:
            first = samples[0]
            weight = np.asarray(first.weight)
            average = weight.sum() / first.n_data
            if average >= 1.0:
                warn_if_fractional(weight, average, name="column of weights")
        names = tuple(cells.origin.events[event][1] for event in own)
        return BinaryTasks(cells.origin.task, names, samples)


def aggregation_spec(table: Table, request: TableRequest) -> AggregationSpec:
    """Return what is to be aggregated, checked against the columns that there are."""
    spec = request.spec
    y: Any = request.y
    models = models_of_table(table, request.p, spec)
    request.check_one_model([model.name for model in models])
    every = [column for model in models for column in model.columns]
    request.check_no_labels(every)
    weight = [] if request.weight is None else [request.weight]
    by = request.all_groups
    table.check_columns([y, *every, *by, *weight])
    one_class = spec.task not in NOT_A_CLASS and len(every) == len(models)
    if spec.task is None or one_class:
        own = _one_column_each(table, models, y, spec)
    else:
        spec.check_options()
        for model in models:
            if len(model.columns) == 1:  # an engine may say why, as where it is lists
                table.dtype_example(model.columns[0])
        labels = table.dtype_example(y)
        own = {"models": tuple(_class_columns(m, labels, spec) for m in models)}
    return AggregationSpec(
        y=y,
        weight=request.weight,
        by=by,
        cluster=request.cluster,
        task=spec.task_name,
        bad_rows=request.bad_rows,
        max_dropped=request.max_dropped,
        limits=request.cell_limits,
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


def aggregate_table(table: SqlTable, request: TableRequest) -> AggregatedCells:
    """Return the sums over rows; those of a long table know its column of models."""
    check_can_be_aggregated(request)
    for name in request.other_columns:
        if name not in table.names and needs_memory([name]):
            raise OptionError(
                f"column {name!r} is computed from other columns or from file names, "
                "which is done in memory; pass ",
                Setting("engine", "memory"),
                ".",
            )
    spec = aggregation_spec(table, request)
    cells = table.aggregate(spec)
    for model in spec.models:
        _warn_if_other_scale(cells, spec, model)
    origin = replace(
        cells.origin, model_column=request.model or "", event=request.spec.event
    )
    return replace(cells, origin=origin)


def _warn_if_other_scale(
    cells: AggregatedCells, spec: AggregationSpec, model: ModelColumns
) -> None:
    """Warn where percentages, or logits of one event, look like probabilities.

    Logits of several classes are no longer known: the cells contain probabilities.
    """
    events = [i for i, (name, _) in enumerate(spec.events) if name == model.name]
    own = np.isin(cells.columns["event"], events)
    low, high = (cells.columns[name][own] for name in ("low", "high"))
    if model.scale == "percent":
        warn_if_not_percent(100.0 * high.max(initial=0.0), name=str(model))
    elif model.scale == "logit" and not model.labels and own.any():
        lowest, highest = np.round(logit([low.min(), high.max()]), LOGIT_DECIMALS)
        rows = int(cells.columns["rows"][own].sum())
        distinct = np.unique(low).size
        warn_if_not_event_logits(lowest, highest, rows, distinct, name=str(model))


def check_can_be_aggregated(request: TableRequest) -> None:
    """Raise where predictions have something that sums over rows do not keep."""
    if request.time is not None:
        raise OptionError(
            "aggregated predictions do not keep times yet; read the rows into memory "
            "without aggregating them (",
            Setting("engine", "memory"),
            "), or leave times out.",
        )
    if request.spec.task_name == CANONICAL:
        raise OptionError(
            Setting("task", CANONICAL),
            " needs rows, which sums do not keep; evaluate them in memory (",
            Setting("engine", "memory"),
            ") instead of aggregating them.",
        )
    if not isinstance(request.y, str):
        raise OptionError(
            "models with different labels cannot be aggregated together; "
            "aggregate each model separately."
        )


def warn_if_dropped(reasons: Mapping[str, int], total: int) -> None:
    """Warn how many rows were dropped, and why."""
    if reasons:
        warn(
            f"{sum(reasons.values()):,} of {total:,} rows were invalid and were "
            f"dropped: {listed_reasons(reasons)}.",
            DroppedRowsWarning,
        )
