"""Tables of cells from tables of rows, and events from them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from calibrant._validation.labels import check_label_order
from calibrant._validation.options import check_choice, check_share
from calibrant._validation.scales import MAX_DROPPED
from calibrant._validation.weights import warn_if_fractional
from calibrant.engines.gathering import BadRows, Gathering, WatchedModel
from calibrant.engines.groups import group_columns
from calibrant.engines.opening import Engine, open_source
from calibrant.engines.usable_rows import listed_reasons
from calibrant.exceptions import DroppedRowsWarning, ShapeError, UnknownNameError
from calibrant.measures.events import Events, Reading
from calibrant.measures.table_models import NOT_A_CLASS, Columns, models_of_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from calibrant._typing import Scale, Task
    from calibrant.engines.cells import CellTable
    from calibrant.engines.gathering import Table
    from calibrant.measures.table_models import ModelColumns


def gather_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str,
    p: Columns | Mapping[str, Columns],
    by: Columns | None = None,
    engine: Engine = "auto",
    task: Task = None,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
    bad_rows: BadRows = "raise",
    max_dropped: float = MAX_DROPPED,
) -> CellTable:
    """Gather predictions into a small table of cells that adds up.

    Cells of several days, files or machines can be added; `evaluate_table` takes them
    instead of the rows. Up to 65,536 rows of a group, or 2,097,152 of the table, are
    kept without loss; of more, errors differ by less than 0.0001 from those of rows.

    Parameters
    ----------
    source, y, p, by, engine, task, sample_weight, pos_label, labels, scale
        As in `evaluate_table`.
    bad_rows, max_dropped
        As in `evaluate_table`.

    Returns
    -------
    CellTable
        Sums over the rows of each cell, per model, class and group.

    Examples
    --------
    >>> import calibrant as cb
    >>> cells = cb.gather_table(cb.datasets.BINARY_FILE, y="even", p="bayes")
    >>> cells
    <CellTable: 1,797 rows, 1,381 cells>
    >>> print(cb.evaluate_table(cells + cells, methods="ew15", confidence=None))
    ew15 (binary): 0.0896, n = 3594
    """
    check_choice(engine, get_args(Engine), name="engine")
    check_choice(bad_rows, get_args(BadRows), name="bad_rows")
    table = open_source(source, engine, bad_rows=bad_rows)
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    wanted = gathering(
        table,
        y,
        p,
        reading,
        by=group_columns(by),
        weight=sample_weight,
        bad_rows=bad_rows,
        max_dropped=check_share(max_dropped, name="max_dropped"),
    )
    cells = table.gather(wanted)
    warn_if_dropped(cells.reasons, cells.dropped + cells.n, stacklevel=3)
    return cells


def gathering(
    table: Table,
    y: str,
    p: Columns | Mapping[str, Columns],
    reading: Reading,
    *,
    by: tuple[str, ...] = (),
    weight: str | None = None,
    **dropping: Any,
) -> Gathering:
    """Return what is to be gathered, checked against the columns that there are."""
    models = models_of_table(table, p, reading)
    every = [column for model in models for column in model.columns]
    table.check_columns([y, *every, *by, *([weight] if weight else [])])
    whole: dict[str, Any] = {"y": y, "weight": weight, "by": by}
    whole |= dropping
    alone = reading.task not in NOT_A_CLASS and len(every) == len(models)
    if reading.task is None or alone:
        return _of_one_column(table, models, reading, whole)
    reading.check_options()
    watched = tuple(_watched(model, table.like(y), reading) for model in models)
    return Gathering(models=watched, task=str(reading.task), **whole)


def _of_one_column(
    table: Table, models: list[ModelColumns], reading: Reading, whole: dict[str, Any]
) -> Gathering:
    """Return what is to be gathered where each model has one column."""
    for model in models:
        if len(model.columns) > 1:
            raise ShapeError(
                f"{model} must be one column for a binary task. "
                f"{reading.wording.columns}"
            )
    task = reading.task
    if task is None:
        reading.check_options()
    elif not table.has(whole["y"], task):
        raise UnknownNameError.among("class as a task,", task, ())
    name = "binary" if task is None else str(task)
    return Gathering(
        models=tuple(
            WatchedModel(
                model.name,
                model.columns,
                events=(name,),
                scale=reading.scale_of(model.name),
            )
            for model in models
        ),
        task=name,
        pos_label=reading.pos_label if task is None else task,
        against_rest=task is not None,
        **whole,
    )


def _watched(model: ModelColumns, like: NDArray[Any], reading: Reading) -> WatchedModel:
    """Return a model with a column a class."""
    n_classes = len(model.columns)
    if n_classes == 1:
        raise ShapeError(
            f"{model} must be one column per class for this task. "
            f"{reading.wording.vector}"
        )
    given = reading.labels if reading.labels is not None else model.labels(like)
    labels = check_label_order(given, n_classes)
    reading = replace(reading, labels=labels)
    chosen = reading.watched(n_classes)
    return WatchedModel(
        model.name,
        model.columns,
        tuple(labels),
        tuple(chosen),
        reading.event_names(chosen),
        reading.scale_of(model.name),
        display_name=str(model),
    )


def cell_events(cells: CellTable, model: str, group: int) -> Events:
    """Return the events of a model in a group, as samples of cells."""
    own = [i for i, (name, _) in enumerate(cells.origin.events) if name == model]
    samples = tuple(cells.sample(group, event) for event in own)
    if cells.origin.weighted and samples[0].n:
        first = samples[0]
        weight = np.asarray(first.weight)
        average = weight.sum() / first.n_data
        if average >= 1.0:
            warn_if_fractional(weight, average, name="column of weights")
    names = tuple(cells.origin.events[event][1] for event in own)
    return Events(cells.origin.task, names, samples, same_rows=False)


def warn_if_dropped(reasons: Mapping[str, int], total: int, *, stacklevel: int) -> None:
    """Tell how many rows were dropped, and why."""
    if reasons:
        warnings.warn(
            f"{sum(reasons.values()):,} of {total:,} rows could not be used and were "
            f"left out: {listed_reasons(reasons)}.",
            DroppedRowsWarning,
            stacklevel=stacklevel,
        )
