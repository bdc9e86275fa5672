"""Dependence of rows that belong together, from sums over clusters.

Labels of a cluster are correlated as if each were a normal variable below a threshold,
and variables of one cluster were equally correlated. This single correlation, which
twenty clusters suffice to estimate, gives the covariance of any sums over rows. Where
rows of a cluster share their prediction, every sum varies more, by about the same
factor. Where predictions vary within clusters, the overall level varies more, the slope
less so, and finer functions of the prediction hardly: how often cells of predictions
meet in a cluster decides. The covariance is that of generalised estimating equations
(Liang and Zeger 1986), in a model with few parameters instead of one for each pair of
functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import chdtrc, expit, ndtri

from calibrant.core.sample import ClusterSums
from calibrant.exceptions import TooFewRowsError
from calibrant.numerics.binning import bin_index
from calibrant.numerics.links import clip_probability, logit
from calibrant.numerics.logistic import PenalisedProblem, solve_penalised
from calibrant.numerics.sample_cache import cached_on_sample
from calibrant.numerics.smooth_calibration_test import score_functions
from calibrant.numerics.smooth_terms import interpolate_rows
from calibrant.numerics.weighted_points import WeightedPoints, compress_to_at_most

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.core.sample import BinarySample

ROOTS = 64
"""Cells have equal width in the fourth root of the distance to the nearer end."""
HALF = 0.5
SIDE = 54
"""Number of cells below 1/2, and as many above."""
LOOSE = np.full(2, 0.1)
"""Penalties of shift and tilt, which keep separable labels from endless steps."""
FEW_FUNCTIONS = 4
"""Smooth functions whose sums all vary by at least some factor more."""
MAX_TAKEN = 0.5
"""The most that a line is thought to take away of the squares of sums of clusters."""
MIN_ADDED = 0.05
"""Where dependence adds less to a variance of 1, it is left out."""
MIN_FREEDOM = 2.0
MIN_CLUSTERS = 2
MIN_EXCESS = 0.2
"""Kurtosis exceeds 1 by at least this much."""
ORDERS = 100
"""Terms of the series of the covariance of two labels."""
MAX_CORRELATION = 0.95
"""The largest latent correlation, up to which so many terms suffice; labels that go
together still more have the covariance at this correlation, scaled."""
TINY = 1e-9


def coarse_cells(p: FloatVector) -> IntVector:
    """Return the cell of each prediction in a coarse grid, the same for all data.

    Examples
    --------
    >>> coarse_cells(np.array([0.0, 0.01, 0.5, 1.0]))
    array([  0,  20,  54, 107])
    """
    near = np.minimum(p, 1.0 - p)
    depth = np.floor(ROOTS * np.sqrt(np.sqrt(near))).astype(np.intp)
    return np.asarray(np.where(p < HALF, depth, 2 * SIDE - 1 - depth))


def sum_clusters(sample: BinarySample, codes: IntVector) -> ClusterSums:
    """Return the sums over clusters of rows with the given numbers."""
    known, cell = np.unique(coarse_cells(sample.p), return_inverse=True)
    _, cluster = np.unique(codes, return_inverse=True)
    count, weight = int(cluster.max()) + 1, sample.weights
    check_two_clusters(count)

    def table(values: FloatVector) -> csr_array:
        return csr_array((values, (cluster, cell)), shape=(count, known.size))

    rows, labels = table(weight), table(weight * sample.y)
    in_cell, label_sum, prob = (
        np.bincount(cell, weight * values).astype(np.float64)
        for values in (1.0, sample.y, sample.p)
    )
    gaps = np.bincount(cluster, weight * (sample.y - sample.p))
    return ClusterSums(
        p=prob / in_cell,
        weight=in_cell,
        label_sum=label_sum,
        weights=(rows.T @ rows).toarray(),
        mixed=(labels.T @ rows).toarray(),
        labels=(labels.T @ labels).toarray(),
        second=float((gaps**2).sum()),
        fourth=float((gaps**4).sum()),
        count=count,
    )


@dataclass(frozen=True, eq=False)
class Dependence:
    """How labels of a cluster depend on each other.

    Attributes
    ----------
    sums : ClusterSums
        What it was estimated from.
    rates : ndarray of shape (k,)
        The rate of events in each cell, by a line in the logits.
    """

    sums: ClusterSums
    rates: FloatVector

    @classmethod
    def of(cls, sums: ClusterSums) -> Dependence:
        """Fit the line."""
        u = logit(sums.p)
        typical = max(float(np.sqrt(np.average(u**2, weights=sums.weight))), TINY)
        problem = PenalisedProblem(
            _line(u / typical), u, sums.weight, sums.label_sum, np.array([1, 1])
        )
        return cls(sums, expit(solve_penalised(problem, LOOSE).logits))

    @cached_property
    def _pairs(self) -> FloatMatrix:
        """Return the number of pairs of rows of a cluster that lie in two cells."""
        return np.asarray(self.sums.weights - np.diag(self.sums.weight))

    @cached_property
    def _series(self) -> FloatMatrix:
        """Return functions of the rate, whose products give the covariance of labels.

        With the latent correlation r, labels of rates a and b have the covariance
        sum of r^k f_k(a) f_k(b) over k = 1, 2, ... (Mehler's series).
        """
        z = ndtri(clip_probability(self.rates, 1e-12))
        functions = [np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)]
        functions.append(z * functions[0] / np.sqrt(2.0))
        for k in range(2, ORDERS):
            two_back = (k - 1) * functions[-2] / np.sqrt(k * (k + 1))
            functions.append(z * functions[-1] / np.sqrt(k + 1) - two_back)
        return np.array(functions)

    @cached_property
    def _pair_sums(self) -> FloatVector:
        """Return the coefficients of powers of the latent correlation.

        Their sum is the covariance of labels, summed over pairs of rows.
        """
        parts = (self._series @ self._pairs) * self._series
        return np.asarray(parts.sum(axis=1))

    @cached_property
    def _own(self) -> float:
        """Return the variance of labels, summed over rows."""
        return float(self.sums.weight @ (self.rates * (1.0 - self.rates)))

    @cached_property
    def _products(self) -> float:
        """Return the sum of products of residuals over pairs of rows in a cluster."""
        sums, rates = self.sums, self.rates
        whole = sums.labels.sum() - 2.0 * (sums.mixed.sum(axis=0) @ rates)
        whole += rates @ sums.weights @ rates
        own = sums.label_sum @ (1.0 - 2.0 * rates) + sums.weight @ rates**2
        return float(whole - own)

    @cached_property
    def _effective_count(self) -> float:
        """Return how many clusters with normal sums tell as much about the variance.

        Sums of clusters of unequal size have long tails, and those of labels that are
        nearly the same have short ones.
        """
        sums, count = self.sums, self.sums.count
        kurtosis = count * sums.fourth / max(sums.second**2, TINY)
        kurtosis *= (count + 1.0) / (count - 1.0)  # that of few normal sums is less
        return 2.0 * count / max(kurtosis - 1.0, MIN_EXCESS)

    @cached_property
    def _taken(self) -> float:
        """Return which share of the squares of sums of clusters the line takes away.

        It follows the clusters that it is fitted to. A parameter takes as much as one
        of equal clusters adds, but hardly anything where its function of the
        prediction sums to nothing in every cluster, as a slope does where predictions
        vary within clusters.
        """
        sums = self.sums
        cells = WeightedPoints(sums.p, sums.weight, sums.label_sum)
        functions = self.independent_functions(cells, _line(logit(sums.p)))
        followed = functions * (self.rates * (1.0 - self.rates))[:, np.newaxis]
        squares = float(np.sum(followed * (sums.weights @ followed)))
        return min(squares / max(self._own, TINY), MAX_TAKEN)

    @cached_property
    def factor(self) -> float:
        """Return by what factor dependence changes the variance of the mean label."""
        plain = 1.0 + self._products / max(self._own, TINY)
        return plain / (1.0 - self._taken)

    @property
    def freedom(self) -> float:
        """Return the degrees of freedom of the variance between clusters."""
        return max(self._effective_count * (1.0 - self._taken), MIN_FREEDOM)

    def correlation(self, factor: float) -> float:
        """Return the latent correlation that changes the variance by a factor."""
        powers = np.append(0.0, self._pair_sums)

        def surplus(correlation: float) -> float:
            return float(polyval(correlation, powers)) - (factor - 1.0) * self._own

        if factor <= 1.0 or powers[1] <= TINY:
            return 0.0
        if surplus(MAX_CORRELATION) <= 0.0:
            return MAX_CORRELATION
        return float(brentq(surplus, 0.0, MAX_CORRELATION))

    def shared(
        self, p: FloatVector, functions: FloatMatrix, factor: float
    ) -> FloatMatrix:
        """Return what dependence adds to the covariance of sums over rows.

        The sums are of label less rate, times functions of the prediction that are
        given at ascending predictions `p`, shape (m, f).
        """
        at = interpolate_rows(logit(self.sums.p), logit(p), functions)
        return np.asarray(at.T @ self._covariance(factor) @ at)

    def _covariance(self, factor: float) -> FloatMatrix:
        """Return what dependence adds to the covariance of sums over cells."""
        powers = self.correlation(factor) ** np.arange(1, ORDERS + 1)
        covariance = (self._series.T * powers) @ self._series * self._pairs
        reached, aim = float(covariance.sum()), (factor - 1.0) * self._own
        scale = max(aim / reached, 1.0) if reached > TINY else 1.0
        return np.asarray(scale * covariance)

    @cached_property
    def label_correlation(self) -> float:
        """Return the mean correlation of two labels of a cluster, at least 0."""
        spread = np.sqrt(self.rates * (1.0 - self.rates))
        pairs = float(spread @ self._pairs @ spread)
        added = (self.factor - 1.0) * self._own
        return float(np.clip(added / pairs, 0.0, 1.0)) if pairs > TINY else 0.0

    @property
    def pvalue(self) -> float:
        """Return the chance of so large a factor if rows were independent."""
        return float(chdtrc(self.freedom, self.freedom * self.factor))

    def bin_factors(self, edges: FloatVector) -> FloatVector:
        """Return by what factors dependence raises the variance of rates in bins."""
        bins = edges.size - 1
        members = np.eye(bins)[:, bin_index(self.sums.p, edges)]
        covariance = self._covariance(self.factor)
        own = members @ (self.sums.weight * self.rates * (1.0 - self.rates))
        added = np.einsum("ba,ac,bc->b", members, covariance, members)
        return np.asarray(1.0 + np.maximum(added, 0.0) / np.maximum(own, TINY))

    def effective(self, cells: WeightedPoints) -> Effective:
        """Return as many independent rows as tell as much, and what is missing.

        Weights are divided by the factor by which dependence raises the variance of
        all sums, whichever smooth functions are summed. Where predictions vary within
        clusters, it raises that of the level further: see `Effective.blurs`.
        """
        functions = self.independent_functions(
            cells, score_functions(cells, FEW_FUNCTIONS, logit)
        )
        shared = self.shared(cells.p, functions, self.factor)
        least = float(np.linalg.eigvalsh(shared)[0])
        return Effective(self, cells, 1.0 + max(least, 0.0))

    def independent_functions(
        self, cells: WeightedPoints, design: FloatMatrix
    ) -> FloatMatrix:
        """Return functions of the prediction whose sums over rows are independent.

        They span the columns of `design`, and would have variance 1 if rows were
        independent.
        """
        rates = np.interp(cells.p, self.sums.p, self.rates)
        spread = np.sqrt(cells.weight * rates * (1.0 - rates))[:, np.newaxis]
        basis, sizes, _ = np.linalg.svd(design * spread, full_matrices=False)
        used = sizes > TINY * sizes[0]
        return np.asarray(basis[:, used] / np.maximum(spread, TINY))


@dataclass(frozen=True, eq=False)
class Effective:
    """Rows of clusters as fewer independent rows.

    Attributes
    ----------
    dependence : Dependence
        How rows depend on each other.
    whole : WeightedPoints
        All rows, by prediction.
    factor : float
        How many of them count as one.
    """

    dependence: Dependence
    whole: WeightedPoints
    factor: float

    @property
    def cells(self) -> WeightedPoints:
        """Return the independent rows."""
        return self._divided(self.factor)

    @property
    def cells_of_mean(self) -> WeightedPoints:
        """Return still fewer rows, whose mean label varies as that of all rows does.

        The variance that it has by few clusters is that of Student's distribution.
        """
        freedom = self.dependence.freedom
        wider = freedom / max(freedom - 2.0, 1.0)
        return self._divided(max(self.dependence.factor * wider, 1.0))

    def _divided(self, factor: float) -> WeightedPoints:
        whole = self.whole
        return WeightedPoints(whole.p, whole.weight / factor, whole.label_sum / factor)

    def blurs(self, design: FloatMatrix) -> FloatMatrix:
        """Return features that clusters have in common with terms of a map.

        With coefficients of spread 1 they add to logits what dependence does beyond
        the fewer rows, as far as `design`, shape (m, d), can express it: then fitted
        coefficients of the design vary as dependent labels make them vary.
        """
        dependence, p = self.dependence, self.whole.p
        functions = dependence.independent_functions(self.whole, design)
        shared = dependence.shared(p, functions, dependence.factor)
        added, axes = np.linalg.eigh(shared)
        further = 1.0 + added - self.factor
        used = further > MIN_ADDED
        return np.asarray(functions @ (axes[:, used] * np.sqrt(further[used])))


def _line(u: FloatVector) -> FloatMatrix:
    """Return the features of a line: a constant and a variable."""
    return np.column_stack([np.ones(u.size), u])


def check_two_clusters(count: int) -> None:
    """Raise where all rows are in one cluster, so that nothing can be compared."""
    if count < MIN_CLUSTERS:
        raise TooFewRowsError(
            f"at least {MIN_CLUSTERS} clusters are needed; all rows have the same one."
        )


@cached_on_sample("dependence")
def dependence_of(sample: BinarySample) -> Dependence | None:
    """Return how the labels of clusters depend on each other; None without clusters."""
    if sample.clusters is None:
        return None
    return Dependence.of(sum_clusters(sample, sample.clusters))


def row_factor(sample: BinarySample) -> float:
    """Return how many rows of clusters tell as much as one; 1 without clusters."""
    dependence = dependence_of(sample)
    return 1.0 if dependence is None else max(dependence.factor, 1.0)


def effective_rows(sample: BinarySample) -> Effective | None:
    """Return rows of clusters as fewer independent rows; None without clusters."""
    dependence = dependence_of(sample)
    if dependence is None:
        return None
    return dependence.effective(compress_to_at_most(sample))
