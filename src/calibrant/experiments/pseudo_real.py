"""Pseudo-real truths: a model's predictions and the map that a hold-out tells.

Two questions are put to the same predictions (paper, section 7.2). As it comes from
the model, an event's probability is far from calibrated: which calibrator finds its
map? After a calibrator it is nearly calibrated: which evaluator finds what is left?
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.class_sample import ClassSample
from calibrant._validation.sample import BinarySample
from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.registry import find_method
from calibrant.experiments.ground_truth import GroundTruth, Parts
from calibrant.experiments.predictions import Event, Outcomes, Split, outcomes_of
from calibrant.experiments.truths import KnownSample

if TYPE_CHECKING:
    from calibrant._typing import FloatVector, IntVector
    from calibrant.experiments.predictions import PredictionSet

SEPARATOR = " | "
EVENTS_KEPT = 4
"""Events whose rows are kept: those of one model, which share fits of all classes."""


@dataclass(frozen=True, eq=False)
class EventSample(KnownSample):
    """Rows of an event that multi-class calibrators can be fitted on too.

    Attributes
    ----------
    split : Split
        Predictions of all classes of many rows.
    rows : ndarray of int
        Which of them these are.
    event : Event
        Which event.
    key : str
        The same for the same rows of the same model, whatever the event.
    """

    split: Split = field(kw_only=True)
    rows: IntVector = field(kw_only=True)
    event: Event = field(kw_only=True)
    key: str = field(kw_only=True)


@dataclass(frozen=True)
class PseudoRealTruth:
    """An event of a model, perhaps after a calibrator, with its true map.

    Parameters
    ----------
    predictions : PredictionSet
        A model with a vast hold-out.
    event : Event
        A class against the rest, or the top class.
    calibrator : str, optional
        Method that is fitted on the calibration split before; predictions are those
        of the calibrated model.

    Examples
    --------
    >>> from calibrant.experiments import Event, StoredPredictions
    >>> model = StoredPredictions("models/wide32")  # read when needed
    >>> PseudoRealTruth(model, Event.of("3=cats"), "temperature").shape
    'wide32 | cats vs rest | temperature'
    """

    predictions: PredictionSet
    event: Event
    calibrator: str | None = None

    @property
    def shape(self) -> str:
        """Return model, event and calibrator, which tables take apart again."""
        parts = (self.predictions.name, self.event.label, self.calibrator)
        return SEPARATOR.join(part for part in parts if part is not None)

    @property
    def error(self) -> float:
        """Return NaN: nobody has set an expected error."""
        return float("nan")

    @property
    def name(self) -> str:
        """Return what the truth depends on, the content of the files included."""
        told = f"{self.shape}{SEPARATOR}column {self.event.column}"
        return SEPARATOR.join([told, *_fingerprints(self.predictions)])

    def draw(self, n: int, seed: int) -> KnownSample:
        """Draw rows of the hold-out that nothing else uses."""
        split = self.predictions.holdout()
        rows = _parts(split.rows).sample(n, seed)
        key = f"{self.predictions.name} {_fingerprints(self.predictions)} {n} {seed}"
        return self._sample(rows, key)

    def unseen(self) -> KnownSample:
        """Return the rows that distances are measured on, in order of p."""
        return _unseen(self)

    def _sample(self, rows: IntVector, key: str) -> KnownSample:
        outcomes = _outcomes(self)
        p, y = outcomes.p[rows], outcomes.y[rows]
        c = _ground_truth(self).at(p)
        split = self.predictions.holdout()
        main = c.pop("isotonic")
        return EventSample(
            p, y, main, c, split=split, rows=rows, event=self.event, key=key
        )


@lru_cache(maxsize=64)
def _fingerprints(predictions: PredictionSet) -> tuple[str, str]:
    return predictions.calibration().fingerprint, predictions.holdout().fingerprint


@lru_cache(maxsize=4)
def _parts(rows: int) -> Parts:
    return Parts.of(rows)


def check_samples(predictions: PredictionSet, n: int, count: int) -> None:
    """Raise where a hold-out is too small for so many samples of `n` rows."""
    _parts(predictions.holdout().rows).sample(n, count - 1)


@lru_cache(maxsize=EVENTS_KEPT)
def _outcomes(truth: PseudoRealTruth) -> Outcomes:
    """Return an event in all rows of the hold-out."""
    return calibrated_outcomes(
        truth.predictions, truth.predictions.holdout(), truth.event, truth.calibrator
    )


@lru_cache(maxsize=EVENTS_KEPT)
def _ground_truth(truth: PseudoRealTruth) -> GroundTruth:
    rows = _outcomes(truth)
    fitted = _parts(rows.p.size).fitted
    exact = None if rows.exact is None else rows.exact[fitted]
    return GroundTruth.of(Outcomes(rows.p[fitted], rows.y[fitted], exact))


@lru_cache(maxsize=EVENTS_KEPT)
def _unseen(truth: PseudoRealTruth) -> KnownSample:
    p = _outcomes(truth).p
    measured = _parts(p.size).measured
    ordered = measured[np.argsort(p[measured], kind="stable")]
    return truth._sample(ordered, key="unseen")  # noqa: SLF001


def calibrated_outcomes(
    predictions: PredictionSet, split: Split, event: Event, calibrator: str | None
) -> Outcomes:
    """Return an event in all rows of a split, after a calibrator if one is named.

    Binary calibrators are fitted to the event in the calibration split. Those of all
    classes change the whole prediction, and with it perhaps the top class.
    """
    if calibrator is None:
        return _plain_outcomes(split, event)
    method = find_method(calibrator)
    if method.kind == "multi-class":
        return outcomes_of(split, event, _class_map(predictions, calibrator))
    sample = _plain_outcomes(predictions.calibration(), event)
    family: Any = method.build()
    map_ = fit_family(family, BinarySample(sample.p, sample.y)).map
    plain = _plain_outcomes(split, event)
    return Outcomes(_within(map_(plain.p)), plain.y, plain.exact)


@lru_cache(maxsize=EVENTS_KEPT)
def _plain_outcomes(split: Split, event: Event) -> Outcomes:
    return outcomes_of(split, event)


@lru_cache(maxsize=64)
def _class_map(predictions: PredictionSet, calibrator: str) -> Any:
    split = predictions.calibration()
    family: Any = find_method(calibrator).build()
    return fit_family(family, class_sample(split, np.arange(split.rows))).map


def class_sample(split: Split, rows: IntVector) -> ClassSample:
    """Return some rows as what multi-class families are fitted on."""
    labels = np.asarray(split.labels[rows]).astype(np.intp)
    return ClassSample(split.some(rows), labels, None, split.scale)


def _within(p: FloatVector) -> FloatVector:
    """Keep what a map gives within the unit interval."""
    return np.clip(p, 0.0, 1.0)
