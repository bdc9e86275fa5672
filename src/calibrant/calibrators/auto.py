"""The best supported repair, or none, with a certificate.

A few families are fitted by cross-validation and pooled on the logarithmic scale, with
the weights that are best for rows not used to fit. Where these rows do not support the
repair, predictions stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import ndtri

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.logistic import Beta, Quadratic
from calibrant.calibrators.smooth import Smooth, smooth_fit
from calibrant.calibrators.softmax_regression import Temperature
from calibrant.calibrators.structured_scaling import StructuredScaling
from calibrant.core.arrays import row_hash
from calibrant.core.defaults import DEFAULT_CONFIDENCE
from calibrant.core.parameters import check_count, check_flag, legacy_generator
from calibrant.core.sample import BinarySample
from calibrant.maps.certificate import Bounds, Certificate, Trial
from calibrant.maps.certified import CertifiedClassMap, CertifiedMap
from calibrant.maps.multiclass import PooledMap
from calibrant.maps.piecewise import PiecewiseLinearMap, map_through
from calibrant.numerics.class_probabilities import (
    event_of_class,
    log_probabilities,
    weight_shares,
)
from calibrant.numerics.cross_validation import class_fold_numbers
from calibrant.numerics.folded_points import folded_rows
from calibrant.numerics.links import (
    WHOLE,
    log_odds_parts,
    logit,
    logit_within,
    regression_ends,
)
from calibrant.numerics.pooling import RepairedRows, brier_scores, log_losses
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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

    Families = Mapping[str, Any]
    Score = Callable[[FloatMatrix, FloatMatrix], FloatVector]

FOLDS = 5
NEEDED = 2.0
"""Predictions are repaired where held-out labels are exp(2) times more probable then.
Fewer than one in twenty calibrated samples reach that."""
MANY, VERY_MANY = 1_000.0, 5_000.0
"""Rows from which regressions without penalties, and isotonic regression, take part."""
MIN_OUTCOMES = 100.0
"""Rows of the rarer outcome that they need besides."""
DRAWS = 400
"""Draws of the map for intervals of the calibration error."""


@dataclass(frozen=True, eq=False)
class RepairFit:
    """A repair and its certificate.

    Attributes
    ----------
    map : CalibrationMap or MulticlassMap
        The repair, with its certificate.
    """

    map: Any

    @property
    def certificate(self) -> Certificate:
        """Return what was tried, and what the repair brings."""
        certificate: Certificate = self.map.certificate
        return certificate


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
        """Return the rows with predictions of 0 and 1 as rounded, if labels ask for it.

        No label is fitted: how far from 0 and 1 they are is the data's resolution.
        """
        if ((self.p > 0.0) & (self.p < 1.0)).all():
            return self
        rounded = replace(self, ends=regression_ends(self.p, self.weight))
        losses = (log_losses(one.log_prob, one.target) for one in (self, rounded))
        before, after = (float(self.weight @ loss) for loss in losses)
        return rounded if before - after > NEEDED else self

    @cached_property
    def log_prob(self) -> FloatMatrix:
        """Return the log-probabilities of no event and of the event."""
        return _both(self.p, self.ends)

    @property
    def target(self) -> FloatMatrix:
        """Return whether there was no event, or the event."""
        return np.column_stack([1.0 - self.y, self.y])

    def sample(self, rows: BoolVector) -> BinarySample:
        """Return some of the rows as a sample to fit."""
        return BinarySample(self.p[rows], self.y[rows], self.weight[rows])

    def repaired(self, map_: CalibrationMap, rows: BoolVector) -> FloatMatrix:
        """Return log-probabilities of some of the rows after a repair."""
        return _both(map_.values(self.p[rows]))

    def event(self, log_prob: FloatMatrix) -> BinarySample:
        """Return the rows with other predictions."""
        return BinarySample(np.exp(log_prob[:, 1]), self.y, self.weight)


def _both(p: FloatVector, ends: tuple[float, float] = WHOLE) -> FloatMatrix:
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
class Assessment:
    """What repairs bring on rows that they were not fitted on.

    Attributes
    ----------
    rows : FoldedRows
        The rows.
    names : tuple of str
        Methods that were tried.
    repaired : RepairedRows
        What each method, fitted on other folds, makes of the rows.
    """

    rows: FoldedRows
    names: tuple[str, ...]
    repaired: RepairedRows

    @classmethod
    def of(cls, rows: FoldedRows, families: Families) -> Self:
        """Fit each family to all folds but one, and repair that one; for every fold."""
        scores = rows.log_prob
        moves = tuple(np.zeros_like(scores) for _ in families)
        for number in range(int(rows.fold.max()) + 1):
            held = rows.fold == number
            training = rows.sample(~held)
            for move, family in zip(moves, families.values(), strict=True):
                map_ = fit_family(family, training).map
                move[held] = rows.repaired(map_, held) - scores[held]
        repaired = RepairedRows(scores, moves, rows.target, rows.weight)
        return cls(rows, tuple(families), repaired)

    @cached_property
    def held_out(self) -> FloatMatrix:
        """Return pooled log-probabilities whose weights come from the other folds."""
        pooled = np.empty_like(self.repaired.scores)
        for number in range(int(self.rows.fold.max()) + 1):
            held = self.rows.fold == number
            weights = self.repaired.some(~held).best_weights()
            pooled[held] = self.repaired.some(held).pooled(weights)
        return pooled

    def gains(self, log_prob: FloatMatrix, score: Score = log_losses) -> FloatVector:
        """Return by how much log-probabilities lower the score of each row."""
        target = self.repaired.target
        return score(self.repaired.scores, target) - score(log_prob, target)

    @cached_property
    def evidence(self) -> float:
        """Return the log-likelihood that pooling gains on held-out rows."""
        return float(self.rows.weight @ self.gains(self.held_out))

    @cached_property
    def weights(self) -> FloatVector:
        """Return the weight of each method, 0 where too little supports them."""
        if self.evidence <= NEEDED:
            return np.zeros(len(self.names))
        return self.repaired.best_weights()

    def certificate(self, raw: FoldedRows, data: str) -> Certificate:
        """Return what was tried and what it brings, compared with raw predictions."""
        after = self.held_out if self.weights.any() else self.repaired.scores
        target, total = self.repaired.target, float(self.rows.weight.sum())

        def gain(score: Score) -> Bounds:
            gains = score(raw.log_prob, target) - score(after, target)
            return _mean_bounds(gains, self.rows.weight)

        alone = np.eye(len(self.names))
        tried = [
            Trial(name, float(weight), float(self.rows.weight @ gains / total))
            for name, weight, gains in zip(
                self.names,
                self.weights,
                (self.gains(self.repaired.pooled(one)) for one in alone),
                strict=True,
            )
        ]
        return Certificate(
            tried=tuple(tried),
            rounded=self.rows is not raw,
            log_loss_gain=gain(log_losses),
            brier_gain=gain(brier_scores),
            error_before=_error(raw.event(raw.log_prob)),
            error_after=_error(self.rows.event(after)),
            evidence=self.evidence,
            needed=NEEDED,
            n=round(total),
            folds=int(self.rows.fold.max()) + 1,
            confidence=DEFAULT_CONFIDENCE,
            data=data,
        )


def _mean_bounds(values: FloatVector, weight: FloatVector) -> Bounds:
    """Return the mean of values with its interval."""
    mean = float(np.average(values, weights=weight))
    variance = float(np.average((values - mean) ** 2, weights=weight)) / weight.sum()
    reach = float(ndtri(0.5 + 0.5 * DEFAULT_CONFIDENCE)) * float(np.sqrt(variance))
    return Bounds(mean, mean - reach, mean + reach)


def _error(sample: BinarySample) -> Bounds:
    """Return the calibration error by the smooth map, with its interval."""
    fit = smooth_fit(sample)
    value = fit.error(sample, alpha=1.0, debias=False)
    tail = 0.5 - 0.5 * DEFAULT_CONFIDENCE
    low, high = fit.error_quantiles((tail, 1.0 - tail), n_draws=DRAWS)
    return Bounds(value, float(min(low, value)), float(max(high, value)))


@dataclass(frozen=True, kw_only=True)
class Auto:
    """The repair of an event that held-out rows support, or none.

    Cross-validation fits each of a few families to some of the rows and pools them on
    the logit scale so that the other rows become most probable. Predictions stay
    exactly as they are where this makes held-out labels less than exp(2) times more
    probable. Those of exactly 0 and 1 count as rounded as soon as labels contradict
    them. The map keeps the shift of the last predictions beyond them.

    Parameters
    ----------
    monotone : bool
        Whether the map must not fall.
    folds : int
        Number of folds of the cross-validation.
    random_state : int, generator or None
        Seeds the division into folds.

    References
    ----------
    D. Wolpert (1992). Stacked generalization. doi:10.1016/S0893-6080(05)80023-1
    """

    monotone: bool = True
    folds: int = FOLDS
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_flag(self.monotone, name="monotone")
        check_count(self.folds, name="folds", least=2)

    def fit(self, sample: BinarySample) -> RepairFit:
        """Choose the repair of a sample."""
        raw = EventRows.of(sample, self.folds, self.random_state)
        rows, families = raw.rounded(), _event_families(sample)
        chosen = Assessment.of(rows, families)
        maps = [
            (weight, fit_family(family, sample).map)
            for weight, family in zip(chosen.weights, families.values(), strict=True)
            if weight
        ]
        hashed = row_hash(sample.p, sample.y, sample.weight)
        certificate = chosen.certificate(raw, hashed)
        return RepairFit(CertifiedMap(self._map(sample, rows, maps), certificate))

    def _map(
        self,
        sample: BinarySample,
        rows: EventRows,
        maps: Sequence[tuple[float, CalibrationMap]],
    ) -> CalibrationMap:
        """Return the pooled map as lines between logits, or the identity."""
        if not maps:
            low, high = rows.ends if rows.ends != WHOLE else (0.0, 1.0)
            return map_through(np.array([low, high]), np.array([low, high]))
        cells = compress_to_at_most(sample)
        u = logit_within(cells.p, rows.ends)
        shift = sum(weight * (logit(map_.values(cells.p)) - u) for weight, map_ in maps)
        height = u + shift
        if self.monotone:
            height = isotonic_regression(height, weights=cells.weight).x
        first = np.flatnonzero(np.diff(u, prepend=-np.inf) > 0.0)
        beyond = 0.0 if rows.ends != WHOLE else 1.0
        return PiecewiseLinearMap(
            _extended(u[first], 1.0), _extended(height[first], beyond), "logit"
        )


def _extended(values: FloatVector, step: float) -> FloatVector:
    """Return values with one more at either end."""
    return np.concatenate([[values[0] - step], values, [values[-1] + step]])


def _event_families(sample: BinarySample) -> dict[str, Any]:
    """Return the families that are tried on a sample of so many rows."""
    families: dict[str, Any] = {"smooth": Smooth()}
    events = sample.total * sample.mean(sample.y)
    rarer = min(events, sample.total - events)
    if sample.total >= MANY and rarer >= MIN_OUTCOMES:
        families |= {"beta": Beta(), "quadratic": Quadratic()}
    if sample.total >= VERY_MANY and rarer >= MIN_OUTCOMES:
        families["isotonic"] = Isotonic()
    return families


@dataclass(frozen=True, kw_only=True)
class AutoClasses:
    """The repair of several classes that held-out rows support, or none.

    As `Auto`, with families of maps of all classes, pooled on the scale of
    log-probabilities.

    Parameters
    ----------
    keep_order : bool
        Whether the order of the classes in each row must stay as it is.
    folds : int
        Number of folds of the cross-validation.
    random_state : int, generator or None
        Seeds the division into folds.
    """

    keep_order: bool = False
    folds: int = FOLDS
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_flag(self.keep_order, name="keep_order")
        check_count(self.folds, name="folds", least=2)

    def fit(self, sample: ClassSample) -> RepairFit:
        """Choose the repair of a sample."""
        families: dict[str, Any] = {"temperature": Temperature()}
        if not self.keep_order:
            families["smooth"] = StructuredScaling(structure="matrix")
        rows = ClassRows.of(sample, self.folds, self.random_state)
        chosen = Assessment.of(rows, families)
        used = [
            (float(weight), fit_family(family, sample).map)
            for weight, family in zip(chosen.weights, families.values(), strict=True)
            if weight
        ]
        weights, maps = zip(*used, strict=True) if used else ((), ())
        hashed = row_hash(sample.scores, sample.column, sample.weight)
        pooled = PooledMap(maps, np.array(weights), sample.n_classes, sample.scale)
        certificate = chosen.certificate(rows, hashed)
        return RepairFit(CertifiedClassMap(pooled, certificate))
