"""Reports of cells, which keep sums but no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.engines.groups import group_columns
from calibrant.measures.named_events import cell_models
from calibrant.report.models import ModelRows
from calibrant.report.report import Report
from calibrant.report.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.engines.cells import CellTable
    from calibrant.measures.events import Events
    from calibrant.measures.table_models import Columns
    from calibrant.report.models import Plan

OF_CELLS = (
    "Made of cells, sums over rows with nearly the same prediction: errors differ by "
    "less than 0.0001 from those of the rows."
)
GATHERED = "as gathered"
NOT_PAIRED = "Which models share rows is not known from cells, so none are compared."
NO_CLASSES = "Repairs of all classes together need rows."


def report_cells(
    cells: CellTable, plan: Plan, *, by: Columns | None = None, title: str, **made: Any
) -> Report:
    """Make a report of cells, each model in all of them and in groups.

    Pairs of models are not compared and several classes are not repaired, since cells
    do not know what lies in the same row.
    """
    grouped_by = cells.origin.by if by is None else group_columns(by)
    models = {
        model.name: ModelRows(model.events, _named(model.groups, grouped_by))
        for model in cell_models(cells, grouped_by)
    }
    task = cells.origin.task
    notes = [OF_CELLS]
    notes += [NOT_PAIRED] if len(models) > 1 else []
    notes += [NO_CLASSES] if task in ("confidence", "classwise") else []
    data = {
        "source": title,
        "rows": cells.n,
        "label": GATHERED,
        "task": task,
        "weight": GATHERED if cells.origin.weighted else None,
        "by": list(grouped_by),
    }
    return Report(summarise(models, plan, data, notes=notes, paired=False, **made))


def _named(groups: Mapping[str, Events], by: tuple[str, ...]) -> dict[str, Events]:
    """Return groups by their values, with columns where there are several."""
    column = f"{by[0]}=" if len(by) == 1 else ""
    return {name.removeprefix(column): events for name, events in groups.items()}
