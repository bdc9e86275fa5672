"""Class probabilities from scores, and the log-loss of scores that are linear.

Every multi-class family that is linear in its parameters is one operator, from
parameters to scores, under the same loss. With probabilities P, outcomes Y (one-hot),
shares w of the weight and the operator A:

    loss      sum_i w_i (log sum_j exp S_ij - S_iy)
    gradient  A' (w (P - Y))
    curvature A' (w P (dS - sum_j P dS))   for a direction d, dS = A d
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from calibrant.core.class_rows import row_sums, softmax
from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Scale


def log_softmax(scores: FloatMatrix) -> FloatMatrix:
    """Return the logarithm of the softmax of each row, safe at any size of scores."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    total = np.exp(shifted).sum(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(total))


def class_probabilities(scores: FloatMatrix, scale: Scale) -> FloatMatrix:
    """Return probabilities from what a user gave: probabilities or logits.

    Probabilities that sum to 1 but for rounding stay as they are.

    Examples
    --------
    >>> class_probabilities(np.array([[0.7, 0.1, 0.2], [0.333, 0.333, 0.333]]), "prob")
    array([[0.7       , 0.1       , 0.2       ],
           [0.33333333, 0.33333333, 0.33333333]])
    """
    if scale == "logit":
        return softmax(scores)
    total = row_sums(scores)
    rounded = np.abs(total - 1.0) <= scores.shape[1] * CLIP
    return np.asarray(scores / np.where(rounded, 1.0, total))


def log_probabilities(scores: FloatMatrix, scale: Scale) -> FloatMatrix:
    """Return the logarithms of `class_probabilities`; one of 0 is clipped."""
    if scale == "logit":
        return log_softmax(scores)
    return np.asarray(np.log(np.maximum(class_probabilities(scores, scale), CLIP)))


def logits_of(scores: FloatMatrix, scale: Scale) -> FloatMatrix:
    """Return logits, up to a constant a row, from scores that passed the door."""
    return scores if scale == "logit" else log_probabilities(scores, scale)


def centred(log_prob: FloatMatrix) -> FloatMatrix:
    """Return logits with mean 0 in each row: the same whatever constant was added."""
    return np.asarray(log_prob - log_prob.mean(axis=1, keepdims=True))


def weight_shares(weight: FloatVector | None, n: int) -> FloatVector:
    """Return each row's share of the total weight."""
    return np.full(n, 1.0 / n) if weight is None else weight / weight.sum()


def mean_log_loss(
    log_prob: FloatMatrix, column: IntVector, share: FloatVector
) -> float:
    """Return the mean of minus the log-probability of what happened."""
    return float(-(share @ log_prob[np.arange(column.size), column]))


class Scores(Protocol):
    """A linear operator from an array of parameters to scores of shape (n, k)."""

    @property
    def identity(self) -> FloatMatrix:
        """Return the parameters whose softmax is the uncalibrated prediction."""
        ...

    def scores(self, parameters: FloatMatrix) -> FloatMatrix:
        """Return the scores."""
        ...

    def adjoint(self, slopes: FloatMatrix) -> FloatMatrix:
        """Return, for slopes of a function by scores, its slopes by parameters."""
        ...


@dataclass(frozen=True, eq=False)
class VectorScores:
    """Scores ``a_j x_ij + b_j``; parameters are [a, b] of shape (2, k)."""

    x: FloatMatrix

    @property
    def identity(self) -> FloatMatrix:
        """Return slopes of 1 and intercepts of 0."""
        classes = self.x.shape[1]
        return np.stack([np.ones(classes), np.zeros(classes)])

    def scores(self, parameters: FloatMatrix) -> FloatMatrix:
        """Return the scores."""
        return np.asarray(self.x * parameters[0] + parameters[1])

    def adjoint(self, slopes: FloatMatrix) -> FloatMatrix:
        """Return slopes by parameters."""
        return np.stack([np.einsum("ij,ij->j", slopes, self.x), slopes.sum(axis=0)])


@dataclass(frozen=True, eq=False)
class MatrixScores:
    """Scores ``W x_i + b``; parameters are [W, b] of shape (k, k + 1)."""

    x: FloatMatrix

    @property
    def identity(self) -> FloatMatrix:
        """Return the unit matrix and intercepts of 0."""
        classes = self.x.shape[1]
        return np.eye(classes, classes + 1)

    def scores(self, parameters: FloatMatrix) -> FloatMatrix:
        """Return the scores."""
        return np.asarray(self.x @ parameters[:, :-1].T + parameters[:, -1])

    def adjoint(self, slopes: FloatMatrix) -> FloatMatrix:
        """Return slopes by parameters."""
        return np.column_stack([slopes.T @ self.x, slopes.sum(axis=0)])


@dataclass(frozen=True, eq=False)
class Point:
    """The loss of one set of parameters, its slopes, and what curvature needs."""

    parameters: FloatMatrix
    loss: float
    gradient: FloatMatrix
    prob: FloatMatrix


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    """Mean log-loss of linear scores, with a quadratic penalty.

    Attributes
    ----------
    operator : Scores
        From parameters to scores.
    column : ndarray of shape (n,)
        The class that happened.
    share : ndarray of shape (n,)
        Each row's share of the weight.
    penalty : ndarray, shaped as the parameters
        Adds ``sum(penalty * (parameters - anchor) ** 2)``.
    anchor : ndarray, shaped as the parameters
        Where the penalty is 0.
    """

    operator: Scores
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
        loss = self.share @ (np.log(total) - own) + np.sum(self.penalty * away**2)
        slopes = prob * self.share[:, np.newaxis]
        slopes[rows, self.column] -= self.share
        gradient = self.operator.adjoint(slopes) + 2.0 * self.penalty * away
        return Point(parameters, float(loss), gradient, prob)

    def curvature(self, point: Point, direction: FloatMatrix) -> FloatMatrix:
        """Return the Hessian at a point times a direction."""
        change = self.operator.scores(direction)
        change -= np.einsum("ij,ij->i", point.prob, change)[:, np.newaxis]
        change *= point.prob
        change *= self.share[:, np.newaxis]
        return self.operator.adjoint(change) + 2.0 * self.penalty * direction
