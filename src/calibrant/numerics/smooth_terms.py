"""The terms of a smooth map: shift, tilt and two curves of the logit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit

from calibrant.numerics.binning import edges_with_ends
from calibrant.numerics.links import NEAREST, logit_within, rounded_ends
from calibrant.numerics.natural_splines import (
    CurvatureBasis,
    interpolate_rows,
    rank_scale,
    spaced_knots,
    spread_nodes,
)
from calibrant.numerics.penalised_logistic import PenalisedProblem

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )
    from calibrant.numerics.weighted_points import WeightedPoints

TERMS = 4
"""A shift, a tilt around 1/2, the curve of the logit, that of prediction or rank."""
STRAIGHT = (0, 1)
"""The terms that every fit has."""
NODES = 128
"""All terms are straight between so many of the predictions, on the logit scale."""
ROWS_PER_KNOT = 5.0
"""Few rows have fewer knots than are asked for."""
END_ROWS, END_WRONG = 5.0, 1.0
"""Fewer rows of exactly 0 or 1, or with fewer wrong ones, have no rate of their own."""
END_SPREAD = 9.0
"""How far such a rate is from the prediction, on the logit scale: its prior is normal
around the prediction, with this standard deviation."""


@dataclass(frozen=True, eq=False)
class Terms:
    """A constant, a slope and two sets of curves, which are added to the logit.

    Constant and slope are terms of their own, since predictions that are too high
    everywhere (a changed base rate) and over-confident predictions (a temperature)
    are different faults: where one is found, the other is not more likely.

    Whatever its coefficients, a sum of terms is straight between two neighbouring
    predictions of the data and constant beyond the last ones, on the logit scale. So
    no curve can bend where there are no data.

    Predictions of exactly 0 and 1 may have rates of their own. Then all other terms are
    0 there, and both ends have a coefficient each, with a known penalty of 1.

    Attributes
    ----------
    ends : tuple of float
        The least and the largest that predictions count as.
    nodes : ndarray of shape (m,)
        Logits of some of the predictions, ascending.
    features : ndarray of shape (m, d)
        All terms at the nodes, scaled so that the mean square of each term is 1 where
        its coefficients are drawn with variance 1; so penalties of all terms and
        samples compare. Own rates of ends come last.
    sizes : ndarray of shape (4,)
        Number of coefficients of each term.
    edges : ndarray
        Inner knots of the curve of logits, as probabilities, between 0 and 1.
    """

    ends: tuple[float, float]
    nodes: FloatVector
    features: FloatMatrix
    sizes: IntVector
    edges: FloatVector

    @classmethod
    def of(
        cls,
        cells: WeightedPoints,
        knots: int,
        *,
        by_rank: bool = False,
        own_ends: tuple[bool, bool] = (False, False),
    ) -> Terms:
        """Choose nodes, knots and scales for a sample.

        The second curve is one of the prediction, or of its rank: that is the share of
        rows below it, in which a map is smooth that is steep where predictions crowd.
        """
        low, high = rounded_ends(cells.p, cells.weight)
        ends = float(low), float(high)
        u, weight = logit_within(cells.p, ends), cells.weight
        outer = [u[k] for k in (0, -1) if own_ends[k]]
        if outer:
            inner = ~np.isin(u, outer)
            u, weight = u[inner], weight[inner]
        nodes = spread_nodes(u, weight, NODES)
        knots = min(knots, max(3, int(weight.sum() / ROWS_PER_KNOT)))
        scale = rank_scale(u, weight) if by_rank else expit
        bases = [
            CurvatureBasis.over(spaced_knots(x, weight, knots)) for x in (u, scale(u))
        ]
        curves = [
            basis.at(x) for basis, x in zip(bases, (nodes, scale(nodes)), strict=True)
        ]
        parts = [np.ones((nodes.size, 1)), nodes[:, np.newaxis], *curves]
        features = np.hstack(parts)
        sizes = np.array([part.shape[1] for part in parts])
        squares = np.average(
            interpolate_rows(u, nodes, features) ** 2, axis=0, weights=weight
        )
        term = np.repeat(np.arange(TERMS), sizes)
        means = np.bincount(term, squares, minlength=TERMS)
        scales = 1.0 / np.sqrt(np.where(means > 0.0, means, 1.0))
        edges = edges_with_ends(expit(bases[0].knots[1:-1]))
        features = features * scales[term]
        if outer:
            nodes = np.append(nodes, outer)
            order = np.argsort(nodes)
            own = END_SPREAD * np.eye(len(outer))
            nodes, features = nodes[order], block_diag(features, own)[order]
        return cls(ends, nodes, features, sizes, edges)

    @property
    def own(self) -> int:
        """Return the number of ends that have rates of their own."""
        return int(self.features.shape[1] - self.sizes.sum())

    def logits(self, p: FloatVector) -> FloatVector:
        """Return the logits of predictions as the map takes them."""
        return logit_within(p, self.ends)

    def design(self, p: FloatVector) -> FloatMatrix:
        """Return the features of predictions."""
        return interpolate_rows(self.logits(p), self.nodes, self.features)

    def problem(
        self, p: FloatVector, weight: FloatVector, label: FloatVector
    ) -> PenalisedProblem:
        """Return the regression of labels on all terms."""
        u = self.logits(p)
        design = interpolate_rows(u, self.nodes, self.features)
        return PenalisedProblem(design, u, weight, label, self.sizes, self.own)

    def spread(self, coefficients: FloatVector, kept: BoolVector) -> FloatVector:
        """Return coefficients of all terms, 0 for those that are not kept.

        Further coefficients, which belong to no term, stay behind them.
        """
        used = np.repeat(kept, self.sizes)
        further = coefficients.size - np.count_nonzero(used)
        used = np.append(used, np.ones(further, dtype=bool))
        all_terms = np.zeros(used.size)
        all_terms[used] = coefficients
        return all_terms

    def shifts(self, coefficients: FloatVector) -> FloatVector:
        """Return what is added to the logits of nodes; further terms are left out."""
        return self.features @ coefficients[: self.features.shape[1]]


def wrong_ends(cells: WeightedPoints) -> tuple[bool, bool]:
    """Return whether enough rows are exactly 0 and some wrong, and exactly 1 likewise.

    Right ones say no more than that their rate is near the prediction: if others near
    them are wrong, so will some of these be among other rows.
    """
    wrong = cells.label_sum, cells.weight - cells.label_sum
    at_ends = cells.p <= NEAREST, cells.p >= 1.0 - NEAREST
    if (at_ends[0] | at_ends[1]).all():
        return False, False
    low, high = (
        cells.weight[at].sum() >= END_ROWS and one[at].sum() >= END_WRONG
        for at, one in zip(at_ends, wrong, strict=True)
    )
    return bool(low), bool(high)
