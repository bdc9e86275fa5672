"""What recalibration would bring, told honestly: on rows that it was not fitted on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.registry import find_binary, find_method
from calibrant.core.options import generator
from calibrant.core.sample import BinarySample
from calibrant.measures.estimate import FittedTasks
from calibrant.numerics.cell_grid import sum_cells
from calibrant.numerics.cross_validation import fold_counts
from calibrant.numerics.links import clip_probability
from calibrant.numerics.weighted_points import MAX_EXACT_ROWS
from calibrant.predictions.input_spec import BinaryTasks
from calibrant.report.plain import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector, IntVector, Seed
    from calibrant.measures.estimate import ErrorSettings

REPAIRS = ("platt", "beta", "isotonic", "smooth")
NONE = "none"
FOLDS, FOLDS_OF_MANY = 5, 2
FEWEST_ROWS = 50
"""With fewer rows nothing is said of repairs."""
WORTH = 1.0
"""By how many standard errors of the log-loss a repair must gain to be advised."""


def repairs_of(
    sample: BinarySample,
    *,
    measure: str,
    estimator: ErrorSettings,
    methods: Sequence[str] = REPAIRS,
) -> dict[str, Any] | None:
    """Return what each repair would bring on rows that it was not fitted on.

    The rows are parted into five folds (two where there are very many); each fold is
    repaired by a calibrator fitted on the others, and what comes out is measured.

    Returns None where there are too few rows, or only one outcome. Keys: "folds";
    "rows", one a repair with "none" first: "method", "error" with its interval "low"
    and "high", "brier", "log_loss", the same of the event alone ("event_brier",
    "event_log_loss"; they differ where all classes are repaired), "gain" in log-loss
    and its standard error "gain_error"; "advised", the repair with the best log-loss,
    or "none" where no gain exceeds its standard error; "scored", what scores are about.
    """
    positives = float(sample.y.sum())
    if sample.n_data < FEWEST_ROWS or not 0.0 < positives < sample.n:
        return None
    folds = FOLDS if sample.n_data <= MAX_EXACT_ROWS else FOLDS_OF_MANY
    random_state = estimator.random_state
    kept = _folds(sample, folds, random_state)
    if not all(0.0 < train.y @ train.weights < train.total for train, _ in kept):
        return None
    rows = [_row(NONE, [held for _, held in kept], None, estimator, measure)]
    for name in methods:
        repaired = [_repair(name, train, held, random_state) for train, held in kept]
        held = [part for _, part in kept]
        rows.append(_row(name, repaired, held, estimator, measure))
    scored = "the event"
    return {"folds": folds, "rows": rows, "advised": advised(rows), "scored": scored}


def advised(rows: list[dict[str, Any]]) -> str:
    """Return the repair with the best log-loss, of those whose gain is no chance."""
    worth = [r for r in rows[1:] if r["gain"] > WORTH * r["gain_error"]]
    best = min(worth, key=lambda row: float(row["log_loss"]), default=rows[0])
    return str(best["method"])


def _folds(
    sample: BinarySample, folds: int, random_state: Seed
) -> list[tuple[BinarySample, BinarySample]]:
    """Return the rows to fit on and those held out, gathered where there are many."""
    rng = generator(random_state)
    if sample.row_counts is None:
        fold = rng.permutation(sample.n) % folds
        held = [_rows(sample, fold == k) for k in range(folds)]
        if folds == FOLDS_OF_MANY:  # what one leaves out, the other is fitted on
            return [(held[1], held[0]), (held[0], held[1])]
        return [(_rows(sample, fold != k), held[k]) for k in range(folds)]
    rows = sample.row_counts
    return [
        (_share(sample, rows, rows - held), _share(sample, rows, held))
        for held in fold_counts(rows, folds, rng).T
    ]


def _share(sample: BinarySample, whole: IntVector, rows: IntVector) -> BinarySample:
    """Return so many of the `whole` rows that were gathered into each."""
    used = rows > 0
    weight = sample.weights * rows / whole
    return BinarySample(sample.p[used], sample.y[used], weight[used], rows[used])


def _rows(sample: BinarySample, which: Any) -> BinarySample:
    """Return some rows; of many, two for each cell, one a label."""
    weight = None if sample.weight is None else sample.weight[which]
    p, y = sample.p[which], sample.y[which]
    if p.size <= MAX_EXACT_ROWS:
        return BinarySample(p, y, weight)
    cells = sum_cells(p, y, weight).sample()
    if weight is None:
        return cells
    # The door has scaled weights for all rows together; parts are not scaled again.
    return replace(cells, weight=cells.weights * (weight.sum() / cells.total))


def _row_counts(parts: list[BinarySample]) -> IntVector | None:
    if all(part.row_counts is None for part in parts):
        return None
    ones = (np.ones(part.n, dtype=np.intp) for part in parts)
    return np.concatenate(
        [
            one if part.row_counts is None else part.row_counts
            for part, one in zip(parts, ones, strict=True)
        ]
    )


def _repair(
    name: str, train: BinarySample, held: BinarySample, random_state: Seed
) -> BinarySample:
    map_ = fit_family(find_binary(name).seeded(random_state), train).map
    return replace(held, p=map_.transform(held.p))


def _joined(parts: list[BinarySample]) -> BinarySample:
    return BinarySample(
        np.concatenate([part.p for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.weights for part in parts]),
        _row_counts(parts),
    )


def _row(
    name: str,
    parts: list[BinarySample],
    before: list[BinarySample] | None,
    estimator: ErrorSettings,
    measure: str,
) -> dict[str, Any]:
    sample = _joined(parts)
    events = BinaryTasks("binary", ("binary",), (sample,))
    gain, error = (0.0, 0.0) if before is None else _gain(_joined(before), sample)
    found = FittedTasks(events, estimator).estimates(measure)[0]
    brier = _mean(sample, (sample.p - 1.0) ** 2, sample.p**2)
    log_loss = _mean(sample, *_log_losses(sample.p))
    return {
        "method": name,
        "summary": "as they are" if name == NONE else find_method(name).summary,
        "error": number(found.value),
        "low": number(found.low),
        "high": number(found.high),
        "brier": brier,
        "log_loss": log_loss,
        "event_brier": brier,
        "event_log_loss": log_loss,
        "gain": gain,
        "gain_error": error,
    }


def _mean(sample: BinarySample, happened: FloatVector, not_: FloatVector) -> float:
    """Return the mean of a loss that differs by outcome."""
    return sample.mean(sample.y * happened + (1.0 - sample.y) * not_)


def _gain(before: BinarySample, after: BinarySample) -> tuple[float, float]:
    """Return by how much the log-loss falls, and the standard error of that."""
    pairs = zip(_log_losses(before.p), _log_losses(after.p), strict=True)
    falls = [old - new for old, new in pairs]
    mean = _mean(after, falls[0], falls[1])
    square = _mean(after, falls[0] ** 2, falls[1] ** 2)
    return mean, float(np.sqrt(max(square - mean**2, 0.0) / after.total))


def _log_losses(p: FloatVector) -> tuple[FloatVector, FloatVector]:
    held = clip_probability(p)
    return -np.log(held), -np.log1p(-held)
