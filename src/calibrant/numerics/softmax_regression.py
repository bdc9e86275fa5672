"""Softmax regression: the log-loss of linear scores, minimised by Newton's method.

Every multi-class family that is linear in its parameters is one operator, from
parameters to scores, under the same loss. With probabilities P, outcomes Y (one-hot),
shares w of the weight and the operator A:

    loss      sum_i w_i (log sum_j exp S_ij - S_iy)
    gradient  A' (w (P - Y))
    curvature A' (w P (dS - sum_j P dS))   for a direction d, dS = A d

Newton steps come from conjugate gradients, preconditioned with the Hessian, exact if it
is small, else class by class: so that an approximation costs steps only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector
    from calibrant.numerics.class_terms import ClassTerms

    Solve: TypeAlias = Callable[[FloatMatrix], FloatMatrix]

MAX_STEPS = 200
MAX_INNER_STEPS = 500
PATIENCE = 12
"""Inner steps up to which an old Hessian is good enough to precondition with."""
MAX_HALVINGS = 40
SUFFICIENT = 1e-4
"""Share of the decrease predicted by the slope that a step must achieve."""
MAX_EXACT = 600
"""Most parameters for which the Hessian is formed; 24 classes of a full matrix."""
NEGLIGIBLE = 1e-2
"""Rows whose part in a class's block is below this share of the largest are skipped."""


@dataclass(frozen=True, eq=False)
class VectorScores:
    """Scores ``a_j x_ij + b_j``; parameters are [a, b] of shape (2, k)."""

    x: FloatMatrix

    @property
    def identity(self) -> FloatMatrix:
        """Return the parameters of the uncalibrated prediction, [1, 0]."""
        classes = self.x.shape[1]
        return np.stack([np.ones(classes), np.zeros(classes)])

    def scores(self, parameters: FloatMatrix) -> FloatMatrix:
        """Return the scores."""
        return np.asarray(self.x * parameters[0] + parameters[1])

    def adjoint(self, slopes: FloatMatrix) -> FloatMatrix:
        """Return A' times slopes: by scores in, by parameters out."""
        return np.stack([np.einsum("ij,ij->j", slopes, self.x), slopes.sum(axis=0)])

    def preconditioner(self, problem: SoftmaxProblem, point: Point) -> Solve:
        """Return a function that solves with the exact Hessian."""
        x, share = self.x, problem.share[:, np.newaxis]
        by_parameter = np.column_stack([point.prob * x, point.prob])
        hessian = -(by_parameter.T @ (by_parameter * share))
        own = np.arange(x.shape[1])
        slope, constant = own, x.shape[1] + own
        spread = share * point.prob
        hessian[slope, slope] += (spread * (x * x)).sum(axis=0)
        hessian[slope, constant] += (spread * x).sum(axis=0)
        hessian[constant, slope] += (spread * x).sum(axis=0)
        hessian[constant, constant] += spread.sum(axis=0)
        return _dense_solver(problem, hessian)


@dataclass(frozen=True, eq=False)
class MatrixScores:
    """Scores ``W x_i + b``; parameters are [W, b] of shape (k, k + 1)."""

    x: FloatMatrix

    @property
    def identity(self) -> FloatMatrix:
        """Return the parameters of the uncalibrated prediction, [I, 0]."""
        classes = self.x.shape[1]
        return np.eye(classes, classes + 1)

    def scores(self, parameters: FloatMatrix) -> FloatMatrix:
        """Return the scores."""
        return np.asarray(self.x @ parameters[:, :-1].T + parameters[:, -1])

    def adjoint(self, slopes: FloatMatrix) -> FloatMatrix:
        """Return A' times slopes: by scores in, by parameters out."""
        return np.column_stack([slopes.T @ self.x, slopes.sum(axis=0)])

    def preconditioner(self, problem: SoftmaxProblem, point: Point) -> Solve:
        """Return a function that solves with the Hessian, or with its blocks."""
        n, classes = self.x.shape
        features = np.column_stack([self.x, np.ones(n)])
        if point.parameters.size > MAX_EXACT:
            return _block_solver(problem, point, features)
        size = classes + 1
        root = np.sqrt(problem.share)[:, np.newaxis]
        by_parameter = (point.prob * root)[:, :, np.newaxis] * features[:, np.newaxis]
        flat = by_parameter.reshape(n, classes * size)
        hessian = -(flat.T @ flat)
        own = (point.prob * problem.share[:, np.newaxis]).T
        for j in range(classes):
            block = slice(j * size, (j + 1) * size)
            hessian[block, block] += (features.T * own[j]) @ features
        return _dense_solver(problem, hessian)


@dataclass(frozen=True, eq=False)
class Point:
    """The loss at some parameters, its slopes, and the probabilities there.

    `log_loss` is the loss without the penalty.
    """

    parameters: FloatMatrix
    log_loss: float
    loss: float
    gradient: FloatMatrix
    prob: FloatMatrix


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    """Mean log-loss of linear scores, with a quadratic penalty.

    Attributes
    ----------
    operator : VectorScores, MatrixScores or ClassTerms
        The linear map A from parameters to scores of shape (n, k).
    column : ndarray of shape (n,)
        The true class.
    share : ndarray of shape (n,)
        Each row's share of the weight.
    penalty : ndarray, shaped as the parameters
        Adds ``sum(penalty * (parameters - anchor) ** 2)``.
    anchor : ndarray, shaped as the parameters
        Where the penalty is 0.
    """

    operator: VectorScores | MatrixScores | ClassTerms
    column: IntVector
    share: FloatVector
    penalty: FloatMatrix
    anchor: FloatMatrix

    def at(self, parameters: FloatMatrix) -> Point:
        """Return loss and gradient."""
        scores = self.operator.scores(parameters)
        rows = np.arange(self.column.size)
        top = scores.max(axis=1)
        own = scores[rows, self.column] - top
        raised = np.exp(scores - top[:, np.newaxis])
        total = raised.sum(axis=1)
        prob = raised / total[:, np.newaxis]
        away = parameters - self.anchor
        log_loss = float(self.share @ (np.log(total) - own))
        loss = log_loss + float(np.sum(self.penalty * away**2))
        slopes = prob * self.share[:, np.newaxis]
        slopes[rows, self.column] -= self.share
        gradient = self.operator.adjoint(slopes) + 2.0 * self.penalty * away
        return Point(parameters, log_loss, loss, gradient, prob)

    def curvature(self, point: Point, direction: FloatMatrix) -> FloatMatrix:
        """Return the Hessian at a point times a direction."""
        change = self.operator.scores(direction)
        change -= np.einsum("ij,ij->i", point.prob, change)[:, np.newaxis]
        change *= point.prob
        change *= self.share[:, np.newaxis]
        return self.operator.adjoint(change) + 2.0 * self.penalty * direction


def minimise(problem: SoftmaxProblem, start: FloatMatrix, *, tolerance: float) -> Point:
    """Return the minimum of a convex softmax problem.

    Each step lowers the loss, or the search ends.

    Parameters
    ----------
    problem : SoftmaxProblem
        What to minimise.
    start : ndarray
        First parameters.
    tolerance : float
        Euclidean norm of the gradient at which the search ends.
    """
    point = problem.at(start)
    size, inner = _norm(point.gradient), 0
    solve = problem.operator.preconditioner(problem, point)
    for _ in range(MAX_STEPS):
        if size <= tolerance:
            break
        forcing = max(min(0.1, np.sqrt(size)), 0.1 * tolerance / size)
        if inner > PATIENCE:
            solve = problem.operator.preconditioner(problem, point)
        step, inner = _newton_step(problem, point, solve, forcing * size)
        slope = float(np.vdot(point.gradient, step))
        for length in 0.5 ** np.arange(MAX_HALVINGS):
            moved = problem.at(point.parameters + length * step)
            if moved.loss <= point.loss + SUFFICIENT * length * slope:
                break
        else:  # rounding hides any further decrease
            break
        point, size = moved, _norm(moved.gradient)
    return point


def _norm(values: FloatMatrix) -> float:
    return float(np.sqrt(np.vdot(values, values)))


def _newton_step(
    problem: SoftmaxProblem, point: Point, solve: Solve, enough: float
) -> tuple[FloatMatrix, int]:
    """Return the Newton step by conjugate gradients, and their number."""
    step = np.zeros_like(point.gradient)
    residual = -point.gradient
    direction = solve(residual)
    fall, inner = float(np.vdot(residual, direction)), 0
    while inner < MAX_INNER_STEPS:
        inner += 1
        bent = problem.curvature(point, direction)
        curvature = float(np.vdot(direction, bent))
        if not curvature > 0.0:
            break
        step = step + (fall / curvature) * direction
        residual = residual - (fall / curvature) * bent
        if _norm(residual) <= enough:
            break
        solved = solve(residual)
        before, fall = fall, float(np.vdot(residual, solved))
        direction = solved + (fall / before) * direction
    return step, inner


def _dense_solver(problem: SoftmaxProblem, hessian: FloatMatrix) -> Solve:
    """Return a function that solves with a Hessian, to which the penalty is added."""
    hessian[np.diag_indices_from(hessian)] += 2.0 * problem.penalty.reshape(-1)
    factor = cho_factor(hessian, check_finite=False)

    def solve(right: FloatMatrix) -> FloatMatrix:
        solved = cho_solve(factor, right.reshape(-1), check_finite=False)
        return np.asarray(solved).reshape(right.shape)

    return solve


def _block_solver(
    problem: SoftmaxProblem, point: Point, features: FloatMatrix
) -> Solve:
    """Return a function that solves with the Hessian's blocks, one per class."""
    classes, size = point.prob.shape[1], features.shape[1]
    spread = point.prob * (1.0 - point.prob)
    blocks = np.empty((classes, size, size))
    for j, own in enumerate(spread.T):
        rows = np.flatnonzero(own > NEGLIGIBLE * own.max())
        some = features[rows]
        blocks[j] = (some.T * (own[rows] * problem.share[rows])) @ some
    diagonal = np.arange(size)
    blocks[:, diagonal, diagonal] += 2.0 * problem.penalty
    inverse = np.linalg.inv(blocks)

    def solve(right: FloatMatrix) -> FloatMatrix:
        return np.asarray(np.matmul(inverse, right[:, :, np.newaxis])[:, :, 0])

    return solve
