"""The net benefit of decisions by threshold, with its intervals.

Whoever acts where the predicted probability is at least t accepts (1 - t) / t needless
actions for each event that is acted on. The net benefit counts both in events::

    (events acted on - t / (1 - t) * other rows acted on) / rows

So it is a linear combination of shares of rows, and so is the difference of two models.
All that is needed of the rows is how many reach each threshold, by their labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolMatrix,
        FloatMatrix,
        FloatVector,
        IntVector,
    )

BAND_DRAWS = 10_000
"""Normal vectors from which the reach of a simultaneous band is found."""
MIN_SPREAD = 1e-12
"""Less than this is rounding."""
HALVINGS = 60
"""Steps of bisection, after which limits are exact but for rounding."""


def thresholds_reached(p: FloatVector, thresholds: FloatVector) -> IntVector:
    """Return how many of the ascending thresholds each prediction reaches.

    Examples
    --------
    >>> thresholds_reached(np.array([0.05, 0.1, 0.7]), np.array([0.1, 0.5]))
    array([0, 1, 2])
    """
    return np.searchsorted(thresholds, p, side="right")


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The rows that are decided about, whatever the model.

    Attributes
    ----------
    thresholds : ndarray of shape (t,)
        Ascending, within (0, 1).
    event, other : ndarray of shape (n,)
        Weight of the events, and of the other outcomes, that each row stands for.
    clusters : ndarray of shape (n,) or None
        The number of each row's cluster, where rows belong together.
    """

    thresholds: FloatVector
    event: FloatVector
    other: FloatVector
    clusters: IntVector | None = None

    @cached_property
    def total(self) -> float:
        """Return how many rows there are."""
        return float(self.event.sum() + self.other.sum())

    @property
    def odds(self) -> FloatVector:
        """Return what a needless action costs, in events."""
        return self.thresholds / (1.0 - self.thresholds)

    def shares(self, reached: IntVector, start: IntVector | None = None) -> FloatMatrix:
        """Return the share of events and of others acted on, shape (2, t).

        A row is acted on at the first `reached` thresholds, except for the first
        `start` of them.
        """
        kinds = (self.event, self.other)
        above = np.stack([self._above(reached, kind) for kind in kinds])
        if start is not None:
            above -= np.stack([self._above(start, kind) for kind in kinds])
        # Sums of weights that are not whole may leave less than nothing.
        return np.asarray(np.clip(above / self.total, 0.0, 1.0))

    def _above(self, reached: IntVector, weight: FloatVector) -> FloatVector:
        sums = np.bincount(reached, weight, minlength=self.thresholds.size + 1)
        return np.asarray(sums[::-1].cumsum()[-2::-1])

    def cluster_benefits(self, reached: IntVector) -> FloatMatrix | None:
        """Return the benefit that each cluster adds, shape (clusters, t)."""
        if self.clusters is None:
            return None
        size, count = self.thresholds.size + 1, int(self.clusters.max()) + 1
        place = self.clusters * size + reached
        events, others = (
            np.bincount(place, kind, minlength=count * size).reshape(count, size)
            for kind in (self.event, self.other)
        )
        events, others = (
            sums[:, ::-1].cumsum(axis=1)[:, -2::-1] for sums in (events, others)
        )
        return np.asarray(events - self.odds * others)


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """A linear combination of shares of rows at each threshold.

    Attributes
    ----------
    shares, coefficients : ndarray of shape (k, t)
        Shares of disjoint kinds of rows, and what each row of a kind counts.
    total : float
        How many rows there are.
    possible : ndarray of shape (k, t) or None
        Which kinds of rows there may be, though the sample has none; None: all.
    by_cluster : ndarray of shape (clusters, t) or None
        What each cluster adds, where rows belong together.
    """

    shares: FloatMatrix
    coefficients: FloatMatrix
    total: float
    possible: BoolMatrix | None = None
    by_cluster: FloatMatrix | None = None

    @classmethod
    def of(cls, rows: Outcomes, reached: IntVector) -> NetBenefit:
        """Return the benefit of acting on rows at the thresholds that they reach."""
        coefficients = np.stack([np.ones(rows.thresholds.size), -rows.odds])
        by_cluster = rows.cluster_benefits(reached)
        return cls(
            rows.shares(reached), coefficients, rows.total, by_cluster=by_cluster
        )

    @classmethod
    def difference(cls, rows: Outcomes, p: FloatVector, q: FloatVector) -> NetBenefit:
        """Return by how much decisions by predictions p are better than those by q.

        Rows that both act on, or neither, add nothing. Where the sample has rows that
        only one of them acts on, such rows are possible; where it has none at a
        threshold, those are that the order of the predictions allows: none if p and q
        are the same, one kind if p is never below q.
        """
        a, b = (thresholds_reached(one, rows.thresholds) for one in (p, q))
        lower = np.minimum(a, b)
        ways = rows.shares(a, lower), rows.shares(b, lower)
        seen = np.stack([shares.any(axis=0) for shares in ways])
        allowed = np.array([[np.any(p > q)], [np.any(q > p)]])
        possible = np.where(seen.any(axis=0), seen, allowed)
        own = np.stack([np.ones(rows.thresholds.size), -rows.odds])
        first, second = rows.cluster_benefits(a), rows.cluster_benefits(b)
        apart = None if first is None or second is None else first - second
        return cls(
            np.vstack(ways),
            np.vstack([own, -own]),
            rows.total,
            np.repeat(possible, 2, axis=0),
            apart,
        )

    @cached_property
    def value(self) -> FloatVector:
        """Return the combination at each threshold."""
        return np.asarray((self.coefficients * self.shares).sum(axis=0))

    @cached_property
    def effective_rows(self) -> FloatVector:
        """Return how many independent rows would be as informative."""
        if self.by_cluster is None:
            return np.full(self.value.size, self.total)
        count = len(self.by_cluster)
        apart = self.by_cluster - self.by_cluster.mean(axis=0)
        clustered = np.square(apart).sum(axis=0) * count / max(count - 1, 1)
        mean_square = (self.coefficients**2 * self.shares).sum(axis=0)
        independent = self.total * np.maximum(mean_square - self.value**2, 0.0)
        ratio = np.ones_like(clustered)
        np.divide(clustered, independent, out=ratio, where=independent > MIN_SPREAD)
        return np.asarray(self.total / np.maximum(ratio, 1.0))

    def limits(
        self, confidence: float, reach: float | None = None
    ) -> tuple[FloatVector, FloatVector]:
        """Return limits of the combination at each threshold.

        See `score_limits`; `reach` is the number of standard errors.
        """
        z = self.usual_reach(confidence) if reach is None else reach
        return score_limits(
            self.shares, self.coefficients, self.possible, self.effective_rows, z
        )

    def usual_reach(self, confidence: float) -> float:
        """Return how many standard errors hold the truth at one threshold."""
        level = 0.5 + 0.5 * confidence
        if self.by_cluster is None:
            return float(ndtri(level))
        return float(stdtrit(max(len(self.by_cluster) - 1, 1), level))

    def simultaneous_reach(self, confidence: float, rng: np.random.Generator) -> float:
        """Return how many standard errors hold the benefit at all thresholds.

        For the benefit of one model: whoever reaches the higher of two thresholds
        reaches both, so that covariances are known.
        """
        both = sum(
            np.outer(counts, counts) * np.minimum.outer(share, share)
            for share, counts in zip(self.shares, self.coefficients, strict=True)
        )
        covariance = both - np.outer(self.value, self.value)
        spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        used = spread > MIN_SPREAD
        if not used.any():
            return self.usual_reach(confidence)
        scaled = covariance[np.ix_(used, used)] / np.outer(spread[used], spread[used])
        value, vector = np.linalg.eigh(scaled)
        root = vector * np.sqrt(np.maximum(value, 0.0))
        draws = np.abs(rng.standard_normal((BAND_DRAWS, value.size)) @ root.T)
        largest = float(np.quantile(draws.max(axis=1), confidence))
        # Few clusters widen the band as much as they widen each interval.
        wider = self.usual_reach(confidence) / float(ndtri(0.5 + 0.5 * confidence))
        return wider * largest


def lost_benefit(
    p: FloatVector, weight: FloatVector, chance: FloatMatrix, thresholds: FloatVector
) -> FloatMatrix:
    """Return the benefit lost by acting on predictions instead of true chances.

    Nothing is lost where both lie on the same side of a threshold. `chance` (m, maps)
    is that of the event at each prediction, by each map; benefits are (t, maps).
    """
    share, acting = weight / weight.sum(), p[:, np.newaxis]
    return np.stack(
        [
            share @ (np.abs(chance - t) * ((chance >= t) != (acting >= t))) / (1.0 - t)
            for t in thresholds.tolist()
        ]
    )


def score_limits(
    shares: FloatMatrix,
    coefficients: FloatMatrix,
    possible: BoolMatrix | None,
    n: FloatVector,
    z: float,
) -> tuple[FloatVector, FloatVector]:
    """Return score limits of a linear combination of shares of n rows, by column.

    A value is within the limits if the combination is at most z standard errors from
    it, where the standard error is that of the most likely shares whose combination
    has this value. For a single share they are Wilson's limits, for a difference of
    paired shares Tango's; so they are right for few rows too. The rows that are left
    count 0.

    References
    ----------
    T. Tango (1998). Equivalence test and confidence interval for the difference in
    proportions for the paired-sample design. Statistics in Medicine 17, 891-908.

    Examples
    --------
    >>> shares, ones = np.array([[0.0, 0.5]]), np.ones((1, 2))
    >>> low, high = score_limits(shares, ones, None, np.array([10.0, 10.0]), 1.96)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.2366]), array([0.2775, 0.7634]))
    """
    rest = np.maximum(1.0 - shares.sum(axis=0), 0.0)
    shares = np.vstack([shares, rest])
    counts = np.vstack([coefficients, np.zeros_like(rest)])
    may = np.ones(counts.shape, dtype=bool)
    if possible is not None:
        may[:-1] = possible
    low = _lower_score_limit(shares, counts, may, n, z)
    return low, 0.0 - _lower_score_limit(shares, -counts, may, n, z)  # no -0


def _lower_score_limit(
    shares: FloatMatrix,
    counts: FloatMatrix,
    possible: BoolMatrix,
    n: FloatVector,
    z: float,
) -> FloatVector:
    """Return the lower of the score limits.

    With d = counts - limit and a multiplier m, the most likely shares are
    shares / (1 + m d). Their variance is that of the score test if
    m = z^2 / (n (value - limit)), which leaves one equation: the mean of d under these
    shares is 0. Possible rows that the sample has none of get a share only where they
    count least and 1 + m d = 0; then the limit is known at once.
    """
    value = (shares * counts).sum(axis=0)
    least = np.where(possible, counts, np.inf).min(axis=0)
    edge = (n * value + z**2 * least) / (n + z**2)

    def mean_above(limit: FloatVector) -> FloatVector:
        apart = counts - limit
        below = n * np.maximum(value - limit, 0.0)
        divisor = below + z**2 * apart
        parts = np.zeros_like(shares)
        used = (shares > 0.0) & (divisor > 0.0)
        np.divide(shares * apart, divisor, out=parts, where=used)
        return np.asarray((parts * below).sum(axis=0))

    low, high = least, edge
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = mean_above(middle) > 0.0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.minimum(high, value))
