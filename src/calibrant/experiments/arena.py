"""The arena: which calibrators improve predictions, and which of them harm.

Each cell is one method, fitted on a sample of the calibration rows of one model and
applied to its test rows. ``none`` leaves predictions as they are. A method harms if
its test log-loss is higher than that of ``none`` by more than one standard error of
the paired difference.
"""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.calibrators.registry import (
    WRAPPERS,
    calibrator_names,
    find_method,
    make_calibrator,
)
from calibrant.exceptions import OptionError
from calibrant.experiments.design import Contender, Design
from calibrant.experiments.prediction_sets import CONFIDENCE, Event, outcomes_of
from calibrant.experiments.prediction_truths import SEPARATOR
from calibrant.experiments.studies import NETWORKS
from calibrant.measures.calibration_error import calibration_error
from calibrant.numerics.class_probabilities import class_probabilities
from calibrant.numerics.links import clip_probability

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from calibrant.calibrators.base import Kind
    from calibrant.experiments.arena_sets import ArenaSet
    from calibrant.experiments.design import Cell

NONE, ALL = "none", "all"
KINDS: tuple[Kind, ...] = ("binary", "multi-class")
SIZES = (200, 500, 2000, 5000)
SEEDS = 1

METHODS = {
    "binary": (
        "auto", "smooth", "platt", "temperature", "beta", "quadratic", "isotonic",
        "venn-abers", "pl3", "es15", "spline-natural",
    ),
    "multi-class": (
        "auto", "smooth", "temperature", "vector", "svs", "sms", "dirichlet-odir",
        "ovr-smooth", "ovr-isotonic", "ovr-beta",
    ),
}  # fmt: skip
"""What takes part by default, of what exists."""

MIN_TEST = 300
"""With fewer test rows, harm is mostly noise."""

MEASURES = (
    "log_loss", "brier", "smooth_error", "es15_error", "accuracy", "difference",
    "difference_error", "classes", "test_rows",
)  # fmt: skip
"""Measured in each cell. ``difference`` is the mean over test rows of the log-loss
minus that of ``none``, and ``difference_error`` its standard error."""


@dataclass(frozen=True, eq=False)
class ArenaSample:
    """Predictions of one event, (n,), or of all classes, (n, k); and labels."""

    p: Any
    y: Any

    @property
    def is_event(self) -> bool:
        """Return whether this is one event."""
        return bool(self.p.ndim == 1)

    @cached_property
    def losses(self) -> Any:
        """Return the log-losses of the predictions as they are."""
        return self.log_losses(self.p)

    def log_losses(self, q: Any) -> Any:
        """Return minus the log-probability of the label of each row."""
        own = np.where(self.y, q, 1.0 - q) if self.is_event else self._own(q)
        return -np.log(clip_probability(own))

    def scores(self, q: Any) -> dict[str, float]:
        """Return all measures of probabilities that do not depend on ``none``."""
        task = None if self.is_event else CONFIDENCE
        labels = None if self.is_event else range(q.shape[1])
        errors = {
            f"{method}_error": calibration_error(
                self.y, q, method=method, task=task, labels=labels
            )
            for method in ("smooth", "es15")
        }
        top = q > 0.5 if self.is_event else q.argmax(axis=1)  # noqa: PLR2004
        squares = (q - self.y) ** 2 if self.is_event else self._squares(q)
        return {
            "log_loss": float(self.log_losses(q).mean()),
            "brier": float(squares.mean()),
            "accuracy": float((top == self.y).mean()),
            **errors,
        }

    def _own(self, q: Any) -> Any:
        return q[np.arange(self.y.size), self.y]

    def _squares(self, q: Any) -> Any:
        """Return the sum over classes of (q - y)^2."""
        return np.square(q).sum(axis=1) - 2.0 * self._own(q) + 1.0


@dataclass(frozen=True)
class ArenaTruth:
    """A model on a data set, and one of its events or all its classes.

    Parameters
    ----------
    source : ArenaSet
        Predictions of the model.
    event : Event, optional
        What is calibrated; by default all classes.
    """

    source: ArenaSet
    event: Event | None = None
    error: ClassVar[float] = nan

    @property
    def shape(self) -> str:
        """Return data set, model and event, which tables split again."""
        what = "all classes" if self.event is None else self.event.label
        return SEPARATOR.join([self.source.data, self.source.model, what])

    @property
    def name(self) -> str:
        """Return everything the rows depend on, including the content of files."""
        return SEPARATOR.join([self.shape, *map(str, self.source.facts)])

    def has(self, n: int, seed: int) -> bool:
        """Return whether there is a sample of that size that differs from others."""
        _, rows, _, _ = self.source.facts
        return n < rows or (n == rows and seed == 0)

    def draw(self, n: int, seed: int) -> ArenaSample:
        """Draw calibration rows."""
        split = self.source.halves()[0]
        order = np.random.default_rng([n, seed]).permutation(split.rows)
        return self._sample(split, order[:n])

    def unseen(self) -> ArenaSample:
        """Return the test rows."""
        split = self.source.halves()[1]
        return self._sample(split, slice(None))

    def _sample(self, split: Any, rows: Any) -> ArenaSample:
        if self.event is not None:
            outcomes = outcomes_of(split, self.event)
            return ArenaSample(outcomes.p[rows], outcomes.y[rows].astype(np.intp))
        scores = np.asarray(split.scores[rows], dtype=np.float64)
        prob = class_probabilities(scores, split.scale)
        return ArenaSample(prob, np.asarray(split.labels[rows], dtype=np.intp))


def arena_truths(sets: Iterable[ArenaSet], kind: Kind) -> list[ArenaTruth]:
    """Return what is calibrated: events if binary, otherwise all classes together.

    The events of a model with several classes are the top class, and its first class
    against the rest.
    """
    truths = []
    for one in sets:
        classes, _, test_rows, _ = one.facts
        if test_rows < MIN_TEST or (kind != "binary" and classes == 2):  # noqa: PLR2004
            continue
        events: list[Event | None] = [None]
        if kind == "binary":
            several = [Event(CONFIDENCE), Event.of("0")]
            events = [Event("event", 1)] if classes == 2 else [*several]  # noqa: PLR2004
        truths += [ArenaTruth(one, event) for event in events]
    return truths


@dataclass(frozen=True)
class Unchanged:
    """The calibrator ``none``, which leaves predictions as they are."""

    def fit(self, _p: Any, _y: Any) -> Unchanged:
        """Return itself."""
        return self

    def transform(self, p: Any) -> Any:
        """Return the predictions."""
        return p


@dataclass(frozen=True)
class ArenaContender(Contender):
    """A calibrator that takes part in the arena.

    Its family is anything with ``fit(p, y)`` and ``transform(p)``, where p has one
    column per class unless the study is binary.

    Examples
    --------
    >>> ArenaContender.of("beta").family
    Beta()
    """

    measures: ClassVar[tuple[str, ...]] = MEASURES
    times: ClassVar[tuple[str, ...]] = ("fit_seconds",)

    @classmethod
    def of(cls, method: str, **params: Any) -> ArenaContender:
        """Return a method of the library, or ``none``."""
        return cls(
            method, Unchanged() if method == NONE else make_calibrator(method, **params)
        )

    def measure(self, data: Any, unseen: Any, _truth: Any) -> dict[str, float]:
        """Fit on calibration rows and return measures of the test rows."""
        calibrator = copy.deepcopy(self.family)
        started = time.thread_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = calibrator.fit(data.p, data.y) or calibrator
            q = np.asarray(fitted.transform(unseen.p), dtype=np.float64)
        seconds = time.thread_time() - started
        difference = unseen.log_losses(q) - unseen.losses
        return {
            **unseen.scores(q),
            "difference": float(difference.mean()),
            "difference_error": float(difference.std() / np.sqrt(difference.size)),
            "classes": 2.0 if unseen.is_event else float(q.shape[1]),
            "test_rows": float(unseen.y.size),
            "fit_seconds": seconds,
        }


def contenders(
    kind: Kind, methods: Sequence[str] | None = None
) -> list[ArenaContender]:
    """Return ``none`` and methods of a kind.

    Parameters
    ----------
    kind : {"binary", "multi-class"}
        What they calibrate.
    methods : sequence of str, optional
        Names; those of the other kind are left out. "all" stands for all that do not
        need torch. By default a selection of fast ones.
    """
    known = calibrator_names(kind)
    if methods is None:
        chosen = [name for name in METHODS[kind] if _is_of(name, kind, known)]
    elif list(methods) == [ALL]:
        chosen = [name for name in known if name not in NETWORKS]
        chosen += [name for name in METHODS[kind] if name[:4] in WRAPPERS]
    else:
        for name in methods:
            find_method(name)
        chosen = [name for name in methods if _is_of(name, kind, known)]
    return [ArenaContender.of(name) for name in dict.fromkeys([NONE, *chosen])]


def _is_of(name: str, kind: Kind, known: Sequence[str]) -> bool:
    """Return whether a method exists and is of a kind."""
    if name[:4] in WRAPPERS:
        return kind != "binary"
    return name in known or (kind == "binary" and name[:2] in {"es", "ew"})


@dataclass(frozen=True, kw_only=True)
class Arena(Design):
    """A design in which a truth takes part with those sizes that it has rows for."""

    truths: Sequence[ArenaTruth]  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return sum(1 for _ in self.cells())

    def cells(self) -> Iterator[Cell]:
        """Yield all cells, those of one truth and size together."""
        for cell in super().cells():
            if cell.truth.has(cell.n, cell.seed):  # type: ignore[attr-defined]
                yield cell


def arena_designs(
    sets: Sequence[ArenaSet],
    *,
    kinds: Sequence[Kind] = KINDS,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    seeds: int = SEEDS,
    every: int = 1,
) -> dict[str, Arena]:
    """Return one design per kind that has predictions and methods.

    Parameters
    ----------
    sets : sequence of ArenaSet
        Predictions.
    kinds, methods, sizes
        What to run.
    seeds : int
        Samples of each size.
    every : int
        Use only every n-th model.

    Returns
    -------
    dict of Arena
        By kind.
    """
    designs: dict[str, Arena] = {}
    for kind in kinds:
        truths, taking_part = arena_truths(sets, kind), contenders(kind, methods)
        truths = [truth for truth in truths if truth.has(min(sizes), 0)]
        truths = truths[(every - 1) // 2 :: every]
        if truths and len(taking_part) > 1:
            designs[kind] = Arena(
                contenders=taking_part, truths=truths, sizes=sizes, seeds=range(seeds)
            )
    if not designs:
        raise OptionError(
            f"nothing to run: no set of predictions has {min(sizes)} calibration and "
            f"{MIN_TEST} test rows, or no method is of the kinds asked for."
        )
    return designs
