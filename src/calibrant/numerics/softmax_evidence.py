"""Spreads of the terms of softmax regression by marginal likelihood.

Around a fit the log-likelihood is nearly quadratic, with Hessian H. For a normal prior
of precision L (one over the squared spread of a parameter's group) the marginal
likelihood of the labels then has the logarithm

    -loss + t' H t / 2 - t' u + u' (H + L)^-1 u / 2 + (log det L - log det(H + L)) / 2,

where u = H t - g at parameters t with gradient g of the loss (MacKay 1992). It is
maximised over the spreads, and the fit and the quadratic follow in turn. With many
classes H is taken class by class, so that nothing larger than a block is factorised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize

from calibrant.numerics.softmax_regression import SoftmaxProblem, minimise

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolMatrix,
        FloatMatrix,
        FloatVector,
        IntVector,
    )
    from calibrant.numerics.softmax_regression import ClassTerms, Point

MIN_LOG, MAX_LOG = -7.0, 5.0
"""Bounds of logarithms of spreads; at the lower one a term is practically absent."""
TYPICAL = (-3.0, -1.5, -1.0, -3.0, -1.0)
PRIOR_SPREAD = 2.0
"""The prior of the logarithm of each spread is normal with these means and this
standard deviation: slopes, intercepts, common terms, weights of log-probabilities and
of probabilities. It was chosen on half of the real predictions at hand."""
GRID = np.arange(-4.0, 4.5)
"""Steps of the logarithm of one spread over which coefficients are averaged."""
MAX_LOSS = 3.0
"""Where averaged coefficients lower the log-likelihood by more than this, they are
beyond where it is quadratic, and the most probable ones are kept."""
MAX_ROUNDS = 8
SETTLED = 0.1
"""Change in the logarithm of spreads at which fit and spreads agree."""
TOLERANCE = 1e-5
ROUGH_TOLERANCE = 1e-4
"""Norms of the gradient of the mean loss: of the result, and of fits on the way."""
SEARCH = {"maxiter": 20, "ftol": 1e-6}


def prior_precision(group: IntVector, log_spreads: FloatVector) -> FloatMatrix:
    """Return one over the squared spread of each coefficient's group."""
    return np.asarray(np.exp(-2.0 * log_spreads)[group])


def _unusual(log_spreads: FloatVector) -> FloatVector:
    """Return how many standard deviations of their prior spreads are off its mean."""
    return np.asarray((log_spreads - TYPICAL[: log_spreads.size]) / PRIOR_SPREAD)


@dataclass(frozen=True, eq=False)
class QuadraticLikelihood:
    """A quadratic log-likelihood of independent blocks of coefficients.

    `hessian` (b, d, d) is of minus the log-likelihood, in one block or several;
    `centre` (b, d) are the coefficients at which it was taken, `pull` is the Hessian
    times them less the gradient, and `loss` minus the log-likelihood there. `group`
    (b, d) is the group of each coefficient. Blocks may be filled up with zeros, which
    change no density; `used` tells which entries are coefficients.
    """

    hessian: FloatMatrix
    centre: FloatMatrix
    pull: FloatMatrix
    loss: float
    group: IntVector
    used: BoolMatrix

    @classmethod
    def at(
        cls, problem: SoftmaxProblem, point: Point, total: float, group: IntVector
    ) -> QuadraticLikelihood:
        """Expand the log-likelihood of `total` rows at a point."""
        terms = problem.terms
        away = point.parameters - problem.anchor
        gradient = total * (point.gradient - 2.0 * problem.penalty * away)
        loss = total * point.log_loss
        hessian = total * terms.curvature_blocks(point.prob, problem.share)
        centre = terms.by_block(away)
        pull = np.einsum("bij,bj->bi", hessian, centre) - terms.by_block(gradient)
        groups = terms.by_block(group)
        return cls(hessian, centre, pull, loss, groups, terms.used)

    @cached_property
    def _constant(self) -> float:
        bent = np.einsum("bij,bj->bi", self.hessian, self.centre)
        return float(np.sum(self.centre * (0.5 * bent - self.pull))) - self.loss

    def factor(self, log_spreads: FloatVector) -> FloatMatrix:
        """Return lower Cholesky factors of H + L, the precision of coefficients."""
        precision = self.hessian.copy()
        places = np.arange(self.group.shape[1])
        precision[:, places, places] += prior_precision(self.group, log_spreads)
        return np.asarray(np.linalg.cholesky(precision))

    def mode(self, log_spreads: FloatVector) -> tuple[float, FloatMatrix, FloatMatrix]:
        """Return the log-density of spreads, coefficients and their variances."""
        factor = self.factor(log_spreads)
        # Inverting the triangle is a third of the work of inverting the block.
        roots = [dtrtri(block.T)[0] for block in factor]
        pairs = zip(roots, self.pull, strict=True)
        coefficients = np.stack([root @ (u @ root) for root, u in pairs])
        variance = np.stack([np.einsum("ij,ij->i", root, root) for root in roots])
        value = self._constant + 0.5 * float(np.sum(coefficients * self.pull))
        value -= float(np.log(np.einsum("bii->bi", factor)).sum())
        value += 0.5 * float(np.log(prior_precision(self.group, log_spreads)).sum())
        value -= 0.5 * float(np.sum(_unusual(log_spreads) ** 2))
        return value, coefficients, variance

    def slopes(
        self, log_spreads: FloatVector, coefficients: FloatMatrix, variance: FloatMatrix
    ) -> FloatVector:
        """Return the derivatives of the log-density by log spreads."""
        square = coefficients**2 + variance
        surplus = prior_precision(self.group, log_spreads) * square - 1.0
        sums = np.bincount(
            self.group.reshape(-1), surplus.reshape(-1), log_spreads.size
        )
        return np.asarray(sums - _unusual(log_spreads) / PRIOR_SPREAD)

    def most_likely(self, start: FloatVector) -> FloatVector:
        """Return the most probable logarithms of spreads."""

        def negative(log_spreads: FloatVector) -> tuple[float, FloatVector]:
            value, coefficients, variance = self.mode(log_spreads)
            return -value, -self.slopes(log_spreads, coefficients, variance)

        bounds = [(MIN_LOG, MAX_LOG)] * start.size
        found = minimize(
            negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=SEARCH
        )
        return np.asarray(found.x)

    def averaged(self, log_spreads: FloatVector) -> FloatMatrix:
        """Return coefficients averaged over the spreads, one spread at a time."""
        best = self.mode(log_spreads)[1]
        mean = best.copy()
        for group in range(log_spreads.size):
            places = np.repeat(log_spreads[np.newaxis], GRID.size, axis=0)
            places[:, group] += GRID
            values, moved, _ = zip(*map(self.mode, places), strict=True)
            share = np.exp(np.array(values) - max(values))
            mean += np.tensordot(share / share.sum(), np.stack(moved), 1) - best
        return mean


@dataclass(frozen=True, eq=False)
class SoftmaxPosterior:
    """The distribution of the parameters of terms given the labels.

    Attributes
    ----------
    model : QuadraticLikelihood
        The likelihood around the fit.
    log_spreads : ndarray of shape (groups,)
        Logarithms of the most likely spreads.
    mean : ndarray
        Parameters, averaged over spreads unless there are many.
    value : float
        The log marginal likelihood.
    """

    model: QuadraticLikelihood
    log_spreads: FloatVector
    mean: FloatVector
    value: float

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return parameters drawn at the most likely spreads, one row each."""
        factor = self.model.factor(self.log_spreads)
        normal = rng.standard_normal((*self.model.group.shape, count))
        pairs = zip(factor, normal, strict=True)
        moved = [solve_triangular(f, e, lower=True, trans=1) for f, e in pairs]
        return np.asarray(self.mean + np.stack(moved)[self.model.used].T)


def fit_terms(
    terms: ClassTerms,
    group: IntVector,
    column: IntVector,
    share: FloatVector,
    total: float,
) -> SoftmaxPosterior:
    """Fit terms with spreads of the largest marginal likelihood.

    Parameters
    ----------
    terms : ClassTerms
        What scores are made of.
    group : ndarray
        The group of each parameter, whose spread is shared, in the order of `TYPICAL`.
    column : ndarray of shape (n,)
        The true class.
    share : ndarray of shape (n,)
        Each row's share of the weight.
    total : float
        The sum of weights, in rows.
    """
    log_spreads = np.array(TYPICAL[: np.unique(group).size])
    parameters = terms.identity

    def problem_at(log_spreads: FloatVector) -> SoftmaxProblem:
        penalty = prior_precision(group, log_spreads) / (2.0 * total)
        return SoftmaxProblem(terms, column, share, penalty, terms.identity)

    for _ in range(MAX_ROUNDS):
        problem = problem_at(log_spreads)
        point = minimise(problem, parameters, tolerance=ROUGH_TOLERANCE)
        model = QuadraticLikelihood.at(problem, point, total, group)
        before, log_spreads = log_spreads, model.most_likely(log_spreads)
        parameters = point.parameters
        if np.abs(log_spreads - before).max() < SETTLED:
            break
    problem = problem_at(log_spreads)
    best = minimise(problem, parameters, tolerance=TOLERANCE)
    mean = best.parameters
    if terms.is_exact:  # otherwise so many parameters determine their spreads
        averaged = model.averaged(log_spreads)[0] + terms.identity
        loss = problem.at(averaged).log_loss - best.log_loss
        mean = averaged if total * loss <= MAX_LOSS else mean
    value = model.mode(log_spreads)[0]
    return SoftmaxPosterior(model, log_spreads, mean, value)
