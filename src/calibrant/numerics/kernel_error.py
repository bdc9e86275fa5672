"""The squared kernel calibration error: estimates from sums over pairs of rows.

Were predictions calibrated, residuals y - p of any two rows would have a product of
mean 0, however alike the two predictions are. The error is the mean of that product
over pairs, weighted by a kernel (Widmann, Lindsten, Zachariah 2019).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calibrant.numerics.kernels import KernelName, kernel_values, quadratic_forms
from calibrant.numerics.resampling import MAX_DRAW

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector

OutcomeKernelName: TypeAlias = Literal["linear", "white", "rbf"]

OUTCOME_FACTORS: dict[str, float] = {
    "linear": 1.0,
    "white": 2.0,
    "rbf": 2.0 * (1.0 - float(np.exp(-0.5))),
}
"""k(0, 0) + k(1, 1) - 2 k(0, 1) of a kernel of labels, which is all that it adds."""

CELL_WIDTH = 1.0 / 4096
"""Widest cell in which rows are taken together for the draws of a test."""

CELLS_PER_BANDWIDTH = 64
"""Within a cell the kernel then varies by less than 1e-4 of its height."""

MAX_AT_ONCE = 2**21
"""Most numbers that are drawn, or kernel values computed, at once."""


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
        What the kernel of labels multiplies every pair by.
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
            Labels, or shares of positives where a row stands for many.
        weight : ndarray of shape (draws, n) or (n,)
            How many rows each row stands for.
        debias : bool
            True gives the unbiased mean over pairs of different rows (copies of a row
            are different rows), False the mean over all pairs, which is never
            negative.

        Examples
        --------
        >>> kernel = ErrorKernel("rbf", 1.0)
        >>> p, y, one = np.array([0.5, 0.5]), np.array([[1.0, 1.0]]), np.ones(2)
        >>> kernel.errors(p, y, one, debias=True)
        array([0.25])
        """
        residuals = np.atleast_2d(weight * (share - p))
        total = quadratic_forms(p, residuals, self.kernel, self.bandwidth)
        rows = np.sum(weight, axis=-1)
        if not debias:
            return np.asarray(self.factor * total / np.square(rows))
        squares = share * np.square(1.0 - p) + (1.0 - share) * np.square(p)
        total = total - np.sum(weight * squares, axis=-1)
        return np.asarray(self.factor * total / (rows * (rows - 1.0)))

    def block_errors(self, p: FloatVector, y: FloatVector, size: int) -> FloatVector:
        """Return the unbiased error of each block of `size` rows in the order given.

        Rows that do not fill a block are left out. The mean is unbiased, and blocks
        of independent rows are independent.
        """
        blocks = p.size // size
        prob = p[: blocks * size].reshape(blocks, size)
        residual = y[: blocks * size].reshape(blocks, size) - prob
        at_once = max(MAX_AT_ONCE // size**2, 1)
        parts = []
        for start in range(0, blocks, at_once):
            some = slice(start, start + at_once)
            gap = prob[some, :, None] - prob[some, None, :]
            near = kernel_values(gap, self.kernel, self.bandwidth)
            r = residual[some]
            pairs = np.einsum("bi,bij,bj->b", r, near, r) - np.square(r).sum(axis=1)
            parts.append(pairs)
        summed = np.concatenate(parts) if parts else np.empty(0)
        return np.asarray(self.factor * summed / (size * (size - 1.0)))

    def calibrated_errors(
        self,
        p: FloatVector,
        weight: FloatVector | None,
        replicates: int,
        rng: np.random.Generator,
    ) -> FloatVector:
        """Return unbiased errors of labels drawn with the predicted probabilities.

        Many rows are taken together where they lie in one narrow cell; their number
        of positives is then one binomial draw.
        """
        width = min(CELL_WIDTH, self.bandwidth / CELLS_PER_BANDWIDTH)
        p, weight = _gathered(p, weight, width)
        trials = np.clip(np.round(weight), 1.0, MAX_DRAW).astype(np.int64)
        at_once = max(MAX_AT_ONCE // p.size, 1)
        parts = []
        for start in range(0, replicates, at_once):
            draws = min(at_once, replicates - start)
            share = rng.binomial(trials, p, (draws, p.size)) / trials
            parts.append(self.errors(p, share, weight, debias=True))
        return np.concatenate(parts)


def _gathered(
    p: FloatVector, weight: FloatVector | None, width: float
) -> tuple[FloatVector, FloatVector]:
    """Return mean prediction and weight of each cell; few rows stay as they are."""
    if weight is None:
        weight = np.ones(p.size)
    if p.size * CELL_WIDTH <= 1.0:
        return p, weight
    _, cell = np.unique(np.floor(p / width), return_inverse=True)
    total = np.bincount(cell, weights=weight).astype(np.float64)
    mean = np.bincount(cell, weights=weight * p) / total
    return np.clip(mean, 0.0, 1.0), total
