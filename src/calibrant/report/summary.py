"""The summary behind a report: a documented, versioned, plain dict.

Layout, version 1. Numbers that are not known are None. Nothing in it is a row of the
user's: bins, cells, curves and counts only.

- ``format``: "calibrant-report"; ``version``: 1.
- ``made``: ``calibrant`` (version), ``time`` (ISO, UTC), ``seed``.
- ``data``: ``source``, ``rows``, ``label``, ``task``, ``weight`` and ``by`` (columns).
- ``measured``: ``method`` of the verdict, all ``methods`` with a summary each,
  ``alpha``, ``confidence``, ``n_resamples``.
- ``models``, as many as there are, in the order given, each with
  ``name``, ``rows``, ``weight`` (sum of weights), ``base_rate``, ``mean_prob``;
  ``verdict``: ``method``, its ``value``, ``low`` and ``high``, ``grade`` (good, fair,
  poor, bad, unknown), ``relative_error``, ``headline``, ``error`` (a sentence),
  ``sentences`` (all);
  ``errors``: ``method``, ``value``, ``low``, ``high``, ``debiased``, ``bins``;
  ``scores``: ``name``, ``score``, ``calibration``, ``discrimination``, ``uncertainty``,
  ``refinement``; ``scored``: the event that they are about;
  ``diagrams``, one, or one for each of the worst classes: see `diagram_of`;
  ``findings``: see `Finding`; ``repairs``: see `repairs_of`, or None, with ``command``
  and ``python`` that make the advised one, empty where there is none;
  ``classes``, worst first: ``class``, ``error``, ``low``, ``high``, ``base_rate``,
  ``mean_prob``; ``groups``, worst first: ``group``, ``rows``, ``base_rate``,
  ``mean_prob``, ``error``, ``low``, ``high``, ``pvalue`` (Holm's, see CAL010).
- ``comparison``: None, or ``method``, ``models`` (``model``, ``value``, ``low``,
  ``high``, ``rank``) and ``pairs`` (``model_a``, ``model_b``, ``difference``, ``low``,
  ``high``, ``probability``, ``distinct``); see `comparison_of`.
- ``notes``: sentences about what was left out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from calibrant.__about__ import __version__
from calibrant.calibrators.registry import find_evaluator, method_name
from calibrant.measures.estimate import FittedTasks
from calibrant.report.comparison import comparison_of
from calibrant.report.models import Plan, model_summary, task_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from calibrant.report.models import ModelRows

FORMAT, VERSION = "calibrant-report", 1


def summarise(
    models: Mapping[str, ModelRows],
    plan: Plan,
    data: Mapping[str, Any],
    *,
    notes: Sequence[str] = (),
    paired: bool = True,
    created: datetime | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Return the summary of all models; the module says what is in it.

    Models are compared if they are `paired`: if their rows are the same.
    """
    events = max(len(rows.events.samples) for rows in models.values())
    hurried = plan.for_events(events)
    if hurried is not plan:
        plan, notes = hurried, [*notes, _quick_note(events, hurried)]
    total = sum(task_steps(len(rows.groups)) for rows in models.values())
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    fitted = {
        name: FittedTasks(rows.events, plan.estimator) for name, rows in models.items()
    }
    told = [
        model_summary(name, rows, fitted[name], plan, step)
        for name, rows in models.items()
    ]
    used = dict.fromkeys(row["method"] for model in told for row in model["errors"])
    methods = {method_name(method): method for method in plan.methods}
    return {
        "format": FORMAT,
        "version": VERSION,
        "made": {
            "calibrant": __version__,
            "time": (created or datetime.now(UTC)).isoformat(timespec="seconds"),
            "seed": _seed(plan),
        },
        "data": dict(data),
        "measured": {
            "method": plan.measure_name,
            "methods": [
                {"method": name, "summary": find_evaluator(methods[name]).summary}
                for name in used
            ],
            "alpha": plan.estimator.alpha,
            "confidence": plan.confidence,
            "n_resamples": plan.estimator.n_resamples,
        },
        "models": told,
        "comparison": comparison_of(fitted, plan) if paired else None,
        "notes": list(notes),
    }


def _quick_note(classes: int, plan: Plan) -> str:
    return (
        f"Of {classes} classes all errors are by {' and '.join(plan.methods)}, which "
        f"are quick; the worst are drawn by more methods."
    )


def _seed(plan: Plan) -> int | None:
    seed = plan.estimator.random_state
    return seed if isinstance(seed, int) else None
