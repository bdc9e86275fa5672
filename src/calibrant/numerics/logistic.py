"""Logistic regression on few features, many problems at once.

All problems of a batch share their features and differ in weights and labels, as
resamples do. The loss is convex; Newton's method with steps that are halved until
they do not raise the loss reaches its minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )

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

    def replaced(self, rows: BoolVector | IntVector, other: LogisticFit) -> LogisticFit:
        """Return the fits with those of some problems taken from others."""
        found = [self.slopes.copy(), self.intercepts.copy(), self.losses.copy()]
        for ours, theirs in zip(
            found, (other.slopes, other.intercepts, other.losses), strict=True
        ):
            ours[rows] = theirs
        return LogisticFit(*found)


def fit_logistic(
    features: FloatMatrix,
    weight: FloatMatrix,
    label: FloatMatrix,
    *,
    intercept: bool = True,
) -> LogisticFit:
    """Minimise the log-loss of expit(intercept + features @ slopes).

    Where classes are separable there is no minimum: the loss tends to 0 as slopes
    grow, and slopes are those at which its gradient has become negligible.

    Parameters
    ----------
    features : ndarray of shape (m, d)
        The same for all problems.
    weight, label : ndarray of shape (problems, m)
        Sum of weights, and of weighted labels, of each point.
    intercept : bool
        Whether there is a constant term.

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
    coefficients, losses = _newton(design, weight / total, label / total)
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

    Examples
    --------
    >>> x = np.array([[0.0], [1.0]])
    >>> fit = fit_rising(x, np.array([[4.0, 4.0]]), np.array([[3.0, 1.0]]))
    >>> fit.slopes, fit.intercepts
    (array([[0.]]), array([0.]))
    """
    best = fit_logistic(features, weight, label, intercept=intercept)
    falling = np.flatnonzero((best.slopes < 0.0).any(axis=1))
    if falling.size == 0:
        return best
    width = features.shape[1]
    part = _without(features, (), weight[falling], label[falling], intercept=intercept)
    for size in range(1, width):
        for kept in combinations(range(width), size):
            other = _without(
                features, kept, weight[falling], label[falling], intercept=intercept
            )
            rising = (other.slopes >= 0.0).all(axis=1) & (other.losses < part.losses)
            chosen = LogisticFit(
                other.slopes[rising], other.intercepts[rising], other.losses[rising]
            )
            part = part.replaced(rising, chosen)
    return best.replaced(falling, part)


def _without(
    features: FloatMatrix,
    kept: tuple[int, ...],
    weight: FloatMatrix,
    label: FloatMatrix,
    *,
    intercept: bool,
) -> LogisticFit:
    """Fit with some features only; the slopes of others are 0."""
    found = fit_logistic(features[:, kept], weight, label, intercept=intercept)
    slopes = np.zeros((len(weight), features.shape[1]))
    slopes[:, kept] = found.slopes
    return LogisticFit(slopes, found.intercepts, found.losses)


def _newton(
    design: FloatMatrix, weight: FloatMatrix, label: FloatMatrix
) -> tuple[FloatMatrix, FloatVector]:
    width = design.shape[1]
    pairs = np.triu_indices(width)
    products = design[:, pairs[0]] * design[:, pairs[1]]
    found = np.zeros((len(weight), width))
    losses = _losses(found @ design.T, weight, label)
    open_ = np.arange(len(weight))
    for _ in range(MAX_STEPS):
        if open_.size == 0 or width == 0:
            break
        w, t = weight[open_], label[open_]
        c, bend = _value_and_bend(found[open_] @ design.T)
        gradient = (w * c - t) @ design
        unsolved = np.abs(gradient).max(axis=1) > GRADIENT
        open_, w, t = open_[unsolved], w[unsolved], t[unsolved]
        bend, gradient = bend[unsolved], gradient[unsolved]
        curvature = np.zeros((open_.size, width, width))
        curvature[:, pairs[0], pairs[1]] = (w * bend) @ products
        curvature[:, pairs[1], pairs[0]] = curvature[:, pairs[0], pairs[1]]
        step = _steps(curvature, gradient)
        moved = _descend(design, w, t, found[open_], step, losses[open_])
        found[open_], losses[open_], improved = moved
        open_ = open_[improved]
    return found, losses


def _steps(curvature: FloatMatrix, gradient: FloatMatrix) -> FloatMatrix:
    size = np.trace(curvature, axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
    eye = np.eye(gradient.shape[1])
    damped = curvature + (DAMPING * size + np.finfo(float).tiny) * eye
    return np.asarray(-np.linalg.solve(damped, gradient[..., np.newaxis])[..., 0])


def _descend(
    design: FloatMatrix,
    weight: FloatMatrix,
    label: FloatMatrix,
    start: FloatMatrix,
    step: FloatMatrix,
    before: FloatVector,
) -> tuple[FloatMatrix, FloatVector, BoolVector]:
    """Halve steps until none raises the loss; tell which problems have moved."""
    found, after = start.copy(), before.copy()
    waiting = np.arange(len(start))
    for halving in range(MAX_HALVINGS):
        tried = start[waiting] + 0.5**halving * step[waiting]
        loss = _losses(tried @ design.T, weight[waiting], label[waiting])
        fine = loss <= before[waiting] * (1.0 + ROUNDING)
        found[waiting[fine]], after[waiting[fine]] = tried[fine], loss[fine]
        waiting = waiting[~fine]
        if waiting.size == 0:
            break
    improved = np.ones(len(start), dtype=bool)
    improved[waiting] = False
    return found, np.minimum(after, before), improved


def _value_and_bend(f: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
    """Return expit(f) and its derivative, which rounding never makes 0."""
    e = np.exp(-np.abs(f))
    upper = 1.0 / (1.0 + e)
    lower = e * upper
    return np.where(f > 0.0, upper, lower), upper * lower


def _losses(f: FloatMatrix, weight: FloatMatrix, label: FloatMatrix) -> FloatVector:
    """Return the log-loss as a sum of terms that are all positive: nothing cancels."""
    size = np.abs(f)
    wrong = np.where(f > 0.0, weight - label, label)
    loss = weight * np.log1p(np.exp(-size)) + wrong * size
    return np.asarray(loss.sum(axis=1))
