"""How many pieces a map of least squares needs, and where global search puts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calibrant.core.parameters import generator
from calibrant.numerics.cross_validation import (
    brier_unit,
    likelihood_weights,
    simplest_weight,
)
from calibrant.numerics.global_knots import (
    fitted_values,
    fold_knots,
    moved_knots,
    node_heights,
    search_knots,
)
from calibrant.numerics.knot_exchange import KnotProblems
from calibrant.numerics.line_problems import BatchPoints
from calibrant.numerics.piece_search import Ensemble, supported_pieces

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntMatrix, Seed
    from calibrant.numerics.folded_points import FoldedPoints
    from calibrant.numerics.resampling import Resamples

    Nodes: TypeAlias = tuple[FloatVector, FloatVector]

MAX_PIECES = {1: 7, 2: 5}
"""The largest numbers of pieces that the paper tries, by degree."""


@dataclass(frozen=True, eq=False)
class ChosenPieces:
    """Pieces with weights, whose mean is the map.

    Attributes
    ----------
    nodes : list of (ndarray, ndarray)
        Knots (of parabolas, also the middles between them) and the heights there.
    weights : ndarray
        The weight of each.
    n_pieces : int
        The best number of pieces.
    degree : int
        1 of lines, 2 of parabolas.
    losses : ndarray or None
        Cross-validated losses of 1, 2, ... pieces, where they were compared.
    """

    nodes: list[Nodes]
    weights: FloatVector
    n_pieces: int
    degree: int
    losses: FloatVector | None = None

    def refitted(self, resamples: Resamples) -> FloatMatrix:
        """Return the map of each resample, each knot moved once."""
        x, degree = resamples.p, self.degree
        whole = KnotProblems.of(resamples.sample.problems(x), degree)
        pieces = min(self.n_pieces, pieces_by_levels(x.size, degree))
        start = list(fold_knots(whole, pieces))[-1]
        problems = KnotProblems.of(resamples.problems(x), degree)
        knots = moved_knots(problems, start[0])
        return np.clip(fitted_values(problems, knots), 0.0, 1.0)


def pieces_by_levels(distinct: int, degree: int) -> int:
    """Return how many pieces can fit any rates at these distinct predictions."""
    return max(-(-(distinct - 1) // degree), 1)


@dataclass(kw_only=True, eq=False, repr=False)
class GlobalSearch:
    """The search by cross-validation; `GlobalPiecewise` describes its settings."""

    degree: Literal[1, 2] = 1
    pieces: int | Literal["cv"] = "cv"
    max_pieces: int | None = None
    tolerance: float = 1e-3
    ensemble: Ensemble | None = None
    starts: int = 8
    random_state: Seed = 0

    def choose(self, points: FoldedPoints, total: float) -> ChosenPieces:
        """Fit pieces without the rows of each fold in turn, or to all of them.

        `total` is the number of rows that the points stand for.
        """
        counts = self._counts(points.p.size) if points.folds > 1 else range(1, 2)
        ensemble = self.ensemble or ("weighted" if self.pieces == "cv" else "refit")
        if len(counts) == 1 and (ensemble == "refit" or points.folds == 1):
            return self._searched(points, counts[0])
        training = points.training().problems(points.p)
        problems = KnotProblems.of(training, self.degree)
        tried = list(fold_knots(problems, counts[-1]))[counts[0] - 1 :]
        values = [fitted_values(problems, knots) for knots in tried]
        losses = np.array([points.held_out_brier(v) for v in values])
        if ensemble == "weighted":
            weights = likelihood_weights(losses, brier_unit(losses, total))
        else:
            weights = simplest_weight(losses, self.tolerance)
        n_pieces = counts[int(np.argmax(weights))]
        compared = losses if self.pieces == "cv" else None
        if ensemble == "refit":
            return self._searched(points, n_pieces, compared)
        nodes, shares = [], []
        for knots, weight in zip(tried, weights, strict=True):
            if weight > 0.0:
                nodes += self._of_folds(training, knots)
                shares += [weight] * len(knots)
        return ChosenPieces(nodes, np.array(shares), n_pieces, self.degree, compared)

    def _counts(self, distinct: int) -> range:
        """Return the numbers of pieces to try."""
        max_pieces = pieces_by_levels(distinct, self.degree)
        if self.pieces != "cv":
            pieces = supported_pieces(self.pieces, max_pieces, distinct)
            return range(pieces, pieces + 1)
        asked = self.max_pieces or MAX_PIECES[self.degree]
        return range(1, min(asked, max_pieces) + 1)

    def _of_folds(self, training: BatchPoints, knots: IntMatrix) -> list[Nodes]:
        """Return the pieces of each fold."""
        x, folds = training.x, zip(training.weight, training.rate, knots, strict=True)
        return [
            self._nodes(BatchPoints(x, weight[np.newaxis], rate[np.newaxis]), x[places])
            for weight, rate, places in folds
        ]

    def _searched(
        self, points: FoldedPoints, n_pieces: int, losses: FloatVector | None = None
    ) -> ChosenPieces:
        """Return the best map of all rows that a global search finds."""
        whole = points.together().problems(points.p)
        rng = generator(self.random_state)
        inner = search_knots(
            whole, n_pieces, degree=self.degree, starts=self.starts, rng=rng
        )
        nodes = [self._nodes(whole, inner)]
        return ChosenPieces(nodes, np.ones(1), n_pieces, self.degree, losses)

    def _nodes(self, points: BatchPoints, inner: FloatVector) -> Nodes:
        if points.x.size == 1:
            return np.array([0.0, 1.0]), np.repeat(points.rate[0], 2)
        return node_heights(points, inner, degree=self.degree)
