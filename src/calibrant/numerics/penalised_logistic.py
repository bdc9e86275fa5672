"""Logistic regression around an offset, coefficients drawn to 0 by group.

Minimised is the log-loss, summed over rows, plus half of each group's penalty times the
sum of its squared coefficients. Seen as the posterior of normal coefficients whose
variance is one over the penalty, the minimum is the mode; the Hessian there tells the
spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
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

MAX_STEPS = 100
MAX_HALVINGS = 40
SOLVED = 1e-7
"""The step that promises to lower the loss by less than this is taken and is the last:
steps square the error, so that what is left is far less."""
ROUNDING = 1e-14
"""The loss is known up to this share of it."""
BATCH_STEPS = 12
BATCH_SOLVED = 1e-4
"""The step of a batch that moves no logit by more than this is the last."""
LONGEST_MOVE = 2.0
"""How far a step of a batch may move a logit."""
DAMPING = 1e-13
"""Added to the Hessian, as a share of its diagonal, so that it can be inverted."""


@dataclass(frozen=True, eq=False)
class PenalisedProblem:
    """A logistic regression with offset and groups of coefficients.

    Attributes
    ----------
    design : ndarray of shape (m, d)
        Features of each point.
    offset, weight, label : ndarray of shape (m,)
        Logit where all coefficients are 0, sum of weights and of weighted labels.
    sizes : ndarray of shape (groups,)
        Number of coefficients of each group, in the order of the features.
    """

    design: FloatMatrix
    offset: FloatVector
    weight: FloatVector
    label: FloatVector
    sizes: IntVector

    @cached_property
    def group(self) -> IntVector:
        """Return the number of the group of each coefficient, from 0."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @cached_property
    def typical_logit(self) -> float:
        """Return the root of the mean square of the offset, but at least 1."""
        square = float(np.average(self.offset**2, weights=self.weight))
        return max(1.0, float(np.sqrt(square)))

    def only(self, kept: BoolVector) -> PenalisedProblem:
        """Return the problem without the coefficients of some groups."""
        return PenalisedProblem(
            self.design[:, kept[self.group]],
            self.offset,
            self.weight,
            self.label,
            np.where(kept, self.sizes, 0),
        )

    def joined(self, count: int) -> PenalisedProblem:
        """Return the problem with the first groups as one."""
        sizes = np.append(self.sizes[:count].sum(), self.sizes[count:])
        return replace(self, sizes=sizes)

    def coarser(self, most: int) -> PenalisedProblem:
        """Return the problem with neighbouring points joined into at most so many."""
        each = -(-self.offset.size // most)
        first = np.arange(0, self.offset.size, each)
        weight = np.add.reduceat(self.weight, first)
        rows = np.column_stack([self.offset, self.design]) * self.weight[:, np.newaxis]
        mean = np.add.reduceat(rows, first) / weight[:, np.newaxis]
        label = np.add.reduceat(self.label, first)
        return PenalisedProblem(mean[:, 1:], mean[:, 0], weight, label, self.sizes)

    def loss(self, f: FloatVector) -> float:
        """Return the log-loss of logits, a sum of terms none of which is negative."""
        size = np.abs(f)
        wrong = np.where(f > 0.0, self.weight - self.label, self.label)
        return float(self.weight @ np.log1p(np.exp(-size)) + wrong @ size)


@dataclass(frozen=True, eq=False)
class Mode:
    """The minimum of a problem for given penalties.

    Attributes
    ----------
    problem : PenalisedProblem
        What was solved.
    penalties : ndarray of shape (groups,)
        Penalty of each group.
    coefficients : ndarray of shape (d,)
        Where the minimum is.
    value : float
        The minimum.
    """

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
        bend = self.problem.weight * expit(self.logits) * expit(-self.logits)
        return _factor(self.problem.design, bend, self.penalties[self.problem.group])

    def solve(self, right: FloatMatrix) -> FloatMatrix:
        """Return the inverse Hessian times something."""
        return _solve(self.factor, right)


def solve_penalised(
    problem: PenalisedProblem, penalties: FloatVector, start: FloatVector | None = None
) -> Mode:
    """Return the minimum by Newton steps, halved until they do not raise the loss.

    Examples
    --------
    >>> four, one = np.array([4.0]), np.ones(1)
    >>> odds = PenalisedProblem(np.ones((1, 1)), 0 * one, four, one, np.array([1]))
    >>> solve_penalised(odds, np.zeros(1)).coefficients.round(4)  # minus log 3
    array([-1.0986])
    """
    drawn = penalties[problem.group]
    design = problem.design
    found = np.zeros(problem.group.size) if start is None else start

    def value_at(coefficients: FloatVector) -> tuple[float, FloatVector]:
        f = problem.offset + design @ coefficients
        return problem.loss(f) + 0.5 * float(drawn @ coefficients**2), f

    value, f = value_at(found)
    for _ in range(MAX_STEPS):
        # Both shares apart: where one is nearly 1, the other has all the digits.
        yes, no = expit(f), expit(-f)
        surplus = (problem.weight - problem.label) * yes - problem.label * no
        gradient = surplus @ design + drawn * found
        step = _solve(_factor(design, problem.weight * yes * no, drawn), gradient)
        if gradient @ step <= max(SOLVED, ROUNDING * value):
            found = found - step
            value, f = value_at(found)
            break
        for halving in range(MAX_HALVINGS):
            tried = found - 0.5**halving * step
            new, new_f = value_at(tried)
            if new <= value * (1.0 + ROUNDING):
                break
        else:  # rounding hides any further decrease
            break
        found, value, f = tried, new, new_f
    return Mode(problem, penalties, found, value)


def _factor(design: FloatMatrix, bend: FloatVector, drawn: FloatVector) -> FloatMatrix:
    hessian = (design * bend[:, np.newaxis]).T @ design
    diagonal = hessian.diagonal() + drawn
    np.fill_diagonal(hessian, diagonal * (1.0 + DAMPING) + np.finfo(float).tiny)
    factor, failed = dpotrf(hessian, lower=True, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("the Hessian of a penalised fit is not positive")
    return np.asarray(factor)


def _solve(factor: FloatMatrix, right: FloatMatrix) -> FloatMatrix:
    # LAPACK itself: for so small systems SciPy's wrappers take as long as the work.
    return np.asarray(dpotrs(factor, right, lower=True)[0])


def solve_many(
    problem: PenalisedProblem,
    penalties: FloatVector,
    start: FloatVector,
    weight: FloatMatrix,
    label: FloatMatrix,
) -> FloatMatrix:
    """Return the fitted logits of resamples, a row each.

    Every resample starts from the same coefficients, which should be near.
    """
    design, drawn = problem.design, penalties[problem.group]
    width = problem.group.size
    pairs = np.triu_indices(width)
    products = design[:, pairs[0]] * design[:, pairs[1]]
    found = np.repeat(start[np.newaxis], len(weight), axis=0)
    hessian = np.empty((len(weight), width, width))
    for _ in range(BATCH_STEPS):
        share = expit(problem.offset + found @ design.T)
        gradient = (weight * share - label) @ design + drawn * found
        hessian[:, pairs[0], pairs[1]] = (weight * share * (1.0 - share)) @ products
        hessian[:, pairs[1], pairs[0]] = hessian[:, pairs[0], pairs[1]]
        diagonal = np.einsum("rjj->rj", hessian)  # a view: what is written stays
        diagonal[:] = (diagonal + drawn) * (1.0 + DAMPING) + np.finfo(float).tiny
        step = np.linalg.solve(hessian, gradient[..., np.newaxis])[..., 0]
        longest = np.abs(step @ design.T).max(axis=1, keepdims=True)
        found -= step * (LONGEST_MOVE / np.maximum(longest, LONGEST_MOVE))
        if longest.max() < BATCH_SOLVED:
            break
    return np.asarray(problem.offset + found @ design.T)
