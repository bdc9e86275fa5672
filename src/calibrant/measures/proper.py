"""Brier score and log-loss, split into calibration, discrimination, uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from calibrant._validation.options import check_choice
from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.registry import find_binary
from calibrant.measures.events import Reading
from calibrant.numerics.isotonic import isotonic_values
from calibrant.numerics.scores import brier_score, log_loss
from calibrant.numerics.sorted_sample import SortedSample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import ArrayLike, FloatVector, Frame, Scale, Task
    from calibrant._validation.sample import BinarySample
    from calibrant.measures.events import Events

ScoreName: TypeAlias = Literal["brier", "log-loss"]
SCORES = {"brier": brier_score, "log-loss": log_loss}
OUTCOMES = np.array([0.0, 1.0])


ISOTONIC = "isotonic"


@dataclass(frozen=True)
class ScoreSplit:
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
    >>> print(split_score(y, p))
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


def _sample_splits(sample: BinarySample, recalibration: str) -> dict[str, ScoreSplit]:
    rows, recalibrated = _recalibrated(sample, recalibration)
    base = float(np.clip(sample.mean(sample.y), 0.0, 1.0))
    splits = {}
    for name, score in SCORES.items():
        before = score(rows.p, rows.y, rows.weight)
        after = score(recalibrated, rows.y, rows.weight)
        unknown = score(np.full(2, base), OUTCOMES, np.array([1.0 - base, base]))
        saved, known = before - after, unknown - after
        if recalibration == ISOTONIC:  # but for rounding neither is below 0
            saved, known = max(saved, 0.0), max(known, 0.0)
        splits[name] = ScoreSplit(name, before, saved, known, unknown)
    return splits


def mean_splits(
    events: Events, recalibration: str = ISOTONIC
) -> tuple[ScoreSplit, ...]:
    """Split every score, averaged over the events of a task."""
    parts = [_sample_splits(sample, recalibration) for sample in events.samples]

    def mean(name: str, part: str) -> float:
        return float(np.mean([getattr(splits[name], part) for splits in parts]))

    return tuple(
        ScoreSplit(
            name,
            mean(name, "score"),
            mean(name, "calibration"),
            mean(name, "discrimination"),
            mean(name, "uncertainty"),
        )
        for name in SCORES
    )


def split_score(  # noqa: PLR0913
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
) -> ScoreSplit:
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
    ScoreSplit
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
    >>> print(cb.split_score(y, p))
    brier 0.0277 = calibration 0.0176 + refinement 0.0101 (uncertainty 0.2500 -
    discrimination 0.2398)
    """
    check_choice(score, get_args(ScoreName), name="score")
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    events = reading.events(y_true, y_prob, sample_weight)
    splits = mean_splits(events, recalibration)
    return next(split for split in splits if split.name == score)
