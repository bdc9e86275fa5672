"""The squared kernel calibration error: estimates from sums over pairs of rows.

If predictions are calibrated, the product of the residuals y - p of any two rows has
mean 0, however similar the two predictions are. The error is the mean of that product
over pairs, weighted by a kernel (Widmann, Lindsten, Zachariah 2019).

The double sum of r_i r_j k(p_i, p_j) has n^2 terms, but never needs them. The Laplace
kernel exp(-d / h) factors along sorted predictions, so that running sums give it. The
RBF kernel exp(-d^2 / 2h^2) is so smooth that a short Chebyshev series gives it to
rounding; where it is too narrow for that, only near pairs count, block by block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from scipy.spatial.distance import cdist

from calibrant.numerics.binning import GRID_CELLS, grid_cell

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

KernelName: TypeAlias = Literal["rbf", "laplace"]
OutcomeKernelName: TypeAlias = Literal["linear", "white", "rbf"]

MAX_DRAW = 2**53
"""Draws are whole numbers; beyond this many rows there is no noise left to show."""

OUTCOME_FACTORS: dict[str, float] = {
    "linear": 1.0,
    "white": 2.0,
    "rbf": 2.0 * (1.0 - float(np.exp(-0.5))),
}
"""k(0, 0) + k(1, 1) - 2 k(0, 1) of a kernel of labels: its whole effect."""
CELL_WIDTH = 1.0 / 4096
"""Widest cell in which rows are merged for the draws of a test."""
CELLS_PER_BANDWIDTH = 64
"""Within a cell the kernel then varies by less than 1e-4 of its height."""
MAX_AT_ONCE = 2**21
"""Most numbers that are drawn, or kernel values computed, at once."""
BLOCK = 4096
"""Rows at once, few enough that a block of them with all terms stays small."""
MAX_EXPONENT = 600.0
"""exp(600) is far from overflow, and exp(-600) times anything is nothing."""
MAX_TERMS = 2048
"""Longest Chebyshev series, whose coefficients take a second to find."""
TERMS_SQUARED_PER_ROW = 32
"""With fewer rows than this requires, summing near pairs costs less than a series."""
FAR = 9.0
"""Bandwidths beyond which the RBF kernel, below exp(-40), is lost in rounding."""


@dataclass(frozen=True)
class ErrorKernel:
    """The kernel of a kernel calibration error, its bandwidth known.

    Attributes
    ----------
    kernel : {"rbf", "laplace"}
        Kernel of predictions.
    bandwidth : float
        Its width.
    factor : float
        Factor of every pair that comes from the kernel of labels.
    """

    kernel: KernelName
    bandwidth: float
    factor: float = 1.0

    def errors(
        self, p: FloatVector, share: FloatMatrix, weight: FloatMatrix, *, debias: bool
    ) -> FloatVector:
        """Return the error for each row of labels and of weights.

        Parameters
        ----------
        p : ndarray of shape (n,)
            Predictions.
        share : ndarray of shape (draws, n) or (n,)
            Labels, or observed rates where a row stands for many.
        weight : ndarray of shape (draws, n) or (n,)
            How many rows each row stands for.
        debias : bool
            True gives the unbiased mean over pairs of different rows (copies of a row
            are different rows), False the mean over all pairs, which is never
            negative.
        """
        residuals = np.atleast_2d(weight * (share - p))
        total = quadratic_forms(p, residuals, self.kernel, self.bandwidth)
        rows = np.sum(weight, axis=-1)
        if not debias:
            return np.asarray(self.factor * total / np.square(rows))
        squares = share * np.square(1.0 - p) + (1.0 - share) * np.square(p)
        total = total - np.sum(weight * squares, axis=-1)
        return np.asarray(self.factor * total / (rows * (rows - 1.0)))

    def class_error(
        self,
        p: FloatMatrix,
        column: IntVector,
        weight: FloatVector | None,
        *,
        debias: bool,
    ) -> float:
        """Return the error of the whole vector of class probabilities.

        The kernel is that of distances times half the identity matrix: with two
        classes it is the error of one of them. Distances are half the sum of absolute
        differences for the Laplace kernel (total variation), and the Euclidean one over
        the root of 2 for RBF. All pairs of rows are summed, block by block.
        """
        rows = np.ones(len(p)) if weight is None else weight
        residual = np.eye(p.shape[1])[column] - p
        weighted = residual * rows[:, np.newaxis]
        total, size = 0.0, max(MAX_AT_ONCE // len(p), 1)
        for start in range(0, len(p), size):
            some = slice(start, start + size)
            gap = class_distances(p[some], p, self.kernel)
            near = kernel_values(gap, self.kernel, self.bandwidth)
            total += float(np.sum((near @ weighted) * weighted[some]))
        n = float(rows.sum())
        if not debias:
            return 0.5 * self.factor * total / n**2
        total -= float(rows @ np.square(residual).sum(axis=1))
        return 0.5 * self.factor * total / (n * (n - 1.0))

    def block_errors(
        self,
        p: FloatVector,
        y: FloatVector,
        size: int,
        *,
        max_at_once: int = MAX_AT_ONCE,
    ) -> FloatVector:
        """Return the unbiased error of each block of `size` rows in the order given.

        Rows that do not fill a block are dropped. The mean is unbiased, and blocks of
        independent rows are independent. `max_at_once` bounds the memory needed.
        """
        blocks = p.size // size
        prob = p[: blocks * size].reshape(blocks, size)
        residual = y[: blocks * size].reshape(blocks, size) - prob
        at_once = max(max_at_once // size**2, 1)
        sums = np.empty(blocks)
        for start in range(0, blocks, at_once):
            some = slice(start, start + at_once)
            gap, r = prob[some, :, None] - prob[some, None, :], residual[some]
            near = kernel_values(gap, self.kernel, self.bandwidth)
            pairs = np.einsum("bi,bij,bj->b", r, near, r)
            sums[some] = pairs - np.square(r).sum(axis=1)
        return np.asarray(self.factor * sums / (size * (size - 1.0)))

    def calibrated_errors(
        self,
        p: FloatVector,
        weight: FloatVector | None,
        replicates: int,
        rng: np.random.Generator,
    ) -> FloatVector:
        """Return unbiased errors of labels drawn with the predicted probabilities.

        If there are many rows, those in one narrow cell are merged; their number of
        events is then one binomial draw.
        """
        weight = np.ones(p.size) if weight is None else weight
        if p.size * CELL_WIDTH > 1.0:
            width = min(CELL_WIDTH, self.bandwidth / CELLS_PER_BANDWIDTH)
            _, cell = np.unique(np.floor(p / width), return_inverse=True)
            p, weight = _merged(p, weight, cell)
            p = np.clip(p, 0.0, 1.0)
        trials = np.clip(np.round(weight), 1.0, MAX_DRAW).astype(np.int64)
        at_once = max(MAX_AT_ONCE // p.size, 1)
        parts = []
        for start in range(0, replicates, at_once):
            draws = min(at_once, replicates - start)
            share = rng.binomial(trials, p, (draws, p.size)) / trials
            parts.append(self.errors(p, share, weight, debias=True))
        return np.concatenate(parts)


def _merged(
    p: FloatVector, weight: FloatVector, cell: IntVector
) -> tuple[FloatVector, FloatVector]:
    """Return mean prediction and weight of each cell that has any."""
    total = np.bincount(cell, weights=weight).astype(np.float64)
    used = total > 0.0
    return np.bincount(cell, weights=weight * p)[used] / total[used], total[used]


def kernel_values(
    distance: FloatMatrix, kernel: KernelName, bandwidth: float
) -> FloatMatrix:
    """Return the kernel of distances between predictions."""
    scaled = distance / bandwidth
    exponent = np.abs(scaled) if kernel == "laplace" else 0.5 * np.square(scaled)
    return np.asarray(np.exp(-exponent), dtype=np.float64)


def class_distances(
    p: FloatMatrix, other: FloatMatrix, kernel: KernelName
) -> FloatMatrix:
    """Return distances between rows of class probabilities, from 0 to 1.

    With two classes both are the distance between the probabilities of one.

    Examples
    --------
    >>> p, other = np.array([[1.0, 0.0]]), np.array([[0.25, 0.75]])
    >>> class_distances(p, other, "rbf"), class_distances(p, other, "laplace")
    (array([[0.75]]), array([[0.75]]))
    """
    if kernel == "rbf":
        return np.asarray(cdist(p, other) / np.sqrt(2.0))
    return np.asarray(0.5 * cdist(p, other, "cityblock"))


def quadratic_forms(
    p: FloatVector, residuals: FloatMatrix, kernel: KernelName, bandwidth: float
) -> FloatVector:
    """Return the sum of r_i r_j k(p_i, p_j) over all i and j, for each row r.

    Pairs of a row with itself are included, and `p` may be in any order.
    """
    # So many Chebyshev terms give the RBF kernel on [0, 1] to rounding.
    terms = int(min(16 + np.ceil(5.0 / bandwidth), 2.0**31))
    short = terms <= MAX_TERMS and terms**2 <= TERMS_SQUARED_PER_ROW * p.size
    if kernel == "rbf" and short:
        return _series_forms(p, residuals, bandwidth, terms)
    order = np.argsort(p)
    forms = _near_forms if kernel == "rbf" else _laplace_forms
    return forms(p[order], residuals[:, order], bandwidth)


def _laplace_forms(
    p: FloatVector, residuals: FloatMatrix, bandwidth: float
) -> FloatVector:
    """Sum over sorted predictions.

    What all rows before row i contribute to it is exp(-p_i / h) times the running sum
    of r_j exp(p_j / h). Its terms grow, so nothing is lost by rounding. To prevent
    overflow, p is measured from the left end of a stretch of 600 bandwidths, and the
    sum is carried over from stretch to stretch.
    """
    reach = MAX_EXPONENT * bandwidth
    total = np.square(residuals).sum(axis=1)
    carried, carried_at = np.zeros(residuals.shape[0]), p[0]
    start = 0
    while start < p.size:
        left = p[start]
        stop = int(np.searchsorted(p, left + reach, side="right"))
        growth = np.exp((p[start:stop] - left) / bandwidth)
        part = residuals[:, start:stop]
        before = np.empty((carried.size, stop - start + 1))
        before[:, 0] = carried * np.exp((carried_at - left) / bandwidth)
        np.multiply(part, growth, out=before[:, 1:])
        np.cumsum(before, axis=1, out=before)
        total += 2.0 * np.einsum("dn,dn,n->d", part, before[:, :-1], 1.0 / growth)
        carried, carried_at = before[:, -1] / growth[-1], p[stop - 1]
        start = stop
    return np.asarray(total, dtype=np.float64)


def _series_forms(
    p: FloatVector, residuals: FloatMatrix, bandwidth: float, terms: int
) -> FloatVector:
    """Sum by moments: with k(x, z) = sum c_ab T_a(x) T_b(z), the form is m' c m.

    The coefficients c are those of the interpolation at Chebyshev nodes.
    """
    moments = np.zeros((residuals.shape[0], terms))
    for start in range(0, p.size, BLOCK):
        rows = slice(start, start + BLOCK)
        moments += residuals[:, rows] @ chebvander(2.0 * p[rows] - 1.0, terms - 1)
    angle = (np.arange(terms) + 0.5) * np.pi / terms
    nodes = 0.5 * (np.cos(angle) + 1.0)
    to_series = np.cos(np.outer(np.arange(terms), angle)) * (2.0 / terms)
    to_series[0] *= 0.5
    values = kernel_values(nodes[:, None] - nodes, "rbf", bandwidth)
    weighted = moments @ (to_series @ values @ to_series.T)
    return np.asarray(np.einsum("da,da->d", weighted, moments), dtype=np.float64)


def _near_forms(
    p: FloatVector, residuals: FloatMatrix, bandwidth: float
) -> FloatVector:
    """Sum over sorted predictions, each block with itself and near rows after it."""
    total = np.zeros(residuals.shape[0])
    for start in range(0, p.size, BLOCK // 4):
        stop = min(start + BLOCK // 4, p.size)
        own = residuals[:, start:stop]
        end = int(np.searchsorted(p, p[stop - 1] + FAR * bandwidth, side="right"))
        for left in range(start, end, BLOCK):
            right = min(left + BLOCK, end)
            gap = p[start:stop, None] - p[left:right]
            near = kernel_values(gap, "rbf", bandwidth)
            # A pair of rows in different blocks is met once, one in the same twice.
            near[:, max(stop - left, 0) :] *= 2.0
            total += np.einsum("dn,dn->d", own @ near, residuals[:, left:right])
    return total


def median_distance(p: FloatVector, weight: FloatVector | None) -> float:
    """Return the median distance between the predictions of two different rows.

    More rows than there are cells on a grid are merged there first, which moves it by
    less than the width of a cell. Where most rows agree the mean distance takes its
    place, and 1 where all do.
    """
    weight = np.ones(p.size) if weight is None else weight
    if p.size > GRID_CELLS:
        p, weight = _merged(p, weight, grid_cell(p))
    order = np.argsort(p)
    p, weight = p[order], weight[order]
    below = np.concatenate([[0.0], np.cumsum(weight)])
    pairs = 0.5 * below[-1] * (below[-1] - 1.0)
    in_row = 0.5 * weight * (weight - 1.0)

    def within(distance: float) -> float:
        up_to = below[np.searchsorted(p, p + distance, side="right")]
        return float((weight * (up_to - below[1:]) + in_row).sum())

    if within(0.0) >= 0.5 * pairs:
        moved = p - p[0]  # so that rounding cannot create a distance
        summed = float((weight * moved * (below[1:] + below[:-1] - below[-1])).sum())
        return summed / pairs if p[-1] > p[0] else 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if within(middle) >= 0.5 * pairs else (middle, high)
    return high
