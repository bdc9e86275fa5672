"""Checks of predictions that stand in columns of a table."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from calibrant.checks.diagnosis import Diagnosis, diagnose_events
from calibrant.engines.groups import group_rows
from calibrant.engines.memory import open_table
from calibrant.measures.events import Reading
from calibrant.measures.table_models import TableReader, model_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant._typing import Scale, Task
    from calibrant.measures.table_models import Columns


def diagnose_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str,
    p: Columns | Mapping[str, Columns],
    by: Columns | None = None,
    task: Task = None,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
    mute: Sequence[str] | str = (),
) -> Diagnosis:
    """Run the checks on each model of a table; groups are held against all rows.

    Parameters
    ----------
    source, y, p, by, task, sample_weight, pos_label, labels, scale
        As in `evaluate_table`.
    mute : sequence of str
        Codes of checks to leave out.

    Returns
    -------
    Diagnosis
        The findings of all models, worst first.

    Examples
    --------
    >>> from calibrant.datasets import BINARY_FILE
    >>> diagnose_table(BINARY_FILE, y="even", p=["forest", "bayes"]).codes
    ['CAL001', 'CAL002', 'CAL004', 'CAL003', 'CAL008', 'CAL009']
    """
    table = open_table(source)
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    reader = TableReader(table, y, sample_weight, reading)
    models = model_columns(p, task=task, names=table.names)
    columns = [by] if isinstance(by, str) else list(by or [])
    groups = group_rows(table, columns) if columns else []
    found = [
        diagnose_events(
            reader.events(model),
            {str(group): reader.events(model, group.rows) for group in groups},
            mute=mute,
            where={"model": model.name} if len(models) > 1 else {},
        ).findings
        for model in models
    ]
    return Diagnosis.of(chain.from_iterable(found))
