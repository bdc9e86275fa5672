"""Piecewise maps whose number of pieces is chosen by cross-validation.

PL and PL3 are lines whose knots are found by descent; PL-DE are least-squares lines or
parabolas whose knots are found by global search; splines follow the cumulative labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from calibrant.calibrators.base import BRIER, EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit
from calibrant.core.array_types import FoldEnsemble, Space
from calibrant.core.parameters import check_choice, check_count, check_fraction
from calibrant.maps.piecewise import (
    ParabolasMap,
    Part,
    PiecewiseLinearMap,
    map_through,
    mean_map,
)
from calibrant.numerics.binning import edges_with_ends
from calibrant.numerics.cross_validation import FoldedPoints, folded_rows
from calibrant.numerics.cumulative_splines import MIN_KNOTS, Runout, SplineSearch
from calibrant.numerics.global_knots import GlobalSearch
from calibrant.numerics.line_problems import Loss
from calibrant.numerics.piece_search import Ensemble, PieceSearch

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, Seed
    from calibrant.core.sample import BinarySample

MIN_KNOT_GAP = 1e-9
"""Between knots that are closer than this a line would be too steep."""


def _check_search(
    method: Any, number: str, ensembles: tuple[Any, ...], least: int = 1
) -> None:
    """Raise an error if a parameter that all these methods share is invalid."""
    check_choice(method.ensemble, ensembles, name="ensemble")
    check_count(method.folds, name="folds", least=2)
    if method.tolerance:
        check_fraction(method.tolerance, name="tolerance")
    if getattr(method, number) != "cv":
        check_count(getattr(method, number), name=number, least=least)


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
        check_choice(self.score, ("brier", "loss"), name="score")
        check_count(self.max_pieces, name="max_pieces")
        check_count(self.rows_per_piece, name="rows_per_piece")
        _check_search(self, "pieces", (None, *get_args(Ensemble)))

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = FoldedPoints.of(*folded_rows(sample, self.folds, self.random_state))
        chosen = self.choose(points, sample.total)
        compared = self.pieces == "cv" and points.folds > 1
        losses = chosen.losses if compared else None
        lines = [PiecewiseLinearMap(*line, self.space) for line in chosen.lines]
        map_ = mean_map(lines, chosen.weights)
        refit = partial(self.refit, by_pieces=chosen.by_pieces)
        edges = edges_with_ends(map_.bends)
        return CurveFit(map_, chosen.n_pieces, edges, refit, losses)


@dataclass(kw_only=True, eq=False, repr=False)
class GlobalPiecewise(GlobalSearch, EventCalibrator):
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
    folds : int
        Number of folds.
    """

    fitted_by: ClassVar[str] = BRIER
    folds: int = 10

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.degree, (1, 2), name="degree")
        check_count(self.starts, name="starts")
        if self.max_pieces is not None:
            check_count(self.max_pieces, name="max_pieces")
        _check_search(self, "pieces", (None, *get_args(Ensemble)))

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        rows = folded_rows(sample, self.folds, self.random_state)
        points = FoldedPoints.of(*rows, same=MIN_KNOT_GAP)
        chosen = self.choose(points, sample.total)
        map_ = mean_map([self._map(*one) for one in chosen.nodes], chosen.weights)
        edges = edges_with_ends(map_.bends)
        return CurveFit(map_, chosen.n_pieces, edges, chosen.refitted, chosen.losses)

    def _map(self, nodes: FloatVector, heights: FloatVector) -> Part:
        """Return one map; a single prediction has a line even among parabolas."""
        if self.degree == 1 or nodes.size == 2:  # noqa: PLR2004
            return PiecewiseLinearMap(nodes, heights)
        return ParabolasMap(nodes[::2], heights[::2], heights[1::2])


@dataclass(kw_only=True, eq=False, repr=False)
class CumulativeSpline(SplineSearch, EventCalibrator):
    """The slope of a least-squares spline of the cumulative labels.

    With rows sorted by prediction, the cumulative sum of y - p is a curve over the
    share of rows. A cubic spline with few equidistant knots is fitted to it;
    the map exceeds the diagonal by its slope. Where all labels are equal the map is
    flat, and with at most 16 distinct predictions it is the observed rate of
    each.

    Parameters
    ----------
    runout : {"natural", "parabolic", "cubic"}
        What splines do at the ends: no curvature, parabolas, or the cubic of the
        neighbouring piece.
    knots : int or "cv"
        Number of knots, or the choice by cross-validated Brier score.
    max_knots : int
        The largest number tried.
    rows_per_knot : int
        At most one knot per this many rows, plus the minimum, is tried; up to six are
        always tried, at a cost beyond that number.
    tolerance : float
        The fewest knots are chosen whose loss is within this share of the smallest.
    ensemble : {"folds", "refit"}
        The mean of the folds' maps, as in the paper, or one map refitted on all rows.
    folds : int
        Number of folds.
    random_state : int, generator or None
        Shuffles sorted rows into folds.

    References
    ----------
    K. Gupta et al. (2021). Calibration of neural networks using splines. ICLR.
    """

    fitted_by: ClassVar[str] = BRIER
    folds: int = 10
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.runout, get_args(Runout), name="runout")
        fewest = MIN_KNOTS[self.runout]
        check_count(self.max_knots, name="max_knots", least=fewest)
        check_count(self.rows_per_knot, name="rows_per_knot")
        _check_search(self, "knots", get_args(FoldEnsemble), fewest)

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = FoldedPoints.of(*folded_rows(sample, self.folds, self.random_state))
        fit = self.choose(points, sample.total)
        map_ = map_through(points.p, fit.values)
        return CurveFit(map_, fit.knots - 1, WHOLE_RANGE, fit.refitted, fit.losses)
