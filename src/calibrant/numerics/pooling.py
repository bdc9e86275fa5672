"""Predictions of several maps pooled on the logarithmic scale.

With log-probabilities L_0 of the predictions as they are and L_j of those repaired by
map j, the pooled ones are the softmax of

    L_0 + s sum_j w_j (L_j - L_0),    w_j >= 0,  sum_j w_j = 1,

where s, from 0 to 1, is the strength of the repair. Where weights may sum to less than
1, predictions as they are have the remaining weight. The log-loss is convex in the
weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from calibrant.numerics.class_probabilities import log_softmax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )

    Loss = Callable[[FloatVector, FloatVector], tuple[float, FloatVector]]

MIN_WEIGHT = 0.01
"""Maps of less weight than this are left out."""
PENALTY = 2.0
"""The usual penalty of `RepairedRows`."""
FLAT = 1e-12
"""The search for weights ends where log-losses of a row differ by less."""
ALL = slice(None)
EVENT = 2
"""Columns of log-probabilities of one event: that it does not happen, and does."""


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
    penalty : float
        Half of the log-likelihood by which another map must be better than the first,
        to have all of its weight.
    partly : bool
        Whether weights may sum to less than 1.
    """

    scores: FloatMatrix
    moves: tuple[FloatMatrix, ...]
    target: FloatMatrix
    weight: FloatVector
    penalty: float = PENALTY
    partly: bool = False

    def some(self, rows: BoolVector | slice) -> RepairedRows:
        """Return some of the rows."""
        return replace(
            self,
            scores=self.scores[rows],
            moves=tuple(move[rows] for move in self.moves),
            target=self.target[rows],
            weight=self.weight[rows],
        )

    def pooled(self, weights: Sequence[float] | FloatVector) -> FloatMatrix:
        """Return the pooled log-probabilities."""
        scores = self.scores
        for weight, move in zip(weights, self.moves, strict=True):
            if weight:
                scores = scores + weight * move
        return log_softmax(scores)

    def best_weights(self, rows: BoolVector | slice = ALL) -> FloatVector:
        """Return the weights of the smallest log-loss, shrunk to the first map alone.

        A quadratic penalty keeps the weight there unless rows say otherwise: which of
        two maps that are nearly as good comes first is mostly chance.
        """
        if self.partly and self.moves:
            moves = (*self.moves, np.zeros_like(self.scores))  # that of no repair
            return replace(self, moves=moves, partly=False).best_weights(rows)[:-1]
        weight = self.weight[rows]
        count, total = len(self.moves), float(weight.sum())
        if count <= 1:
            return np.ones(count)
        share, penalty = weight / total, self.penalty / total
        first = np.eye(count)[0]
        fitted = self._loss(rows)

        def loss(weights: FloatVector) -> tuple[float, FloatVector]:
            value, gradient = fitted(weights, share)
            apart = weights - first
            return value + penalty * float(apart @ apart), (
                gradient + 2.0 * penalty * apart
            )

        sums_to_one = {
            "type": "eq",
            "fun": lambda weights: weights.sum() - 1.0,
            "jac": lambda weights: np.ones(weights.size),
        }
        found = minimize(
            loss,
            first,
            jac=True,
            bounds=[(0.0, 1.0)] * count,
            constraints=[sums_to_one],
            method="SLSQP",
            options={"ftol": FLAT},
        )
        weights = np.where(found.x < MIN_WEIGHT, 0.0, found.x)
        return np.asarray(weights / weights.sum())

    def _loss(self, rows: BoolVector | slice) -> Loss:
        """Return what gives the log-loss of some rows and its gradient."""
        if self.scores.shape[1] != EVENT:
            return self.some(rows).class_loss
        logit, moves, y = self._logits
        return partial(_event_loss, logit[rows], moves[:, rows], y[rows])

    def class_loss(
        self, weights: FloatVector, share: FloatVector
    ) -> tuple[float, FloatVector]:
        """Return the log-loss of pooled rows and its gradient."""
        log_prob = self.pooled(weights)
        slopes = share[:, np.newaxis] * (np.exp(log_prob) - self.target)
        gradient = [float(np.vdot(slopes, move)) for move in self.moves]
        return float(share @ log_losses(log_prob, self.target)), np.array(gradient)

    @cached_property
    def _logits(self) -> tuple[FloatVector, FloatMatrix, FloatVector]:
        """Return logits of an event, their changes (one row per map), and labels."""
        moves = [move[:, 1] - move[:, 0] for move in self.moves]
        logit = self.scores[:, 1] - self.scores[:, 0]
        return logit, np.array(moves), self.target[:, 1]


def _event_loss(
    logit: FloatVector,
    moves: FloatMatrix,
    y: FloatVector,
    weights: FloatVector,
    share: FloatVector,
) -> tuple[float, FloatVector]:
    """Return the log-loss of an event and its gradient: faster than from classes."""
    pooled = logit + weights @ moves
    # With exp(-abs) neither the loss nor the probability can overflow.
    small = np.exp(-np.abs(pooled))
    losses = np.maximum(pooled, 0.0) + np.log1p(small) - y * pooled
    prob = np.where(pooled >= 0.0, 1.0, small) / (1.0 + small)
    return float(share @ losses), moves @ (share * (prob - y))


def log_losses(log_prob: FloatMatrix, target: FloatMatrix) -> FloatVector:
    """Return the log-loss of each row; `target` is 1 for the class that happened."""
    own = np.where(target > 0.0, target * log_prob, 0.0)
    return np.asarray(own @ -np.ones(own.shape[1]))  # sums of pairs are slow


def mean_and_error(
    values: FloatVector, weight: FloatVector, clusters: IntVector | None = None
) -> tuple[float, float]:
    """Return the mean of values and its standard error, by clusters if there are any.

    Examples
    --------
    >>> mean_and_error(np.array([0.0, 1.0]), np.ones(2))
    (0.5, 0.3535533905932738)
    >>> copies = np.repeat([0.0, 1.0], 3), np.ones(6), np.repeat([0, 1], 3)
    >>> round(mean_and_error(*copies)[1], 4)  # of two clusters, not of six rows
    0.5
    """
    mean, total = float(np.average(values, weights=weight)), float(weight.sum())
    if clusters is None:
        variance = float(np.average((values - mean) ** 2, weights=weight)) / total
    else:
        own = np.unique(clusters, return_inverse=True)[1]
        sums = np.bincount(own, weight * (values - mean))
        few = sums.size / max(sums.size - 1, 1)
        variance = few * float(np.square(sums).sum()) / total**2
    return mean, float(np.sqrt(variance))


def brier_scores(log_prob: FloatMatrix, target: FloatMatrix) -> FloatVector:
    """Return the Brier score of each row, summed over the classes."""
    squares = np.square(np.exp(log_prob) - target)
    return np.asarray(squares @ np.ones(squares.shape[1]))
