"""Predictions of several maps pooled on the logarithmic scale.

With log-probabilities L_0 of the predictions as they are and L_j of those repaired by
map j, the pooled ones are the softmax of

    L_0 + s sum_j w_j (L_j - L_0),    w_j >= 0,  sum_j w_j = 1,

where s, from 0 to 1, is the strength of the repair. The log-loss is convex in the
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from calibrant.numerics.class_probabilities import log_softmax

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector

MIN_WEIGHT = 0.01
"""Maps of less weight than this are left out."""
PENALTY = 2.0
"""Half of the log-likelihood by which another map must be better than the first, to
have all of its weight."""
FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class RepairedRows:
    """Rows with what they were predicted, and what maps that did not see them say.

    Attributes
    ----------
    scores : ndarray of shape (n, k)
        Log-probabilities of the classes, up to a constant per row.
    moves : tuple of ndarray of shape (n, k)
        By how much each map changes them.
    target : ndarray of shape (n, k)
        1 for the class that happened, 0 for others.
    weight : ndarray of shape (n,)
        How many rows each row stands for.
    """

    scores: FloatMatrix
    moves: tuple[FloatMatrix, ...]
    target: FloatMatrix
    weight: FloatVector

    def some(self, rows: BoolVector) -> RepairedRows:
        """Return some of the rows."""
        moves = tuple(move[rows] for move in self.moves)
        return RepairedRows(
            self.scores[rows], moves, self.target[rows], self.weight[rows]
        )

    def pooled(self, weights: Sequence[float] | FloatVector) -> FloatMatrix:
        """Return the pooled log-probabilities."""
        scores = self.scores
        for weight, move in zip(weights, self.moves, strict=True):
            if weight:
                scores = scores + weight * move
        return log_softmax(scores)

    def best_weights(self) -> FloatVector:
        """Return the weights of the smallest log-loss, shrunk to the first map alone.

        A quadratic penalty keeps the weight there unless rows say otherwise: which of
        two maps that are nearly as good comes first is mostly chance.
        """
        count, total = len(self.moves), float(self.weight.sum())
        if count <= 1:
            return np.ones(count)
        share, penalty = self.weight / total, PENALTY / total

        def loss(weights: FloatVector) -> tuple[float, FloatVector]:
            log_prob = self.pooled(weights)
            slopes = share[:, np.newaxis] * (np.exp(log_prob) - self.target)
            gradient = [float(np.vdot(slopes, move)) for move in self.moves]
            value = float(share @ log_losses(log_prob, self.target))
            apart = weights - np.eye(count)[0]
            slope = np.array(gradient) + 2.0 * penalty * apart
            return value + penalty * float(apart @ apart), slope

        sums_to_one = {
            "type": "eq",
            "fun": lambda weights: weights.sum() - 1.0,
            "jac": lambda weights: np.ones(weights.size),
        }
        found = minimize(
            loss,
            np.full(count, 1.0 / count),
            jac=True,
            bounds=[(0.0, 1.0)] * count,
            constraints=[sums_to_one],
            method="SLSQP",
            options={"ftol": FLAT},
        )
        weights = np.where(found.x < MIN_WEIGHT, 0.0, found.x)
        return np.asarray(weights / weights.sum())


def log_losses(log_prob: FloatMatrix, target: FloatMatrix) -> FloatVector:
    """Return the log-loss of each row; `target` is 1 for the class that happened."""
    own = np.where(target > 0.0, target * log_prob, 0.0)
    return np.asarray(-own.sum(axis=1))


def brier_scores(log_prob: FloatMatrix, target: FloatMatrix) -> FloatVector:
    """Return the Brier score of each row, summed over the classes."""
    return np.asarray(np.square(np.exp(log_prob) - target).sum(axis=1))
