"""PL and PL3: piecewise linear maps, their number of pieces by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

import numpy as np

from calibrant.calibrators.base import EventCalibrator
from calibrant.calibrators.fits import CurveFit
from calibrant.core.array_types import Space
from calibrant.core.parameters import check_choice, check_count, check_fraction
from calibrant.maps.piecewise import PiecewiseLinearMap, mean_map
from calibrant.numerics.folded_points import FoldedPoints, folded_rows
from calibrant.numerics.line_problems import Loss
from calibrant.numerics.piece_search import Ensemble, PieceSearch

if TYPE_CHECKING:
    from calibrant.calibrators.fits import Resamples
    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample


def edges_of(bends: FloatVector) -> FloatVector:
    """Return bends within the unit interval, with its ends.

    Examples
    --------
    >>> edges_of(np.array([0.25, 1.0]))
    array([0.  , 0.25, 1.  ])
    """
    inside = np.unique(bends[(bends > 0.0) & (bends < 1.0)])
    return np.concatenate([[0.0], inside, [1.0]])


@dataclass(kw_only=True, eq=False, repr=False)
class PiecewiseLinear(PieceSearch, EventCalibrator):
    """Continuous piecewise linear maps whose knots and heights are fitted.

    Parameters
    ----------
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions are; it is never guessed.
    pos_label : object, optional
        The label of the event, if labels are not 0 and 1.
    space : {"prob", "logit"}
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
    folds : int
        Number of folds.
    random_state : int, generator or None
        Shuffles rows into folds; rows are sorted first, so that their order does not
        matter.
    """

    folds: int = 10
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.space, get_args(Space), name="space")
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

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        folds = min(self.folds, sample.n_data)
        points = FoldedPoints.of(*folded_rows(sample, folds, self.random_state))
        chosen = self.choose(points, sample.total)
        lines = [PiecewiseLinearMap(*line, self.space) for line in chosen.lines]
        map_ = mean_map(lines, chosen.weights)
        refit = partial(self._refit, by_pieces=chosen.by_pieces)
        losses = chosen.losses if self.pieces == "cv" and folds > 1 else None
        return CurveFit(map_, chosen.n_pieces, edges_of(map_.bends), refit, losses)

    def _refit(
        self, resamples: Resamples, *, by_pieces: dict[int, float]
    ) -> FloatMatrix:
        return self.refit(resamples.sample, resamples, by_pieces)
