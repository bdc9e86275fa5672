"""PL and PL3: piecewise linear maps, their number of pieces by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from calibrant.calibrators.curve import CurveFit
from calibrant.calibrators.folded_points import FoldedPoints, folded_rows
from calibrant.core.array_types import Space
from calibrant.core.options import (
    check_choice,
    check_count,
    check_fraction,
)
from calibrant.core.warn import warn
from calibrant.exceptions import FewerPiecesWarning
from calibrant.maps.piecewise import MeanMap, Part, PiecewiseLinearMap, mean_map
from calibrant.numerics.cross_validation import (
    EXTRA_COST,
    brier_unit,
    is_past_the_best,
    likelihood_weights,
    resampled_means,
    simplest_weight,
)
from calibrant.numerics.links import clip_probability, logit
from calibrant.numerics.piecewise import (
    MIN_KNOT_GAP,
    fit_lines,
    search_lines,
    usual_start,
)
from calibrant.numerics.piecewise_problems import (
    BatchPoints,
    Loss,
    PiecewiseFits,
    remove_peaks_between,
    values_at,
)

if TYPE_CHECKING:
    from calibrant.calibrators.curve import Resamples
    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample

Ensemble: TypeAlias = Literal["weighted", "folds", "refit"]

RESAMPLE_STEPS = 15
MAX_PIECES = int(0.5 / MIN_KNOT_GAP)
"""With more, knots could not be kept apart."""
STEEP_PIECES = 3
"""Flat, steep, flat: a map that is steeper than the diagonal needs three pieces. They
are tried however few rows there are."""
MIN_SHARE = 0.01
"""Numbers of pieces with a smaller share are left out of the mean of few rows."""


def supported_pieces(n_pieces: int, max_pieces: int, distinct: int) -> int:
    """Return the pieces asked for, or as many as the data support, with a warning."""
    if n_pieces > max_pieces:
        warn(
            f"{n_pieces} pieces were asked for, but {distinct} distinct predictions "
            f"support {max_pieces} at most: {max_pieces} are used.",
            FewerPiecesWarning,
        )
    return min(n_pieces, max_pieces)


def edges_of(bends: FloatVector) -> FloatVector:
    """Return bends within the unit interval, with its ends.

    Examples
    --------
    >>> edges_of(np.array([0.25, 1.0]))
    array([0.  , 0.25, 1.  ])
    """
    inside = np.unique(bends[(bends > 0.0) & (bends < 1.0)])
    return np.concatenate([[0.0], inside, [1.0]])


@dataclass(frozen=True, kw_only=True)
class PiecewiseLinear:
    """Continuous piecewise linear maps whose knots and heights are fitted.

    Parameters
    ----------
    scale : {"prob", "logit"}
        Straight lines between probabilities (PL), or between logits (PL3).
    loss : {"log-loss", "brier"}
        What is minimised.
    pieces : int or "cv"
        Number of pieces, or the choice by cross-validation.
    max_pieces : int
        The largest number tried. The search stops early where four numbers in a row
        lose more than 0.1 percent over the best and have no weight.
    rows_per_piece : int
        At most one piece per this many rows, plus one, is tried. Up to three are
        always tried, at a cost beyond that number, since a map needs three pieces to
        be steeper than the diagonal throughout.
    folds : int
        Number of folds.
    tolerance : float
        The fewest pieces are chosen whose loss is within this share of the smallest.
    ensemble : {"weighted", "folds", "refit"}, optional
        The mean of the folds' maps over all good numbers of pieces, weighted by their
        likelihood; the mean of the folds' maps with the fewest good pieces, as in the
        paper; or one map with as many pieces, refitted on all rows. The default is
        "weighted", and "folds" for many rows between logits, where few pieces suffice.
    score : {"brier", "loss"}
        The score that chooses pieces: the Brier score, as in the paper, or `loss`.
    monotone : bool
        Whether the map must not fall.
    random_state : int, generator or None
        Shuffles rows into folds; rows are sorted first, so that their order does not
        matter.
    """

    scale: Space = "prob"
    loss: Loss = "log-loss"
    pieces: int | Literal["cv"] = "cv"
    max_pieces: int = 16
    rows_per_piece: int = 200
    folds: int = 10
    tolerance: float = 1e-3
    ensemble: Ensemble | None = None
    score: Literal["brier", "loss"] = "brier"
    monotone: bool = False
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_choice(self.scale, get_args(Space), name="scale")
        check_choice(self.loss, get_args(Loss), name="loss")
        check_choice(self.ensemble, (None, *get_args(Ensemble)), name="ensemble")
        check_choice(self.score, ("brier", "loss"), name="score")
        check_count(self.max_pieces, name="max_pieces")
        check_count(self.rows_per_piece, name="rows_per_piece")
        check_count(self.folds, name="folds", least=2)
        if self.tolerance:
            check_fraction(self.tolerance, name="tolerance")
        if self.pieces != "cv":
            check_count(self.pieces, name="pieces")

    def fit(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        folds = min(self.folds, sample.n_data)
        points = FoldedPoints.of(*folded_rows(sample, folds, self.random_state))
        x = self.axis(points.p)
        if folds == 1:  # one row: nothing to hold out, and nothing to choose
            map_ = self._mean([self._search(points, 1)], np.ones(1), x)
            refit = partial(self._refit, weights={1: 1.0})
            return CurveFit(map_, 1, edges_of(map_.bends), refit)
        tried, losses = self._tried(points, sample.total)
        few = self._beyond(losses.size, sample.total).any()
        mixed: dict[int, float] = {}
        if few and self.ensemble in (None, "weighted"):
            weights = self._weights_of_few_rows(points, tried, sample.total)
            mixed = dict(enumerate(weights.tolist(), start=1))
        else:
            weights = self._weights(losses, sample.total)
        if self.ensemble == "refit":
            pieces = tried[int(np.argmax(weights))].pieces
            tried, weights = [self._search(points, pieces)], np.ones(1)
        pieces = tried[int(np.argmax(weights))].pieces
        map_ = self._mean(tried, weights, x)
        refit = partial(self._refit, weights=mixed or {pieces: 1.0})
        chosen = losses if self.pieces == "cv" else None
        return CurveFit(map_, pieces, edges_of(map_.bends), refit, chosen)

    def _refit(self, resamples: Resamples, *, weights: dict[int, float]) -> FloatMatrix:
        """Return the map of each resample, the mean over numbers of pieces."""
        x = self.axis(resamples.p)
        whole, points = resamples.sample.problems(x), resamples.problems(x)
        count, steps = len(resamples.weight), RESAMPLE_STEPS
        values = np.zeros_like(resamples.weight)
        for pieces, weight in weights.items():
            if weight > 0.0:
                start = self.fit_points(whole, pieces)
                knots = np.repeat(start.knots, count, axis=0)
                lines = PiecewiseFits(knots, np.repeat(start.heights, count, axis=0))
                lines, _ = fit_lines(points, lines, max_steps=steps, **self._options)
                values += weight * self.maps_at(resamples.p, lines)
        return values

    @property
    def _options(self) -> dict[str, Any]:
        return {"scale": self.scale, "loss": self.loss, "monotone": self.monotone}

    def axis(self, p: FloatVector) -> FloatVector:
        """Return predictions on the axis on which lines are straight."""
        return logit(p) if self.scale == "logit" else p

    def fit_points(self, points: BatchPoints, pieces: int) -> PiecewiseFits:
        """Fit a number of pieces to each problem of a batch."""
        start = usual_start(points, pieces, self._ends(points.x))
        return fit_lines(points, start, **self._options)[0]

    def _search(self, points: FoldedPoints, pieces: int) -> PiecewiseFits:
        """Fit a number of pieces to all rows, from many starts."""
        whole = points.together().problems(self.axis(points.p))
        return search_lines(whole, pieces, self._ends(whole.x), **self._options)[0]

    def _ends(self, x: FloatVector) -> tuple[float, float]:
        """Return the outer knots; lines go on straight beyond them."""
        if self.scale == "prob":
            return 0.0, 1.0
        low, high = float(x[0]), float(x[-1])
        return (low, high) if low < high else (low - 1.0, high + 1.0)

    def maps_at(self, p: FloatVector, lines: PiecewiseFits) -> FloatMatrix:
        """Return the map of each problem at the predictions `p`."""
        x = self.axis(p)
        pairs = zip(lines.knots, lines.heights, strict=True)
        f = np.array([values_at(x, knots, heights) for knots, heights in pairs])
        c: FloatMatrix = expit(f) if self.scale == "logit" else np.clip(f, 0.0, 1.0)
        return c

    def _mean(
        self, tried: list[PiecewiseFits], weights: FloatVector, x: FloatVector
    ) -> Part | MeanMap:
        """Return the weighted mean of all lines, those without weight left out."""
        maps, shares = [], []
        for lines, weight in zip(tried, weights, strict=True):
            if weight > 0.0:
                pairs = zip(lines.knots, lines.heights, strict=True)
                held = (remove_peaks_between(x, *pair) for pair in pairs)
                maps += [PiecewiseLinearMap(*pair, self.scale) for pair in held]
                shares += [weight] * len(lines.knots)
        return mean_map(maps, np.array(shares))

    def _tried(
        self, points: FoldedPoints, total: float
    ) -> tuple[list[PiecewiseFits], FloatVector]:
        """Return the folds' lines for each number of pieces, and their losses."""
        training = points.training().problems(self.axis(points.p))
        distinct = points.p.size
        max_pieces = min(self._pieces_by_levels(distinct), MAX_PIECES)
        if self.pieces != "cv":
            pieces = supported_pieces(self.pieces, max_pieces, distinct)
            return [self.fit_points(training, pieces)], np.zeros(1)
        by_rows = max(self._pieces_by_rows(total), STEEP_PIECES)
        max_pieces = min(self.max_pieces, max_pieces, by_rows)
        tried: list[PiecewiseFits] = []
        losses = np.empty(0)
        for pieces in range(1, max_pieces + 1):
            tried.append(self.fit_points(training, pieces))
            losses = np.append(losses, self._held_out_loss(points, tried[-1]))
            if is_past_the_best(losses, self._weights(losses, total)):
                break
        return tried, losses

    def _pieces_by_levels(self, distinct: int) -> int:
        """Return how many pieces can fit any rates at these distinct predictions.

        Between probabilities lines end at 0 and 1, beyond the outermost predictions.
        """
        if distinct == 1:
            return 1
        return distinct + 1 if self.scale == "prob" else distinct - 1

    def _pieces_by_rows(self, total: float) -> int:
        """Return how many pieces this number of rows supports."""
        return int(total // self.rows_per_piece) + 1

    def _beyond(self, tried: int, total: float) -> BoolVector:
        """Tell which numbers of pieces are too many for the rows."""
        return np.arange(tried) >= self._pieces_by_rows(total)

    def _unit(self, losses: FloatVector, total: float) -> FloatVector:
        """Return the difference of losses for a log-likelihood ratio of 1."""
        if self._by_log_loss:
            return np.array([1.0 / total])
        return brier_unit(losses, total)

    def _weights(self, losses: FloatVector, total: float) -> FloatVector:
        """Return the weight of each number of pieces."""
        unit = self._unit(losses, total)
        default = "weighted" if self.scale == "prob" else "folds"
        if (self.ensemble or default) == "weighted":
            return likelihood_weights(losses, unit)
        cost = EXTRA_COST * unit * self._beyond(losses.size, total)
        return simplest_weight(losses + cost, self.tolerance)

    def _weights_of_few_rows(
        self, points: FoldedPoints, tried: list[PiecewiseFits], total: float
    ) -> FloatVector:
        """Return the mean weight of each number of pieces over resampled rows.

        The losses of few rows depend on one or two of them, mostly where a steep map
        meets the one row that contradicts it; they rule no number of pieces out.
        """
        rows = points.rows_by_label()
        losses = np.stack([self._row_losses(points, lines) for lines in tried])
        means = resampled_means(losses[:, rows > 0.0], rows[rows > 0.0])
        unit = self._unit(means, total)
        cost = EXTRA_COST * unit * self._beyond(len(tried), total)
        weights = likelihood_weights(means + cost, unit, min_weight=0.0).mean(axis=0)
        weights = np.where(weights < MIN_SHARE, 0.0, weights)
        return np.asarray(weights / weights.sum())

    @property
    def _by_log_loss(self) -> bool:
        return self.score == "loss" and self.loss == "log-loss"

    def _held_out_loss(self, points: FoldedPoints, lines: PiecewiseFits) -> float:
        c = self.maps_at(points.p, lines)
        if not self._by_log_loss:
            return points.held_out_brier(c)
        c, weight, events = clip_probability(c), points.weight, points.label_sum
        loss = -(events * np.log(c) + (weight - events) * np.log1p(-c))
        return float(np.mean(loss.sum(axis=1) / weight.sum(axis=1)))

    def _row_losses(self, points: FoldedPoints, lines: PiecewiseFits) -> FloatVector:
        """Return each fold's loss at each point where y is 1, then where it is 0."""
        c = self.maps_at(points.p, lines)
        if not self._by_log_loss:
            return np.concatenate([(1.0 - c) ** 2, c**2], axis=None)
        c = clip_probability(c)
        return -np.concatenate([np.log(c), np.log1p(-c)], axis=None)
