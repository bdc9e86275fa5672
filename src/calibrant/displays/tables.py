"""Diagrams of predictions that stand in columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.displays.grid import ReliabilityGrid
from calibrant.displays.one_event import refuse_classwise
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.measures.events import Reading
from calibrant.measures.named_events import sets_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant._typing import Scale, Task
    from calibrant.measures.table_models import Columns

MOST_DIAGRAMS = 24


def reliability_of_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str | None = None,
    p: Columns | Mapping[str, Columns] | None = None,
    by: Columns | None = None,
    task: Task = None,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    input_scale: Scale | Mapping[str, Scale] = "prob",
    **options: Any,
) -> ReliabilityGrid:
    """Compute the diagram of each model in a table, and of each group of rows.

    Parameters
    ----------
    source, y, p, by, task, sample_weight, pos_label, labels
        As in `evaluate_table`.
    input_scale : {"prob", "logit", "percent", "logprob"} or dict
        What the columns hold, as `scale` in `evaluate_table`.
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
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=input_scale)
    sets = sets_of(source, y, p, reading, by, sample_weight)
    several = len({one.model for one in sets}) > 1
    displays = []
    for one in sets[:MOST_DIAGRAMS]:
        events = one.events()
        refuse_classwise(events.task)
        told = [one.model] if several or not one.group else []
        told += [one.group] if one.group else []
        displays.append(
            ReliabilityDisplay.of_sample(
                events.samples[0], name=", ".join(told), event=events.task, **options
            )
        )
    return ReliabilityGrid(tuple(displays), len(sets) - len(displays))
