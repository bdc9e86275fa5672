"""Diagrams of predictions that stand in columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.displays.grid import ReliabilityGrid
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.engines.memory import open_table
from calibrant.measures.tables import model_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.measures.tables import Columns


def reliability_of_table(
    source: Any,
    *,
    y: str,
    p: Columns | Mapping[str, Columns],
    sample_weight: str | None = None,
    **options: Any,
) -> ReliabilityGrid:
    """Compute the diagram of each model in a table.

    Parameters
    ----------
    source, y, p, sample_weight
        As in `evaluate_table`.
    **options
        As in `ReliabilityDisplay.from_predictions`.

    Returns
    -------
    ReliabilityGrid
        One diagram per model.

    Examples
    --------
    >>> from calibrant.datasets import BINARY_FILE
    >>> grid = reliability_of_table(BINARY_FILE, y="even", p=["forest", "bayes"])
    >>> [display.name for display in grid.displays]
    ['forest', 'bayes']
    """
    table = open_table(source)
    label = table.column(y)
    weight = None if sample_weight is None else table.column(sample_weight)
    task, labels = options.pop("task", None), options.pop("labels", None)
    displays = []
    for model in model_columns(p, task=task, names=table.names):
        named = model.labels(label, named="*" in p) if task is not None else None
        displays.append(
            ReliabilityDisplay.from_predictions(
                label,
                model.probabilities(table),
                name=model.name,
                task=task,
                labels=named if labels is None else labels,
                sample_weight=weight,
                **options,
            )
        )
    return ReliabilityGrid(tuple(displays))
