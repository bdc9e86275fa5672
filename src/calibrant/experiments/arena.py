"""The arena: which calibrators improve predictions, and which of them harm.

Each cell is one method, fitted on a sample of the calibration rows of one model and
applied to its test rows. ``none`` leaves predictions as they are. A method harms if
its test log-loss is higher than that of ``none`` by more than one standard error of
the paired difference.

The win rate is CalArena's (arXiv:2605.30188): in each cell the share of the other
methods whose test log-loss is strictly higher, averaged over cells. A method that
failed leaves predictions as they are, and wins against none.
"""

from __future__ import annotations

import copy
import time
import warnings
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
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
from calibrant.experiments.assessment import Contender
from calibrant.experiments.model_studies import NETWORKS
from calibrant.experiments.prediction_sets import (
    CONFIDENCE,
    Event,
    find_predictions,
    outcomes_of,
)
from calibrant.experiments.prediction_truths import SEPARATOR
from calibrant.experiments.runner import Design
from calibrant.experiments.studies import Study
from calibrant.experiments.tables import ResultTable, TableKind, build_table
from calibrant.measures.calibration_error import calibration_error
from calibrant.numerics.class_probabilities import class_probabilities
from calibrant.numerics.links import clip_probability

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from calibrant.calibrators.base import Kind
    from calibrant.core.array_types import Frame, IntVector
    from calibrant.experiments.prediction_sets import Split, StoredPredictions

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

MAX_CAL, MIN_TEST, MAX_TEST = 10_000, 300, 20_000
"""With fewer than 300 test rows, harm is mostly noise."""

MAX_MODELS = 12
"""At most so many models of one data set take part, chosen evenly."""

ROUNDING = 1e-9
"""Differences of log-losses up to this are rounding: neither a win nor harm."""

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
        if self.is_event:
            squares = (q - self.y) ** 2
        else:  # summed over classes
            squares = np.square(q).sum(axis=1) - 2.0 * self._own(q) + 1.0
        return {
            "log_loss": float(self.log_losses(q).mean()),
            "brier": float(squares.mean()),
            "accuracy": float((top == self.y).mean()),
            **errors,
        }

    def _own(self, q: Any) -> Any:
        return q[np.arange(self.y.size), self.y]


def arena_sets(folder: str | os.PathLike[str]) -> list[StoredPredictions]:
    """Return the predictions below a folder, at most `MAX_MODELS` per data set."""
    by_data: dict[str, list[StoredPredictions]] = {}
    for model in find_predictions(folder):
        by_data.setdefault(model.data, []).append(model)
    chosen = []
    for models in by_data.values():
        places = np.linspace(0, len(models) - 1, min(MAX_MODELS, len(models)))
        chosen += [models[int(place)] for place in places.round()]
    return chosen


@lru_cache(maxsize=8)
def _halves(model: StoredPredictions) -> tuple[Split, Split]:
    """Return the rows that calibration rows are drawn from, and test rows."""
    return model.calibration().at_most(MAX_CAL), model.holdout().at_most(MAX_TEST)


@cache
def facts(model: StoredPredictions) -> tuple[int, int, int, str]:
    """Return numbers of classes and of rows of both halves, and a hash of them."""
    cal, test = _halves(model)
    return cal.classes, cal.rows, test.rows, cal.fingerprint + test.fingerprint


@dataclass(frozen=True)
class ArenaTruth:
    """A model on a data set, and one of its events or all its classes."""

    source: StoredPredictions
    event: Event | None = None  # what is calibrated; by default all classes
    error: ClassVar[float] = nan

    @property
    def shape(self) -> str:
        """Return data set, model and event, which tables split again."""
        what = "all classes" if self.event is None else self.event.label
        return SEPARATOR.join([self.source.data, self.source.name, what])

    @property
    def name(self) -> str:
        """Return everything the rows depend on, including the content of files."""
        return SEPARATOR.join([self.shape, *map(str, facts(self.source))])

    def has(self, n: int, seed: int) -> bool:
        """Return whether there is a sample of that size that differs from others."""
        _, rows, _, _ = facts(self.source)
        return n < rows or (n == rows and seed == 0)

    def draw(self, n: int, seed: int) -> ArenaSample:
        """Draw calibration rows."""
        split = _halves(self.source)[0]
        order = np.random.default_rng([n, seed]).permutation(split.rows)
        return self._sample(split, order[:n])

    def unseen(self) -> ArenaSample:
        """Return the test rows."""
        return self._sample(_halves(self.source)[1], slice(None))

    def _sample(self, split: Any, rows: Any) -> ArenaSample:
        if self.event is not None:
            outcomes = outcomes_of(split, self.event)
            return ArenaSample(outcomes.p[rows], outcomes.y[rows].astype(np.intp))
        scores = np.asarray(split.scores[rows], dtype=np.float64)
        prob = class_probabilities(scores, split.scale)
        return ArenaSample(prob, np.asarray(split.labels[rows], dtype=np.intp))


def arena_truths(models: Iterable[StoredPredictions], kind: Kind) -> list[ArenaTruth]:
    """Return what is calibrated: events if binary, otherwise all classes together.

    The events of a model with several classes are the top class, and its first class
    against the rest.
    """
    truths = []
    for model in models:
        classes, _, test_rows, _ = facts(model)
        if test_rows < MIN_TEST or (kind != "binary" and classes == 2):  # noqa: PLR2004
            continue
        events: list[Event | None] = [None]
        if kind == "binary":
            several = [Event(CONFIDENCE), Event.of("0")]
            events = [Event("event", 1)] if classes == 2 else [*several]  # noqa: PLR2004
        truths += [ArenaTruth(model, event) for event in events]
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

    >>> ArenaContender.of("beta").family
    Beta()
    """

    measures: ClassVar[tuple[str, ...]] = MEASURES

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
            "seconds": seconds,
        }


def contenders(
    kind: Kind, methods: Sequence[str] | None = None
) -> list[ArenaContender]:
    """Return ``none`` and methods of a kind, by default a selection of fast ones.

    Methods of the other kind are omitted; "all" means all that do not need torch.
    """
    if methods is None:
        methods = METHODS[kind]
    elif list(methods) == [ALL]:
        wrapped = [name for name in METHODS[kind] if name[:4] in WRAPPERS]
        known = [name for name in calibrator_names(kind) if name not in NETWORKS]
        methods = known + wrapped
    chosen = [name for name in methods if kind in find_method(name).kinds]
    return [ArenaContender.of(name) for name in dict.fromkeys([NONE, *chosen])]


def arena_study(
    models: Sequence[StoredPredictions],
    *,
    kinds: Sequence[Kind] = KINDS,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    seeds: int = SEEDS,
    every: int = 1,
) -> Study:
    """Return the study, with one design per kind that has predictions and methods.

    Parameters
    ----------
    models : sequence of StoredPredictions
        See `arena_sets`.
    kinds, methods, sizes
        What to run.
    seeds : int
        Samples of each size.
    every : int
        Use only every n-th model.

    Returns
    -------
    Study
        Designs by kind.
    """
    designs: dict[str, Design] = {}
    for kind in kinds:
        truths, taking_part = arena_truths(models, kind), contenders(kind, methods)
        truths = [truth for truth in truths if truth.has(min(sizes), 0)]
        truths = truths[(every - 1) // 2 :: every]
        if truths and len(taking_part) > 1:
            designs[kind] = Design(
                contenders=taking_part,
                truths=truths,  # type: ignore[arg-type]
                sizes=sizes,
                seeds=range(seeds),
            )
    if not designs:
        raise OptionError(
            f"nothing to run: no set of predictions has {min(sizes)} calibration and "
            f"{MIN_TEST} test rows, or no method is of the kinds asked for."
        )
    return Study("Arena of calibrators", designs, arena_tables)


_TABLES = (
    TableKind(
        "excess",
        "Test log-loss minus that of the best method of each cell, in thousandths",
        "excess",
    ),
    TableKind(
        "wins",
        "Win rate: share of the other methods with a higher test log-loss",
        "win",
        scale=1.0,
        digits=3,
        best="highest",
    ),
    TableKind(
        "harm",
        "Cells in which the test log-loss is higher than without calibration by more "
        "than one standard error of the paired difference, in percent",
        "harmed",
        scale=100.0,
        digits=1,
    ),
    TableKind(
        "difference",
        "Change of the test log-loss by calibration, in thousandths",
        "difference",
        signed=True,
    ),
    TableKind("brier", "Brier score of the test rows, in thousandths", "brier"),
    TableKind(
        "smooth",
        "Calibration error of the test rows by smooth (of the top class, if there are "
        "several), in thousandths",
        "smooth_error",
    ),
    TableKind(
        "es15",
        "The same by 15 bins of equal size, in thousandths",
        "es15_error",
    ),
    TableKind(
        "accuracy",
        "Accuracy on the test rows, in percent",
        "accuracy",
        scale=100.0,
        best="highest",
    ),
    TableKind(
        "time",
        "CPU time of fitting and of calibrating the test rows, in milliseconds",
        "seconds",
        digits=1,
    ),
)
ARENA_TABLES = tuple(replace(kind, cluster="data") for kind in _TABLES)


def compare_in_cells(rows: Frame) -> Frame:
    """Return results with columns that compare methods in each cell.

    ``data`` is the data set; ``excess``, ``win`` and ``harmed`` are as in the tables;
    a failed method has the measures of ``none``.
    """
    cell, row_of, base = _cells(rows)
    failed = rows["failure"] != ""
    filled = {
        name: np.where(failed, column[base], column)
        if column.dtype == float
        else column
        for name, column in rows.items()
    }
    ours, noise = filled["log_loss"], filled["difference_error"]
    losses = ours[row_of][cell]  # of all methods in the same cell
    beaten = losses > np.where(failed, np.inf, ours)[:, np.newaxis] + ROUNDING
    return {
        **filled,
        "data": np.array([text.split(SEPARATOR)[0] for text in rows["shape"]]),
        "excess": ours - losses.min(axis=1),
        "win": beaten.sum(axis=1) / max(losses.shape[1] - 1, 1),
        "harmed": (filled["difference"] > noise + ROUNDING).astype(float),
    }


def _cells(rows: Frame) -> tuple[IntVector, Any, IntVector]:
    """Return the cell of each row, the rows of each cell, and each row's ``none``."""
    keys = list(zip(rows["shape"], rows["n"], rows["seed"], strict=True))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    cell = np.array([places[key] for key in keys])
    methods, method = np.unique(rows["method"], return_inverse=True)
    row_of = np.empty((len(places), methods.size), dtype=np.intp)
    row_of[cell, method] = np.arange(cell.size)
    return cell, row_of, row_of[cell, methods.tolist().index(NONE)]


def arena_tables(results: Mapping[str, Frame]) -> list[ResultTable]:
    """Return all tables of each kind, methods in order of their mean excess."""
    tables: list[ResultTable] = []
    for kind, result in results.items():
        rows = compare_in_cells(result)
        names = np.unique(rows["method"]).tolist()
        excess = [rows["excess"][rows["method"] == name].mean() for name in names]
        methods = [names[place] for place in np.argsort(excess, kind="stable")]
        lines = [(f"{n} rows", rows["n"] == n) for n in np.unique(rows["n"]).tolist()]
        cells = rows["n"].size // len(methods)
        models = {text.rsplit(SEPARATOR, 1)[0] for text in rows["shape"].tolist()}
        study = f"{kind.capitalize()}, {cells} cells of {len(models)} models"
        for table in ARENA_TABLES:
            built = build_table(table, rows, lines, methods, {})
            tables.append(replace(built, study=study))
    return tables
