"""Brier score and log-loss, split into calibration and refinement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from calibrant._validation.options import check_choice
from calibrant.measures.events import Reading
from calibrant.numerics.isotonic import isotonic_values
from calibrant.numerics.scores import brier_score, log_loss
from calibrant.numerics.sorted_sample import SortedSample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import ArrayLike, Frame, Scale, Task
    from calibrant._validation.sample import BinarySample
    from calibrant.measures.events import Events

ScoreName: TypeAlias = Literal["brier", "log-loss"]
SCORES = {"brier": brier_score, "log-loss": log_loss}


@dataclass(frozen=True)
class ScoreSplit:
    """A proper score as the sum of two parts.

    Attributes
    ----------
    name : {"brier", "log-loss"}
        Which score.
    score : float
        The mean score of the predictions; lower is better.
    calibration : float
        What the best recalibration that keeps the order of predictions would save
        on these data; never negative.
    refinement : float
        The score that is left after it.
    """

    name: str
    score: float
    calibration: float
    refinement: float

    def __str__(self) -> str:
        return (
            f"{self.name} {self.score:.4f} = calibration {self.calibration:.4f} "
            f"+ refinement {self.refinement:.4f}"
        )

    def frame(self) -> Frame:
        """Return the parts as columns of one row."""
        return {
            "score": np.array([self.name]),
            "value": np.array([self.score]),
            "calibration": np.array([self.calibration]),
            "refinement": np.array([self.refinement]),
        }


def _sample_splits(sample: BinarySample) -> dict[str, ScoreSplit]:
    ordered = SortedSample.of(sample.p, sample.y, sample.weight)
    recalibrated = isotonic_values(ordered)
    splits = {}
    for name, score in SCORES.items():
        before = score(ordered.p, ordered.y, ordered.weight)
        after = score(recalibrated, ordered.y, ordered.weight)
        saved = max(before - after, 0.0)  # but for rounding it never is less
        splits[name] = ScoreSplit(name, before, saved, before - saved)
    return splits


def mean_splits(events: Events) -> tuple[ScoreSplit, ...]:
    """Split every score, averaged over the events of a task."""
    parts = [_sample_splits(sample) for sample in events.samples]

    def mean(name: str, part: str) -> float:
        return float(np.mean([getattr(splits[name], part) for splits in parts]))

    return tuple(
        ScoreSplit(
            name,
            mean(name, "score"),
            mean(name, "calibration"),
            mean(name, "refinement"),
        )
        for name in SCORES
    )


def split_score(  # noqa: PLR0913
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: ScoreName = "brier",
    task: Task = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale = "prob",
) -> ScoreSplit:
    """Split the Brier score or log-loss into calibration and refinement.

    Calibration is what isotonic recalibration, the best that keeps the order of the
    predictions, takes away; refinement is what is left because the predictions do
    not separate the outcomes better. The two add up to the score exactly.

    Parameters
    ----------
    y_true, y_prob, task, sample_weight, pos_label, labels, scale
        As in `calibration_error`. For "classwise" the parts are means over classes.
    score : {"brier", "log-loss"}
        Which score. Log-loss is in nats; failed predictions of exactly 0 or 1 count
        36.04, as in scikit-learn.

    Returns
    -------
    ScoreSplit
        With `score`, `calibration` and `refinement`.

    References
    ----------
    T. Dimitriadis, T. Gneiting, A. I. Jordan (2021). Stable reliability diagrams for
    probabilistic classifiers. PNAS 118(8). doi:10.1073/pnas.2016191118

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> print(cb.split_score(y, p))
    brier 0.0277 = calibration 0.0176 + refinement 0.0101
    """
    check_choice(score, get_args(ScoreName), name="score")
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    events = reading.events(y_true, y_prob, sample_weight)
    return next(s for s in mean_splits(events) if s.name == score)
