"""Truths from a model's predictions: pseudo-real and real.

Pseudo-real (paper, section 7.2): a very large hold-out is divided at random into rows
to draw samples from, rows to estimate the true calibration map on, and rows to measure
distances on. The true map is estimated in three ways (appendix D.2): isotonic
regression; 100 bins of equal size with flat tops; the same with tops of slope 1. Where
the exact probability of the event given the inputs is known, isotonic regression on it
is a fourth estimate, free of the noise in labels.

Real: subsets of test rows, whose truth is not known.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from calibrant.calibrators.binned import Binned
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.registry import find_method
from calibrant.core.sample import BinarySample, ClassSample
from calibrant.exceptions import OptionError, SourceError
from calibrant.experiments.assessment import Contender, KnownSample, measure_map
from calibrant.experiments.prediction_sets import (
    CONFIDENCE,
    Event,
    Outcomes,
    Split,
    outcomes_of,
)
from calibrant.numerics.class_probabilities import class_probabilities

if TYPE_CHECKING:
    from calibrant.calibrators.base import EventCalibrator
    from calibrant.core.array_types import IntVector
    from calibrant.experiments.assessment import Truth
    from calibrant.experiments.prediction_sets import StoredPredictions
    from calibrant.maps.base import CalibrationMap

    SplitName: TypeAlias = Literal["calibration", "test", "holdout"]

SEPARATOR = " | "

TRUE_MAP_FAMILIES: dict[str, EventCalibrator] = {
    "isotonic": Isotonic(),
    "flat": Binned(bins=100, tops="flat"),
    "slope": Binned(bins=100),
}
"""How the true map is estimated; the first is the default of all tables."""

DRAWN_SHARE = 0.15
"""Share of the hold-out that samples are drawn from; one half of the other rows is for
the true map, the other half for distances."""

SHUFFLE_SEED = 0
TOP_LABEL = Event(CONFIDENCE)

CACHED_EVENTS = 4
"""Events whose rows are cached: those of one model, as they share fits of all
classes."""


class HoldoutParts(NamedTuple):
    """Rows of three parts of a hold-out that have no row in common."""

    drawn: IntVector
    fitted: IntVector
    measured: IntVector

    def sample(self, n: int, seed: int) -> IntVector:
        """Return the rows of sample number `seed` of `n` rows.

        Samples of one size have no row in common; those of different sizes may.
        """
        count = self.drawn.size // n
        if seed >= count:
            raise SourceError(
                f"the hold-out is too small: {self.drawn.size} of its rows are for "
                f"samples, enough for {count} samples of {n} rows, but number "
                f"{seed + 1} is needed. Use smaller sizes or fewer seeds."
            )
        order = np.random.default_rng(n).permutation(self.drawn.size)
        return self.drawn[np.sort(order[seed * n : (seed + 1) * n])]


@lru_cache(maxsize=4)
def divide_holdout(rows: int) -> HoldoutParts:
    """Divide rows at random, always in the same way."""
    order = np.random.default_rng(SHUFFLE_SEED).permutation(rows)
    drawn = int(rows * DRAWN_SHARE)
    half = drawn + (rows - drawn) // 2
    return HoldoutParts(*(np.sort(part) for part in np.split(order, [drawn, half])))


def true_maps(rows: Outcomes) -> dict[str, CalibrationMap]:
    """Return all estimates of the true map; "exact" if probabilities are known."""
    sample = BinarySample(rows.p, rows.y)
    maps = {
        name: family.fit_event(sample).map for name, family in TRUE_MAP_FAMILIES.items()
    }
    if rows.exact is not None:
        maps["exact"] = Isotonic().fit_event(BinarySample(rows.p, rows.exact)).map
    return maps


def is_of_classes(name: str) -> bool:
    """Tell whether these studies mean a method for all classes by a name.

    Methods of either kind are fitted to one event, except for temperature.
    """
    return name == "temperature" or "binary" not in find_method(name).kinds


@lru_cache(maxsize=2 * CACHED_EVENTS)
def event_outcomes(
    predictions: StoredPredictions,
    split_name: SplitName,
    event: Event,
    calibrator: str | None,
) -> Outcomes:
    """Return an event in all rows of a split, after a calibrator if there is one.

    Binary calibrators are fitted to the event in the calibration split. Multi-class
    calibrators change the whole prediction, and perhaps the top class.
    """
    split: Split = getattr(predictions, split_name)()
    if calibrator is None:
        return outcomes_of(split, event)
    if is_of_classes(calibrator):
        return outcomes_of(split, event, _calibrated_map(predictions, calibrator))
    fitted_on = event_outcomes(predictions, "calibration", event, None)
    sample = BinarySample(fitted_on.p, fitted_on.y)
    map_ = find_method(calibrator).build().fit_sample(sample).map
    raw = event_outcomes(predictions, split_name, event, None)
    return replace(raw, p=np.clip(map_(raw.p), 0.0, 1.0))


@lru_cache(maxsize=64)
def _calibrated_map(predictions: StoredPredictions, calibrator: str) -> Any:
    split = predictions.calibration()
    return _class_map(find_method(calibrator).build(), split, np.arange(split.rows))


def _class_map(family: Any, split: Split, rows: IntVector) -> Any:
    """Return a map of all classes, fitted on some rows of a split."""
    labels = np.asarray(split.labels[rows]).astype(np.intp)
    sample = ClassSample(split.take(rows), labels, None, split.scale)
    return family.fit_sample(sample).map


@lru_cache(maxsize=64)
def _fingerprints(
    predictions: StoredPredictions, *splits: SplitName
) -> tuple[str, ...]:
    return tuple(getattr(predictions, split)().fingerprint for split in splits)


@dataclass(frozen=True, eq=False)
class EventSample(KnownSample):
    """Rows of an event on which multi-class calibrators can be fitted as well.

    Equal to a sample with the same key, whatever the event: so calibrators of all
    classes are fitted once for all events.
    """

    split: Split = field(kw_only=True)  # predictions of all classes
    rows: IntVector = field(kw_only=True)  # rows of the split that are in the sample
    event: Event = field(kw_only=True)
    key: str = field(kw_only=True)  # equal for the same rows of the same model

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EventSample) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class ModelTruth:
    """What pseudo-real and real truths share: an event, perhaps after a calibrator."""

    predictions: StoredPredictions
    event: Event
    calibrator: str | None = None

    @property
    def shape(self) -> str:
        """Return model, event and calibrator, which tables split again."""
        parts = (self.predictions.name, self.event.label, self.calibrator)
        return SEPARATOR.join(part for part in parts if part is not None)

    @property
    def error(self) -> float:
        """Return NaN: there is no expected error."""
        return float("nan")


@dataclass(frozen=True)
class PseudoRealTruth(ModelTruth):
    """An event of a model, perhaps after a calibrator, with its true map.

    Parameters
    ----------
    predictions : StoredPredictions
        A model with a very large hold-out.
    event : Event
        A class against the rest, or the top class.
    calibrator : str, optional
        Method that is fitted on the calibration split first; predictions are those
        of the calibrated model.

    Examples
    --------
    >>> from calibrant.experiments import Event, StoredPredictions
    >>> model = StoredPredictions("models/wide32")  # read when needed
    >>> PseudoRealTruth(model, Event.of("3=cats"), "temperature").shape
    'wide32 | cats vs rest | temperature'
    """

    @property
    def name(self) -> str:
        """Return everything the truth depends on, including the content of files."""
        prints = _fingerprints(self.predictions, "calibration", "holdout")
        return SEPARATOR.join([self.shape, f"column {self.event.column}", *prints])

    def draw(self, n: int, seed: int) -> EventSample:
        """Draw rows of the hold-out that are used for nothing else."""
        rows = divide_holdout(self.predictions.holdout().rows).sample(n, seed)
        return _event_sample(self, rows, f"{n} {seed}")

    def unseen(self) -> EventSample:
        """Return the rows on which distances are measured, in order of p."""
        return _unseen(self)

    @property
    def outcomes(self) -> Outcomes:
        """Return the event in all rows of the hold-out."""
        return event_outcomes(self.predictions, "holdout", self.event, self.calibrator)


def _event_sample(truth: PseudoRealTruth, rows: IntVector, key: str) -> EventSample:
    outcomes, model = truth.outcomes, truth.predictions
    p, y = outcomes.p[rows], outcomes.y[rows]
    c = {name: map_(p) for name, map_ in _true_maps(truth).items()}
    prints = _fingerprints(model, "calibration", "holdout")
    return EventSample(
        *(p, y, c.pop("isotonic"), c),
        split=model.holdout(),
        rows=rows,
        event=truth.event,
        key=f"{model.name} {prints} {key}",
    )


@lru_cache(maxsize=CACHED_EVENTS)
def _true_maps(truth: PseudoRealTruth) -> dict[str, CalibrationMap]:
    rows = truth.outcomes
    fitted = divide_holdout(rows.p.size).fitted
    exact = None if rows.exact is None else rows.exact[fitted]
    return true_maps(Outcomes(rows.p[fitted], rows.y[fitted], exact))


@lru_cache(maxsize=CACHED_EVENTS)
def _unseen(truth: PseudoRealTruth) -> EventSample:
    p = truth.outcomes.p
    measured = divide_holdout(p.size).measured
    ordered = measured[np.argsort(p[measured], kind="stable")]
    return _event_sample(truth, ordered, "unseen")


@dataclass(frozen=True)
class RealTruth(ModelTruth):
    """Test rows of a model, mostly calibrated; its true map and errors are NaN.

    Parameters
    ----------
    predictions : StoredPredictions
        A model with a calibration and a test split.
    event : Event
        Such as `TOP_LABEL`, whether the top class is the true one.
    calibrator : str, optional
        Method that is fitted on the calibration split first.

    Examples
    --------
    >>> from calibrant.experiments import StoredPredictions
    >>> model = StoredPredictions("models/wide32")  # read when needed
    >>> RealTruth(model, TOP_LABEL, "temperature").shape
    'wide32 | confidence | temperature'
    """

    @property
    def name(self) -> str:
        """Return everything the rows depend on, including the content of files."""
        prints = _fingerprints(self.predictions, "calibration", "test")
        return SEPARATOR.join(["real", self.shape, *prints])

    def draw(self, n: int, seed: int) -> KnownSample:
        """Return subset number `seed` of `n` rows; subsets have no row in common."""
        rows = event_outcomes(self.predictions, "test", self.event, self.calibrator)
        order = np.random.default_rng(SHUFFLE_SEED).permutation(rows.p.size)
        subset = order[seed * n : (seed + 1) * n]
        if subset.size < n:
            raise SourceError(
                f"{self.predictions.name} has {rows.p.size} test rows, too few for "
                f"{seed + 1} subsets of {n}."
            )
        return KnownSample(rows.p[subset], rows.y[subset], np.full(n, np.nan))

    def unseen(self) -> KnownSample:
        """Return no rows: maps cannot be compared with a truth."""
        return KnownSample(*np.empty((3, 0)))


@dataclass(frozen=True)
class ClassContender(Contender):
    """A calibrator of all classes that is assessed by one event.

    Its value for an event is the calibrated probability of the class that the event
    is about; for the top class, of the class that was the top one before.

    Examples
    --------
    >>> ClassContender.of("vector").name
    'vector'
    """

    @classmethod
    def of(
        cls, method: str, *, name: str | None = None, every: int = 1, **params: Any
    ) -> ClassContender:
        """Return a multi-class method of the library, with hyper-parameters."""
        family = find_method(method).build(**params)
        return cls(name or method, family, every)

    def measure(
        self, data: KnownSample, unseen: KnownSample, _truth: Truth
    ) -> dict[str, float]:
        """Fit on a data set and return measures by name."""
        if not (isinstance(data, EventSample) and isinstance(unseen, EventSample)):
            raise OptionError(
                f"{self.name!r} calibrates all classes at once: it needs predictions "
                f"of all classes, which this truth does not have."
            )
        rows = unseen.thin(self.every)
        scores = unseen.split.take(unseen.rows[rows])
        before = class_probabilities(scores, unseen.split.scale)
        column = unseen.event.columns(before)
        c_hat = _sample_map(self.family, data)(scores)[np.arange(column.size), column]
        return measure_map(c_hat, unseen, rows)


@lru_cache(maxsize=512)
def _sample_map(family: Any, data: EventSample) -> Any:
    """Return the map fitted on some rows, which all events share."""
    return _class_map(family, data.split, data.rows)
