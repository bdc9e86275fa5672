"""How many pieces a piecewise linear map needs, and their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.core.warn import warn
from calibrant.exceptions import FewerPiecesWarning
from calibrant.numerics.cross_validation import (
    EXTRA_COST,
    brier_unit,
    is_past_the_best,
    likelihood_weights,
    simplest_weight,
)
from calibrant.numerics.line_fits import (
    MIN_KNOT_GAP,
    fit_lines,
    search_lines,
    usual_start,
)
from calibrant.numerics.line_problems import (
    Loss,
    PiecewiseFits,
    lines_at,
    remove_peaks_between,
)
from calibrant.numerics.links import clip_probability, logit

if TYPE_CHECKING:
    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Space
    from calibrant.numerics.cross_validation import FoldedPoints
    from calibrant.numerics.resampling import Resamples
    from calibrant.numerics.weighted_points import WeightedPoints

Ensemble: TypeAlias = Literal["weighted", "folds", "refit"]

RESAMPLE_STEPS = 15
MAX_PIECES = int(0.5 / MIN_KNOT_GAP)
"""With more, knots could not be kept apart."""
STEEP_PIECES = 3
"""Flat, steep, flat: a map that is steeper than the diagonal needs three pieces. They
are tried however few rows there are."""
RESAMPLES = 100
"""How often held-out losses are resampled."""
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


@dataclass(frozen=True, eq=False)
class ChosenLines:
    """Lines with weights, whose mean is the map.

    Attributes
    ----------
    lines : list of (ndarray, ndarray)
        Knots and heights, of each fold and each good number of pieces.
    weights : ndarray
        The weight of each.
    n_pieces : int
        The best number of pieces.
    by_pieces : dict
        The weight of each number of pieces, for refits.
    losses : ndarray
        Cross-validated losses of 1, 2, ... pieces.
    """

    lines: list[tuple[FloatVector, FloatVector]]
    weights: FloatVector
    n_pieces: int
    by_pieces: dict[int, float]
    losses: FloatVector


@dataclass(kw_only=True, eq=False, repr=False)
class PieceSearch:
    """The search by cross-validation; `PiecewiseLinear` describes its settings."""

    space: Space = "prob"
    loss: Loss = "log-loss"
    pieces: int | Literal["cv"] = "cv"
    max_pieces: int = 16
    rows_per_piece: int = 200
    tolerance: float = 1e-3
    ensemble: Ensemble | None = None
    score: Literal["brier", "loss"] = "brier"
    monotone: bool = False

    def choose(self, points: FoldedPoints, total: float) -> ChosenLines:
        """Fit lines without the rows of each fold in turn, and weigh them.

        `total` is the number of rows that the points stand for.
        """
        if len(points.weight) == 1:  # one row: nothing to hold out or to choose
            return self._chosen(points, [self._search(points, 1)], np.ones(1))
        tried, losses = self._tried(points, total)
        few = self._beyond(losses.size, total).any()
        if few and self.ensemble in (None, "weighted"):
            weights = self._weights_of_few_rows(points, tried, total)
            by_pieces = dict(enumerate(weights.tolist(), start=1))
            return self._chosen(points, tried, weights, losses, by_pieces)
        weights = self._weights(losses, total)
        if self.ensemble == "refit":
            n_pieces = tried[int(np.argmax(weights))].pieces
            tried, weights = [self._search(points, n_pieces)], np.ones(1)
        return self._chosen(points, tried, weights, losses)

    def _chosen(
        self,
        points: FoldedPoints,
        tried: list[PiecewiseFits],
        weights: FloatVector,
        losses: FloatVector | None = None,
        by_pieces: dict[int, float] | None = None,
    ) -> ChosenLines:
        """Return all lines that have weight, without peaks between predictions."""
        x = self._axis(points.p)
        lines, shares = [], []
        for fits, weight in zip(tried, weights, strict=True):
            if weight > 0.0:
                pairs = zip(fits.knots, fits.heights, strict=True)
                lines += [remove_peaks_between(x, *pair) for pair in pairs]
                shares += [weight] * len(fits.knots)
        best = tried[int(np.argmax(weights))].pieces
        losses = np.empty(0) if losses is None else losses
        return ChosenLines(
            lines, np.array(shares), best, by_pieces or {best: 1.0}, losses
        )

    def refit(
        self, resamples: Resamples, *, by_pieces: dict[int, float]
    ) -> FloatMatrix:
        """Return the map of each resample, the mean over numbers of pieces."""
        x = self._axis(resamples.p)
        whole, points = resamples.sample.on_axis(x), resamples.on_axis(x)
        count = len(resamples.weight)
        values = np.zeros_like(resamples.weight)
        for n_pieces, weight in by_pieces.items():
            if weight > 0.0:
                start = self._fit(whole, n_pieces)
                knots = np.repeat(start.knots, count, axis=0)
                lines = PiecewiseFits(knots, np.repeat(start.heights, count, axis=0))
                lines, _ = fit_lines(
                    points, lines, max_steps=RESAMPLE_STEPS, **self._options
                )
                values += weight * self._maps_at(resamples.p, lines)
        return values

    @property
    def _options(self) -> dict[str, Any]:
        return {"scale": self.space, "loss": self.loss, "monotone": self.monotone}

    def _axis(self, p: FloatVector) -> FloatVector:
        """Return predictions on the axis on which lines are straight."""
        return logit(p) if self.space == "logit" else p

    def _fit(self, points: WeightedPoints, pieces: int) -> PiecewiseFits:
        """Fit a number of pieces to each problem of a batch."""
        start = usual_start(points, pieces, self._outer_knots(points.p))
        return fit_lines(points, start, **self._options)[0]

    def _search(self, points: FoldedPoints, pieces: int) -> PiecewiseFits:
        """Fit a number of pieces to all rows, from many starts."""
        whole = points.together().on_axis(self._axis(points.p))
        outer = self._outer_knots(whole.p)
        return search_lines(whole, pieces, outer, **self._options)[0]

    def _outer_knots(self, x: FloatVector) -> tuple[float, float]:
        """Return the outer knots; lines go on straight beyond them."""
        if self.space == "prob":
            return 0.0, 1.0
        low, high = float(x[0]), float(x[-1])
        return (low, high) if low < high else (low - 1.0, high + 1.0)

    def _maps_at(self, p: FloatVector, fits: PiecewiseFits) -> FloatMatrix:
        """Return the map of each problem at the predictions `p`."""
        pairs = zip(fits.knots, fits.heights, strict=True)
        return np.array(list(lines_at(p, pairs, self.space)))

    def _tried(
        self, points: FoldedPoints, total: float
    ) -> tuple[list[PiecewiseFits], FloatVector]:
        """Return the folds' lines for each number of pieces, and their losses."""
        training = points.training().on_axis(self._axis(points.p))
        distinct = points.p.size
        max_pieces = min(self._pieces_by_levels(distinct), MAX_PIECES)
        if self.pieces != "cv":
            pieces = supported_pieces(self.pieces, max_pieces, distinct)
            return [self._fit(training, pieces)], np.zeros(1)
        by_rows = max(self._pieces_by_rows(total), STEEP_PIECES)
        max_pieces = min(self.max_pieces, max_pieces, by_rows)
        tried: list[PiecewiseFits] = []
        losses = np.empty(0)
        for pieces in range(1, max_pieces + 1):
            tried.append(self._fit(training, pieces))
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
        return distinct + 1 if self.space == "prob" else distinct - 1

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
        default = "weighted" if self.space == "prob" else "folds"
        if (self.ensemble or default) == "weighted":
            return likelihood_weights(losses, unit)
        cost = EXTRA_COST * unit * self._beyond(losses.size, total)
        return simplest_weight(losses + cost, self.tolerance)

    def _weights_of_few_rows(
        self, points: FoldedPoints, tried: list[PiecewiseFits], total: float
    ) -> FloatVector:
        """Return the mean weight of each number of pieces over resampled rows.

        The losses of few rows depend on one or two of them, mostly where a steep map
        meets the one row that contradicts it; they rule no number of pieces out. Rows
        get weights from an exponential distribution, the Bayesian bootstrap.
        """
        others = np.maximum(points.weight - points.label_sum, 0.0)
        rows = np.concatenate([points.label_sum, others], axis=None)
        losses = np.stack([self._row_losses(points, lines) for lines in tried])
        losses, rows = losses[:, rows > 0.0], rows[rows > 0.0]
        rng = np.random.default_rng(0)  # so that equal input gives equal output
        share = rng.standard_gamma(rows, (RESAMPLES, rows.size))
        means = share @ losses.T / share.sum(axis=1, keepdims=True)
        unit = self._unit(means, total)
        cost = EXTRA_COST * unit * self._beyond(len(tried), total)
        weights = likelihood_weights(means + cost, unit, min_weight=0.0).mean(axis=0)
        weights = np.where(weights < MIN_SHARE, 0.0, weights)
        return np.asarray(weights / weights.sum())

    @property
    def _by_log_loss(self) -> bool:
        return self.score == "loss" and self.loss == "log-loss"

    def _held_out_loss(self, points: FoldedPoints, lines: PiecewiseFits) -> float:
        c = self._maps_at(points.p, lines)
        if not self._by_log_loss:
            return points.held_out_brier(c)
        c, weight, events = clip_probability(c), points.weight, points.label_sum
        loss = -(events * np.log(c) + (weight - events) * np.log1p(-c))
        return float(np.mean(loss.sum(axis=1) / weight.sum(axis=1)))

    def _row_losses(self, points: FoldedPoints, lines: PiecewiseFits) -> FloatVector:
        """Return each fold's loss at each point where y is 1, then where it is 0."""
        c = self._maps_at(points.p, lines)
        if not self._by_log_loss:
            return np.concatenate([(1.0 - c) ** 2, c**2], axis=None)
        c = clip_probability(c)
        return -np.concatenate([np.log(c), np.log1p(-c)], axis=None)
