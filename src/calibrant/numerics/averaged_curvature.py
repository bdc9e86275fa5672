"""Normal approximations of logistic posteriors that are far from normal at their mode.

Where fitted shares are near 0 or 1 the log-likelihood is flat at the mode and steep not
far from it: its curvature there says that anything goes. What is taken instead is the
curvature, and the slope, on average over the approximation itself: then it is the
normal distribution nearest to the posterior by the Kullback-Leibler divergence (Opper
and Archambeau 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector
    from calibrant.numerics.penalised_logistic import PenalisedProblem

NODES, SHARES = np.polynomial.hermite_e.hermegauss(9)
SHARES = SHARES / SHARES.sum()
MOST_STEPS = 60
MOST_STEPS_FROM_NEAR = 20
SETTLED = 0.01
"""The step that changes spreads and logits by no more than this share is the last."""
SHORTEST = 1e-3
"""Steps that bring no gain are halved down to this length."""


@dataclass(frozen=True, eq=False)
class NearestNormal:
    """A normal distribution of coefficients.

    Attributes
    ----------
    mean : ndarray of shape (d,)
        Its mean.
    factor : ndarray of shape (d, d)
        Lower Cholesky factor of its inverse covariance.
    curvature : ndarray of shape (m,)
        That of the log-likelihood by the logit of each point, on average.
    evidence : float
        A lower bound of the log-likelihood, averaged over the prior; up to a constant
        where some coefficients have no penalty, and so no prior.
    """

    mean: FloatVector
    factor: FloatMatrix
    curvature: FloatVector
    evidence: float


def nearest_normal(
    problem: PenalisedProblem,
    penalty: FloatVector,
    start: FloatVector,
    near: NearestNormal | None = None,
) -> NearestNormal:
    """Return the normal distribution nearest to the posterior of coefficients.

    Parameters
    ----------
    problem : PenalisedProblem
        What was fitted.
    penalty : ndarray of shape (d,)
        Of each coefficient.
    start : ndarray of shape (d,)
        Coefficients to start from, such as the mode.
    near : NearestNormal, optional
        That of other penalties, which spares steps where these are not far off.
    """
    _, curvature = _averaged(problem, start, np.zeros(problem.offset.size))
    starts = [_approximation(problem, penalty, start, curvature)]
    if near is not None:
        own = _approximation(problem, penalty, near.mean, near.curvature)
        starts.append(own)
    best = max(starts, key=lambda normal: normal.evidence)
    length = 1.0
    for _ in range(MOST_STEPS if best is starts[0] else MOST_STEPS_FROM_NEAR):
        slope, found = _averaged(problem, best.mean, _spread(problem, best.factor))
        change = found - best.curvature
        slope = slope @ problem.design - penalty * best.mean
        while True:
            # Half of the way, or spread and curvature would swing about their values.
            curvature = best.curvature + 0.5 * length * change
            factor = _factor(problem, curvature, penalty)
            half = np.linalg.solve(factor, slope)
            move = length * np.linalg.solve(factor.T, half)
            tried = _approximation(problem, penalty, best.mean + move, curvature)
            if tried.evidence >= best.evidence or length < SHORTEST:
                break
            length *= 0.5
        best = tried if tried.evidence >= best.evidence else best
        settled = np.abs(change).sum() <= SETTLED * best.curvature.sum()
        moved = np.abs(problem.design @ move)
        if settled and (moved <= SETTLED * (1.0 + _spread(problem, best.factor))).all():
            break
        length = min(1.0, 2.0 * length)
    return best


def _approximation(
    problem: PenalisedProblem,
    penalty: FloatVector,
    mean: FloatVector,
    curvature: FloatVector,
) -> NearestNormal:
    """Return the normal distribution of a mean and a curvature, with its evidence."""
    factor = _factor(problem, curvature, penalty)
    inverse = np.linalg.solve(factor, np.eye(mean.size))
    f = _logits(problem, mean, np.sqrt(np.square(problem.design @ inverse.T).sum(1)))
    fit = problem.label @ (f @ SHARES) - problem.weight @ (
        np.logaddexp(0.0, f) @ SHARES
    )
    distance = penalty @ (np.square(inverse).sum(axis=0) + mean**2) - mean.size
    distance += 2.0 * np.log(np.diag(factor)).sum() - np.log(penalty[penalty > 0]).sum()
    return NearestNormal(mean, factor, curvature, float(fit - 0.5 * distance))


def _spread(problem: PenalisedProblem, factor: FloatMatrix) -> FloatVector:
    """Return the standard deviation of the logit of each point."""
    moved = np.linalg.solve(factor, problem.design.T)
    return np.asarray(np.sqrt(np.square(moved).sum(axis=0)))


def _logits(
    problem: PenalisedProblem, mean: FloatVector, spread: FloatVector
) -> FloatMatrix:
    """Return the logit of each point at the nodes of a normal distribution."""
    f = problem.offset + problem.design @ mean
    return np.asarray(f[:, np.newaxis] + spread[:, np.newaxis] * NODES)


def _averaged(
    problem: PenalisedProblem, mean: FloatVector, spread: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Return slope and curvature of the log-likelihood, by the logit of each point."""
    at = expit(_logits(problem, mean, spread))
    slope = problem.label - problem.weight * (at @ SHARES)
    return slope, problem.weight * ((at * (1.0 - at)) @ SHARES)


def _factor(
    problem: PenalisedProblem, curvature: FloatVector, penalty: FloatVector
) -> FloatMatrix:
    bend = (problem.design * curvature[:, np.newaxis]).T @ problem.design
    bend[np.diag_indices_from(bend)] += penalty + np.finfo(float).eps * bend.trace()
    return np.asarray(np.linalg.cholesky(bend), dtype=np.float64)
