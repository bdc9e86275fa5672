"""Logistic regression on few features, many problems at once.

All problems of a batch share their features and differ in weights and labels, as
resamples do. The loss is convex; Newton's method with steps that are halved until
they do not raise the loss reaches its minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

GRADIENT = 1e-12
"""A problem is solved where the gradient of its mean loss is shorter than this, with
features of mean 0 and variance 1."""
MAX_STEPS = 100
MAX_HALVINGS = 40
DAMPING = 1e-13
"""Added to the curvature, as a share of it, so that it can always be inverted."""
ROUNDING = 1e-15
CONSTANT = 1e-13
"""A feature that varies by a smaller share of its size, or of 1, counts as constant:
slope times feature plus intercept would keep hardly a digit."""


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Solutions of a batch of problems.

    Attributes
    ----------
    slopes : ndarray of shape (problems, features)
        Coefficient of each feature.
    intercepts, losses : ndarray of shape (problems,)
        Constant term, and mean log-loss.
    """

    slopes: FloatMatrix
    intercepts: FloatVector
    losses: FloatVector


def fit_logistic(
    features: FloatMatrix,
    weight: FloatMatrix,
    label: FloatMatrix,
    *,
    intercept: bool = True,
) -> LogisticFit:
    """Minimise the log-loss of expit(intercept + features @ slopes).

    Where classes are separable there is no minimum: the loss tends to 0 as slopes
    grow, and slopes are those at which its gradient has become negligible. Features
    (m, d) are the same for all problems; `weight` and `label` (problems, m) are sums of
    weights and of weighted labels.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0]])
    >>> fit = fit_logistic(x, np.array([[4.0, 4.0]]), np.array([[1.0, 3.0]]))
    >>> fit.slopes.round(4), fit.intercepts.round(4)  # log 9 and -log 3
    (array([[2.1972]]), array([-1.0986]))
    """
    share = weight.sum(axis=0) / weight.sum()
    centre = share @ features if intercept else np.zeros(features.shape[1])
    spread = np.sqrt(share @ (features - centre) ** 2)
    varies = spread > CONSTANT * np.abs(features).max(initial=1.0)
    spread = np.where(varies, spread, 1.0)
    scaled = np.where(varies, (features - centre) / spread, 0.0)
    design = np.column_stack([scaled, np.ones(len(scaled))]) if intercept else scaled
    total = weight.sum(axis=1, keepdims=True)
    start = np.zeros((len(weight), design.shape[1]))
    coefficients, losses = _newton(design, weight / total, label / total, start)
    slopes = coefficients[:, : features.shape[1]] / spread
    constant = coefficients[:, -1] - slopes @ centre if intercept else 0.0 * total[:, 0]
    return LogisticFit(slopes, constant, losses)


def fit_rising(
    features: FloatMatrix,
    weight: FloatMatrix,
    label: FloatMatrix,
    *,
    intercept: bool = True,
) -> LogisticFit:
    """Minimise the log-loss over slopes that are not negative.

    The loss is convex, so its minimum is the best of those over each set of features
    (others have slope 0) whose slopes come out positive.
    """
    best = fit_logistic(features, weight, label, intercept=intercept)
    falling = np.flatnonzero((best.slopes < 0.0).any(axis=1))
    if falling.size == 0:
        return best
    weight, label = weight[falling], label[falling]
    best.losses[falling] = np.inf
    columns = range(features.shape[1])
    subsets = chain.from_iterable(combinations(columns, size) for size in columns)
    for subset in subsets:
        kept = np.array(subset, dtype=np.intp)
        other = fit_logistic(features[:, kept], weight, label, intercept=intercept)
        rising = (other.slopes >= 0.0).all(axis=1)
        better = rising & (other.losses < best.losses[falling])
        rows = falling[better]
        best.slopes[rows] = 0.0
        best.slopes[rows[:, np.newaxis], kept] = other.slopes[better]
        best.intercepts[rows] = other.intercepts[better]
        best.losses[rows] = other.losses[better]
    return best


def _newton(
    design: FloatMatrix, weight: FloatMatrix, label: FloatMatrix, solution: FloatMatrix
) -> tuple[FloatMatrix, FloatVector]:
    """Return the coefficients with the smallest loss, and that loss."""
    width = design.shape[1]
    losses = _losses(solution @ design.T, weight, label)
    hessians = Hessians(design)
    unsolved = np.arange(len(weight))
    for _ in range(MAX_STEPS if width else 0):
        f = solution[unsolved] @ design.T
        # Rounding never makes the derivative of expit, upper * lower, 0.
        e = np.exp(-np.abs(f))
        upper = 1.0 / (1.0 + e)
        lower = e * upper
        share = np.where(f > 0.0, upper, lower)
        gradient = (weight[unsolved] * share - label[unsolved]) @ design
        steep = np.abs(gradient).max(axis=1) > GRADIENT
        unsolved, gradient = unsolved[steep], gradient[steep]
        if unsolved.size == 0:
            break
        hessian = hessians.at(weight[unsolved] * (upper * lower)[steep])
        size = np.trace(hessian, axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
        hessian += (DAMPING * size + np.finfo(float).tiny) * np.eye(width)
        step = -np.linalg.solve(hessian, gradient[..., np.newaxis])[..., 0]
        unsolved = _descend(design, weight, label, (solution, losses), unsolved, step)
    return solution, losses


def _descend(
    design: FloatMatrix,
    weight: FloatMatrix,
    label: FloatMatrix,
    best: tuple[FloatMatrix, FloatVector],
    rows: IntVector,
    step: FloatMatrix,
) -> IntVector:
    """Move `best` by steps, halved until no loss rises; return the rows that moved."""
    solution, losses = best
    waiting = np.arange(rows.size)
    for halving in range(MAX_HALVINGS):
        row = rows[waiting]
        trial = solution[row] + 0.5**halving * step[waiting]
        loss = _losses(trial @ design.T, weight[row], label[row])
        fine = loss <= losses[row] * (1.0 + ROUNDING)
        solution[row[fine]] = trial[fine]
        losses[row[fine]] = np.minimum(loss, losses[row])[fine]
        waiting = waiting[~fine]
        if waiting.size == 0:
            break
    return np.delete(rows, waiting)


class Hessians:
    """Hessians X' diag(w) X of a batch of problems that share their design X."""

    def __init__(self, design: FloatMatrix) -> None:
        self.pairs = np.triu_indices(design.shape[1])
        self.products = design[:, self.pairs[0]] * design[:, self.pairs[1]]
        self.shape = (design.shape[1], design.shape[1])

    def at(self, weight: FloatMatrix) -> FloatMatrix:
        """Return the Hessian of each row of weights."""
        first, second = self.pairs
        hessian = np.empty((len(weight), *self.shape))
        hessian[:, first, second] = weight @ self.products
        hessian[:, second, first] = hessian[:, first, second]
        return hessian


def _losses(f: FloatMatrix, weight: FloatMatrix, label: FloatMatrix) -> FloatVector:
    """Return the log-loss as a sum of terms that are all positive: nothing cancels."""
    size = np.abs(f)
    wrong = np.where(f > 0.0, weight - label, label)
    loss = weight * np.log1p(np.exp(-size)) + wrong * size
    return np.asarray(loss.sum(axis=1))
