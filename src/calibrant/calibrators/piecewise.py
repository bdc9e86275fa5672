"""Piecewise maps whose number of pieces is chosen by cross-validation.

PL and PL3 are lines with knots by descent; PL-DE are lines or parabolas of least
squares with knots by global search.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from calibrant.calibrators.base import BRIER, EventCalibrator
from calibrant.calibrators.fits import CurveFit
from calibrant.core.array_types import Space
from calibrant.core.parameters import (
    check_choice,
    check_count,
    check_fraction,
    generator,
)
from calibrant.maps.piecewise import (
    MeanMap,
    ParabolasMap,
    Part,
    PiecewiseLinearMap,
    mean_map,
)
from calibrant.numerics.binning import edges_with_ends
from calibrant.numerics.cross_validation import (
    brier_unit,
    likelihood_weights,
    simplest_weight,
)
from calibrant.numerics.folded_points import FoldedPoints, folded_rows
from calibrant.numerics.global_knots import (
    fitted_values,
    fold_knots,
    moved_knots,
    node_heights,
    search_knots,
)
from calibrant.numerics.knot_exchange import KnotProblems
from calibrant.numerics.line_problems import BatchPoints, Loss
from calibrant.numerics.piece_search import Ensemble, PieceSearch, supported_pieces

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntMatrix, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import Resamples

MIN_KNOT_GAP = 1e-9
"""Between knots that are closer than this a line would be too steep."""
MAX_PIECES = {1: 7, 2: 5}
"""The largest numbers of pieces that the paper tries, by degree."""


@dataclass(kw_only=True, eq=False, repr=False)
class PiecewiseLinear(PieceSearch, EventCalibrator):
    """Continuous piecewise linear maps whose knots and heights are fitted.

    Parameters
    ----------
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
        Whether the map must not decrease.
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
        points = FoldedPoints.of(*folded_rows(sample, self.folds, self.random_state))
        chosen = self.choose(points, sample.total)
        compared = self.pieces == "cv" and points.folds > 1
        losses = chosen.losses if compared else None
        lines = [PiecewiseLinearMap(*line, self.space) for line in chosen.lines]
        map_ = mean_map(lines, chosen.weights)
        refit = partial(self._refit, by_pieces=chosen.by_pieces)
        return CurveFit(
            map_, chosen.n_pieces, edges_with_ends(map_.bends), refit, losses
        )

    def _refit(
        self, resamples: Resamples, *, by_pieces: dict[int, float]
    ) -> FloatMatrix:
        return self.refit(resamples.sample, resamples, by_pieces)


@dataclass(kw_only=True, eq=False, repr=False)
class GlobalPiecewise(EventCalibrator):
    """Continuous piecewise lines or parabolas with the least squared error.

    The paper fits these by differential evolution; here knots are replaced by better
    ones until there are none, from many starting points.

    Parameters
    ----------
    degree : {1, 2}
        Lines, or parabolas that are continuous but may bend where they meet.
    pieces : int or "cv"
        Number of pieces, or the choice by cross-validated Brier score.
    max_pieces : int, optional
        The largest number tried; as in the paper, 7 for lines and 5 for parabolas.
    folds : int
        Number of folds.
    tolerance : float
        The fewest pieces are chosen whose loss is within this share of the smallest.
    ensemble : {"weighted", "folds", "refit"}, optional
        The mean of the folds' maps over all good numbers of pieces, weighted by their
        likelihood; the mean of the folds' maps with the fewest good pieces; or one map
        with as many pieces by a search over all rows, as in the paper. The default is
        "weighted", and "refit" for a given number of pieces.
    starts : int
        Random starts of a search over all rows, beside those built from fewer pieces.
    random_state : int, generator or None
        Shuffles sorted rows into folds, and draws the random starts.
    """

    fitted_by: ClassVar[str] = BRIER
    degree: Literal[1, 2] = 1
    pieces: int | Literal["cv"] = "cv"
    max_pieces: int | None = None
    folds: int = 10
    tolerance: float = 1e-3
    ensemble: Ensemble | None = None
    starts: int = 8
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.degree, (1, 2), name="degree")
        check_choice(self.ensemble, (None, *get_args(Ensemble)), name="ensemble")
        check_count(self.folds, name="folds", least=2)
        check_count(self.starts, name="starts")
        if self.max_pieces is not None:
            check_count(self.max_pieces, name="max_pieces")
        if self.tolerance:
            check_fraction(self.tolerance, name="tolerance")
        if self.pieces != "cv":
            check_count(self.pieces, name="pieces")

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        rows = folded_rows(sample, self.folds, self.random_state)
        points = FoldedPoints.of(*rows, same=MIN_KNOT_GAP)
        counts = self._counts(points.p.size) if points.folds > 1 else range(1, 2)
        ensemble = self.ensemble or ("weighted" if self.pieces == "cv" else "refit")
        if len(counts) == 1 and (ensemble == "refit" or points.folds == 1):
            return self._curve(self._searched(points, counts[0]), counts[0])
        training = points.training().problems(points.p)
        problems = KnotProblems.of(training, self.degree)
        tried = list(fold_knots(problems, counts[-1]))[counts[0] - 1 :]
        values = [fitted_values(problems, knots) for knots in tried]
        losses = np.array([points.held_out_brier(v) for v in values])
        if ensemble == "weighted":
            weights = likelihood_weights(losses, brier_unit(losses, sample.total))
        else:
            weights = simplest_weight(losses, self.tolerance)
        pieces = counts[int(np.argmax(weights))]
        if ensemble == "refit":
            return self._curve(self._searched(points, pieces), pieces, losses)
        return self._curve(self._mean(training, tried, weights), pieces, losses)

    def _curve(
        self, map_: Part | MeanMap, pieces: int, losses: FloatVector | None = None
    ) -> CurveFit:
        chosen = losses if self.pieces == "cv" else None
        refit = partial(self._refit, pieces=pieces)
        return CurveFit(map_, pieces, edges_with_ends(map_.bends), refit, chosen)

    def _refit(self, resamples: Resamples, *, pieces: int) -> FloatMatrix:
        """Return the map of each resample, each knot moved once."""
        x, sample = resamples.p, resamples.sample
        whole = sample.problems(x)
        pieces = min(pieces, self._pieces_by_levels(x.size))
        start = list(fold_knots(KnotProblems.of(whole, self.degree), pieces))[-1]
        problems = KnotProblems.of(resamples.problems(x), self.degree)
        knots = moved_knots(problems, start[0])
        return np.clip(fitted_values(problems, knots), 0.0, 1.0)

    def _pieces_by_levels(self, distinct: int) -> int:
        """Return how many pieces can fit any rates at these distinct predictions."""
        return max(-(-(distinct - 1) // self.degree), 1)

    def _counts(self, distinct: int) -> range:
        """Return the numbers of pieces to try."""
        max_pieces = self._pieces_by_levels(distinct)
        if self.pieces != "cv":
            pieces = supported_pieces(self.pieces, max_pieces, distinct)
            return range(pieces, pieces + 1)
        asked = self.max_pieces or MAX_PIECES[self.degree]
        return range(1, min(asked, max_pieces) + 1)

    def _mean(
        self, training: BatchPoints, tried: list[IntMatrix], weights: FloatVector
    ) -> Part | MeanMap:
        """Return the weighted mean of the folds' maps."""
        maps, shares = [], []
        for knots, weight in zip(tried, weights, strict=True):
            if weight > 0.0:
                for b, places in enumerate(knots):
                    fold = BatchPoints(
                        training.x, training.weight[[b]], training.rate[[b]]
                    )
                    maps.append(self._map(fold, training.x[places]))
                    shares.append(weight)
        return mean_map(maps, np.array(shares))

    def _searched(self, points: FoldedPoints, pieces: int) -> Part:
        """Return the best map of all rows that a global search finds."""
        whole = points.together().problems(points.p)
        rng = generator(self.random_state)
        inner = search_knots(
            whole, pieces, degree=self.degree, starts=self.starts, rng=rng
        )
        return self._map(whole, inner)

    def _map(self, points: BatchPoints, inner: FloatVector) -> Part:
        if points.x.size == 1:
            level = np.repeat(points.rate[0], 2)
            return PiecewiseLinearMap(np.array([0.0, 1.0]), level)
        nodes, heights = node_heights(points, inner, degree=self.degree)
        if self.degree == 1:
            return PiecewiseLinearMap(nodes, heights)
        return ParabolasMap(nodes[::2], heights[::2], heights[1::2])
