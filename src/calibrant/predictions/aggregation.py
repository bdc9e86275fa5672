"""Which columns of a table are asked for, and how engines aggregate them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from calibrant.core.labels import check_label_order
from calibrant.core.scales import MAX_DROPPED
from calibrant.core.warn import warn
from calibrant.engines.aggregation_spec import AggregationSpec, BadRows, WatchedModel
from calibrant.engines.usable_rows import listed_reasons
from calibrant.exceptions import (
    DroppedRowsWarning,
    OptionError,
    ShapeError,
    UnknownNameError,
)
from calibrant.predictions.model_columns import NOT_A_CLASS, Columns, models_of_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant.engines.aggregation_spec import Table
    from calibrant.engines.cells import AggregatedCells
    from calibrant.predictions.input_spec import InputSpec
    from calibrant.predictions.model_columns import ModelColumns


@dataclass(frozen=True, kw_only=True)
class TableRequest:
    """Which columns of a table hold what, and what to do with invalid rows.

    Attributes
    ----------
    y : str or dict
        Column of labels, or that of each model by name.
    p : str, list or dict
        Columns of predictions.
    spec : InputSpec
        Task, labels and scale.
    by : tuple of str
        Columns of groups.
    model, id, weight, cluster, time : str or None
        Columns of the model of each row, of what pairs rows of models, of weights, of
        rows that belong together, and of when rows were recorded.
    bad_rows : {"error", "drop"}
        What to do with invalid rows.
    max_dropped : float
        The maximum share of rows that may be dropped.
    """

    y: str | Mapping[str, str]
    p: Columns | Mapping[str, Columns]
    spec: InputSpec
    by: tuple[str, ...] = ()
    model: str | None = None
    id: str | None = None
    weight: str | None = None
    cluster: str | None = None
    time: str | None = None
    bad_rows: BadRows = "error"
    max_dropped: float = MAX_DROPPED

    def label_of(self, model: str) -> str:
        """Return the column of labels of a model."""
        return self.y if isinstance(self.y, str) else self.y[model]

    def check_labels(self, models: Sequence[str], name: str) -> None:
        """Raise unless all models have labels, of their own or together."""
        if not isinstance(self.y, str) and set(self.y) != set(models):
            raise OptionError(
                f"{name} must have the labels of each model by its name, "
                f"{', '.join(map(repr, models))}; it has "
                f"{', '.join(map(repr, self.y))}."
            )

    def by_label(self, table: Table) -> list[TableRequest]:
        """Return one request per model where models have labels of their own."""
        if isinstance(self.y, str):
            return [self]
        names = [model.name for model in models_of_table(table, self.p, self.spec)]
        self.check_labels(names, "y")
        entries: Any = self.p if isinstance(self.p, Mapping) else {n: n for n in names}
        return [
            replace(
                self,
                y=self.y[name],
                p={name: entries[name]},
                spec=self.spec.of_model(name),
            )
            for name in names
        ]


def aggregation_spec(table: Table, request: TableRequest) -> AggregationSpec:
    """Return what is to be aggregated, checked against the columns that there are."""
    spec = request.spec
    if not isinstance(request.y, str):
        raise OptionError(
            "labels that differ by model cannot be aggregated together; aggregate each "
            "model by itself."
        )
    models = models_of_table(table, request.p, spec)
    every = [column for model in models for column in model.columns]
    weight = [] if request.weight is None else [request.weight]
    by = request.by if request.model is None else (request.model, *request.by)
    table.check_columns([request.y, *every, *by, *weight])
    whole: dict[str, Any] = {
        "y": request.y,
        "weight": request.weight,
        "by": by,
        "bad_rows": request.bad_rows,
        "max_dropped": request.max_dropped,
    }
    alone = spec.task not in NOT_A_CLASS and len(every) == len(models)
    if spec.task is None or alone:
        return _of_one_column(table, models, spec, whole)
    spec.check_options()
    watched = tuple(
        _watched(model, table.dtype_example(request.y), spec) for model in models
    )
    return AggregationSpec(models=watched, task=str(spec.task), **whole)


def aggregated(table: Table, request: TableRequest) -> AggregatedCells:
    """Return the sums over rows; those of a long table know its column of models."""
    cells = table.aggregate(aggregation_spec(table, request))
    origin = replace(cells.origin, model_column=request.model or "")
    return replace(cells, origin=origin)


def _of_one_column(
    table: Table, models: list[ModelColumns], spec: InputSpec, whole: dict[str, Any]
) -> AggregationSpec:
    """Return what is to be gathered where each model has one column."""
    for model in models:
        if len(model.columns) > 1:
            raise ShapeError.of(
                str(model),
                "must be one column for a binary task",
                f"it has {len(model.columns)}",
                spec.wording.columns,
            )
    task = spec.task
    if task is None:
        spec.check_options()
    elif not table.contains(whole["y"], task):
        raise UnknownNameError.among("class as a task,", task, ())
    name = "binary" if task is None else str(task)
    return AggregationSpec(
        models=tuple(
            WatchedModel(
                model.name,
                model.columns,
                events=(name,),
                scale=spec.scale_of(model.name),
            )
            for model in models
        ),
        task=name,
        pos_label=spec.pos_label if task is None else task,
        against_rest=task is not None,
        **whole,
    )


def _watched(model: ModelColumns, like: NDArray[Any], spec: InputSpec) -> WatchedModel:
    """Return a model with a column a class."""
    n_classes = len(model.columns)
    if n_classes == 1:
        raise ShapeError(
            f"{model} must be one column per class for this task. {spec.wording.vector}"
        )
    given = spec.labels if spec.labels is not None else model.labels(like)
    labels = check_label_order(given, n_classes)
    spec = replace(spec, labels=labels)
    chosen = spec.watched(n_classes)
    return WatchedModel(
        model.name,
        model.columns,
        tuple(labels),
        tuple(chosen),
        spec.event_names(chosen),
        spec.scale_of(model.name),
        display_name=str(model),
    )


def warn_if_dropped(reasons: Mapping[str, int], total: int) -> None:
    """Tell how many rows were dropped, and why."""
    if reasons:
        warn(
            f"{sum(reasons.values()):,} of {total:,} rows could not be used and were "
            f"left out: {listed_reasons(reasons)}.",
            DroppedRowsWarning,
        )
