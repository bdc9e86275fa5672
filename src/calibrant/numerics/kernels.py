"""Sums over all pairs of rows, weighted by how near their predictions lie.

The double sum of r_i r_j k(p_i, p_j) has n^2 terms, but never needs them. The Laplace
kernel exp(-d / h) factors along sorted predictions, so that running sums give it. The
RBF kernel exp(-d^2 / 2h^2) is so smooth that a short Chebyshev series gives it to
rounding; where it is too narrow for that, only near pairs count, block by block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from calibrant.numerics.binning import GRID_CELLS, grid_cell

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector

KernelName: TypeAlias = Literal["rbf", "laplace"]

BLOCK = 4096
"""Rows at once, few enough that a block of them with all terms stays small."""

MAX_EXPONENT = 600.0
"""exp(600) is far from overflow, and exp(-600) times anything is nothing."""

MAX_TERMS = 2048
"""Longest Chebyshev series, whose coefficients take a second to find."""

TERMS_SQUARED_PER_ROW = 32
"""With fewer rows than this asks for, summing near pairs costs less than a series."""

FAR = 9.0
"""Bandwidths beyond which the RBF kernel, below exp(-40), is lost in rounding."""


def kernel_values(
    distance: FloatMatrix, kernel: KernelName, bandwidth: float
) -> FloatMatrix:
    """Return the kernel of distances between predictions.

    Examples
    --------
    >>> kernel_values(np.array([0.0, 1.0]), "laplace", 1.0).round(4)
    array([1.    , 0.3679])
    """
    scaled = distance / bandwidth
    exponent = np.abs(scaled) if kernel == "laplace" else 0.5 * np.square(scaled)
    return np.asarray(np.exp(-exponent), dtype=np.float64)


def quadratic_forms(
    p: FloatVector, residuals: FloatMatrix, kernel: KernelName, bandwidth: float
) -> FloatVector:
    """Return the sum of r_i r_j k(p_i, p_j) over all i and j, for each row r.

    Parameters
    ----------
    p : ndarray of shape (n,)
        Predictions in [0, 1], in any order, ties allowed.
    residuals : ndarray of shape (draws, n)
        What is summed; each row apart.
    kernel : {"rbf", "laplace"}
        Which kernel.
    bandwidth : float
        The distance h after which the kernel has fallen to exp(-1/2) or exp(-1).

    Returns
    -------
    ndarray of shape (draws,)
        The sums, pairs of a row with itself included.

    Examples
    --------
    >>> p, r = np.array([0.0, 1.0]), np.array([[1.0, -1.0]])
    >>> quadratic_forms(p, r, "laplace", 1.0)  # 2 - 2 / e
    array([1.26424112])
    """
    terms = _series_length(bandwidth)
    short = terms <= MAX_TERMS and terms**2 <= TERMS_SQUARED_PER_ROW * p.size
    if kernel == "rbf" and short:
        return _series_forms(p, residuals, bandwidth, terms)
    order = np.argsort(p)
    p, residuals = p[order], residuals[:, order]
    if kernel == "rbf":
        return _near_forms(p, residuals, bandwidth)
    return _laplace_forms(p, residuals, bandwidth)


def _laplace_forms(
    p: FloatVector, residuals: FloatMatrix, bandwidth: float
) -> FloatVector:
    """Sum over sorted predictions.

    What all rows before row i contribute to it is exp(-p_i / h) times the running sum
    of r_j exp(p_j / h). Its terms grow, so nothing is lost by rounding; that none
    overflows, p is taken from the left end of a stretch of 600 bandwidths, and
    stretches hand on what they hold.
    """
    reach = MAX_EXPONENT * bandwidth
    total = np.square(residuals).sum(axis=1)
    held, held_at = np.zeros(residuals.shape[0]), p[0]
    start = 0
    while start < p.size:
        left = p[start]
        stop = int(np.searchsorted(p, left + reach, side="right"))
        growth = np.exp((p[start:stop] - left) / bandwidth)
        part = residuals[:, start:stop]
        held = held * np.exp((held_at - left) / bandwidth)
        before = np.empty((held.size, stop - start + 1))
        before[:, 0] = held
        np.multiply(part, growth, out=before[:, 1:])
        np.cumsum(before, axis=1, out=before)
        total += 2.0 * np.einsum("dn,dn,n->d", part, before[:, :-1], 1.0 / growth)
        held, held_at = before[:, -1] / growth[-1], p[stop - 1]
        start = stop
    return np.asarray(total, dtype=np.float64)


def _series_length(bandwidth: float) -> int:
    """Return how many Chebyshev terms give the RBF kernel on [0, 1] to rounding."""
    return int(min(16 + np.ceil(5.0 / bandwidth), 2.0**31))


def _series_forms(
    p: FloatVector, residuals: FloatMatrix, bandwidth: float, terms: int
) -> FloatVector:
    """Sum by moments: with k(x, z) = sum c_ab T_a(x) T_b(z), the form is m' c m."""
    moments = np.zeros((residuals.shape[0], terms))
    for start in range(0, p.size, BLOCK):
        rows = slice(start, start + BLOCK)
        moments += residuals[:, rows] @ chebvander(2.0 * p[rows] - 1.0, terms - 1)
    weighted = moments @ _series_coefficients(bandwidth, terms)
    return np.asarray(np.einsum("da,da->d", weighted, moments), dtype=np.float64)


def _series_coefficients(bandwidth: float, terms: int) -> FloatMatrix:
    """Return c of the interpolation at Chebyshev nodes in both arguments."""
    angle = (np.arange(terms) + 0.5) * np.pi / terms
    nodes = 0.5 * (np.cos(angle) + 1.0)
    to_series = np.cos(np.outer(np.arange(terms), angle)) * (2.0 / terms)
    to_series[0] *= 0.5
    values = kernel_values(nodes[:, None] - nodes, "rbf", bandwidth)
    return np.asarray(to_series @ values @ to_series.T, dtype=np.float64)


def _near_forms(
    p: FloatVector, residuals: FloatMatrix, bandwidth: float
) -> FloatVector:
    """Sum over sorted predictions, each block with itself and what lies near right."""
    total = np.zeros(residuals.shape[0])
    start, rows = 0, BLOCK // 4
    while start < p.size:
        stop = min(start + rows, p.size)
        own = residuals[:, start:stop]
        end = int(np.searchsorted(p, p[stop - 1] + FAR * bandwidth, side="right"))
        for left in range(start, end, BLOCK):
            right = min(left + BLOCK, end)
            gap = p[start:stop, None] - p[left:right]
            near = kernel_values(gap, "rbf", bandwidth)
            # A pair of rows in different blocks is met once, one in the same twice.
            near[:, max(stop - left, 0) :] *= 2.0
            total += np.einsum("dn,dn->d", own @ near, residuals[:, left:right])
        start = stop
    return total


def median_distance(p: FloatVector, weight: FloatVector | None) -> float:
    """Return the median distance between the predictions of two different rows.

    More rows than there are cells on a grid are gathered there first, which moves it
    by less than the width of a cell. Where most rows agree the mean distance takes
    its place, and 1 where all do.

    Examples
    --------
    >>> round(median_distance(np.array([0.0, 0.2, 0.9]), None), 6)
    0.7
    """
    if weight is None:
        weight = np.ones(p.size)
    if p.size > GRID_CELLS:
        cell = grid_cell(p)
        total = np.bincount(cell, weights=weight).astype(np.float64)
        used = total > 0.0
        p = np.bincount(cell, weights=weight * p)[used] / total[used]
        weight = total[used]
    order = np.argsort(p)
    p, weight = p[order], weight[order]
    below = np.concatenate([[0.0], np.cumsum(weight)])
    pairs = 0.5 * below[-1] * (below[-1] - 1.0)
    in_row = 0.5 * weight * (weight - 1.0)

    def within(distance: float) -> float:
        up_to = below[np.searchsorted(p, p + distance, side="right")]
        return float((weight * (up_to - below[1:]) + in_row).sum())

    if within(0.0) >= 0.5 * pairs:
        moved = p - p[0]  # so that rounding cannot make up a distance
        summed = float((weight * moved * (below[1:] + below[:-1] - below[-1])).sum())
        return summed / pairs if p[-1] > p[0] else 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if within(middle) >= 0.5 * pairs else (middle, high)
    return high
