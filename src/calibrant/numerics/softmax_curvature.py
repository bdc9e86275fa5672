"""Hessians of softmax problems to solve with: exact if small, else class by class.

They precondition conjugate gradients, so that an approximation costs steps only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from calibrant.numerics.softmax import MatrixScores, VectorScores

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix
    from calibrant.numerics.softmax import Point, SoftmaxProblem

MAX_EXACT = 600
"""Most parameters for which the Hessian is formed; 24 classes of a full matrix."""
NEGLIGIBLE = 1e-2
"""Rows that bend a class's block less than this share of the most are left out."""


class Curvature(Protocol):
    """An approximate Hessian that can be solved with."""

    def solve(self, right: FloatMatrix) -> FloatMatrix:
        """Return the solution of Hessian times x equals `right`."""
        ...


@dataclass(frozen=True, eq=False)
class DenseCurvature:
    """A Hessian by its Cholesky factor."""

    factor: tuple[FloatMatrix, bool]

    def solve(self, right: FloatMatrix) -> FloatMatrix:
        """Return the solution, shaped as `right`."""
        solved = cho_solve(self.factor, right.reshape(-1), check_finite=False)
        return np.asarray(solved).reshape(right.shape)


@dataclass(frozen=True, eq=False)
class BlockCurvature:
    """The blocks on the diagonal of a Hessian, one a class, inverted."""

    inverse: FloatMatrix

    def solve(self, right: FloatMatrix) -> FloatMatrix:
        """Return the solution, class by class."""
        return np.asarray(np.matmul(self.inverse, right[:, :, np.newaxis])[:, :, 0])


def curvature_at(problem: SoftmaxProblem, point: Point) -> Curvature:
    """Return the Hessian at a point, exact if there are few parameters."""
    operator = problem.operator
    if isinstance(operator, MatrixScores):
        if point.parameters.size <= MAX_EXACT:
            return _dense(problem, _matrix_hessian(operator.x, problem, point))
        return _blocks(operator.x, problem, point)
    if isinstance(operator, VectorScores):
        return _dense(problem, _vector_hessian(operator.x, problem, point))
    raise TypeError(type(operator).__name__)


def _dense(problem: SoftmaxProblem, hessian: FloatMatrix) -> DenseCurvature:
    hessian[np.diag_indices_from(hessian)] += 2.0 * problem.penalty.reshape(-1)
    return DenseCurvature(cho_factor(hessian, check_finite=False))


def _vector_hessian(
    x: FloatMatrix, problem: SoftmaxProblem, point: Point
) -> FloatMatrix:
    classes = x.shape[1]
    share = problem.share[:, np.newaxis]
    by_parameter = np.column_stack([point.prob * x, point.prob])
    hessian = -(by_parameter.T @ (by_parameter * share))
    own = np.arange(classes)
    for first, second, values in ((0, 0, x * x), (0, 1, x), (1, 0, x), (1, 1, None)):
        weighted = share * point.prob if values is None else share * point.prob * values
        hessian[first * classes + own, second * classes + own] += weighted.sum(axis=0)
    return hessian


def _matrix_hessian(
    x: FloatMatrix, problem: SoftmaxProblem, point: Point
) -> FloatMatrix:
    n, classes = x.shape
    features = np.column_stack([x, np.ones(n)])
    size = classes + 1
    root = np.sqrt(problem.share)[:, np.newaxis]
    by_parameter = (point.prob * root)[:, :, np.newaxis] * features[:, np.newaxis]
    flat = by_parameter.reshape(n, classes * size)
    hessian = -(flat.T @ flat)
    own = (point.prob * problem.share[:, np.newaxis]).T
    for j in range(classes):
        block = slice(j * size, (j + 1) * size)
        hessian[block, block] += (features.T * own[j]) @ features
    return hessian


def _blocks(x: FloatMatrix, problem: SoftmaxProblem, point: Point) -> BlockCurvature:
    features = np.column_stack([x, np.ones(len(x))])
    size = features.shape[1]
    spread = point.prob * (1.0 - point.prob)
    blocks = np.empty((x.shape[1], size, size))
    for j, bend in enumerate(spread.T):
        rows = np.flatnonzero(bend > NEGLIGIBLE * bend.max())
        some = features[rows]
        blocks[j] = (some.T * (bend[rows] * problem.share[rows])) @ some
    own = np.arange(size)
    blocks[:, own, own] += 2.0 * problem.penalty
    return BlockCurvature(np.linalg.inv(blocks))
