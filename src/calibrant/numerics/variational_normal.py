"""Normal approximations of logistic posteriors that are far from normal at their mode.

Where fitted probabilities are near 0 or 1 the log-likelihood is flat at the mode and
steep not far from it: its curvature there suggests that any coefficient is possible.
Instead, curvature and slope are averaged over the approximation itself: then it is the
normal distribution nearest to the posterior by the Kullback-Leibler divergence (Opper
and Archambeau 2009).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.numerics.logistic import PenalisedProblem

NODES, SHARES = np.polynomial.hermite_e.hermegauss(9)
SHARES = SHARES / SHARES.sum()
MAX_STEPS = 60
SETTLED = 0.01
"""The step that changes spreads and logits by no more than this share is the last."""
MIN_LENGTH = 1e-3
"""Steps that bring no gain are halved down to this length."""
POINTS_AT_ONCE = 2**17
"""Most points, over all penalties, that are computed together."""


class VariationalNormals(NamedTuple):
    """Normal distributions of d coefficients, for k choices of penalties.

    `mean` is (k, d); `factor` and `inverse` (k, d, d) are lower Cholesky factors of
    inverse covariances, and their inverses; `spread` and `curvature` (k, m) are the
    standard deviation of each point's logit and the mean curvature of the
    log-likelihood by it; `evidence` (k,) are lower bounds of the log-likelihood,
    averaged over the prior (up to a constant where some coefficients have none).
    """

    mean: FloatMatrix
    factor: FloatMatrix
    inverse: FloatMatrix
    spread: FloatMatrix
    curvature: FloatMatrix
    evidence: FloatVector


def variational_normals(
    problem: PenalisedProblem, penalty: FloatMatrix, start: FloatVector
) -> VariationalNormals:
    """Return the normal distributions nearest to the posteriors of coefficients.

    `penalty`, of shape (k, d), has one row per choice and one column per coefficient;
    `start` are coefficients to start from, such as the mode.
    """
    at_once = max(POINTS_AT_ONCE // problem.offset.size, 1)
    blocks = np.array_split(penalty, -(-len(penalty) // at_once))
    normals = [_nearest(problem, block, start) for block in blocks]
    return VariationalNormals(*map(np.concatenate, zip(*normals, strict=True)))


def _nearest(
    problem: PenalisedProblem, penalty: FloatMatrix, start: FloatVector
) -> VariationalNormals:
    mean = np.repeat(start[np.newaxis], len(penalty), axis=0)
    _, curvature = _averages(problem, mean, np.zeros((len(penalty), 1)))
    best = _normals(problem, penalty, mean, *_factors(problem, curvature, penalty))
    length = np.ones(len(penalty))
    left = np.arange(len(penalty))  # those that have not settled
    for _ in range(MAX_STEPS):
        own = VariationalNormals(*(part[left] for part in best))
        pull, share = penalty[left], length[left]
        slope, curvature = _averages(problem, own.mean, own.spread)
        change = curvature - own.curvature
        slope = slope @ problem.design - pull * own.mean
        # Half of the way, or spread and curvature would swing about their values.
        curvature = own.curvature + 0.5 * share[:, np.newaxis] * change
        factors = _factors(problem, curvature, pull)
        inverse = factors[1]
        half = inverse @ slope[..., np.newaxis]
        newton = (inverse.transpose(0, 2, 1) @ half)[..., 0]
        move = share[:, np.newaxis] * newton
        trial = _normals(problem, pull, own.mean + move, *factors)
        gains = trial.evidence >= own.evidence
        for part, new in zip(best, trial, strict=True):
            part[left[gains]] = new[gains]
        length[left] = np.where(gains, np.minimum(1.0, 2.0 * share), 0.5 * share)
        settled = np.abs(change).sum(axis=1) <= SETTLED * trial.curvature.sum(axis=1)
        moved = np.abs(move @ problem.design.T)
        settled &= (moved <= SETTLED * (1.0 + trial.spread)).all(axis=1)
        left = left[~np.where(gains, settled, share < MIN_LENGTH)]
        if left.size == 0:
            break
    return best


def _factors(
    problem: PenalisedProblem, curvature: FloatMatrix, penalty: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix, FloatMatrix]:
    """Return Cholesky factors of inverse covariances, their inverses, the curvature."""
    hessian = problem.design.T @ (curvature[:, :, np.newaxis] * problem.design)
    diagonal = np.einsum("kjj->kj", hessian)  # a view: changes reach the Hessian
    trace = diagonal.sum(axis=1, keepdims=True)
    diagonal[:] += penalty + np.finfo(float).eps * trace
    factor = np.asarray(np.linalg.cholesky(hessian), dtype=np.float64)
    return factor, np.asarray(np.linalg.inv(factor)), curvature


def _normals(
    problem: PenalisedProblem,
    penalty: FloatMatrix,
    mean: FloatMatrix,
    factor: FloatMatrix,
    inverse: FloatMatrix,
    curvature: FloatMatrix,
) -> VariationalNormals:
    """Return normal distributions with their evidence."""
    spread = np.sqrt(np.square(inverse @ problem.design.T).sum(axis=1))
    f = _logits(problem, mean, spread)
    averages = np.logaddexp(0.0, f) @ SHARES
    fit = (f @ SHARES) @ problem.label_sum - averages @ problem.weight
    variance = np.square(inverse).sum(axis=1)
    distance = (penalty * (variance + mean**2)).sum(axis=1) - mean.shape[1]
    known = np.where(penalty > 0.0, penalty, 1.0)
    diagonal = np.einsum("kjj->kj", factor)
    distance += 2.0 * np.log(diagonal).sum(axis=1) - np.log(known).sum(axis=1)
    evidence = fit - 0.5 * distance
    return VariationalNormals(mean, factor, inverse, spread, curvature, evidence)


def _logits(
    problem: PenalisedProblem, mean: FloatMatrix, spread: FloatMatrix
) -> FloatMatrix:
    """Return the logit of each point at the nodes of a normal distribution."""
    f = problem.offset + mean @ problem.design.T
    return np.asarray(f[..., np.newaxis] + spread[..., np.newaxis] * NODES)


def _averages(
    problem: PenalisedProblem, mean: FloatMatrix, spread: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return slope and curvature of the log-likelihood, by the logit of each point."""
    p = expit(_logits(problem, mean, spread))
    slope = problem.label_sum - problem.weight * (p @ SHARES)
    return slope, problem.weight * ((p * (1.0 - p)) @ SHARES)
