"""PL and PL3: piecewise linear maps, their number of pieces by cross-validation."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from calibrant._typing import Scale
from calibrant._validation.options import (
    check_choice,
    check_count,
    check_fraction,
    legacy_generator,
)
from calibrant.exceptions import FewerPiecesWarning
from calibrant.maps.piecewise import MeanMap, PiecewiseLinearMap, mean_map
from calibrant.numerics.binning import size_edges, tabulate, width_edges
from calibrant.numerics.folds import fold_numbers
from calibrant.numerics.gaps import mean_gap
from calibrant.numerics.grid import bin_index
from calibrant.numerics.links import clipped, logit
from calibrant.numerics.piecewise import fit_lines
from calibrant.numerics.piecewise_problems import Lines, Loss, Points, values_at
from calibrant.numerics.piecewise_starts import quantile_start, search_lines
from calibrant.numerics.selection import simplest_within
from calibrant.numerics.sorted_sample import SortedSample

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector, IntVector, Seed
    from calibrant._validation.sample import BinarySample
    from calibrant.numerics.resampling import Cells

Ensemble: TypeAlias = Literal["folds", "refit"]

MOST_POINTS = 1024
"""With more distinct predictions than this, rows are gathered into cells."""
CELLS = 512
FINE_CELLS = 16_384
"""Cells for the error of very large samples."""
RESAMPLES_AT_ONCE = 128
RESAMPLE_STEPS = 15


@dataclass(frozen=True, eq=False)
class FoldedPoints:
    """A sample gathered into points, each point's rows parted into folds.

    Attributes
    ----------
    p : ndarray of shape (m,)
        Mean prediction of each point, ascending.
    weight, label : ndarray of shape (folds, m)
        Sum of weights and of weighted labels per fold.
    """

    p: FloatVector
    weight: FloatMatrix
    label: FloatMatrix

    @classmethod
    def of(cls, rows: SortedSample, fold: IntVector) -> FoldedPoints:
        """Gather sorted rows into points, one per distinct prediction if few."""
        folds = int(fold.max()) + 1
        weight = np.ones(rows.p.size) if rows.weight is None else rows.weight
        distinct = 1 + np.count_nonzero(np.diff(rows.p))
        if distinct <= MOST_POINTS:
            cell = np.cumsum(np.diff(rows.p, prepend=rows.p[0]) > 0.0, dtype=np.intp)
        else:
            cell = bin_index(rows.p, size_edges(rows.p, rows.weight, CELLS))
        size = int(cell[-1]) + 1

        def per_fold(values: FloatVector) -> FloatMatrix:
            sums = np.bincount(fold * size + cell, values, minlength=folds * size)
            return sums.reshape(folds, size).astype(np.float64, copy=False)

        total = np.bincount(cell, weight, minlength=size)
        used = total > 0.0
        p = np.bincount(cell, weight * rows.p, minlength=size)[used] / total[used]
        return cls(p, per_fold(weight)[:, used], per_fold(weight * rows.y)[:, used])

    def training(self, x: FloatVector) -> Points:
        """Return one problem per fold: all rows but those of the fold."""
        return _points(
            x, self.weight.sum(0) - self.weight, self.label.sum(0) - self.label
        )

    def together(self, x: FloatVector) -> Points:
        """Return the one problem of all rows."""
        return _points(x, self.weight.sum(0)[np.newaxis], self.label.sum(0)[np.newaxis])


def _points(x: FloatVector, weight: FloatMatrix, label: FloatMatrix) -> Points:
    some = weight > 0.0
    share = np.divide(label, weight, out=np.zeros_like(label), where=some)
    return Points(x, np.maximum(weight, 0.0), np.clip(share, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class PiecewiseFit:
    """A fitted piecewise linear map.

    Attributes
    ----------
    map : PiecewiseLinearMap or MeanMap
        The estimated calibration map.
    pieces : int
        Number of pieces, of each map where the map is a mean.
    losses : ndarray or None
        Cross-validated loss for 1, 2, ... pieces, where their number was chosen so.
    family : PiecewiseLinear
        What was fitted.
    """

    map: PiecewiseLinearMap | MeanMap
    pieces: int
    losses: FloatVector | None
    family: PiecewiseLinear

    @property
    def edges(self) -> FloatVector:
        """Return where the map bends, from 0 to 1."""
        bends = self.map.bends
        inside = np.unique(bends[(bends > 0.0) & (bends < 1.0)])
        return np.concatenate([[0.0], inside, [1.0]])

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Tell that no bias is known."""
        return False

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha.

        Very many rows are gathered into cells of width 1/16384 first, within which
        the map is as good as straight.
        """
        p, weight = sample.p, sample.weight
        if sample.n > 4 * FINE_CELLS:
            table = tabulate(p, sample.y, weight, width_edges(FINE_CELLS))
            used = table.weight > 0.0
            p, weight = table.mean_prob[used], table.weight[used]
        return mean_gap(self.map(p), p, weight, alpha)

    def resampled_errors(
        self,
        cells: Cells,
        weights: FloatMatrix,
        *,
        alpha: float,
        debias: bool,  # noqa: ARG002
    ) -> FloatVector:
        """Return the error for each row of cell weights, fitted with as many pieces."""
        _, cell = np.unique(cells.left, return_inverse=True)
        first = np.searchsorted(cell, np.arange(cell[-1] + 1))

        def per_cell(values: FloatMatrix) -> FloatMatrix:
            return np.add.reduceat(values, first, axis=-1)

        p = per_cell(cells.weight * cells.p) / per_cell(cells.weight)
        x = self.family.axis(p)
        whole = _points(
            x,
            per_cell(cells.weight)[np.newaxis],
            per_cell(cells.weight * cells.y)[np.newaxis],
        )
        start = self.family.fit_points(whole, self.pieces)
        found = []
        for chunk in np.array_split(weights, -(-len(weights) // RESAMPLES_AT_ONCE)):
            weight = per_cell(chunk)
            points = _points(x, weight, per_cell(chunk * cells.y))
            lines, _ = fit_lines(
                points,
                Lines(
                    np.repeat(start.knots, len(chunk), axis=0),
                    np.repeat(start.heights, len(chunk), axis=0),
                ),
                scale=self.family.scale,
                loss=self.family.loss,
                monotone=self.family.monotone,
                max_steps=RESAMPLE_STEPS,
            )
            gap = np.abs(self.family.maps_at(p, lines) - p) ** alpha
            found.append((weight * gap).sum(axis=1) / weight.sum(axis=1))
        return np.concatenate(found)


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
        The largest number tried.
    rows_per_piece : int
        At most one piece more than there are times this many rows are tried.
    folds : int
        Number of folds.
    tolerance : float
        The fewest pieces are taken whose loss is within this share of the least.
    ensemble : {"folds", "refit"}
        The mean of the maps of the folds, as in the paper, or one map fitted anew on
        all rows.
    score : {"brier", "loss"}
        By what pieces are chosen: the Brier score, as in the paper, or `loss`.
    monotone : bool
        Whether the map must not fall.
    random_state : int, generator or None
        Shuffles rows into folds; rows are sorted first, so that their order does not
        matter.
    """

    scale: Scale = "prob"
    loss: Loss = "log-loss"
    pieces: int | Literal["cv"] = "cv"
    max_pieces: int = 16
    rows_per_piece: int = 200
    folds: int = 10
    tolerance: float = 1e-3
    ensemble: Ensemble = "folds"
    score: Literal["brier", "loss"] = "brier"
    monotone: bool = False
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_choice(self.scale, get_args(Scale), name="scale")
        check_choice(self.loss, get_args(Loss), name="loss")
        check_choice(self.ensemble, get_args(Ensemble), name="ensemble")
        check_choice(self.score, ("brier", "loss"), name="score")
        check_count(self.max_pieces, name="max_pieces")
        check_count(self.rows_per_piece, name="rows_per_piece")
        check_count(self.folds, name="folds", least=2)
        if self.tolerance:
            check_fraction(self.tolerance, name="tolerance")
        if self.pieces != "cv":
            check_count(self.pieces, name="pieces")

    def fit(self, sample: BinarySample) -> PiecewiseFit:
        """Estimate the calibration map of a sample."""
        # Sorted rows are put into folds, so that their order does not matter.
        rows = SortedSample.of(sample.p, sample.y, sample.weight)
        folds = min(self.folds, sample.n)
        fold = fold_numbers(sample.n, folds, legacy_generator(self.random_state))
        points = FoldedPoints.of(rows, fold)
        if folds == 1:  # one row: nothing to hold out, and nothing to choose
            together = points.together(self.axis(points.p))
            return PiecewiseFit(self._map(self.search(together, 1)), 1, None, self)
        pieces, losses, lines = self._choose(points, sample.total)
        if self.ensemble == "refit":
            lines = self.search(points.together(self.axis(points.p)), pieces)
        return PiecewiseFit(self._map(lines), pieces, losses, self)

    def axis(self, p: FloatVector) -> FloatVector:
        """Return predictions on the axis on which lines are straight."""
        return logit(p) if self.scale == "logit" else p

    def fit_points(self, points: Points, pieces: int) -> Lines:
        """Fit a number of pieces to each problem of a batch."""
        start = quantile_start(points, pieces, self._ends(points.x))
        return fit_lines(
            points, start, scale=self.scale, loss=self.loss, monotone=self.monotone
        )[0]

    def search(self, points: Points, pieces: int) -> Lines:
        """Fit a number of pieces to one problem, from many starts."""
        return search_lines(
            points,
            pieces,
            self._ends(points.x),
            scale=self.scale,
            loss=self.loss,
            monotone=self.monotone,
        )[0]

    def _ends(self, x: FloatVector) -> tuple[float, float]:
        """Return the outer knots; lines go on straight beyond them."""
        if self.scale == "prob":
            return 0.0, 1.0
        low, high = float(x[0]), float(x[-1])
        return (low, high) if low < high else (low - 1.0, high + 1.0)

    def maps_at(self, p: FloatVector, lines: Lines) -> FloatMatrix:
        """Return the map of each problem at the predictions `p`."""
        x = self.axis(p)
        pairs = zip(lines.knots, lines.heights, strict=True)
        f = np.array([values_at(x, knots, heights) for knots, heights in pairs])
        c: FloatMatrix = expit(f) if self.scale == "logit" else np.clip(f, 0.0, 1.0)
        return c

    def _map(self, lines: Lines) -> PiecewiseLinearMap | MeanMap:
        pairs = zip(lines.knots, lines.heights, strict=True)
        return mean_map([PiecewiseLinearMap(*pair, self.scale) for pair in pairs])

    def _choose(
        self, points: FoldedPoints, total: float
    ) -> tuple[int, FloatVector | None, Lines]:
        """Return the number of pieces, the losses behind it and the folds' maps."""
        training = points.training(self.axis(points.p))
        most = max(points.p.size - 1, 1)
        if self.pieces != "cv":
            pieces = self._supported(self.pieces, most)
            return pieces, None, self.fit_points(training, pieces)
        most = min(self.max_pieces, most, int(total // self.rows_per_piece) + 1)
        tried = [self.fit_points(training, k) for k in range(1, most + 1)]
        losses = np.array([self._held_out_loss(points, lines) for lines in tried])
        best = simplest_within(losses, self.tolerance)
        return best + 1, losses, tried[best]

    def _supported(self, pieces: int, most: int) -> int:
        if pieces > most:
            warnings.warn(
                f"{pieces} pieces were asked for, but {most + 1} distinct predictions "
                f"support {most} at most: {most} are used.",
                FewerPiecesWarning,
                stacklevel=5,
            )
        return min(pieces, most)

    def _held_out_loss(self, points: FoldedPoints, lines: Lines) -> float:
        c = self.maps_at(points.p, lines)
        weight, label = points.weight, points.label
        if self.score == "brier" or self.loss == "brier":
            loss = c**2 * weight - 2.0 * c * label + label
        else:
            c = clipped(c)
            loss = -(label * np.log(c) + (weight - label) * np.log1p(-c))
        return float(np.mean(loss.sum(axis=1) / weight.sum(axis=1)))
