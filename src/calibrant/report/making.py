"""From predictions to the summary of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.checks.diagnosis import check_muted
from calibrant.core.defaults import DEFAULT_METHODS
from calibrant.core.options import whole_seed
from calibrant.measures.estimate import ErrorSettings
from calibrant.measures.evaluation import check_methods
from calibrant.report.commands import Origin, origin_of
from calibrant.report.models import ModelRows, Plan
from calibrant.report.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from calibrant.core.array_types import Seed
    from calibrant.predictions.input_spec import BinaryTasks
    from calibrant.predictions.predictions import Predictions

MAX_GROUPS = 200
AGGREGATED = (
    "Made of aggregated predictions, sums over rows with nearly the same prediction: "
    "errors differ by less than 0.0001 from those of the rows."
)
AS_AGGREGATED = "as aggregated"
NOT_PAIRED = (
    "It is not known which rows of the models belong together, so models are not "
    "compared in pairs."
)
NO_CLASSES = "Repairs of all classes together need rows."


def make_plan(
    methods: Sequence[str] | str,
    alpha: float,
    confidence: float,
    n_resamples: int,
    mute: Sequence[str] | str,
    random_state: Seed,
) -> Plan:
    """Return how each model is looked at."""
    names = check_methods(methods)
    return Plan(
        methods=names,
        estimator=ErrorSettings(
            alpha=alpha,
            confidence=confidence,
            n_resamples=n_resamples,
            random_state=whole_seed(random_state),
        ),
        confidence=confidence,
        mute=check_muted(mute),
        hurries=names == DEFAULT_METHODS,
    )


def summary_of(
    preds: Predictions,
    plan: Plan,
    *,
    title: str = "",
    files: Sequence[str] = (),
    fit_options: Sequence[str] = (),
    created: datetime | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Return the summary of predictions; `calibrant.report.summary` describes it."""
    notes: list[str] = []
    models = {}
    for name in preds.store.models:
        groups, note = _largest(preds.store.groups_of(name))
        notes += [note] if note and note not in notes else []
        models[preds.store.display_name(name)] = ModelRows(
            preds.store.whole(name),
            groups,
            preds.store.class_sample(name),
            _origin(preds, name, files, fit_options),
        )
    return summarise(
        models,
        plan,
        _data(preds, title),
        notes=[*notes, *_notes(preds)],
        paired=preds.store.paired,
        created=created,
        progress=progress,
    )


def origins_of(
    preds: Predictions, files: Sequence[str], fit_options: Sequence[str]
) -> dict[str, Origin]:
    """Return where the predictions of each model come from.

    Aggregated predictions and long tables do not know it.
    """
    if preds.store.table_request is None or preds.store.table_request.model is not None:
        return {}
    return {
        name: _origin(preds, name, files, fit_options) for name in preds.store.models
    }


def _notes(preds: Predictions) -> list[str]:
    notes = [AGGREGATED] if preds.aggregated else []
    notes += [NOT_PAIRED] if len(preds.models) > 1 and not preds.store.paired else []
    several = preds.task in ("confidence", "classwise")
    return notes + ([NO_CLASSES] if preds.aggregated and several else [])


def _data(preds: Predictions, title: str) -> dict[str, Any]:
    request = preds.store.table_request
    return {
        "source": title,
        "rows": preds.n,
        "label": AS_AGGREGATED if request is None else _label(request.y),
        "task": preds.task,
        "weight": None if request is None else request.weight,
        "by": list(preds.by),
    }


def _label(y: Any) -> str:
    return y if isinstance(y, str) else ", ".join(y.values())


def _origin(
    preds: Predictions, model: str, files: Sequence[str], fit_options: Sequence[str]
) -> Origin:
    """Return where the predictions of a model come from, for printed commands."""
    columns, request = preds.store.columns_of(model), preds.store.table_request
    if columns is None or request is None or request.model is not None:
        return Origin()
    return origin_of(
        columns,
        request.spec,
        files=files,
        fit_options=fit_options,
        label=request.label_of(model),
        weight=request.weight,
        labels=preds.store.class_labels(model),
    )


def _largest(groups: dict[str, BinaryTasks]) -> tuple[dict[str, BinaryTasks], str]:
    """Return the groups to show, and a note where there are more."""
    if len(groups) <= MAX_GROUPS:
        return groups, ""
    by_size = sorted(groups.items(), key=lambda pair: -pair[1].samples[0].n_data)
    note = f"Of {len(groups)} groups the {MAX_GROUPS} largest are shown."
    return dict(by_size[:MAX_GROUPS]), note
