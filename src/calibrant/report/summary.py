"""The summary behind a report: a documented, versioned, plain dict.

Layout, version 1. Numbers that are not known are None. Nothing in it is a row of the
user's: bins, cells, curves and counts only.

- ``format``: "calibrant-report"; ``version``: 1.
- ``made``: ``calibrant`` (version), ``time`` (ISO, UTC), ``seed``.
- ``data``: ``title``, ``source`` (names of files), ``rows``, ``label``, ``task``,
  ``weight`` and ``by`` (columns), ``scale`` (of all models, or of each by name; None
  where it is not known), ``dropped`` (rows by reason), ``clusters``: None, or
  ``column`` and ``count``.
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
  ``diagrams``, one, or one for each of the worst classes: ``event``, ``axis_labels``
  what `diagrams_of` says, and ``remark``, why verdict and band seem to disagree;
  ``findings``: see `Finding`; ``repairs``: see `repairs_of`, or None, with ``command``
  and ``python`` that make the advised one, empty where there is none;
  ``classes``, worst first: ``class``, ``error``, ``low``, ``high``, ``base_rate``,
  ``mean_prob``; ``groups``, worst first: ``group``, ``rows``, ``base_rate``,
  ``mean_prob``, ``error``, ``low``, ``high``, ``pvalue`` (Holm's, see CAL010),
  ``curve`` or None; ``measures`` of one event (see `CalibrationSummary`):
  ``measure``, ``value``, ``low``, ``high``, ``summary``; ``sentence``, for a paper.
- ``comparison``: None, or ``method``, ``rows``, ``models`` (``model``, ``value``,
  ``low``, ``high``, ``rank``) and ``pairs`` (``model_a``, ``model_b``, ``difference``,
  ``low``, ``high``, ``probability``, ``distinct``); see `_comparison`.
- ``decisions``: None, or what `_decisions` says.
- ``notes``: sentences about what was left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.__about__ import __version__
from calibrant.calibrators.registry import find_evaluator
from calibrant.core.formatting import format_count
from calibrant.core.tasks import NAMED_TASKS
from calibrant.exceptions import TooFewRowsError, WeightError
from calibrant.measures.comparison import MIN_MODELS, compare_fitted
from calibrant.measures.decision_curve import (
    PERCENTAGES,
    join_units,
    lost_by_miscalibration,
    units_of,
)
from calibrant.measures.estimate import FittedTasks
from calibrant.report.json_numbers import number, numbers, rows_of
from calibrant.report.model_summary import count_steps, summarise_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from calibrant.core.array_types import Seed
    from calibrant.core.sample import BinarySample
    from calibrant.core.tasks import BinaryTasks
    from calibrant.predictions.predictions import Predictions
    from calibrant.report.model_summary import ReportSettings

FORMAT, VERSION = "calibrant-report", 1
MAX_GROUPS = 200
MAX_MODELS = 12
"""Of more models the pairs would be too many to read."""
MAX_CURVES = 8
"""There are so many colours of decision curves."""
AGGREGATED = (
    "Based on aggregated predictions (sums over rows with nearly equal "
    "predictions): errors differ by less than 0.0001 from those computed on rows."
)
NOT_PAIRED = (
    "Models are not compared in pairs, because it is not known which of their "
    "rows belong together."
)
NEEDS_ID = (
    " Pass the column that identifies the same case across models as id (--id on the "
    "command line), or 'row' if each model has a file with the same rows."
)
SHARED = "Models are compared in pairs only on the {} rows that all of them have."
BY_MODEL = (
    "The verdict is about all rows together. If column {!r} names the model of each "
    "row, pass it as model (--model on the command line): then models are compared."
)
NO_CLASSES = "Repairing all classes together needs rows, not aggregated predictions."


def summarise(
    preds: Predictions,
    settings: ReportSettings,
    *,
    title: str = "",
    created: datetime | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Return the summary of predictions; the module says what is in it."""
    store = preds.store
    fitted = {
        name: FittedTasks(store.whole(name), settings.errors) for name in store.models
    }
    groups = {name: store.groups_of(name) for name in store.models}
    n_events = max(len(one.tasks.samples) for one in fitted.values())
    settings = settings.for_events(n_events)
    comparison = _comparison(preds, fitted, settings)  # first: it may raise
    notes = _notes(preds, groups, n_events, settings, comparison)
    groups = {name: _largest_groups(own) for name, own in groups.items()}
    total, done = sum(map(count_steps, groups.values())), 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    models = [
        summarise_model(preds, name, fitted[name], groups[name], settings, step)
        for name in store.models
    ]
    _share_axes([panel for model in models for panel in model["diagrams"]])
    used = dict.fromkeys(row["method"] for model in models for row in model["errors"])
    named = {store.display_name(name): one.tasks for name, one in fitted.items()}
    seed = settings.errors.random_state
    return {
        "format": FORMAT,
        "version": VERSION,
        "made": {
            "calibrant": __version__,
            "time": (created or datetime.now(UTC)).isoformat(timespec="seconds"),
            "seed": seed if isinstance(seed, int) else None,
        },
        "data": _data(preds, title, fitted.values()),
        "measured": {
            "method": settings.measure_name,
            "methods": [
                # What a method is, without the names of its variants.
                {
                    "method": name,
                    "summary": find_evaluator(settings.named[name]).summary.partition(
                        ";"
                    )[0],
                }
                for name in used
            ],
            "alpha": settings.errors.alpha,
            "confidence": settings.confidence,
            "n_resamples": settings.errors.n_resamples,
        },
        "models": models,
        "comparison": comparison,
        "decisions": _decisions(named, settings.confidence, seed),
        "notes": notes,
    }


def _share_axes(panels: Sequence[dict[str, Any]]) -> None:
    """Show all diagrams on the same kind of axes, such as before and after a repair."""
    if any(panel["axes"] == "logit" for panel in panels):
        for panel in panels:
            panel["axes"] = "logit"


def _largest_groups(groups: dict[str, BinaryTasks]) -> dict[str, BinaryTasks]:
    if len(groups) <= MAX_GROUPS:
        return groups
    by_size = sorted(groups.items(), key=lambda pair: -pair[1].samples[0].n_data)
    return dict(by_size[:MAX_GROUPS])


def _notes(
    preds: Predictions,
    groups: Mapping[str, Mapping[str, BinaryTasks]],
    n_events: int,
    settings: ReportSettings,
    comparison: Mapping[str, Any] | None,
) -> list[str]:
    """Return sentences about what is not in the report."""
    notes = list(
        dict.fromkeys(
            f"Only the {MAX_GROUPS} largest of {len(own)} groups are shown."
            for own in groups.values()
            if len(own) > MAX_GROUPS
        )
    )
    notes += [BY_MODEL.format(one) for one in preds.by if "model" in one.lower()]
    if preds.aggregated:
        notes.append(AGGREGATED)
    if len(preds.models) > 1 and not preds.store.paired:
        notes.append(NOT_PAIRED + ("" if preds.aggregated else NEEDS_ID))
    if comparison is not None and len(preds.models) * comparison["rows"] < preds.n:
        notes.append(SHARED.format(format_count(comparison["rows"])))
    if preds.aggregated and preds.task in ("confidence", "classwise"):
        notes.append(NO_CLASSES)
    if settings.drawn:
        notes.append(
            f"Because there are {n_events} classes, errors are estimated only by the "
            f"fast methods {' and '.join(settings.methods)}. The diagrams of the worst "
            f"classes show {', '.join(settings.drawn)}."
        )
    return notes


def _data(
    preds: Predictions, title: str, fitted: Iterable[FittedTasks]
) -> dict[str, Any]:
    request, column = preds.store.request, preds.store.origin.cluster_column
    codes = (one.tasks.samples[0].clusters for one in fitted)
    known = [own for own in codes if own is not None]
    clusters = None
    if known:
        count = np.unique(np.concatenate(known)).size
        clusters = {"column": column, "count": count}
    scale = None if request is None else request.spec.scale
    y = "as aggregated" if request is None else request.y
    return {
        "title": title,
        "source": ", ".join(PurePath(file).name for file in preds.store.files[:3])
        + (f" and {len(preds.store.files) - 3} more" if preds.store.files[3:] else ""),
        "rows": preds.n,
        "label": y if isinstance(y, str) else ", ".join(y.values()),
        "task": preds.task,
        "weight": None if request is None else request.weight,
        "by": list(preds.by),
        "scale": dict(scale) if isinstance(scale, Mapping) else scale,
        "dropped": dict(preds.store.reasons),
        "clusters": clusters,
    }


def _comparison(
    preds: Predictions, fitted: Mapping[str, FittedTasks], settings: ReportSettings
) -> dict[str, Any] | None:
    """Return ranks and paired differences, None for one model or very many.

    Keys: "method"; "rows", how many all models share; "models" with model, rank, value,
    low, high; "pairs" with model_a, model_b, difference (error of a less that of b),
    low, high, probability that a is the better one, and distinct, whether they differ
    significantly.
    """
    store = preds.store
    if not store.paired or not MIN_MODELS <= len(fitted) <= MAX_MODELS:
        return None
    long = store.paired_by_id()
    if long:
        fitted = {name: FittedTasks(own, settings.errors) for name, own in long.items()}
    named = {store.display_name(name): one for name, one in fitted.items()}
    comparison = compare_fitted(named, settings.measure)
    ranks = comparison.frame()
    names = ("model", "rank", "value", "low", "high")
    return {
        "method": settings.measure_name,
        "rows": next(iter(fitted.values())).tasks.samples[0].n_data,
        "models": rows_of({name: ranks[name] for name in names}),
        "pairs": rows_of(comparison.pairs()),
    }


def _decisions(
    models: Mapping[str, BinaryTasks], confidence: float, seed: Seed
) -> dict[str, Any] | None:
    """Return net benefits by threshold, None where there is no single event.

    Keys: "thresholds"; "curves", one per model and then one for acting always, or one
    for each model if their base rates differ. Each has "name", "net_benefit", "low",
    "high", "always", whether it is one for acting always, "flagged", at how many of the
    thresholds, from the first, any row is acted on, and "lost", the largest net benefit
    lost to miscalibration: "threshold", "lost", "low" and "high", None without a model.
    """
    if any(one.task in NAMED_TASKS for one in models.values()):
        return None
    try:
        parts = [
            units_of(name or "model", {}, one.samples[0], PERCENTAGES)
            for name, one in list(models.items())[:MAX_CURVES]
        ]
        # Never to act is worth nothing at any threshold.
        units = join_units(parts)[:-1]
        flagged = [int(unit.flags.sum()) for unit in units]
        limits = [unit.benefit.limits(confidence) for unit in units]
        lost = [_largest_loss(unit.sample, confidence, seed) for unit in units]
    except (TooFewRowsError, WeightError):
        return None
    curves = [
        {
            "name": unit.model,
            "net_benefit": numbers(unit.benefit.value),
            "low": numbers(low),
            "high": numbers(high),
            "always": unit.sample is None,
            "flagged": count,
            "lost": loss,
        }
        for unit, (low, high), count, loss in zip(
            units, limits, flagged, lost, strict=True
        )
    ]
    return {"thresholds": numbers(PERCENTAGES), "curves": curves}


def _largest_loss(
    sample: BinarySample | None, confidence: float, seed: Seed
) -> dict[str, Any] | None:
    """Return the threshold at which most net benefit is lost, with its interval."""
    if sample is None:
        return None
    columns = lost_by_miscalibration(sample, PERCENTAGES, confidence, seed)
    k = int(columns["lost"].argmax())
    return {name: number(values[k]) for name, values in columns.items()}
