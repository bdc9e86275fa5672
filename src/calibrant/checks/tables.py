"""Checks of predictions that stand in columns of a table."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from calibrant.checks.diagnosis import Diagnosis, check_muted, diagnose_events
from calibrant.measures.events import Reading
from calibrant.measures.named_events import models_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant._typing import Scale, Task
    from calibrant.measures.table_models import Columns


def diagnose_table(  # noqa: PLR0913
    source: Any,
    *,
    y: str | None = None,
    p: Columns | Mapping[str, Columns] | None = None,
    by: Columns | None = None,
    task: Task = None,
    sample_weight: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
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
    check_muted(mute)
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    models = models_of(source, y, p, reading, by, sample_weight)
    found = [
        diagnose_events(
            model.events,
            model.groups,
            mute=mute,
            where={"model": model.name} if len(models) > 1 else {},
        ).findings
        for model in models
    ]
    return Diagnosis.of(chain.from_iterable(found))
