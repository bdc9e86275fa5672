"""Scores of classes as a sum of penalised terms, for softmax regression.

With log-probabilities z of a row and features x that all classes share, class j has
the score

    slope_j z_j + weights_j . x + intercept_j + common . g(z)_j,

where g(z)_j are a few functions of the class's own prediction, the first of them z_j,
whose coefficients are common to all classes. Parameters are one vector: for each class
its slope, weights and intercept, then the common ones. Each belongs to a group, whose
spread (the standard deviation of its normal prior) is shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import (
        BoolMatrix,
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )
    from calibrant.numerics.softmax_regression import Point, SoftmaxProblem

VectorT = TypeVar("VectorT", "FloatVector", "IntVector", "BoolVector")

SLOPES, INTERCEPTS, COMMON = range(3)
"""Groups of parameters; those of weights follow."""
MAX_EXACT = 800
"""Most parameters for which the whole Hessian is formed; else one block per class."""
NEGLIGIBLE = 1e-4
ROUGHLY_NEGLIGIBLE = 1e-2
"""Rows whose part in a class's block is below this share of the largest are skipped:
in the determinant, and where an approximation costs steps only."""
CHUNK = 2048
"""Rows whose part in the Hessian is computed at once."""


@dataclass(frozen=True, eq=False)
class ClassTerms:
    """The linear map from parameters to scores.

    Attributes
    ----------
    common : ndarray of shape (c, n, k)
        Functions of each class's own prediction; the first is its log-probability.
    features : ndarray of shape (n, q)
        What all classes share.
    feature_group : ndarray of shape (q,)
        The group of the weights of each feature, from 3.
    """

    common: FloatMatrix
    features: FloatMatrix
    feature_group: IntVector

    @property
    def log_prob(self) -> FloatMatrix:
        """Return the log-probabilities, (n, k)."""
        return np.asarray(self.common[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of classes and of parameters of each."""
        return self.common.shape[2], self.features.shape[1] + 2

    @cached_property
    def group(self) -> IntVector:
        """Return the group of each parameter."""
        row = np.concatenate([[SLOPES], self.feature_group, [INTERCEPTS]])
        common = np.full(len(self.common), COMMON)
        return np.concatenate([np.tile(row, self.shape[0]), common])

    @property
    def is_exact(self) -> bool:
        """Tell whether the whole Hessian is formed."""
        return self.group.size <= MAX_EXACT

    @cached_property
    def identity(self) -> FloatVector:
        """Return the parameters that leave predictions as they are."""
        place = self.group.size - len(self.common)
        return np.asarray(np.eye(1, self.group.size, place)[0])

    @property
    def used(self) -> BoolMatrix:
        """Tell which entries of blocks are parameters, in their order."""
        return self.by_block(np.ones(self.group.size, dtype=np.bool_))

    def scores(self, parameters: FloatVector) -> FloatMatrix:
        """Return the scores."""
        own, common = self._split(parameters)
        scores = self.features @ own[:, 1:-1].T
        scores += self.log_prob * own[:, 0] + own[:, -1]
        return np.asarray(scores + np.tensordot(common, self.common, 1))

    def adjoint(self, slopes: FloatMatrix) -> FloatVector:
        """Return A' times slopes: by scores in, by parameters out."""
        own = np.einsum("ij,ij->j", slopes, self.log_prob)
        rows = np.column_stack([own, slopes.T @ self.features, slopes.sum(axis=0)])
        common = np.tensordot(self.common, slopes, 2)
        return np.concatenate([rows.reshape(-1), common])

    def by_block(self, values: VectorT, fill: int = 0) -> VectorT:
        """Return values of parameters by block, as `curvature_blocks` has them.

        Blocks are filled up to the same length.
        """
        if self.is_exact:
            return values[np.newaxis]
        own, common = self._split(values)
        blocks = np.full(self._block_shape, fill, dtype=values.dtype)
        blocks[:-1, : own.shape[1]], blocks[-1, : common.size] = own, common
        return blocks

    @property
    def _block_shape(self) -> tuple[int, int]:
        classes, size = self.shape
        return classes + 1, max(size, len(self.common))

    def curvature_blocks(
        self, prob: FloatMatrix, share: FloatVector, negligible: float = NEGLIGIBLE
    ) -> FloatMatrix:
        """Return the Hessian of the mean log-loss as one block, or one per class.

        With a block per class, the common parameters are the last block.
        """
        if self.is_exact:
            return self._hessian(prob, share)[np.newaxis]
        return self._blocks(prob, share, negligible)

    def preconditioner(
        self, problem: SoftmaxProblem, point: Point
    ) -> Callable[[FloatVector], FloatVector]:
        """Return a function that solves with the Hessian, or with its blocks."""
        blocks = self.curvature_blocks(point.prob, problem.share, ROUGHLY_NEGLIGIBLE)
        places = np.arange(blocks.shape[1])
        blocks[:, places, places] += 2.0 * self.by_block(problem.penalty, fill=1)
        inverse, used = np.linalg.inv(blocks), self.used
        return lambda right: np.asarray(
            (inverse @ self.by_block(right)[:, :, np.newaxis])[used, 0]
        )

    def _split(self, values: VectorT) -> tuple[VectorT, VectorT]:
        """Return values of the classes' own parameters, and of the common ones."""
        place = values.size - len(self.common)
        return values[:place].reshape(self.shape), values[place:]

    def _hessian(self, prob: FloatMatrix, share: FloatVector) -> FloatMatrix:
        """Return the whole Hessian of the mean log-loss."""
        (classes, size), total = self.shape, self.group.size
        hessian = np.zeros((total, total))
        tail = np.arange(classes * size, total)
        for start in range(0, len(prob), CHUNK):
            rows = slice(start, start + CHUNK)
            design, weight = self._design(rows), prob[rows] * share[rows, np.newaxis]
            own = design[:, :, :size] * prob[rows, :, np.newaxis]
            common = np.einsum("ij,ijc->ic", prob[rows], design[:, :, size:])
            flat = np.column_stack([own.reshape(-1, classes * size), common])
            hessian -= flat.T @ (flat * share[rows, np.newaxis])
            for j in range(classes):
                places = np.append(np.arange(j * size, (j + 1) * size), tail)
                part = (design[:, j].T * weight[:, j]) @ design[:, j]
                hessian[np.ix_(places, places)] += part
        return hessian

    def _design(self, rows: slice) -> FloatMatrix:
        """Return what the parameters of each class multiply, common ones last."""
        log_prob, features = self.log_prob[rows], self.features[rows]
        size = self.shape[1]
        design = np.ones((*log_prob.shape, size + len(self.common)))
        design[:, :, 0] = log_prob
        design[:, :, 1 : size - 1] = features[:, np.newaxis]
        design[:, :, size:] = np.moveaxis(self.common[:, rows], 0, -1)
        return design

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
            ones = np.ones(rows.size)
            own = np.column_stack([self.log_prob[rows, j], self.features[rows], ones])
            own *= root[rows, np.newaxis]
            blocks[j, :size, :size] = own.T @ own  # half the work of other products
        common = len(self.common)
        blocks[classes, :common, :common] = self._common_hessian(prob, share)
        return blocks

    def _common_hessian(self, prob: FloatMatrix, share: FloatVector) -> FloatMatrix:
        mean = np.einsum("ij,cij->ic", prob, self.common)
        weight = prob * share[:, np.newaxis]
        square = np.einsum("ij,cij,dij->cd", weight, self.common, self.common)
        return np.asarray(square - (mean.T * share) @ mean)
