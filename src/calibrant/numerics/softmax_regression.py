"""Softmax regression: the log-loss of penalised terms, minimised by Newton's method.

Every multi-class family that is linear in its parameters is one operator A, from
parameters to scores, under the same loss. With probabilities P, outcomes Y (one-hot)
and shares w of the weight:

    loss      sum_i w_i (log sum_j exp S_ij - S_iy)
    gradient  A' (w (P - Y))
    curvature A' (w P (dS - sum_j P dS))   for a direction d, dS = A d

Newton steps come from conjugate gradients, preconditioned with the Hessian: the whole
Hessian if it is small, else one block per class. That affects only the number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import (
        BoolMatrix,
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )

    Solve: TypeAlias = Callable[[FloatVector], FloatVector]

VectorT = TypeVar("VectorT", "FloatVector", "IntVector", "BoolVector")

MAX_EXACT = 800
"""Maximum number of parameters for which the whole Hessian is formed."""
MAX_MATRIX = 600
"""The same for a matrix, where one block per class is nearly as good: 24 classes."""
NEGLIGIBLE = 1e-4
ROUGHLY_NEGLIGIBLE = 1e-2
"""Rows whose part in a class's block is below this share of the largest are skipped:
in the determinant, and where an approximation affects only the number of steps."""
CHUNK = 8192
"""Rows whose part in the Hessian is computed at once."""
MAX_STEPS = 200
MAX_INNER_STEPS = 500
PATIENCE = 12
"""Inner steps up to which an old Hessian is good enough to precondition with."""
MAX_HALVINGS = 40
SUFFICIENT = 1e-4
"""Share of the decrease predicted by the slope that a step must achieve."""


@dataclass(frozen=True, eq=False)
class ClassTerms:
    """Scores of classes as sums of terms: the linear map from parameters to scores.

    With functions f of a class's own prediction and features x that all classes share,
    class j has the score

        slopes_j . f_j + weights_j . x + common . g_j,

    where g are more functions of the class's own prediction, whose coefficients are
    common to all classes. Parameters are one vector: for each class its slopes and
    weights, then the common coefficients.

    Attributes
    ----------
    own : ndarray of shape (s, n, k)
        Functions of each class's own prediction.
    features : ndarray of shape (n, q)
        What all classes share, such as a constant.
    common : ndarray of shape (c, n, k)
        Functions whose coefficients are common.
    max_exact : int
        Most parameters for which the whole Hessian is formed.
    """

    own: FloatMatrix
    features: FloatMatrix
    common: FloatMatrix
    max_exact: int = MAX_EXACT

    @classmethod
    def vector(cls, x: FloatMatrix) -> ClassTerms:
        """Return the terms ``a_j x_ij + b_j``."""
        constant, none = np.ones((len(x), 1)), np.empty((0, *x.shape))
        return cls(x[np.newaxis], constant, none, max_exact=2 * x.shape[1])

    @classmethod
    def matrix(cls, x: FloatMatrix) -> ClassTerms:
        """Return the terms ``W x_i + b``."""
        none, features = np.empty((0, *x.shape)), np.column_stack([x, np.ones(len(x))])
        return cls(none, features, none, MAX_MATRIX)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Return the number of classes and of parameters of each."""
        return self.own.shape[2], len(self.own) + self.features.shape[1]

    @cached_property
    def size(self) -> int:
        """Return the number of parameters."""
        return self.shape[0] * self.shape[1] + len(self.common)

    @property
    def is_exact(self) -> bool:
        """Tell whether the whole Hessian is formed."""
        return self.size <= self.max_exact

    @cached_property
    def identity(self) -> FloatVector:
        """Return the parameters of the prediction itself, the first common function.

        Without any it is the first of each class's own, or else of the features.
        """
        if len(self.common):
            return np.asarray(np.eye(1, self.size, self.size - len(self.common))[0])
        classes, size = self.shape
        first = np.eye(1, size) if len(self.own) else np.eye(classes, size)
        return np.broadcast_to(first, (classes, size)).reshape(-1)

    @property
    def used(self) -> BoolMatrix:
        """Tell which entries of blocks are parameters, in their order."""
        return self.by_block(np.ones(self.size, dtype=np.bool_))

    def scores(self, parameters: FloatVector) -> FloatMatrix:
        """Return the scores."""
        each, common = self._split(parameters)
        scores = self.features @ each[:, len(self.own) :].T
        for slopes, values in zip(each.T, self.own, strict=False):
            scores += values * slopes
        if len(common):
            scores += np.tensordot(common, self.common, 1)
        return np.asarray(scores)

    def adjoint(self, slopes: FloatMatrix) -> FloatVector:
        """Return A' times slopes: by scores in, by parameters out."""
        own = [np.einsum("ij,ij->j", slopes, values) for values in self.own]
        rows = np.column_stack([*own, slopes.T @ self.features])
        common = np.tensordot(self.common, slopes, 2)
        return np.concatenate([rows.reshape(-1), common])

    def by_block(self, values: VectorT, fill: int = 0) -> VectorT:
        """Return values of parameters by block, as `curvature_blocks` has them.

        Blocks are filled up to the same length.
        """
        if self.is_exact:
            return values[np.newaxis]
        each, common = self._split(values)
        blocks = np.full(self._block_shape, fill, dtype=values.dtype)
        blocks[:-1, : each.shape[1]], blocks[-1, : common.size] = each, common
        return blocks

    @property
    def _block_shape(self) -> tuple[int, int]:
        classes, size = self.shape
        return classes + 1, max(size, len(self.common))

    def _split(self, values: VectorT) -> tuple[VectorT, VectorT]:
        """Return values of the classes' own parameters, and of the common ones."""
        place = self.size - len(self.common)
        return values[:place].reshape(self.shape), values[place:]

    def curvature_blocks(
        self, prob: FloatMatrix, share: FloatVector, negligible: float = NEGLIGIBLE
    ) -> FloatMatrix:
        """Return the Hessian of the mean log-loss as one block, or one per class.

        With a block per class, the common parameters are the last block.
        """
        if self.is_exact:
            return self._hessian(prob, share)[np.newaxis]
        return self._blocks(prob, share, negligible)

    def preconditioner(self, problem: SoftmaxProblem, point: Point) -> Solve:
        """Return a function that solves with the Hessian, or with its blocks."""
        blocks = self.curvature_blocks(point.prob, problem.share, ROUGHLY_NEGLIGIBLE)
        places = np.arange(blocks.shape[1])
        blocks[:, places, places] += 2.0 * self.by_block(problem.penalty, fill=1)
        if self.is_exact:
            factor = cho_factor(blocks[0], check_finite=False)
            return lambda right: np.asarray(
                cho_solve(factor, right, check_finite=False)
            )
        inverse, used = np.linalg.inv(blocks), self.used
        return lambda right: np.asarray(
            (inverse @ self.by_block(right)[:, :, np.newaxis])[used, 0]
        )

    def _hessian(self, prob: FloatMatrix, share: FloatVector) -> FloatMatrix:
        """Return the whole Hessian of the mean log-loss."""
        (classes, size), total = self.shape, self.size
        hessian, end = np.zeros((total, total)), classes * size
        for start in range(0, len(prob), CHUNK):
            rows = slice(start, start + CHUNK)
            root = np.sqrt(share[rows])
            features = self.features[rows] * root[:, np.newaxis]
            mean = np.zeros((root.size, total))
            for j in range(classes):
                own, common = (
                    self.own[:, rows, j] * root,
                    self.common[:, rows, j] * root,
                )
                design = np.column_stack([*own, features, *common])
                weighted = design * prob[rows, j, np.newaxis]
                first, last = j * size, (j + 1) * size
                mean[:, first:last] = weighted[:, :size]
                mean[:, end:] += weighted[:, size:]
                places = np.r_[first:last, end:total]
                hessian[np.ix_(places, places)] += weighted.T @ design
            hessian -= mean.T @ mean  # half the work of other products
        return hessian

    def _blocks(
        self, prob: FloatMatrix, share: FloatVector, negligible: float
    ) -> FloatMatrix:
        """Return the Hessian's blocks, one per class and one of common parameters."""
        classes, size = self.shape
        blocks = np.zeros((*self._block_shape, self._block_shape[1]))
        roots = np.sqrt(prob * (1.0 - prob) * share[:, np.newaxis])
        least = np.sqrt(negligible) * roots.max(axis=0)
        for j, root in enumerate(roots.T):
            rows = np.flatnonzero(root > least[j])
            design = np.column_stack([*self.own[:, rows, j], self.features[rows]])
            design *= root[rows, np.newaxis]
            blocks[j, :size, :size] = design.T @ design
        common = len(self.common)
        blocks[classes, :common, :common] = self._common_hessian(prob, share)
        return blocks

    def _common_hessian(self, prob: FloatMatrix, share: FloatVector) -> FloatMatrix:
        mean = np.einsum("ij,cij->ic", prob, self.common)
        weight = prob * share[:, np.newaxis]
        square = np.einsum("ij,cij,dij->cd", weight, self.common, self.common)
        return np.asarray(square - (mean.T * share) @ mean)


@dataclass(frozen=True, eq=False)
class Point:
    """The loss at some parameters, its slopes, and the probabilities there.

    `log_loss` is the loss without the penalty.
    """

    parameters: FloatVector
    log_loss: float
    loss: float
    gradient: FloatVector
    prob: FloatMatrix


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    """Mean log-loss of scores, with a quadratic penalty.

    Attributes
    ----------
    terms : ClassTerms
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

    terms: ClassTerms
    column: IntVector
    share: FloatVector
    penalty: FloatVector
    anchor: FloatVector

    def at(self, parameters: FloatVector) -> Point:
        """Return loss and gradient."""
        scores = self.terms.scores(parameters)
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
        gradient = self.terms.adjoint(slopes) + 2.0 * self.penalty * away
        return Point(parameters, log_loss, loss, gradient, prob)

    def curvature(self, point: Point, direction: FloatVector) -> FloatVector:
        """Return the Hessian at a point times a direction."""
        change = self.terms.scores(direction)
        change -= np.einsum("ij,ij->i", point.prob, change)[:, np.newaxis]
        change *= point.prob
        change *= self.share[:, np.newaxis]
        return self.terms.adjoint(change) + 2.0 * self.penalty * direction


def minimise(problem: SoftmaxProblem, start: FloatVector, *, tolerance: float) -> Point:
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
    solve = problem.terms.preconditioner(problem, point)
    for _ in range(MAX_STEPS):
        if size <= tolerance:
            break
        forcing = max(min(0.1, np.sqrt(size)), 0.1 * tolerance / size)
        if inner > PATIENCE:
            solve = problem.terms.preconditioner(problem, point)
        step, inner = _newton_step(problem, point, solve, forcing * size)
        slope = float(point.gradient @ step)
        for length in 0.5 ** np.arange(MAX_HALVINGS):
            moved = problem.at(point.parameters + length * step)
            if moved.loss <= point.loss + SUFFICIENT * length * slope:
                break
        else:  # rounding hides any further decrease
            break
        point, size = moved, _norm(moved.gradient)
    return point


def _norm(values: FloatVector) -> float:
    return float(np.sqrt(values @ values))


def _newton_step(
    problem: SoftmaxProblem, point: Point, solve: Solve, enough: float
) -> tuple[FloatVector, int]:
    """Return the Newton step by conjugate gradients, and their number."""
    step = np.zeros_like(point.gradient)
    residual = -point.gradient
    direction = solve(residual)
    fall, inner = float(residual @ direction), 0
    while inner < MAX_INNER_STEPS:
        inner += 1
        bent = problem.curvature(point, direction)
        curvature = float(direction @ bent)
        if not curvature > 0.0:
            break
        step = step + (fall / curvature) * direction
        residual = residual - (fall / curvature) * bent
        if _norm(residual) <= enough:
            break
        solved = solve(residual)
        before, fall = fall, float(residual @ solved)
        direction = solved + (fall / before) * direction
    return step, inner
