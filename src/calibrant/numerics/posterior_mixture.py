"""The posterior of penalised coefficients where penalties are uncertain, too.

Around a fit the log-likelihood is nearly quadratic. Then coefficients are normal for
each choice of penalties, and the probability of the choice has a closed form: so a grid
of penalties costs only small systems, whatever the number of rows. The posterior is the
mixture of all those normal distributions, corrected for departures from the quadratic.
A posterior that took the best penalties as known would be too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, softmax

from calibrant.numerics.variational_normal import variational_normals

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.numerics.logistic import PenalisedProblem

GRID = 8
"""Spreads that are tried for each group, evenly on the log scale."""
FOUR = 4
GRID_OF_FOUR = 6
"""The same for four groups, of which there are many more choices."""
COARSE_GRID = 5
"""The same for the more expensive variational mixture."""
COARSE_POINTS = 128
"""Most points of its likelihood: their error is corrected for."""
MAX_SPREAD = 9.0
"""The largest spread: the root of what a group adds to the logit, in mean square."""
MIN_SPREAD = 0.25
"""The smallest spread, in units of the standard error of a constant."""
PRIOR_POWER = 0.3
"""The prior of a spread's logarithm is the spread to this power: between 0, under which
most spreads are next to nothing, and 1, under which they are as large as can be."""
LOOSENED = 1.5
"""Coefficients of all groups but the first are drawn with spreads larger by this
factor than the labels suggest. Details that were smoothed away leave no trace in the
labels, and without this intervals miss the steepest stairs."""
NEGLIGIBLE = 1e-4
"""Choices that are less probable than the best by this factor are dropped."""
ROUND = 1000
"""Minimum number of coefficients that are drawn at once."""
MAX_ROUNDS = 3
ENOUGH = 400
"""Effective number of draws at which no more are drawn."""
SURPLUS = 5
"""How many are drawn from the variational mixture for each that is kept."""
MIN_EFFECTIVE = 0.05
"""The share of them that must be effective."""
HALVINGS = 12


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """A mixture of k normal distributions of d coefficients.

    `share` (k,) sums to 1, `centre` (k, d) has means and `factor` (k, d, d) lower
    Cholesky factors of inverse covariances; `penalty` (k, d) is the prior's part.
    """

    share: FloatVector
    centre: FloatMatrix
    factor: FloatMatrix
    penalty: FloatMatrix

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the mixture, one column each."""
        counts = rng.multinomial(count, self.share)
        used = np.flatnonzero(counts).tolist()
        return np.hstack([self.draws_of(k, counts[k], rng) for k in used])

    def draws_of(self, k: int, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from one of the distributions."""
        normal = rng.standard_normal((self.centre.shape[1], count))
        moved = np.linalg.solve(self.factor[k].T, normal)
        return np.asarray(self.centre[k][:, np.newaxis] + moved)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The distribution of coefficients given the labels.

    Around the `pilot`, fitted coefficients, the log-likelihood is nearly quadratic;
    `mixture` would be the posterior if it were exactly so. `penalties` of groups are
    None where they are unknown.
    """

    problem: PenalisedProblem
    pilot: FloatVector
    mixture: NormalMixture
    penalties: FloatVector | None

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the posterior, one column each.

        Draws from the mixture are resampled by the ratio of the likelihood to its
        quadratic model, which is poor where fitted probabilities are near 0 or 1. The
        fewer draws are effective, the more are drawn; where hardly any is, they are
        drawn from a variational mixture.
        """
        drawn, logs = [], []
        for _ in range(MAX_ROUNDS):
            drawn.append(self.mixture.draws(max(count, ROUND), rng))
            logs.append(self._log_surplus(drawn[-1]))
            share = softmax(np.concatenate(logs))
            if ENOUGH * np.square(share).sum() <= 1.0:
                chosen = rng.choice(share.size, count, p=share)
                return np.hstack(drawn)[:, chosen]
        return self.variational_draws(count, rng)

    def variational_draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the variational mixture, then resampled."""
        counts = rng.multinomial(count, self.variational.share)
        kept = []
        for k in np.flatnonzero(counts).tolist():
            drawn = self.variational.draws_of(k, SURPLUS * counts[k], rng)
            share = _tempered_shares(self._log_ratio(k, drawn))
            kept.append(drawn[:, rng.choice(share.size, counts[k], p=share)])
        return np.hstack(kept)

    @cached_property
    def variational(self) -> NormalMixture:
        """Return a mixture that fits where the likelihood is far from quadratic."""
        share, penalty = np.ones(1), self.mixture.penalty
        problem = self.problem.coarser(COARSE_POINTS)
        if self.penalties is None:
            _, _, information = _quadratic(problem, self.pilot)
            spreads = spread_grid(information, problem.sizes.size, COARSE_GRID)
            penalty = problem.penalty(spreads**-2.0)
            value = PRIOR_POWER * np.log(spreads).sum(axis=1)
            value += variational_normals(problem, penalty, self.pilot).evidence
            share, penalty = _probable_choices(problem, value, penalty)
        normals = variational_normals(problem, penalty, self.pilot)
        return NormalMixture(share, normals.mean, normals.factor, penalty)

    def _log_ratio(self, k: int, coefficients: FloatMatrix) -> FloatVector:
        """Return the log of posterior over approximation, up to a constant."""
        problem, mixture = self.problem, self.variational
        f = problem.offset[:, np.newaxis] + problem.design @ coefficients
        fit = problem.label_sum @ f - problem.weight @ np.logaddexp(0.0, f)
        prior = -0.5 * (mixture.penalty[k] @ np.square(coefficients))
        apart = coefficients - mixture.centre[k][:, np.newaxis]
        normal = -0.5 * np.square(mixture.factor[k].T @ apart).sum(axis=0)
        return np.asarray(fit + prior - normal, dtype=np.float64)

    def _log_surplus(self, coefficients: FloatMatrix) -> FloatVector:
        """Return by how much the log-likelihood exceeds the quadratic."""
        problem = self.problem
        f = problem.offset + problem.design @ self.pilot
        yes, no = expit(f), expit(-f)
        slope = problem.label_sum * no - (problem.weight - problem.label_sum) * yes
        move = problem.design @ (coefficients - self.pilot[:, np.newaxis])
        quadratic = slope @ move - 0.5 * ((problem.weight * yes * no) @ move**2)
        move += f[:, np.newaxis]
        loss = problem.weight @ np.logaddexp(0.0, move) - problem.label_sum @ move
        return np.asarray(-loss - quadratic, dtype=np.float64)


def _tempered_shares(logs: FloatVector) -> FloatVector:
    """Return shares by a power of the ratios, at which enough draws are effective.

    A mixture that misses the posterior altogether is better than the one draw that
    happened to come nearest to it.
    """
    for power in 0.5 ** np.arange(HALVINGS):
        share: FloatVector = softmax(power * logs)
        if MIN_EFFECTIVE * logs.size * np.square(share).sum() <= 1.0:
            return share
    return np.full(logs.size, 1.0 / logs.size)


def _probable_choices(
    problem: PenalisedProblem, value: FloatVector, penalty: FloatMatrix
) -> tuple[FloatVector, FloatMatrix]:
    """Return shares and loosened penalties of the choices that are not negligible."""
    share = np.exp(value - value.max())
    kept = share > NEGLIGIBLE
    loosened = penalty.copy()
    loosened[:, : problem.group.size][:, problem.group > 0] /= LOOSENED**2
    return share[kept] / share[kept].sum(), loosened[kept]


def spread_range(information: FloatVector | float, count: int) -> FloatMatrix:
    """Return the spreads that are tried, given the information about a constant."""
    least = MIN_SPREAD / np.sqrt(1.0 / MAX_SPREAD**2 + information)
    return np.geomspace(least, MAX_SPREAD, count, axis=-1)


def spread_grid(
    information: float, groups: int, size: int | None = None
) -> FloatMatrix:
    """Return spreads of groups, one row per choice."""
    size = size or (GRID if groups < FOUR else GRID_OF_FOUR)
    return np.array(list(product(spread_range(information, size), repeat=groups)))


def posterior(
    problem: PenalisedProblem,
    coefficients: FloatVector,
    penalties: FloatVector | None = None,
) -> Posterior:
    """Return the posterior around fitted coefficients.

    Parameters
    ----------
    problem : PenalisedProblem
        The regression.
    coefficients : ndarray of shape (d,)
        Where the log-likelihood is taken as quadratic.
    penalties : ndarray of shape (groups,), optional
        Of each group, where they are known.
    """
    slope, hessian, information = _quadratic(problem, coefficients)
    if penalties is None:
        spreads = spread_grid(information, problem.sizes.size)
        penalty = problem.penalty(spreads**-2.0)
        factor, half = _solved(hessian, penalty, slope)
        value = PRIOR_POWER * np.log(spreads).sum(axis=1)
        value += 0.5 * np.square(half).sum(axis=1)
        diagonal = np.einsum("kjj->kj", factor)
        value += 0.5 * np.log(penalty / diagonal**2).sum(axis=1)
        share, penalty = _probable_choices(problem, value, penalty)
    else:
        share, penalty = np.ones(1), problem.penalty(penalties[np.newaxis])
    factor, half = _solved(hessian, penalty, slope)
    centre = np.linalg.solve(factor.transpose(0, 2, 1), half[..., np.newaxis])
    means = np.asarray(centre[..., 0], np.float64)
    mixture = NormalMixture(share, means, factor, penalty)
    return Posterior(problem, coefficients, mixture, penalties)


def _solved(
    hessian: FloatMatrix, penalty: FloatMatrix, slope: FloatVector
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return Cholesky factors for each row of penalties, and factors^-1 slope."""
    size = slope.size
    # The factor of a matrix with the slope as its last row has the solution there.
    bordered = np.empty((len(penalty), size + 1, size + 1))
    bordered[:, :size, :size] = hessian
    bordered[:, size, :size] = bordered[:, :size, size] = slope
    bordered[:, size, size] = np.finfo(float).max
    np.einsum("kjj->kj", bordered)[:, :size] += penalty
    factor = np.asarray(np.linalg.cholesky(bordered), dtype=np.float64)
    return factor[:, :size, :size], factor[:, size, :size]


def _quadratic(
    problem: PenalisedProblem, coefficients: FloatVector
) -> tuple[FloatVector, FloatMatrix, float]:
    """Return slope at 0 and Hessian of the log-likelihood, and what tells of a level.

    That is the variance of labels, or less where known terms add to the level. Rows
    that have known terms only tell nothing.
    """
    design = problem.design
    share = expit(problem.offset + design @ coefficients)
    variance = problem.weight * share * (1.0 - share)
    hessian = (design * variance[:, np.newaxis]).T @ design
    slope = (
        problem.label_sum - problem.weight * share
    ) @ design + hessian @ coefficients
    # Features that are 0 in all rows would make it singular.
    eps = np.finfo(float).eps
    hessian[np.diag_indices_from(hessian)] += eps * (1.0 + hessian.trace())
    variance[~design[:, : problem.group.size].any(axis=1)] = 0.0
    total = float(variance.sum())
    blurs = variance @ design[:, problem.group.size :]
    return slope, hessian, total / (1.0 + float(blurs @ blurs) / max(total, eps))
