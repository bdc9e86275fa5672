"""Logistic regression by Newton's method, with and without penalties.

Plain regressions on few features are solved many at a time: all problems of a batch
share their features and differ in weights and labels, as resamples do. The loss is
convex; steps that are halved until they do not raise the loss reach its minimum.

Penalised regressions are around an offset, with a penalty for each group of
coefficients. Minimised is the log-loss, summed over rows, plus half of each group's
penalty times the sum of its squared coefficients. Seen as the posterior of normal
coefficients whose variance is one over the penalty, the minimum is the mode, and the
Hessian there is the inverse covariance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import expit

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
SOLVED = 1e-7
"""The step that promises to lower the loss by less than this is taken and is the last:
steps square the error, so that the remaining error is far smaller."""
PENALISED_ROUNDING = 1e-14
"""A penalised loss is known up to this share of it."""
BATCH_STEPS = 12
BATCH_SOLVED = 1e-4
"""The step of a batch that moves no logit by more than this is the last."""
MAX_MOVE = 2.0
"""How far a step of a batch may move a logit."""


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


@dataclass(frozen=True, eq=False)
class PenalisedProblem:
    """A logistic regression with offset and groups of coefficients.

    Attributes
    ----------
    design : ndarray of shape (m, d)
        Features of each point.
    offset, weight, label_sum : ndarray of shape (m,)
        Logit where all coefficients are 0, sum of weights and of weighted labels.
    sizes : ndarray of shape (groups,)
        Number of coefficients of each group, in the order of the features.
    known : int
        Number of further coefficients, the last ones. They are in no group: their
        spread is known to be 1, and so is their penalty.
    """

    design: FloatMatrix
    offset: FloatVector
    weight: FloatVector
    label_sum: FloatVector
    sizes: IntVector
    known: int = 0

    @cached_property
    def group(self) -> IntVector:
        """Return the number of the group of each coefficient, from 0."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    def penalty(self, penalties: FloatMatrix) -> FloatMatrix:
        """Return the penalty of each coefficient, given those of groups."""
        own = penalties[..., self.group]
        ones = np.ones((*own.shape[:-1], self.known))
        return np.concatenate([own, ones], axis=-1)

    def with_known(self, features: FloatMatrix) -> PenalisedProblem:
        """Return the problem with more features, whose spread is known to be 1."""
        design = np.hstack([self.design, features])
        return replace(self, design=design, known=self.known + features.shape[1])

    def only(self, kept: BoolVector) -> PenalisedProblem:
        """Return the problem without the coefficients of some groups."""
        columns = np.append(kept[self.group], np.ones(self.known, dtype=bool))
        sizes = np.where(kept, self.sizes, 0)
        return replace(self, design=self.design[:, columns], sizes=sizes)

    def joined(self, count: int) -> PenalisedProblem:
        """Return the problem with the first groups as one."""
        sizes = np.append(self.sizes[:count].sum(), self.sizes[count:])
        return replace(self, sizes=sizes)

    def coarser(self, max_points: int) -> PenalisedProblem:
        """Return the problem with neighbouring points merged into at most so many."""
        each = -(-self.offset.size // max_points)
        first = np.arange(0, self.offset.size, each)
        weight = np.add.reduceat(self.weight, first)
        rows = np.column_stack([self.offset, self.design]) * self.weight[:, np.newaxis]
        mean = np.add.reduceat(rows, first) / weight[:, np.newaxis]
        label = np.add.reduceat(self.label_sum, first)
        return PenalisedProblem(
            mean[:, 1:], mean[:, 0], weight, label, self.sizes, self.known
        )

    def loss(self, f: FloatVector) -> float:
        """Return the log-loss of logits, a sum of terms none of which is negative."""
        size = np.abs(f)
        wrong = np.where(f > 0.0, self.weight - self.label_sum, self.label_sum)
        return float(self.weight @ np.log1p(np.exp(-size)) + wrong @ size)


@dataclass(frozen=True, eq=False)
class Mode:
    """The coefficients that minimise a problem for given penalties, and the minimum."""

    problem: PenalisedProblem
    penalties: FloatVector
    coefficients: FloatVector
    value: float

    @cached_property
    def logits(self) -> FloatVector:
        """Return the fitted logits."""
        return self.problem.offset + self.problem.design @ self.coefficients

    @cached_property
    def factor(self) -> FloatMatrix:
        """Return the lower Cholesky factor of the Hessian."""
        curvature = self.problem.weight * expit(self.logits) * expit(-self.logits)
        penalty = self.problem.penalty(self.penalties)
        return _factor(self.problem.design, curvature, penalty)

    def solve(self, right: FloatMatrix) -> FloatMatrix:
        """Return the inverse Hessian times a vector or matrix."""
        return _solve(self.factor, right)


def solve_penalised(
    problem: PenalisedProblem, penalties: FloatVector, start: FloatVector | None = None
) -> Mode:
    """Return the minimum by Newton steps, halved until they do not raise the loss."""
    penalty, design = problem.penalty(penalties), problem.design
    solution = np.zeros(penalty.size) if start is None else start

    def value_at(coefficients: FloatVector) -> tuple[float, FloatVector]:
        f = problem.offset + design @ coefficients
        return problem.loss(f) + 0.5 * float(penalty @ coefficients**2), f

    value, f = value_at(solution)
    for _ in range(MAX_STEPS):
        # Both probabilities: where one is nearly 1, the other has all the digits.
        yes, no = expit(f), expit(-f)
        surplus = (problem.weight - problem.label_sum) * yes - problem.label_sum * no
        gradient = surplus @ design + penalty * solution
        step = _solve(_factor(design, problem.weight * yes * no, penalty), gradient)
        if gradient @ step <= max(SOLVED, PENALISED_ROUNDING * value):
            solution = solution - step
            return Mode(problem, penalties, solution, value_at(solution)[0])
        for length in 0.5 ** np.arange(MAX_HALVINGS):
            trial = solution - length * step
            new, new_f = value_at(trial)
            if new <= value * (1.0 + PENALISED_ROUNDING):
                break
        else:  # rounding hides any further decrease
            break
        solution, value, f = trial, new, new_f
    return Mode(problem, penalties, solution, value)


def _factor(
    design: FloatMatrix, curvature: FloatVector, penalty: FloatVector
) -> FloatMatrix:
    hessian = (design * curvature[:, np.newaxis]).T @ design
    diagonal = hessian.diagonal() + penalty
    np.fill_diagonal(hessian, diagonal * (1.0 + DAMPING) + np.finfo(float).tiny)
    factor, failed = dpotrf(hessian, lower=True, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("the Hessian of a penalised fit is not positive")
    return np.asarray(factor)


def _solve(factor: FloatMatrix, right: FloatMatrix) -> FloatMatrix:
    # LAPACK itself: for such small systems SciPy's wrappers take as long as the work.
    return np.asarray(dpotrs(factor, right, lower=True)[0])


def solve_many(
    problem: PenalisedProblem,
    penalties: FloatVector,
    start: FloatVector,
    weight: FloatMatrix,
    label: FloatMatrix,
) -> FloatMatrix:
    """Return the fitted logits of resamples, one row each.

    Every resample starts from the same coefficients, which should be near.
    """
    design, penalty = problem.design, problem.penalty(penalties)
    hessians = Hessians(design)
    solution = np.repeat(start[np.newaxis], len(weight), axis=0)
    for _ in range(BATCH_STEPS):
        share = expit(problem.offset + solution @ design.T)
        gradient = (weight * share - label) @ design + penalty * solution
        hessian = hessians.at(weight * share * (1.0 - share))
        diagonal = np.einsum("rjj->rj", hessian)  # a view: changes reach the Hessian
        diagonal[:] = (diagonal + penalty) * (1.0 + DAMPING) + np.finfo(float).tiny
        step = np.linalg.solve(hessian, gradient[..., np.newaxis])[..., 0]
        longest = np.abs(step @ design.T).max(axis=1, keepdims=True)
        solution -= step * (MAX_MOVE / np.maximum(longest, MAX_MOVE))
        if longest.max() < BATCH_SOLVED:
            break
    return np.asarray(problem.offset + solution @ design.T)
