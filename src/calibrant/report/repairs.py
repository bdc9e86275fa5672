"""What recalibration would bring, on rows that it was not fitted on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.calibrators.auto import Auto, certify
from calibrant.calibrators.auto_held_out import EventRows
from calibrant.calibrators.registry import find_method
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD, DEFAULT_REPAIR
from calibrant.core.sample import BinarySample
from calibrant.core.tasks import BinaryTasks, InputSpec
from calibrant.displays.diagram_data import band_of, data_range, map_points
from calibrant.maps.certificate import Bounds
from calibrant.measures.estimate import FittedTasks
from calibrant.numerics.pooling import brier_scores, log_losses, mean_and_error
from calibrant.numerics.scores import brier_score, log_loss
from calibrant.report.diagram import curve_numbers
from calibrant.report.json_numbers import error_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from calibrant.calibrators.auto_held_out import HeldOut
    from calibrant.calibrators.fits import Fit
    from calibrant.checks.check import Finding
    from calibrant.core.array_types import FloatMatrix
    from calibrant.core.sample import ClassSample
    from calibrant.measures.estimate import ErrorSettings, Estimate

NONE = "none"
MIN_ROWS = 50
"""With fewer rows no repairs are tried."""
MAX_CLASSES = 20
"""With more classes than this the error of each class after a repair is not
measured."""
NOT_BETTER = (
    "None of the repairs tried improves predictions significantly on held-out rows."
)


def repairs_of(
    sample: BinarySample | ClassSample, fitted: FittedTasks, measure: str
) -> dict[str, Any] | None:
    """Return what each repair would bring on rows that it was not fitted on.

    These are the methods that "auto" tries, and their combination. `fitted` are the
    events of the sample as they are, whose error by `measure` is compared.

    Returns None where there are too few rows, or only one outcome. Keys: "folds";
    "rows", one per repair with "none" first and "auto" second: "method", "error" with
    its interval "low" and "high" (None for methods that "auto" only combines),
    "brier", "log_loss", the same of the event alone ("event_brier",
    "event_log_loss"; they differ where all classes are repaired), "gain" in log-loss
    and its standard error "gain_error"; "advised", "auto" or "none"; "certificate",
    what the repair gains, in words; "scored", what the scores measure;
    "after", the curve of predictions of one event after the advised repair: "p",
    "calibrated", "low" and "high".
    """
    if not _can_be_repaired(sample):
        return None
    task, settings = fitted.tasks.task, fitted.settings
    held_out = Auto(random_state=settings.random_state).held_out(sample)
    repaired = {
        NONE: held_out.raw.log_prob,
        DEFAULT_REPAIR: held_out.after,
        **held_out.alone,
    }
    after = FittedTasks(_tasks(held_out, sample, task, held_out.after), settings)
    errors: dict[str, Estimate] = {}
    if task != "classwise" or len(after.tasks.samples) <= MAX_CLASSES:
        both = {NONE: fitted, DEFAULT_REPAIR: after}
        errors = {name: one.estimates(measure)[0] for name, one in both.items()}
    certificate = certify(
        held_out,
        sample.n_data if isinstance(sample, BinarySample) else sample.n,
        "",
        errors=_certified(errors, task, measure, settings),
    )
    rows = [
        {
            "method": name,
            "summary": summary,
            **error_numbers(errors.get(name)),
            **scores,
        }
        for (name, summary), scores in zip(
            _summaries(repaired).items(),
            _scores(held_out, sample, task, repaired),
            strict=True,
        )
    ]
    changed = certificate.changed
    return {
        "folds": certificate.folds,
        "rows": rows,
        "advised": DEFAULT_REPAIR if changed else NONE,
        "certificate": str(certificate),
        "scored": "the event" if isinstance(sample, BinarySample) else "all classes",
        "after": _after(after) if changed else None,
    }


def _after(fitted: FittedTasks) -> dict[str, Any] | None:
    """Return the curve of repaired predictions, None for several events."""
    if len(fitted.tasks.samples) > 1:
        return None
    confidence = fitted.settings.confidence or DEFAULT_CONFIDENCE
    seed = fitted.settings.random_state
    fit = cast("Fit", fitted.fits(DEFAULT_METHOD)[0])
    curve = map_points(fit, data_range(fitted.tasks.samples[0]))
    columns = curve.frame()
    band = band_of(fit, curve, "point-wise", confidence, seed)
    if band is not None:
        columns |= {"low": band.low, "high": band.high}
    return curve_numbers(columns)


def _certified(
    errors: Mapping[str, Estimate], task: str, measure: str, settings: ErrorSettings
) -> tuple[Bounds, Bounds] | None:
    """Return errors as a certificate has them, None where they are not the same."""
    plain = settings.alpha == 1.0 and settings.confidence == DEFAULT_CONFIDENCE
    if not errors or measure != DEFAULT_METHOD or task == "classwise" or not plain:
        return None
    before, after = (Bounds(e.value, e.low, e.high) for e in errors.values())
    return before, after


def _summaries(names: Iterable[str]) -> dict[str, str]:
    """Return what each repair is, in one line."""
    return {
        name: "unchanged"
        if name == NONE
        else find_method(name).summary.partition(";")[0]
        for name in names
    }


def _can_be_repaired(sample: BinarySample | ClassSample) -> bool:
    if isinstance(sample, BinarySample):
        return sample.n_data >= MIN_ROWS and 0.0 < float(sample.y.sum()) < sample.n
    return sample.n >= MIN_ROWS


def _tasks(
    held_out: HeldOut[Any],
    sample: BinarySample | ClassSample,
    task: str,
    log_prob: FloatMatrix,
) -> BinaryTasks:
    """Return the events of the task after a repair."""
    if isinstance(sample, BinarySample):
        return BinaryTasks("binary", ("binary",), (held_out.raw.event(log_prob),))
    prob = np.exp(log_prob)
    prob /= prob.sum(axis=1, keepdims=True)
    tasks = InputSpec(task=task).tasks_of_arrays(sample.column, prob)
    return tasks.weighted(sample.weight, clusters=sample.clusters)


def _scores(
    held_out: HeldOut[Any],
    sample: BinarySample | ClassSample,
    task: str,
    repaired: Mapping[str, FloatMatrix],
) -> list[dict[str, float]]:
    """Return scores of all classes and of the task's events, and gains, by repair."""
    target, weight = held_out.repaired.target, held_out.raw.weight
    clusters, log_probs = held_out.raw.clusters, repaired.values()
    losses = [log_losses(one, target) for one in log_probs]  # those of none first
    gains = [mean_and_error(losses[0] - own, weight, clusters) for own in losses]
    briers = [brier_scores(one, target) for one in log_probs]
    rows = [
        {
            "brier": float(np.average(brier, weights=weight)),
            "log_loss": float(np.average(loss, weights=weight)),
        }
        for brier, loss in zip(briers, losses, strict=True)
    ]
    if isinstance(held_out.raw, EventRows):
        for row in rows:
            row["brier"] *= 0.5  # each square is there twice
            row.update({f"event_{name}": value for name, value in row.items()})
    else:
        for row, one in zip(rows, log_probs, strict=True):
            row.update(_event_scores(_tasks(held_out, sample, task, one)))
    names = ("gain", "gain_error")
    return [
        row | dict(zip(names, gain, strict=True))
        for row, gain in zip(rows, gains, strict=True)
    ]


def _event_scores(tasks: BinaryTasks) -> dict[str, float]:
    """Return mean scores over the events of a task."""
    scores = {"event_brier": brier_score, "event_log_loss": log_loss}
    return {
        name: float(np.mean([score(s.p, s.y, s.weight) for s in tasks.samples]))
        for name, score in scores.items()
    }


def advise(
    findings: Iterable[Finding], repairs: Mapping[str, Any] | None
) -> list[Finding]:
    """Return findings whose remedy is the repair that was measured to be the best.

    Where nothing was measured, and of single groups, the general remedy stays.
    """
    if repairs is None:
        return list(findings)
    return [
        _with_best_repair(finding, repairs)
        if finding.calibrator and "group" not in finding.where
        else finding
        for finding in findings
    ]


def _with_best_repair(finding: Finding, repairs: Mapping[str, Any]) -> Finding:
    best = repairs["advised"]
    if best == NONE:
        remedy = " ".join(filter(None, (NOT_BETTER, finding.besides)))
        return replace(finding, remedy=remedy, calibrator="")
    losses = {r["method"]: f"{r['log_loss']:.4f}" for r in repairs["rows"]}
    remedy = (
        f"Recalibrate with {best}, which lowers the log-loss of held-out rows from "
        f"{losses[NONE]} to {losses[best]}."
    )
    remedy = " ".join(filter(None, (remedy, finding.besides)))
    return replace(finding, remedy=remedy, calibrator=best)
