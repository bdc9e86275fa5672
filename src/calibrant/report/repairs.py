"""What recalibration would bring, on rows that it was not fitted on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.registry import find_binary, find_method
from calibrant.core.parameters import generator
from calibrant.core.sample import BinarySample
from calibrant.measures.estimate import FittedTasks
from calibrant.numerics.cell_grid import sum_cells
from calibrant.numerics.class_probabilities import class_probabilities
from calibrant.numerics.cross_validation import fold_counts
from calibrant.numerics.links import clip_probability
from calibrant.numerics.scores import brier_score, log_loss
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS
from calibrant.predictions.input_spec import BinaryTasks, InputSpec
from calibrant.report.json_numbers import error_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from calibrant.calibrators.registry import Kind
    from calibrant.checks.check import Finding
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import ClassSample
    from calibrant.measures.estimate import ErrorSettings, Estimate

REPAIRS = ("platt", "beta", "isotonic", "smooth")
CLASS_REPAIRS = {
    "confidence": ("temperature", "vector", "top-smooth"),
    "classwise": ("temperature", "vector", "top-smooth", "ovr-smooth"),
}
NONE = "none"
FOLDS, FOLDS_OF_MANY = 5, 2
MIN_ROWS = 50
"""With fewer rows no repairs are tried."""
MIN_GAIN = 1.0
"""By how many standard errors of the log-loss a repair must gain to be advised."""
MAX_CLASSES = 20
"""With more classes than this the error of each class after a repair is not measured,
and no class is repaired by a map of its own."""
NOT_BETTER = "None of the repairs tried improves predictions on held-out rows."


def repairs_of(
    sample: BinarySample,
    *,
    measure: str,
    settings: ErrorSettings,
    unrepaired: Estimate | None = None,
    methods: Sequence[str] = REPAIRS,
) -> dict[str, Any] | None:
    """Return what each repair would bring on rows that it was not fitted on.

    The rows are split into five folds (two where there are very many); each fold is
    repaired by a calibrator fitted on the others, and the result is measured. The
    error of the predictions as they are is `unrepaired`, or measured if not given.

    Returns None where there are too few rows, or only one outcome. Keys: "folds";
    "rows", one per repair with "none" first: "method", "error" with its interval "low"
    and "high", "brier", "log_loss", the same of the event alone ("event_brier",
    "event_log_loss"; they differ where all classes are repaired), "gain" in log-loss
    and its standard error "gain_error"; "advised", the repair with the best log-loss,
    or "none" where no gain exceeds its standard error; "scored", what scores are about.
    """
    if sample.n_data < MIN_ROWS or not 0.0 < float(sample.y.sum()) < sample.n:
        return None
    n_folds = FOLDS if sample.n_data <= MAX_EXACT_ROWS else FOLDS_OF_MANY
    folds = _split(sample, n_folds, generator(settings.random_state))
    if not all(0.0 < train.y @ train.weights < train.total for train, _ in folds):
        return None
    held = _join([part for _, part in folds])
    before = _log_losses(held.p)

    def mean(event: FloatVector, no_event: FloatVector) -> float:
        values = held.y * event + (1.0 - held.y) * no_event
        return float(np.average(values, weights=held.weight))

    def row(name: str, p: FloatVector) -> dict[str, Any]:
        tasks = BinaryTasks("binary", ("binary",), (replace(held, p=p),))
        after = _log_losses(p)
        falls = [old - new for old, new in zip(before, after, strict=True)]
        scores = mean((p - 1.0) ** 2, p**2), mean(*after)
        gain, square = mean(*falls), mean(*(fall**2 for fall in falls))
        spread = max(square - gain**2, 0.0)
        estimate = unrepaired if name == NONE else None
        if estimate is None:
            estimate = FittedTasks(tasks, settings).estimates(measure)[0]
        gain_error = float(np.sqrt(spread / held.total))
        return _row("binary", name, estimate, scores, scores, (gain, gain_error))

    rows = [row(NONE, held.p)]
    for name in methods:
        family = find_binary(name).seeded(settings.random_state)
        repaired = [
            np.clip(fit_family(family, train).map.values(part.p), 0.0, 1.0)
            for train, part in folds
        ]
        rows.append(row(name, np.concatenate(repaired)))
    return _table(rows, n_folds, "the event")


def class_repairs_of(
    sample: ClassSample,
    task: str,
    *,
    measure: str,
    settings: ErrorSettings,
    unrepaired: Estimate,
) -> dict[str, Any] | None:
    """Return what each repair of all classes would bring; keys as of `repairs_of`.

    "error" and scores of the "event" are those of the task; "brier" and "log_loss" are
    those of all classes.
    """
    if sample.n < MIN_ROWS:
        return None
    n_folds = FOLDS if sample.n <= MAX_EXACT_ROWS else FOLDS_OF_MANY
    fold = generator(settings.random_state).permutation(sample.n) % n_folds
    many = sample.n_classes > MAX_CLASSES
    before = class_probabilities(sample.scores, sample.scale)
    actual = np.arange(sample.n), sample.column

    def mean(values: FloatVector) -> float:
        return float(np.average(values, weights=sample.weight))

    def row(name: str, prob: FloatMatrix) -> dict[str, Any]:
        tasks = InputSpec(task=task).tasks(sample.column, prob, sample.weight)
        loss = -np.log(clip_probability(prob[actual]))
        fall = -np.log(clip_probability(before[actual])) - loss
        brier = mean((prob**2).sum(axis=1) - 2.0 * prob[actual] + 1.0)
        event_brier, event_loss = (
            float(np.mean([score(s.p, s.y, s.weight) for s in tasks.samples]))
            for score in (brier_score, log_loss)
        )
        estimate = unrepaired if name == NONE else None
        if many and task == "classwise":
            estimate = None
        elif estimate is None:
            estimate = FittedTasks(tasks, settings).estimates(measure)[0]
        spread = max(mean(fall**2) - mean(fall) ** 2, 0.0)
        gain = mean(fall), float(np.sqrt(spread / sample.total))
        scores, event_scores = (brier, mean(loss)), (event_brier, event_loss)
        return _row("multi-class", name, estimate, scores, event_scores, gain)

    rows = [row(NONE, before)]
    for name in CLASS_REPAIRS[task]:
        if many and name.startswith("ovr-"):
            continue  # a map for each of many classes would take long
        repaired = np.empty(sample.scores.shape)
        for k in range(n_folds):
            family: Any = find_method(name, "multi-class").build()
            map_ = fit_family(family, sample.rows(fold != k)).map
            repaired[fold == k] = map_.calibrated(sample.scores[fold == k])
        rows.append(row(name, repaired / repaired.sum(axis=1, keepdims=True)))
    return _table(rows, n_folds, "all classes")


def _row(
    kind: Kind,
    name: str,
    estimate: Estimate | None,
    scores: tuple[float, float],
    event_scores: tuple[float, float],
    gain: tuple[float, float],
) -> dict[str, Any]:
    return {
        "method": name,
        "summary": "as they are" if name == NONE else find_method(name, kind).summary,
        **error_numbers(estimate),
        **dict(zip(("brier", "log_loss"), scores, strict=True)),
        **dict(zip(("event_brier", "event_log_loss"), event_scores, strict=True)),
        **dict(zip(("gain", "gain_error"), gain, strict=True)),
    }


def _table(rows: list[dict[str, Any]], n_folds: int, scored: str) -> dict[str, Any]:
    """Return the rows, and the repair with the best log-loss of those that gain."""
    gains = [r for r in rows[1:] if r["gain"] > MIN_GAIN * r["gain_error"]]
    best = min(gains, key=lambda row: float(row["log_loss"]), default=rows[0])
    return {
        "folds": n_folds,
        "rows": rows,
        "advised": str(best["method"]),
        "scored": scored,
    }


def _split(
    sample: BinarySample, n_folds: int, rng: np.random.Generator
) -> list[tuple[BinarySample, BinarySample]]:
    """Return the rows to fit on and those held out, aggregated where there are many."""
    if sample.row_counts is None:
        fold = rng.permutation(sample.n) % n_folds
        held = [_rows(sample, fold == k) for k in range(n_folds)]
        if n_folds == FOLDS_OF_MANY:  # the part that one leaves out is fitted on
            return [(held[1], held[0]), (held[0], held[1])]
        return [(_rows(sample, fold != k), held[k]) for k in range(n_folds)]
    counts, weight = sample.row_counts, sample.weights
    folds = []
    for rows in fold_counts(counts, n_folds, rng).T:
        train, held_out = (
            BinarySample(
                sample.p[part > 0],
                sample.y[part > 0],
                (weight * part / counts)[part > 0],
                part[part > 0],
            )
            for part in (counts - rows, rows)
        )
        folds.append((train, held_out))
    return folds


def _rows(sample: BinarySample, which: Any) -> BinarySample:
    """Return some rows; of many, two for each cell, one per label."""
    weight = None if sample.weight is None else sample.weight[which]
    p, y = sample.p[which], sample.y[which]
    if p.size <= MAX_EXACT_ROWS:
        return BinarySample(p, y, weight)
    cells = sum_cells(p, y, weight).sample()
    if weight is None:
        return cells
    # Weights were scaled for all rows together; parts are not scaled again.
    return replace(cells, weight=cells.weights * (weight.sum() / cells.total))


def _join(parts: list[BinarySample]) -> BinarySample:
    counts = None
    if any(part.row_counts is not None for part in parts):
        counts = np.concatenate(
            [
                np.ones(part.n, dtype=np.intp) if part.row_counts is None
                else part.row_counts
                for part in parts
            ]
        )  # fmt: skip
    return BinarySample(
        np.concatenate([part.p for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.weights for part in parts]),
        counts,
    )


def _log_losses(p: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return the log-loss of each row where the event happened, and where not."""
    inner = clip_probability(p)
    return -np.log(inner), -np.log1p(-inner)


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
        f"Of the repairs tried, {best} helps most: it lowers the log-loss from "
        f"{losses[NONE]} to {losses[best]}"
    )
    usual = losses.get(finding.calibrator, losses[best])
    if usual != losses[best]:
        remedy += f" ({finding.calibrator}: {usual})"
    remedy = " ".join(filter(None, (f"{remedy}.", finding.besides)))
    return replace(finding, remedy=remedy, calibrator=best)
