"""How `auto` judges repairs: folds, evidence of miscalibration, and gains held out.

Each method is fitted to all folds but one and repairs that one. `HeldOut` says how the
methods are weighted there, and how strong the repair is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from scipy.special import expit, logit

from calibrant.calibrators.multiclass_smooth import fit_classes
from calibrant.calibrators.smooth import Smooth
from calibrant.core.parameters import legacy_generator
from calibrant.core.sample import BinarySample
from calibrant.core.tasks import event_of_class
from calibrant.maps.base import values_of_each
from calibrant.maps.certificate import MIN_PROBABILITY
from calibrant.numerics.class_probabilities import (
    class_probabilities,
    half_resolution,
    log_probabilities,
    log_softmax,
    weight_shares,
)
from calibrant.numerics.cross_validation import (
    class_fold_numbers,
    cluster_fold_numbers,
    few_cells,
    folded_rows,
    sample_to_fold,
)
from calibrant.numerics.links import CLIP, WIDEST_ENDS, log_odds_parts, regression_ends
from calibrant.numerics.pooling import RepairedRows, log_losses
from calibrant.numerics.smooth_curve_fits import smooth_curve

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
        Seed,
    )
    from calibrant.core.sample import ClassSample

MIN_EVIDENCE = float(logit(MIN_PROBABILITY))
"""Evidence above which predictions are repaired, if miscalibration is as likely as not
before any labels are seen. Fewer than one in twenty calibrated samples reach it."""
CLASS_PENALTY = 8.0
"""Penalty of the weights of maps of several classes. It was chosen on rows that the
tables of the arena do not contain."""
MIN_HELD_OUT_GAIN = 2.0
"""Log-likelihood by which groups, or rounding 0 and 1, must be better."""
MAX_STEPS, TIMES_PER_STEP, DIGITS = 101, 3.0, 6
"""Predictions come in steps, as votes and percentages do, if they have at most so many
values between 0 and 1, each of them so many times on average. Values that differ after
so many digits are the same step: 32-bit numbers do."""


class FoldedRows(Protocol):
    """Rows that are divided into folds."""

    @property
    def fold(self) -> IntVector:
        """Return the fold of each row."""
        ...

    @property
    def log_prob(self) -> FloatMatrix:
        """Return the log-probability of each class, one row per row."""
        ...

    def rounded(self) -> Self:
        """Return the rows, predictions of 0 and 1 as rounded if they seem to be."""
        ...

    @property
    def evidence(self) -> float:
        """Return the log of how many times more probable `smooth` makes labels."""
        ...

    @property
    def target(self) -> FloatMatrix:
        """Return 1 for the class that happened, 0 for others."""
        ...

    @property
    def weight(self) -> FloatVector:
        """Return how many rows each row stands for."""
        ...

    @property
    def clusters(self) -> IntVector | None:
        """Return the cluster of each row, where rows belong together."""
        ...

    def repaired(self, families: Iterable[Any]) -> Iterable[FloatMatrix]:
        """Return log-probabilities after each family, fitted to all other folds."""
        ...

    def moved(self, moves: tuple[FloatMatrix, ...]) -> RepairedRows:
        """Return the rows with what maps change, to be pooled."""
        ...

    def event(self, log_prob: FloatMatrix) -> BinarySample:
        """Return the event whose calibration error is certified."""
        ...


RowsT = TypeVar("RowsT", bound=FoldedRows)


@dataclass(frozen=True, eq=False)
class EventRows:
    """Predictions of one event, divided into folds."""

    p: FloatVector
    y: FloatVector
    weight: FloatVector
    fold: IntVector
    ends: tuple[float, float] = WIDEST_ENDS
    source: BinarySample | None = None
    """The sample that was divided, where there is one: it may have been fitted."""
    clusters: IntVector | None = None

    @classmethod
    def of(cls, sample: BinarySample, folds: int, random_state: Seed) -> Self:
        """Divide a sample, aggregated into few cells where it is very large.

        Rows of clusters are not: whole clusters are held out.
        """
        if sample.clusters is None:
            rows, fold = folded_rows(few_cells(sample), folds, random_state)
            return cls(rows.p, rows.y, rows.weights, fold, source=sample)
        rng = legacy_generator(random_state)
        fold = cluster_fold_numbers(sample.clusters, folds, rng)
        columns = sample.p, sample.y, sample.weights, fold
        return cls(*columns, source=sample, clusters=sample.clusters)

    def rounded(self) -> Self:
        """Return the rows, predictions of 0 and 1 as rounded if they seem to be.

        No label is fitted: how far from 0 and 1 they are is the data's resolution.
        """
        if ((self.p > 0.0) & (self.p < 1.0)).all():
            return self
        rounded = replace(self, ends=regression_ends(self.p, self.weight))
        rows = self.p[:, np.newaxis]
        return rounded if seem_rounded(self, rounded, rows) else self

    @property
    def evidence(self) -> float:
        """Return the log of how many times more probable `smooth` makes labels."""
        return smooth_curve(self.source or self.all_rows).evidence

    @cached_property
    def log_prob(self) -> FloatMatrix:
        """Return the log-probabilities of no event and of the event."""
        return event_log_prob(self.p, self.ends)

    @property
    def target(self) -> FloatMatrix:
        """Return whether there was no event, or the event."""
        return np.column_stack([1.0 - self.y, self.y])

    def repaired(self, families: Iterable[Any]) -> Iterable[FloatMatrix]:
        """Return log-probabilities after each family, fitted to all other folds."""
        folds = range(int(self.fold.max()) + 1)
        training = [self._sample(self.fold != number) for number in folds]
        maps = [[f.map for f in self._fits(family, training)] for family in families]
        if not maps:
            return []
        p = [values_of_each(own, self.p, self.fold) for own in maps]
        return event_log_prob(np.stack(p))

    def _sample(self, rows: BoolVector) -> BinarySample:
        """Return some of the rows as a sample to fit; what folds divided is joined."""
        if not self._are_cells:
            return BinarySample(self.p[rows], self.y[rows], self.weight[rows])
        first, cell = self._cells
        weight = np.bincount(cell[rows], self.weight[rows]).astype(np.float64)
        used = np.flatnonzero(weight)
        return BinarySample(self.p[first[used]], self.y[first[used]], weight[used])

    def _fits(self, family: Any, training: Sequence[BinarySample]) -> Sequence[Any]:
        """Return the fit of a family to each sample.

        Where rows are very many, smooth maps have the penalties of all of them.
        """
        if self._are_cells and self.source is not None and isinstance(family, Smooth):
            return family.fit_each_near(training, smooth_curve(self.source))
        fits: Sequence[Any] = family.fit_each(training)
        return fits

    @cached_property
    def _are_cells(self) -> bool:
        """Return whether folds divide the rows of cells, which belong together."""
        if self.source is None or self.clusters is not None:
            return False
        return few_cells(self.source).row_counts is not None

    @cached_property
    def _cells(self) -> tuple[IntVector, IntVector]:
        """Return the first of neighbouring rows with the same values, and its number.

        Only such rows do folds divide.
        """
        new = (np.diff(self.p, prepend=-1.0) != 0.0) | (np.diff(self.y, prepend=0) != 0)
        return np.flatnonzero(new), np.cumsum(new) - 1

    @cached_property
    def all_rows(self) -> BinarySample:
        """Return all rows, or the cells that they were aggregated into."""
        if self.source is not None:
            return sample_to_fold(self.source)
        return BinarySample(self.p, self.y, self.weight)

    def moved(self, moves: tuple[FloatMatrix, ...]) -> RepairedRows:
        """Return the rows with what maps change, to be pooled."""
        return RepairedRows(self.log_prob, moves, self.target, self.weight)

    def event(self, log_prob: FloatMatrix) -> BinarySample:
        """Return the rows with other predictions, in any order."""
        if log_prob is self.log_prob:  # its fit is known already
            return self.source or self.all_rows
        p = np.exp(log_prob[:, 1])
        return BinarySample(p, self.y, self.weight, clusters=self.clusters)


def event_log_prob(
    p: FloatMatrix, ends: tuple[float, float] = WIDEST_ENDS
) -> FloatMatrix:
    """Return the log-probabilities of no event and of the event, as last axis."""
    log_p, minus_log_q = log_odds_parts(p, ends)
    return np.stack([-minus_log_q, log_p], axis=-1)


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Predictions of several classes, divided into folds."""

    rows: ClassSample
    fold: IntVector
    floor: float = 0.0

    @classmethod
    def of(cls, sample: ClassSample, folds: int, random_state: Seed) -> Self:
        """Divide a sample."""
        scores = log_probabilities(sample.scores, sample.scale)
        share = weight_shares(sample.weight, sample.n)
        rng = legacy_generator(random_state)
        if sample.clusters is not None:
            return cls(sample, cluster_fold_numbers(sample.clusters, folds, rng))
        folds = min(folds, sample.n)
        return cls(sample, class_fold_numbers(scores, sample.column, share, folds, rng))

    @property
    def clusters(self) -> IntVector | None:
        """Return the cluster of each row, where rows belong together."""
        return self.rows.clusters

    def rounded(self) -> Self:
        """Return the rows, predictions of 0 as rounded if they seem to be.

        As for one event, they are then half of the data's resolution, but all zeros
        together are at most half a row: there may be many in each row.
        """
        if self.rows.scale == "logit" or self.rows.scores.all():
            return self
        prob = class_probabilities(self.rows.scores, self.rows.scale)
        zeros = max(float(self.weight @ (prob == 0.0).sum(axis=1)), CLIP)
        rounded = replace(self, floor=min(half_resolution(prob), 0.5 / zeros))
        return rounded if seem_rounded(self, rounded, prob) else self

    @property
    def evidence(self) -> float:
        """Return the log of how many times more probable `smooth` makes labels."""
        raw = log_probabilities(self.rows.scores, self.rows.scale)
        gained = log_losses(raw, self.target) - log_losses(self.log_prob, self.target)
        return fit_classes(self.rows).evidence - float(self.weight @ gained)

    @cached_property
    def log_prob(self) -> FloatMatrix:
        """Return the log-probability of each class."""
        scores, scale = self.rows.scores, self.rows.scale
        if not self.floor:
            return log_probabilities(scores, scale)
        return log_softmax(log_probabilities(scores, scale, self.floor))

    @property
    def target(self) -> FloatMatrix:
        """Return 1 for the class that happened, 0 for others."""
        return np.eye(self.rows.n_classes)[self.rows.column]

    @property
    def weight(self) -> FloatVector:
        """Return how many rows each row stands for."""
        return np.ones(self.rows.n) if self.rows.weight is None else self.rows.weight

    def repaired(self, families: Iterable[Any]) -> list[FloatMatrix]:
        """Return log-probabilities after each family, fitted to all other folds."""
        families, scores = list(families), self.rows.scores
        repaired = [np.empty_like(scores, dtype=np.float64) for _ in families]
        for number in range(int(self.fold.max()) + 1):
            held = self.fold == number
            training = self.rows.rows(~held)
            for prob, family in zip(repaired, families, strict=True):
                prob[held] = family.fit_sample(training).map.calibrated(scores[held])
        return [log_probabilities(prob, "prob") for prob in repaired]

    def moved(self, moves: tuple[FloatMatrix, ...]) -> RepairedRows:
        """Return the rows with what maps change, to be pooled with no repair."""
        columns = self.log_prob, moves, self.target, self.weight
        return RepairedRows(*columns, CLASS_PENALTY, partly=True)

    def event(self, log_prob: FloatMatrix) -> BinarySample:
        """Return whether the top label was right."""
        p, y = event_of_class(np.exp(log_prob), self.rows.column, None)
        weight, clusters = self.rows.weight, self.rows.clusters
        return BinarySample(np.minimum(p, 1.0), y, weight, clusters=clusters)


def seem_rounded(raw: RowsT, rounded: RowsT, prob: FloatMatrix) -> bool:
    """Return whether predictions of exactly 0 and 1 seem to be rounded.

    They do if predictions, (n, k), come in steps, since 0 then stands for less than a
    step; and if labels contradict them.
    """
    if _has_steps(prob, raw.weight):
        return True
    losses = (log_losses(one.log_prob, one.target) for one in (raw, rounded))
    before, after = (float(raw.weight @ loss) for loss in losses)
    return before - after > MIN_HELD_OUT_GAIN


def _has_steps(prob: FloatMatrix, weight: FloatVector) -> bool:
    """Return whether predictions between 0 and 1 have few values, all repeated."""
    inside = (prob > 0.0) & (prob < 1.0)
    steps = np.unique(prob[inside].round(DIGITS))
    if np.isin([0.0, 1.0], steps).any():  # there are predictions of other sizes
        return False
    times = float(weight @ inside.sum(axis=1))
    return 0 < steps.size <= min(MAX_STEPS, times / TIMES_PER_STEP)


@dataclass(frozen=True, eq=False)
class HeldOut(Generic[RowsT]):
    """What repairs bring on rows that they were not fitted on.

    Attributes
    ----------
    raw : FoldedRows
        The rows with their predictions as they are.
    rows : FoldedRows
        The same, predictions of exactly 0 and 1 perhaps rounded.
    names : tuple of str
        The methods tried.
    repaired : RepairedRows
        What each method, fitted on other folds, makes of the rows.
    """

    raw: RowsT
    rows: RowsT
    names: tuple[str, ...]
    repaired: RepairedRows

    @classmethod
    def of(cls, raw: RowsT, families: Mapping[str, Any]) -> Self:
        """Fit each family to all folds but one, and repair that one; for every fold."""
        rows = raw.rounded()
        scores = rows.log_prob
        moves = tuple(own - scores for own in rows.repaired(families.values()))
        return cls(raw, rows, tuple(families), rows.moved(moves))

    @cached_property
    def pooled(self) -> FloatMatrix:
        """Return pooled log-probabilities whose weights come from the other folds."""
        pooled = np.empty_like(self.repaired.scores)
        for number in range(int(self.rows.fold.max()) + 1):
            held = self.rows.fold == number
            weights = self.repaired.best_weights(~held)
            pooled[held] = self.repaired.some(held).pooled(weights)
        return pooled

    @cached_property
    def evidence(self) -> float:
        """Return the log of how many times more probable `smooth` makes labels.

        All rows count: held-out rows alone would tell less.
        """
        return self.rows.evidence if self.names else 0.0

    @property
    def strength(self) -> float:
        """Return the chance of miscalibration, or 0 if it is too small to repair.

        Averaged over both possibilities, logits move by this part of the repair.
        """
        tried = bool(self.names) and self.evidence > MIN_EVIDENCE
        return float(expit(self.evidence)) if tried else 0.0

    @cached_property
    def weights(self) -> FloatVector:
        """Return the weight of each method."""
        return self.strength * self.repaired.best_weights()

    @cached_property
    def after(self) -> FloatMatrix:
        """Return log-probabilities after the repair, on rows it was not fitted on."""
        scores = self.repaired.scores
        if not self.strength:
            return scores
        return log_softmax(scores + self.strength * (self.pooled - scores))

    @cached_property
    def alone(self) -> dict[str, FloatMatrix]:
        """Return log-probabilities after each of the methods alone."""
        shares = np.eye(len(self.names))
        return {n: self.repaired.pooled(shares[k]) for k, n in enumerate(self.names)}
