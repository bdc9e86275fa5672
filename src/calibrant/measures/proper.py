"""Brier score and log-loss, split into calibration, discrimination, uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.registry import find_binary
from calibrant.core.options import check_choice
from calibrant.numerics.isotonic import isotonic_values
from calibrant.numerics.scores import log_losses, squared_errors
from calibrant.numerics.sorted_sample import SortedSample
from calibrant.predictions.input_spec import InputSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import ArrayLike, FloatVector, Frame, Scale, Task
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.isotonic import SortedTogether
    from calibrant.predictions.input_spec import BinaryTasks

ScoreName: TypeAlias = Literal["brier", "log-loss"]
ROW_LOSSES = {"brier": squared_errors, "log-loss": log_losses}
ISOTONIC = "isotonic"


@dataclass(frozen=True)
class ScoreDecomposition:
    """A proper score in parts: calibration - discrimination + uncertainty.

    Attributes
    ----------
    name : {"brier", "log-loss"}
        Which score.
    score : float
        The mean score of the predictions; lower is better.
    calibration : float
        What recalibration would save on these data: the miscalibration. Isotonic
        recalibration, the best that keeps the order of predictions, never costs.
    discrimination : float
        By how much recalibrated predictions beat the base rate.
    uncertainty : float
        The score of the base rate, which no prediction can help.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(decompose_score(y, p))
    brier 0.0277 = calibration 0.0176 + refinement 0.0101
    (uncertainty 0.2500 - discrimination 0.2398)
    """

    name: str
    score: float
    calibration: float
    discrimination: float
    uncertainty: float

    @property
    def refinement(self) -> float:
        """Return the score that is left after recalibration."""
        return self.uncertainty - self.discrimination

    def __str__(self) -> str:
        return (
            f"{self.name} {self.score:.4f} = calibration {self.calibration:.4f} "
            f"+ refinement {self.refinement:.4f} (uncertainty {self.uncertainty:.4f} "
            f"- discrimination {self.discrimination:.4f})"
        )

    def frame(self) -> Frame:
        """Return the parts as columns of one row."""
        return {
            "score": np.array([self.name]),
            "value": np.array([self.score]),
            "calibration": np.array([self.calibration]),
            "refinement": np.array([self.refinement]),
            "discrimination": np.array([self.discrimination]),
            "uncertainty": np.array([self.uncertainty]),
        }


Splits: TypeAlias = tuple[ScoreDecomposition, ...]
"""One for each score."""


def _recalibrated(
    sample: BinarySample, recalibration: str
) -> tuple[SortedSample, FloatVector]:
    """Return the rows, in any order, and their recalibrated predictions."""
    if recalibration == ISOTONIC:
        ordered = SortedSample.of(sample.p, sample.y, sample.weight)
        return ordered, isotonic_values(ordered)
    method = find_binary(recalibration)
    flat = {"tops": "flat"} if "tops" in method.defaults() else {}
    map_ = fit_family(method.build(**flat), sample).map
    rows = SortedSample(sample.p, sample.y, sample.weight)
    return rows, map_.transform(sample.p)


def _sample_splits(sample: BinarySample, recalibration: str) -> Splits:
    if recalibration == ISOTONIC:
        return sample.cached(
            "isotonic splits", lambda: _made_splits(sample, recalibration)
        )
    return _made_splits(sample, recalibration)


def _made_splits(sample: BinarySample, recalibration: str) -> Splits:
    rows, recalibrated = _recalibrated(sample, recalibration)
    base = float(np.clip(sample.mean(sample.y), 0.0, 1.0))
    splits = []
    for name, loss in ROW_LOSSES.items():
        before, after = (
            float(np.average(loss(p, rows.y), weights=rows.weight))
            for p in (rows.p, recalibrated)
        )
        unknown = float(_base_score(name, np.array(base)))
        saved, known = before - after, unknown - after
        if recalibration == ISOTONIC:  # but for rounding neither is below 0
            saved, known = max(saved, 0.0), max(known, 0.0)
        splits.append(ScoreDecomposition(name, before, saved, known, unknown))
    return tuple(splits)


def _base_score(name: str, base: FloatVector) -> FloatVector:
    """Return the score of base rates."""
    loss = ROW_LOSSES[name]
    no, yes = (loss(base, np.full_like(base, outcome)) for outcome in (0.0, 1.0))
    return (1.0 - base) * no + base * yes


def isotonic_splits(rows: SortedTogether) -> list[Splits]:
    """Split every score of several samples, by isotonic recalibration."""
    base = np.clip(rows.means(rows.y), 0.0, 1.0)
    columns = []
    for name, loss in ROW_LOSSES.items():
        before = rows.means(loss(rows.p, rows.y))
        after = rows.means(loss(rows.isotonic, rows.y))
        unknown = _base_score(name, base)
        saved, known = np.maximum(before - after, 0.0), np.maximum(unknown - after, 0.0)
        parts = np.stack([before, saved, known, unknown], axis=1).tolist()
        columns.append([ScoreDecomposition(name, *part) for part in parts])
    return list(zip(*columns, strict=True))


def mean_splits(events: BinaryTasks, recalibration: str = ISOTONIC) -> Splits:
    """Split every score, averaged over the events of a task."""
    parts = [_sample_splits(sample, recalibration) for sample in events.samples]
    if len(parts) == 1:
        return parts[0]
    fields = ("score", "calibration", "discrimination", "uncertainty")
    return tuple(
        ScoreDecomposition(
            same[0].name,
            *(
                float(np.mean([getattr(one, field) for one in same]))
                for field in fields
            ),
        )
        for same in zip(*parts, strict=True)
    )


def decompose_score(  # noqa: PLR0913
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: ScoreName = "brier",
    recalibration: str = ISOTONIC,
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
) -> ScoreDecomposition:
    """Split the Brier score or log-loss: calibration - discrimination + uncertainty.

    Calibration is what recalibration takes away; by default isotonic, the best that
    keeps the order of the predictions (CORP). Uncertainty is the score of the base
    rate, discrimination what recalibrated predictions gain over it. What is left
    after recalibration, uncertainty less discrimination, is the refinement.

    Parameters
    ----------
    y_true, y_prob, task, sample_weight, pos_label, labels, scale
        As in `calibration_error`. For "classwise" the parts are means over classes.
    score : {"brier", "log-loss"}
        Which score. Log-loss is in nats; failed predictions of exactly 0 or 1 count
        36.04, as in scikit-learn.
    recalibration : str
        "isotonic", or the name of any method. Of binned ones, such as "es15" and
        "ew10", each bin predicts its share of positives, as in Murphy's reliability,
        resolution and uncertainty; what predictions within a bin tell then counts
        for the score but not for the discrimination, and calibration may come out
        below 0.

    Returns
    -------
    ScoreDecomposition
        With `score`, `calibration`, `discrimination`, `uncertainty`, `refinement`.

    References
    ----------
    A. H. Murphy (1973). A new vector partition of the probability score. Journal of
    Applied Meteorology 12(4).

    T. Dimitriadis, T. Gneiting, A. I. Jordan (2021). Stable reliability diagrams for
    probabilistic classifiers. PNAS 118(8). doi:10.1073/pnas.2016191118

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(cb.decompose_score(y, p))
    brier 0.0277 = calibration 0.0176 + refinement 0.0101 (uncertainty 0.2500 -
    discrimination 0.2398)
    """
    check_choice(score, get_args(ScoreName), name="score")
    spec = InputSpec(task=task, pos_label=pos_label, labels=labels, scale=scale)
    events = spec.tasks(y_true, y_prob, sample_weight)
    splits = mean_splits(events, recalibration)
    return next(split for split in splits if split.name == score)
