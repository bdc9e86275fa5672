"""Brier score and log-loss in parts: calibration, discrimination, uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.registry import find_binary
from calibrant.core.parameters import check_choice
from calibrant.core.tasks import InputSpec, check_events
from calibrant.numerics.isotonic import SortedSamples, isotonic_values
from calibrant.numerics.sample_cache import cached_on_sample, fill_cache
from calibrant.numerics.scores import log_losses, squared_errors
from calibrant.numerics.sorted_rows import sorted_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from calibrant.core.array_types import ArrayLike, FloatVector, Frame, Scale, Task
    from calibrant.core.sample import BinarySample
    from calibrant.core.tasks import BinaryTasks

ScoreName: TypeAlias = Literal["brier", "log-loss"]
ROW_LOSSES = {"brier": squared_errors, "log-loss": log_losses}
ISOTONIC = "isotonic"
ISOTONIC_SPLITS = "isotonic splits"
"""Name of isotonic splits in the cache of a sample."""
SMALL_SAMPLE = 64
"""Samples with more rows are worked on one by one."""


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
        By how much recalibration lowers the score on these data: the miscalibration.
        Isotonic recalibration never makes it higher.
    discrimination : float
        By how much recalibrated predictions beat the base rate.
    uncertainty : float
        The score of the base rate, whatever the predictions.

    See Also
    --------
    decompose_score : makes decompositions.

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
        """Return the score after recalibration."""
        return self.uncertainty - self.discrimination

    def __str__(self) -> str:
        return (
            f"{self.name} {self.score:.4f} = calibration {self.calibration:.4f} "
            f"+ refinement {self.refinement:.4f} (uncertainty {self.uncertainty:.4f} "
            f"- discrimination {self.discrimination:.4f})"
        )

    def frame(self) -> Frame:
        """Return the parts as columns of one row.

        Returns
        -------
        dict of ndarray
            Columns: score (its name), value, calibration, refinement, discrimination,
            uncertainty.
        """
        row = {"score": self.name, "value": self.score}
        for name in ("calibration", "refinement", "discrimination", "uncertainty"):
            row[name] = getattr(self, name)
        return {name: np.array([value]) for name, value in row.items()}


Splits: TypeAlias = tuple[ScoreDecomposition, ...]
"""One for each score."""


def small_samples(tasks: Iterable[BinaryTasks]) -> list[BinarySample]:
    """Return the samples of tasks so small that they are worked on together.

    Rows of clusters are worked on by themselves.
    """
    alone = [one.samples[0] for one in tasks if len(one.samples) == 1]
    alone = [sample for sample in alone if sample.clusters is None]
    return [sample for sample in alone if 0 < sample.n <= SMALL_SAMPLE]


def prepare_splits(tasks: Iterable[BinaryTasks]) -> None:
    """Split the scores of all small samples at once, by isotonic recalibration."""
    samples = small_samples(tasks)
    if samples:
        rows = SortedSamples.of(samples)
        base = rows.means(rows.y)
        splits = _splits(rows, rows.isotonic, rows.means, base, isotonic=True)
        fill_cache(ISOTONIC_SPLITS, samples, splits)


def mean_splits(tasks: BinaryTasks, recalibration: str = ISOTONIC) -> Splits:
    """Split every score, averaged over the events of a task."""
    if recalibration == ISOTONIC:
        parts = [_isotonic_splits(sample) for sample in tasks.samples]
    else:
        parts = [_splits_by(recalibration, sample) for sample in tasks.samples]
    if len(parts) == 1:
        return parts[0]
    numbers = ("score", "calibration", "discrimination", "uncertainty")
    return tuple(
        ScoreDecomposition(
            same[0].name,
            *(float(np.mean([getattr(one, name) for one in same])) for name in numbers),
        )
        for same in zip(*parts, strict=True)
    )


@cached_on_sample(ISOTONIC_SPLITS)
def _isotonic_splits(sample: BinarySample) -> Splits:
    rows = sorted_rows(sample)
    return _splits_of(rows, isotonic_values(rows), isotonic=True)


def _splits_by(recalibration: str, sample: BinarySample) -> Splits:
    method = find_binary(recalibration)
    flat: dict[str, Any] = {"tops": "flat"} if "tops" in method.parameters else {}
    map_ = method.measuring(**flat).fit_sample(sample).map
    return _splits_of(sample, map_.transform(sample.p))


def _splits_of(
    rows: BinarySample, recalibrated: FloatVector, *, isotonic: bool = False
) -> Splits:
    def means(values: FloatVector) -> FloatVector:
        return np.array([np.average(values, weights=rows.weight)])

    return _splits(rows, recalibrated, means, means(rows.y), isotonic=isotonic)[0]


def _splits(
    rows: BinarySample | SortedSamples,
    recalibrated: FloatVector,
    means: Callable[[FloatVector], FloatVector],
    base_rate: FloatVector,
    *,
    isotonic: bool = False,
) -> list[Splits]:
    """Split every score of one or several samples; `means` are those of each."""
    base = np.clip(base_rate, 0.0, 1.0)
    columns = []
    for name, loss in ROW_LOSSES.items():
        losses = [loss(p, rows.y) for p in (rows.p, recalibrated)]
        no, yes = (loss(base, np.full_like(base, outcome)) for outcome in (0.0, 1.0))
        before, after = map(means, losses)
        unknown = (1.0 - base) * no + base * yes
        saved, known = before - after, unknown - after
        if isotonic:  # but for rounding neither is below 0
            saved, known = np.maximum(saved, 0.0), np.maximum(known, 0.0)
        parts = np.stack([before, saved, known, unknown], axis=1).tolist()
        columns.append([ScoreDecomposition(name, *part) for part in parts])
    return list(zip(*columns, strict=True))


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

    Calibration is the part of the score that recalibration removes; by default
    isotonic, the best that keeps the order of the predictions (CORP). Uncertainty is
    the score of the base rate, discrimination the gain of recalibrated predictions over
    it. The score after recalibration, uncertainty less discrimination, is the
    refinement.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
        multi-class tasks.
    y_prob : array-like of shape (n,) or (n, k)
        Predicted probability of the event, or of each class.
    score : {"brier", "log-loss"}
        Which score. Log-loss is in nats; wrong predictions of exactly 0 or 1 cost
        36.04, as in scikit-learn.
    recalibration : str
        "isotonic", or the name of any method. Of binned ones, such as "es15" and
        "ew10", each bin predicts its observed rate, as in Murphy's reliability,
        resolution and uncertainty; differences of predictions within a bin then count
        for the score but not for the discrimination, and calibration may come out
        below 0.
    task : None, "confidence", "classwise", "multilabel", or a class
        None: binary. "confidence" or "top-label": the top class and whether it is
        right. A class, by label or column number: that class against the rest.
        "classwise": all parts are means over classes. "multilabel": the same for labels
        of which a row can have several, with a matrix of 0 and 1 as `y_true`.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of 2 counts the row twice.
    pos_label : object, optional
        The label that counts as the event.
    labels : sequence, optional
        The label of each column of `y_prob`, in order; by default 0 .. k-1.
    scale : {"prob", "logit", "percent", "logprob"}
        What `y_prob` holds: probabilities, logits, percentages from 0 to 100, or
        natural logarithms of probabilities.

    Returns
    -------
    ScoreDecomposition
        With `score`, `calibration`, `discrimination`, `uncertainty`, `refinement`.

    See Also
    --------
    evaluate : calibration errors; its ``scores()`` has both scores.

    References
    ----------
    A. H. Murphy (1973). A new vector partition of the probability score. Journal of
    Applied Meteorology 12(4), 595-600.
    doi:10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2

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
    check_events(task, "decompose_score")
    spec = InputSpec(task=task, pos_label=pos_label, labels=labels, scale=scale)
    splits = mean_splits(spec.tasks(y_true, y_prob, sample_weight), recalibration)
    return next(split for split in splits if split.name == score)
