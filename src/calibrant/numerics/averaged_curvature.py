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
    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )
    from calibrant.numerics.penalised_logistic import PenalisedProblem

NODES, SHARES = np.polynomial.hermite_e.hermegauss(9)
SHARES = SHARES / SHARES.sum()
MAX_STEPS = 60
SETTLED = 0.01
"""The step that changes spreads and logits by no more than this share is the last."""
SHORTEST = 1e-3
"""Steps that bring no gain are halved down to this length."""
POINTS_AT_ONCE = 2**17
"""Most points, over all penalties, that are worked on together."""


@dataclass(frozen=True, eq=False)
class NearestNormals:
    """Normal distributions of coefficients, one for each choice of penalties.

    Attributes
    ----------
    mean : ndarray of shape (k, d)
        Their means.
    factor : ndarray of shape (k, d, d)
        Lower Cholesky factors of their inverse covariances.
    inverse : ndarray of shape (k, d, d)
        Inverses of the factors.
    spread : ndarray of shape (k, m)
        Standard deviation of the logit of each point.
    curvature : ndarray of shape (k, m)
        That of the log-likelihood by the logit of each point, on average.
    evidence : ndarray of shape (k,)
        Lower bounds of the log-likelihood, averaged over the prior; up to a constant
        where some coefficients have no penalty, and so no prior.
    """

    mean: FloatMatrix
    factor: FloatMatrix
    inverse: FloatMatrix
    spread: FloatMatrix
    curvature: FloatMatrix
    evidence: FloatVector

    def take(self, rows: IntVector) -> NearestNormals:
        """Return some of the distributions."""
        return NearestNormals(*(part[rows] for part in self.parts))

    def put(self, rows: IntVector, others: NearestNormals) -> None:
        """Replace some of the distributions by others."""
        for own, other in zip(self.parts, others.parts, strict=True):
            own[rows] = other

    @property
    def parts(self) -> tuple[FloatMatrix, ...]:
        """Return all attributes in order."""
        return (
            self.mean,
            self.factor,
            self.inverse,
            self.spread,
            self.curvature,
            self.evidence,
        )


def nearest_normals(
    problem: PenalisedProblem, penalty: FloatMatrix, start: FloatVector
) -> NearestNormals:
    """Return the normal distributions nearest to the posteriors of coefficients.

    Parameters
    ----------
    problem : PenalisedProblem
        What was fitted.
    penalty : ndarray of shape (k, d)
        Of each coefficient, a row a choice.
    start : ndarray of shape (d,)
        Coefficients to start from, such as the mode.
    """
    at_once = max(POINTS_AT_ONCE // problem.offset.size, 1)
    blocks = np.array_split(penalty, -(-len(penalty) // at_once))
    found = [_nearest(problem, block, start) for block in blocks]
    parts = zip(*(block.parts for block in found), strict=True)
    return NearestNormals(*(np.concatenate(part) for part in parts))


def _nearest(
    problem: PenalisedProblem, penalty: FloatMatrix, start: FloatVector
) -> NearestNormals:
    mean = np.repeat(start[np.newaxis], len(penalty), axis=0)
    _, curvature = _averaged(problem, mean, np.zeros((len(penalty), 1)))
    factor, inverse = _factors(problem, curvature, penalty)
    best = _evaluated(problem, penalty, mean, factor, inverse, curvature)
    length = np.ones(len(penalty))
    left = np.arange(len(penalty))  # those that have not settled
    for _ in range(MAX_STEPS):
        own, drawn, share = best.take(left), penalty[left], length[left]
        slope, found = _averaged(problem, own.mean, own.spread)
        change = found - own.curvature
        slope = slope @ problem.design - drawn * own.mean
        # Half of the way, or spread and curvature would swing about their values.
        curvature = own.curvature + 0.5 * share[:, np.newaxis] * change
        factor, inverse = _factors(problem, curvature, drawn)
        move = share[:, np.newaxis] * _solve(inverse, slope)
        tried = _evaluated(problem, drawn, own.mean + move, factor, inverse, curvature)
        gains = tried.evidence >= own.evidence
        best.put(left[gains], tried.take(np.flatnonzero(gains)))
        length[left] = np.where(gains, np.minimum(1.0, 2.0 * share), 0.5 * share)
        settled = _has_settled(problem, tried, change, move)
        left = left[~np.where(gains, settled, share < SHORTEST)]
        if left.size == 0:
            break
    return best


def _has_settled(
    problem: PenalisedProblem,
    normals: NearestNormals,
    change: FloatMatrix,
    move: FloatMatrix,
) -> BoolVector:
    """Tell which steps were so short that none need follow."""
    bent = np.abs(change).sum(axis=1) <= SETTLED * normals.curvature.sum(axis=1)
    moved = np.abs(move @ problem.design.T)
    limit = SETTLED * (1.0 + normals.spread)
    return np.asarray(bent & (moved <= limit).all(axis=1))


def _evaluated(
    problem: PenalisedProblem,
    penalty: FloatMatrix,
    mean: FloatMatrix,
    factor: FloatMatrix,
    inverse: FloatMatrix,
    curvature: FloatMatrix,
) -> NearestNormals:
    """Return normal distributions with their evidence."""
    spread = _spread(problem, inverse)
    f = _logits(problem, mean, spread)
    averages = np.logaddexp(0.0, f) @ SHARES
    fit = (f @ SHARES) @ problem.label - averages @ problem.weight
    variance = np.square(inverse).sum(axis=1)
    distance = (penalty * (variance + mean**2)).sum(axis=1) - mean.shape[1]
    known = np.where(penalty > 0.0, penalty, 1.0)
    diagonal = np.einsum("kjj->kj", factor)
    distance += 2.0 * np.log(diagonal).sum(axis=1) - np.log(known).sum(axis=1)
    evidence = fit - 0.5 * distance
    return NearestNormals(mean, factor, inverse, spread, curvature, evidence)


def _solve(inverse: FloatMatrix, right: FloatMatrix) -> FloatMatrix:
    """Return the covariances times vectors, from inverses of the factors."""
    half = inverse @ right[..., np.newaxis]
    return np.asarray((inverse.transpose(0, 2, 1) @ half)[..., 0])


def _spread(problem: PenalisedProblem, inverse: FloatMatrix) -> FloatMatrix:
    """Return the standard deviation of the logit of each point."""
    moved = inverse @ problem.design.T
    return np.asarray(np.sqrt(np.square(moved).sum(axis=1)))


def _logits(
    problem: PenalisedProblem, mean: FloatMatrix, spread: FloatMatrix
) -> FloatMatrix:
    """Return the logit of each point at the nodes of a normal distribution."""
    f = problem.offset + mean @ problem.design.T
    return np.asarray(f[..., np.newaxis] + spread[..., np.newaxis] * NODES)


def _averaged(
    problem: PenalisedProblem, mean: FloatMatrix, spread: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return slope and curvature of the log-likelihood, by the logit of each point."""
    at = expit(_logits(problem, mean, spread))
    slope = problem.label - problem.weight * (at @ SHARES)
    return slope, problem.weight * ((at * (1.0 - at)) @ SHARES)


def _factors(
    problem: PenalisedProblem, curvature: FloatMatrix, penalty: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return Cholesky factors of inverse covariances, and their inverses."""
    bend = problem.design.T @ (curvature[:, :, np.newaxis] * problem.design)
    diagonal = np.einsum("kjj->kj", bend)  # a view: what is written stays
    trace = diagonal.sum(axis=1, keepdims=True)
    diagonal[:] += penalty + np.finfo(float).eps * trace
    factor = np.asarray(np.linalg.cholesky(bend), dtype=np.float64)
    return factor, np.asarray(np.linalg.inv(factor))
