"""Diagrams of predictions that stand in columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.displays.grid import ReliabilityGrid
from calibrant.displays.one_event import refuse_classwise
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.engines.groups import group_rows
from calibrant.engines.memory import open_table
from calibrant.measures.events import Reading
from calibrant.measures.table_models import TableReader, model_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant._typing import Scale, Task
    from calibrant.measures.table_models import Columns

MOST_DIAGRAMS = 24


def reliability_of_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str,
    p: Columns | Mapping[str, Columns],
    by: Sequence[str] = (),
    task: Task = None,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    input_scale: Scale = "prob",
    **options: Any,
) -> ReliabilityGrid:
    """Compute the diagram of each model in a table, and of each group of rows.

    Parameters
    ----------
    source, y, p, by, task, sample_weight, pos_label, labels
        As in `evaluate_table`.
    input_scale : {"prob", "logit"}
        What the columns hold.
    **options
        As in `ReliabilityDisplay.from_predictions`.

    Returns
    -------
    ReliabilityGrid
        One diagram per model and group, at most 24.

    Examples
    --------
    >>> from calibrant.datasets import BINARY_FILE
    >>> grid = reliability_of_table(BINARY_FILE, y="even", p=["forest", "bayes"])
    >>> [display.name for display in grid.displays]
    ['forest', 'bayes']
    """
    refuse_classwise(task)
    table = open_table(source)
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=input_scale)
    reader = TableReader(table, y, sample_weight, reading)
    models = model_columns(p, task=task, names=table.names)
    groups = group_rows(table, by)
    sets = [(model, group) for model in models for group in groups]
    displays = []
    for model, group in sets[:MOST_DIAGRAMS]:
        events = reader.events(model, group.rows)
        told = [model.name] if len(models) > 1 or not group.key else []
        told += [str(group)] if group.key else []
        displays.append(
            ReliabilityDisplay.of_sample(
                events.samples[0], name=", ".join(told), event=events.task, **options
            )
        )
    return ReliabilityGrid(tuple(displays), len(sets) - len(displays))
