"""PL-DE: lines or parabolas of least squares whose knots are searched for globally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from calibrant._validation.options import (
    check_choice,
    check_count,
    check_fraction,
    generator,
    legacy_generator,
)
from calibrant.calibrators.curve import CurveFit
from calibrant.calibrators.folded_points import FoldedPoints, points_of
from calibrant.calibrators.piecewise import edges_of, supported_pieces
from calibrant.maps.parabolas import ParabolasMap
from calibrant.maps.piecewise import PiecewiseLinearMap
from calibrant.numerics.folds import fold_numbers
from calibrant.numerics.knot_fits import (
    fitted_values,
    fold_knots,
    moved_knots,
    node_heights,
    search_knots,
)
from calibrant.numerics.knot_search import KnotProblems
from calibrant.numerics.selection import simplest_within
from calibrant.numerics.sorted_sample import SortedSample

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector, Seed
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.curve import Resamples
    from calibrant.numerics.piecewise_problems import Points

MOST_PIECES = {1: 7, 2: 5}
"""The largest numbers of pieces that the paper tries, by degree."""


@dataclass(frozen=True, kw_only=True)
class SearchedPieces:
    """Continuous piecewise lines or parabolas with the least squared error.

    The paper fits these by differential evolution; here knots are exchanged for
    better ones until none is left, from many starts.

    Parameters
    ----------
    degree : {1, 2}
        Lines, or parabolas that meet but may bend where they do.
    pieces : int or "cv"
        Number of pieces, or the choice by cross-validated Brier score.
    max_pieces : int, optional
        The largest number tried; as in the paper, 7 for lines and 5 for parabolas.
    folds : int
        Number of folds.
    tolerance : float
        The fewest pieces are taken whose loss is within this share of the least.
    starts : int
        Random starts of the last search, beside those built from fewer pieces.
    random_state : int, generator or None
        Shuffles sorted rows into folds, and draws the random starts.
    """

    degree: Literal[1, 2] = 1
    pieces: int | Literal["cv"] = "cv"
    max_pieces: int | None = None
    folds: int = 10
    tolerance: float = 1e-3
    starts: int = 8
    random_state: Seed = 0

    def __post_init__(self) -> None:
        check_choice(self.degree, (1, 2), name="degree")
        check_count(self.folds, name="folds", least=2)
        check_count(self.starts, name="starts")
        if self.max_pieces is not None:
            check_count(self.max_pieces, name="max_pieces")
        if self.tolerance:
            check_fraction(self.tolerance, name="tolerance")
        if self.pieces != "cv":
            check_count(self.pieces, name="pieces")

    def fit(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        rows = SortedSample.of(sample.p, sample.y, sample.weight)
        folds = min(self.folds, sample.n)
        fold = fold_numbers(sample.n, folds, legacy_generator(self.random_state))
        points = FoldedPoints.of(rows, fold)
        pieces, losses = self._choose(points, folds)
        map_ = self._map(points.together(points.p), pieces)
        return CurveFit(map_, pieces, edges_of(map_.bends), self, losses)

    def refitted(
        self, fit: CurveFit, sample: Resamples, resamples: Resamples
    ) -> FloatMatrix:
        """Return the map of each resample, each knot moved once, at the points."""
        points = points_of(sample.p, resamples.weight, resamples.label)
        problems = KnotProblems.of(points, self.degree)
        knots = moved_knots(problems, fit.edges[1:-1])
        return np.clip(fitted_values(problems, knots), 0.0, 1.0)

    def _choose(
        self, points: FoldedPoints, folds: int
    ) -> tuple[int, FloatVector | None]:
        """Return the number of pieces, and the losses behind it."""
        distinct = points.p.size
        most = max((distinct - 1) // self.degree, 1)
        if self.pieces != "cv":
            return supported_pieces(self.pieces, most, distinct), None
        if folds == 1:  # one row: nothing to hold out, and nothing to choose
            return 1, None
        most = min(self.max_pieces or MOST_PIECES[self.degree], most)
        problems = KnotProblems.of(points.training(points.p), self.degree)
        losses = np.array(
            [
                points.held_out_brier(fitted_values(problems, knots))
                for knots in fold_knots(problems, most)
            ]
        )
        return 1 + simplest_within(losses, self.tolerance), losses

    def _map(self, points: Points, pieces: int) -> PiecewiseLinearMap | ParabolasMap:
        if points.x.size == 1:
            level = np.repeat(points.label[0], 2)
            return PiecewiseLinearMap(np.array([0.0, 1.0]), level)
        inner = search_knots(
            points,
            pieces,
            degree=self.degree,
            starts=self.starts,
            rng=generator(self.random_state),
        )
        nodes, heights = node_heights(points, inner, degree=self.degree)
        if self.degree == 1:
            return PiecewiseLinearMap(nodes, heights)
        return ParabolasMap(nodes[::2], heights[::2], heights[1::2])
