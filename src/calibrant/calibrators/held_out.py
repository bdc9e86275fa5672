"""What repairs make of rows that they were not fitted on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
from scipy.special import expit

from calibrant.calibrators.multiclass_smooth import fit_classes
from calibrant.calibrators.smooth import smooth_fit
from calibrant.core.parameters import legacy_generator
from calibrant.core.sample import BinarySample
from calibrant.core.tasks import event_of_class
from calibrant.numerics.class_probabilities import (
    log_probabilities,
    log_softmax,
    weight_shares,
)
from calibrant.numerics.cross_validation import class_fold_numbers
from calibrant.numerics.folded_points import folded_rows
from calibrant.numerics.links import WHOLE, log_odds_parts, regression_ends
from calibrant.numerics.pooling import RepairedRows, log_losses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
        Seed,
    )
    from calibrant.core.sample import ClassSample
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.multiclass import MulticlassMap

NEEDED = float(np.log(2.0 / 3.0))
"""Evidence above which predictions are repaired: miscalibration then has a chance of
40 %, if it had 50 % before. Fewer than one in twenty calibrated samples reach that."""
HELD_OUT_NEEDED = 2.0
"""Log-likelihood by which groups, or rounding 0 and 1, must be better."""
MAX_STEPS, ROWS_PER_STEP = 101, 3.0
"""Predictions come in steps, as votes and percentages do, if they have at most so many
values between 0 and 1, each of them so many times on average."""


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

    def sample(self, rows: BoolVector) -> Any:
        """Return some of the rows as a sample to fit."""
        ...

    def repaired(self, map_: Any, rows: BoolVector) -> FloatMatrix:
        """Return log-probabilities of some of the rows after a repair."""
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
    ends: tuple[float, float] = WHOLE

    @classmethod
    def of(cls, sample: BinarySample, folds: int, random_state: Seed) -> Self:
        """Divide a sample, aggregated into cells where it is very large."""
        rows, fold = folded_rows(sample, folds, random_state)
        weight = np.ones(rows.p.size) if rows.weight is None else rows.weight
        return cls(rows.p, rows.y, weight, fold)

    def rounded(self) -> Self:
        """Return the rows, predictions of 0 and 1 as rounded if they seem to be.

        They do if labels contradict them, and if predictions come in steps: then 0
        stands for less than a step. No label is fitted: how far from 0 and 1 they are
        is the data's resolution.
        """
        inside = (self.p > 0.0) & (self.p < 1.0)
        if inside.all():
            return self
        rounded = replace(self, ends=regression_ends(self.p, self.weight))
        if self._has_steps(inside):
            return rounded
        losses = (log_losses(one.log_prob, one.target) for one in (self, rounded))
        before, after = (float(self.weight @ loss) for loss in losses)
        return rounded if before - after > HELD_OUT_NEEDED else self

    def _has_steps(self, inside: BoolVector) -> bool:
        """Return whether predictions between 0 and 1 have few values, all repeated."""
        steps = np.unique(self.p[inside]).size
        rows = float(self.weight[inside].sum())
        return 0 < steps <= min(MAX_STEPS, rows / ROWS_PER_STEP)

    @property
    def evidence(self) -> float:
        """Return the log of how many times more probable `smooth` makes labels."""
        return smooth_fit(self.all_rows).evidence

    @cached_property
    def log_prob(self) -> FloatMatrix:
        """Return the log-probabilities of no event and of the event."""
        return event_log_prob(self.p, self.ends)

    @property
    def target(self) -> FloatMatrix:
        """Return whether there was no event, or the event."""
        return np.column_stack([1.0 - self.y, self.y])

    def sample(self, rows: BoolVector) -> BinarySample:
        """Return some of the rows as a sample to fit."""
        return BinarySample(self.p[rows], self.y[rows], self.weight[rows])

    @cached_property
    def all_rows(self) -> BinarySample:
        """Return all rows, or the cells that they were aggregated into."""
        return BinarySample(self.p, self.y, self.weight)

    def repaired(self, map_: CalibrationMap, rows: BoolVector) -> FloatMatrix:
        """Return log-probabilities of some of the rows after a repair."""
        return event_log_prob(map_.values(self.p[rows]))

    def event(self, log_prob: FloatMatrix) -> BinarySample:
        """Return the rows with other predictions."""
        if log_prob is self.log_prob:  # its fit is known already
            return self.all_rows
        return BinarySample(np.exp(log_prob[:, 1]), self.y, self.weight)


def event_log_prob(p: FloatVector, ends: tuple[float, float] = WHOLE) -> FloatMatrix:
    """Return the log-probabilities of no event and of the event."""
    log_p, minus_log_q = log_odds_parts(p, ends)
    return np.column_stack([-minus_log_q, log_p])


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Predictions of several classes, divided into folds."""

    rows: ClassSample
    fold: IntVector

    @classmethod
    def of(cls, sample: ClassSample, folds: int, random_state: Seed) -> Self:
        """Divide a sample."""
        scores = log_probabilities(sample.scores, sample.scale)
        share = weight_shares(sample.weight, sample.n)
        rng = legacy_generator(random_state)
        folds = min(folds, sample.n)
        return cls(sample, class_fold_numbers(scores, sample.column, share, folds, rng))

    def rounded(self) -> Self:
        """Return the rows: their logarithms are never those of 0."""
        return self

    @property
    def evidence(self) -> float:
        """Return the log of how many times more probable `smooth` makes labels."""
        return fit_classes(self.rows).evidence

    @cached_property
    def log_prob(self) -> FloatMatrix:
        """Return the log-probability of each class."""
        return log_probabilities(self.rows.scores, self.rows.scale)

    @property
    def target(self) -> FloatMatrix:
        """Return 1 for the class that happened, 0 for others."""
        return np.eye(self.rows.n_classes)[self.rows.column]

    @property
    def weight(self) -> FloatVector:
        """Return how many rows each row stands for."""
        return np.ones(self.rows.n) if self.rows.weight is None else self.rows.weight

    def sample(self, rows: BoolVector) -> ClassSample:
        """Return some of the rows as a sample to fit."""
        return self.rows.rows(rows)

    def repaired(self, map_: MulticlassMap, rows: BoolVector) -> FloatMatrix:
        """Return log-probabilities of some of the rows after a repair."""
        return log_probabilities(map_.calibrated(self.rows.scores[rows]), "prob")

    def event(self, log_prob: FloatMatrix) -> BinarySample:
        """Return whether the top label was right."""
        p, y = event_of_class(np.exp(log_prob), self.rows.column, None)
        return BinarySample(np.minimum(p, 1.0), y, self.rows.weight)


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
        moves = tuple(np.zeros_like(scores) for _ in families)
        for number in range(int(rows.fold.max()) + 1):
            held = rows.fold == number
            training = rows.sample(~held)
            for move, family in zip(moves, families.values(), strict=True):
                map_ = family.fit_sample(training).map
                move[held] = rows.repaired(map_, held) - scores[held]
        repaired = RepairedRows(scores, moves, rows.target, rows.weight)
        return cls(raw, rows, tuple(families), repaired)

    @cached_property
    def pooled(self) -> FloatMatrix:
        """Return pooled log-probabilities whose weights come from the other folds."""
        pooled = np.empty_like(self.repaired.scores)
        for number in range(int(self.rows.fold.max()) + 1):
            held = self.rows.fold == number
            weights = self.repaired.some(~held).best_weights()
            pooled[held] = self.repaired.some(held).pooled(weights)
        return pooled

    @cached_property
    def evidence(self) -> float:
        """Return the log of how many times more probable `smooth` makes labels.

        All rows count: held-out rows alone would tell less.
        """
        return self.raw.evidence if self.names else 0.0

    @property
    def strength(self) -> float:
        """Return the chance of miscalibration, or 0 if it is too small to repair.

        Averaged over both possibilities, logits move by this part of the repair.
        """
        tried = bool(self.names) and self.evidence > NEEDED
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

    def alone(self, name: str) -> FloatMatrix:
        """Return log-probabilities after one of the methods alone."""
        return self.repaired.pooled([float(name == one) for one in self.names])
