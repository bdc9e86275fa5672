"""The terms of a smooth map: shift, tilt and two natural splines of the logit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit

from calibrant.numerics.binning import edges_with_ends
from calibrant.numerics.links import NEAREST, logit_within, rounded_ends
from calibrant.numerics.logistic import PenalisedProblem

if TYPE_CHECKING:
    from collections.abc import Callable

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
MIN_SPACING = 1e-4
"""Knots are at least this share of the whole range apart."""
END_SPREAD = 9.0
"""How far such a rate is from the prediction, on the logit scale: its prior is normal
around the prediction, with this standard deviation."""


@dataclass(frozen=True, eq=False)
class CurvatureBasis:
    """Natural splines over the same knots, none of which has a straight part.

    A natural spline is cubic between knots, has two continuous derivatives and no
    curvature at its ends. Of all curves through given points it has the least
    curvature, the integral of the squared second derivative.

    `heights` and `slopes` at the k `knots` have one column per spline, k - 2 in all
    (none for fewer than three knots). The curvature of a sum of them is the sum of
    their squared coefficients.
    """

    knots: FloatVector
    heights: FloatMatrix
    slopes: FloatMatrix

    @classmethod
    def over(cls, knots: FloatVector) -> CurvatureBasis:
        """Build the basis over some knots.

        With h the heights and m the second derivatives at inner knots, R m = Q h and
        the curvature is m' R m (Green and Silverman 1994, section 2.1).
        """
        size = knots.size
        if size < 3:  # noqa: PLR2004
            none = np.zeros((size, 0))
            return cls(knots, none, none)
        width = np.diff(knots)
        inner = np.arange(size - 2)
        q = np.zeros((size - 2, size))
        q[inner, inner] = 1.0 / width[:-1]
        q[inner, inner + 2] = 1.0 / width[1:]
        q[inner, inner + 1] = -1.0 / width[:-1] - 1.0 / width[1:]
        r = np.diag((width[:-1] + width[1:]) / 3.0)
        r[inner[1:], inner[:-1]] = r[inner[:-1], inner[1:]] = width[1:-1] / 6.0
        # Singular values, not eigenvalues of Q' inv(R) Q: these would be squares,
        # and where knots are uneven rounding would lose the smallest of them.
        root = np.linalg.solve(np.linalg.cholesky(r), q)
        _, sizes, vectors = np.linalg.svd(root, full_matrices=False)
        heights = vectors.T / sizes
        second = np.pad(np.linalg.solve(r, q @ heights), ((1, 1), (0, 0)))
        rise = np.diff(heights, axis=0) / width[:, np.newaxis]
        sixth = width[:, np.newaxis] / 6.0
        starts = rise - sixth * (2.0 * second[:-1] + second[1:])
        end = rise[-1:] + sixth[-1:] * (2.0 * second[-1:] + second[-2:-1])
        return cls(knots, heights, np.concatenate([starts, end]))

    def at(self, x: FloatVector) -> FloatMatrix:
        """Return all splines at some points between the outer knots, (points, d)."""
        if self.heights.shape[1] == 0:
            return np.zeros((x.size, 0))
        width = np.diff(self.knots)[:, np.newaxis]
        left, right = self.slopes[:-1], self.slopes[1:]
        rise = np.diff(self.heights, axis=0) / width
        square = (3.0 * rise - 2.0 * left - right) / width
        cube = (left + right - 2.0 * rise) / width**2
        piece = np.searchsorted(self.knots[1:-1], x, side="right")
        along = (x - self.knots[piece])[:, np.newaxis]
        value = cube[piece] * along
        for power in (square, left):
            value += power[piece]
            value *= along
        return np.asarray(value + self.heights[piece])


def spaced_knots(x: FloatVector, weight: FloatVector, count: int) -> FloatVector:
    """Return at most `count` points, ends included, at quantiles of weight.

    Quantiles that lie between two points are in the middle: so complements of
    predictions have complements of knots.
    """
    below = np.cumsum(weight)
    levels = np.arange(count) / (count - 1) * below[-1]
    places = (np.searchsorted(below, levels, side) for side in ("left", "right"))
    left, right = (x[np.minimum(place, x.size - 1)] for place in places)
    chosen = 0.5 * left + 0.5 * right
    return _separate(np.unique(np.concatenate([[x[0]], chosen, [x[-1]]])))


def rank_scale(
    x: FloatVector, weight: FloatVector
) -> Callable[[FloatVector], FloatVector]:
    """Return the function from ascending points to their ranks, linear between them.

    The rank is the share of weight below a point, with half of the point's own.

    Examples
    --------
    >>> rank_scale(np.array([0.0, 1.0, 9.0]), np.array([2.0, 1.0, 1.0]))([0.0, 5.0])
    array([0.25, 0.75])
    """
    x, first = np.unique(x, return_index=True)
    own = np.add.reduceat(weight, first)
    ranks = (np.cumsum(own) - 0.5 * own) / own.sum()
    return lambda at: np.interp(at, x, ranks)


def spread_nodes(x: FloatVector, weight: FloatVector, count: int) -> FloatVector:
    """Return at most `count` of ascending points, ends included.

    Half of them follow the weight and half the range: so there are many where there
    are many rows, and some everywhere.

    Examples
    --------
    >>> spread_nodes(np.array([0.0, 1.0, 2.0, 3.0, 9.0]), np.ones(5), 3)
    array([0., 3., 9.])
    """
    x, first = np.unique(x, return_index=True)
    if x.size > count:
        weight = np.add.reduceat(weight, first)
        below = np.cumsum(weight) - weight
        even = below / below[-1] + (x - x[0]) / (x[-1] - x[0])
        x = x[np.unique(np.searchsorted(even, np.linspace(0.0, even[-1], count)))]
    return _separate(x)


def _separate(knots: FloatVector) -> FloatVector:
    """Return knots without those that are too near to another, but with both ends."""
    spacing = MIN_SPACING * (knots[-1] - knots[0])
    kept = [float(knots[0])]
    for knot in knots[1:-1].tolist():
        if knot - kept[-1] > spacing and knots[-1] - knot > spacing:
            kept.append(knot)
    return np.array([*kept, *knots[-1:][knots[-1:] > kept[0]]])


def interpolate_rows(
    x: FloatVector, nodes: FloatVector, values: FloatMatrix
) -> FloatMatrix:
    """Return `values`, one row per node, linear between nodes and constant beyond.

    Examples
    --------
    >>> nodes, values = np.array([0.0, 1.0]), np.array([[4.0], [6.0]])
    >>> interpolate_rows(np.array([-1.0, 0.5]), nodes, values)
    array([[4.],
           [5.]])
    """
    if nodes.size == 1:
        return np.repeat(values, x.size, axis=0)
    right = np.clip(np.searchsorted(nodes, x), 1, nodes.size - 1)
    left = right - 1
    gap = nodes[right] - nodes[left]
    share = (x - nodes[left]) / np.where(gap > 0.0, gap, 1.0)  # nodes may coincide
    share = np.clip(share, 0.0, 1.0)[:, np.newaxis]
    return np.asarray((1.0 - share) * values[left] + share * values[right])


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
        design, u = self.design(p), self.logits(p)
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
