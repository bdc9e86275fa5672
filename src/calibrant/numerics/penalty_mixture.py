"""The posterior of penalised coefficients where penalties are uncertain, too.

Around a fit the log-likelihood is as good as quadratic. Then coefficients are normal
for each choice of penalties, and how probable the choice is has a closed form: so a
grid of penalties is gone through at the cost of small systems, whatever the number of
rows. The posterior is the mixture of all those normal distributions, corrected for what
is not quadratic. One that takes the best penalties as known would be too sure of what
it does not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from calibrant.numerics.averaged_curvature import nearest_normals

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.numerics.penalised_logistic import PenalisedProblem

GRID = 8
"""Spreads that are tried for each group, evenly on the log scale."""
COARSE_GRID = 5
"""As many where each costs more."""
COARSE_POINTS = 128
"""Most points of the likelihood there: what they leave out is corrected for."""
MAX_SPREAD = 9.0
"""The largest spread: the root of what a group adds to the logit, in mean square."""
UNSEEN = 0.25
"""The least spread, in units of what the noise of all labels makes of a constant."""
PRIOR_POWER = 0.3
"""The prior of a spread's logarithm is the spread to this power: between 0, under which
most spreads are next to nothing, and 1, under which they are as large as can be."""
LOOSENED = 1.5
"""Coefficients of all groups but the first are drawn with spreads larger by this
factor than the labels ask for. What is smoothed away leaves no trace in the labels, and
without this intervals miss the steepest stairs."""
NEGLIGIBLE = 1e-4
"""Choices that are less probable than the best by this factor are left out."""
ROUND = 1000
"""Least number of coefficients that are drawn at once."""
MAX_ROUNDS = 3
ENOUGH = 400
"""Draws that count, at which no more are drawn."""
SURPLUS = 5
"""How many are drawn from a better mixture for each that is kept."""
COUNTING = 0.05
"""The share of them that must count."""
HALVINGS = 12


@dataclass(frozen=True, eq=False)
class NormalMixture:
    """A mixture of normal distributions of coefficients.

    Attributes
    ----------
    share : ndarray of shape (k,)
        How probable each is; they sum to 1.
    centre : ndarray of shape (k, d)
        Their means.
    factor : ndarray of shape (k, d, d)
        Lower Cholesky factors of their inverse covariances.
    penalty : ndarray of shape (k, d)
        Of each coefficient: the part of the inverse covariance that is the prior's.
    """

    share: FloatVector
    centre: FloatMatrix
    factor: FloatMatrix
    penalty: FloatMatrix

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the mixture, a column each."""
        counts = rng.multinomial(count, self.share)
        found = [
            self.draws_of(k, counts[k], rng) for k in np.flatnonzero(counts).tolist()
        ]
        return np.hstack(found)

    def draws_of(self, k: int, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from one of the distributions."""
        normal = rng.standard_normal((self.centre.shape[1], count))
        moved = np.linalg.solve(self.factor[k].T, normal)
        return np.asarray(self.centre[k][:, np.newaxis] + moved)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of coefficients after having seen the labels.

    Attributes
    ----------
    problem : PenalisedProblem
        What was fitted.
    pilot : ndarray of shape (d,)
        Fitted coefficients, around which the log-likelihood is taken as quadratic.
    mixture : NormalMixture
        The posterior, were that exact.
    penalties : ndarray of shape (groups,) or None
        Of each group, where they are known.
    """

    problem: PenalisedProblem
    pilot: FloatVector
    mixture: NormalMixture
    penalties: FloatVector | None

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the posterior, a column each.

        Draws from the mixture are drawn again by how much more probable they make the
        labels than was thought: where fitted shares are near 0 or 1 the likelihood is
        far from quadratic. The fewer of them count, the more are drawn; where hardly
        any do, they are drawn from a better mixture.
        """
        found, logs = [], []
        for _ in range(MAX_ROUNDS):
            found.append(self.mixture.draws(max(count, ROUND), rng))
            logs.append(self._surplus(found[-1]))
            share = _shares(np.concatenate(logs))
            if ENOUGH * np.square(share).sum() <= 1.0:
                chosen = rng.choice(share.size, count, p=share)
                return np.hstack(found)[:, chosen]
        return self._better_draws(count, rng)

    @cached_property
    def better(self) -> NormalMixture:
        """Return a mixture that fits where the likelihood is far from quadratic."""
        share, penalty = np.ones(1), self.mixture.penalty
        problem = self.problem.coarser(COARSE_POINTS)
        if self.penalties is None:
            _, _, information = _quadratic(problem, self.pilot)
            spreads = spread_grid(information, problem.sizes.size, COARSE_GRID)
            penalty = spreads[:, problem.group] ** -2.0
            value = PRIOR_POWER * np.log(spreads).sum(axis=1)
            value += nearest_normals(problem, penalty, self.pilot).evidence
            share, penalty = _probable(value, _loosened(problem, penalty))
        found = nearest_normals(problem, penalty, self.pilot)
        return NormalMixture(share, found.mean, found.factor, penalty)

    def _better_draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        counts = rng.multinomial(count, self.better.share)
        found = []
        for k in np.flatnonzero(counts).tolist():
            drawn = self.better.draws_of(k, SURPLUS * counts[k], rng)
            share = _tempered(self._log_ratio(k, drawn))
            found.append(drawn[:, rng.choice(share.size, counts[k], p=share)])
        return np.hstack(found)

    def _log_ratio(self, k: int, coefficients: FloatMatrix) -> FloatVector:
        """Return the log of posterior over approximation, up to a constant."""
        problem = self.problem
        f = problem.offset[:, np.newaxis] + problem.design @ coefficients
        fit = problem.label @ f - problem.weight @ np.logaddexp(0.0, f)
        prior = -0.5 * (self.better.penalty[k] @ np.square(coefficients))
        apart = coefficients - self.better.centre[k][:, np.newaxis]
        normal = -0.5 * np.square(self.better.factor[k].T @ apart).sum(axis=0)
        return np.asarray(fit + prior - normal, dtype=np.float64)

    def _surplus(self, coefficients: FloatMatrix) -> FloatVector:
        """Return by how much the log-likelihood exceeds the quadratic."""
        problem = self.problem
        f = problem.offset + problem.design @ self.pilot
        yes, no = expit(f), expit(-f)
        slope = problem.label * no - (problem.weight - problem.label) * yes
        move = problem.design @ (coefficients - self.pilot[:, np.newaxis])
        quadratic = slope @ move - 0.5 * ((problem.weight * yes * no) @ move**2)
        move += f[:, np.newaxis]
        loss = problem.weight @ np.logaddexp(0.0, move) - problem.label @ move
        return np.asarray(-loss - quadratic, dtype=np.float64)


def _shares(logs: FloatVector) -> FloatVector:
    share = np.exp(logs - logs.max())
    return np.asarray(share / share.sum())


def _tempered(logs: FloatVector) -> FloatVector:
    """Return shares by a power of the ratios, at which enough of the draws count.

    A mixture that misses the posterior altogether is better than one draw that
    happened to come nearest to it.
    """
    for power in 0.5 ** np.arange(HALVINGS):
        share = _shares(power * logs)
        if COUNTING * logs.size * np.square(share).sum() <= 1.0:
            return share
    return np.full(logs.size, 1.0 / logs.size)


def _probable(
    value: FloatVector, penalty: FloatMatrix
) -> tuple[FloatVector, FloatMatrix]:
    """Return shares and penalties of the choices that are not negligible."""
    share = np.exp(value - value.max())
    kept = share > NEGLIGIBLE
    return share[kept] / share[kept].sum(), penalty[kept]


def _loosened(problem: PenalisedProblem, penalty: FloatMatrix) -> FloatMatrix:
    return np.where(problem.group > 0, penalty / LOOSENED**2, penalty)


def spread_grid(information: float, groups: int, size: int = GRID) -> FloatMatrix:
    """Return spreads of groups, a row a choice.

    Examples
    --------
    >>> spread_grid(100.0, 1)[[0, -1]].ravel().round(3)
    array([0.025, 9.   ])
    """
    least = UNSEEN / np.sqrt(1.0 / MAX_SPREAD**2 + information)
    each = np.geomspace(least, MAX_SPREAD, size)
    return np.array(list(product(each, repeat=groups)))


def posterior(
    problem: PenalisedProblem,
    coefficients: FloatVector,
    penalties: FloatVector | None = None,
) -> Posterior:
    """Return the posterior around fitted coefficients.

    Parameters
    ----------
    problem : PenalisedProblem
        What was fitted.
    coefficients : ndarray of shape (d,)
        Where the log-likelihood is taken as quadratic.
    penalties : ndarray of shape (groups,), optional
        Of each group, where they are known.
    """
    slope, bend, information = _quadratic(problem, coefficients)
    if penalties is None:
        spreads = spread_grid(information, problem.sizes.size)
    else:
        with np.errstate(divide="ignore"):  # no penalty
            spreads = penalties[np.newaxis] ** -0.5
    drawn = spreads[:, problem.group] ** -2.0
    share = np.ones(1)
    if penalties is None:
        factor, half = _solved(bend, drawn, slope)
        diagonal = np.einsum("kjj->kj", factor)
        value = PRIOR_POWER * np.log(spreads).sum(axis=1)
        value += 0.5 * np.square(half).sum(axis=1)
        value += 0.5 * np.log(drawn / diagonal**2).sum(axis=1)
        share, drawn = _probable(value, _loosened(problem, drawn))
    factor, half = _solved(bend, drawn, slope)
    centre = np.linalg.solve(factor.transpose(0, 2, 1), half[..., np.newaxis])
    means = np.asarray(centre[..., 0], np.float64)
    mixture = NormalMixture(share, means, factor, drawn)
    return Posterior(problem, coefficients, mixture, penalties)


def _solved(
    bend: FloatMatrix, drawn: FloatMatrix, slope: FloatVector
) -> tuple[FloatMatrix, FloatMatrix]:
    """Return Cholesky factors of Hessians, one a row of penalties, and halves of modes.

    A factor times its half is the slope.
    """
    hessian = np.repeat(bend[np.newaxis], len(drawn), axis=0)
    np.einsum("kjj->kj", hessian)[:] += drawn
    factor = np.asarray(np.linalg.cholesky(hessian), dtype=np.float64)
    target = np.broadcast_to(slope, drawn.shape)[..., np.newaxis]
    return factor, np.asarray(np.linalg.solve(factor, target)[..., 0])


def _quadratic(
    problem: PenalisedProblem, coefficients: FloatVector
) -> tuple[FloatVector, FloatMatrix, float]:
    """Return slope at 0 and Hessian of the log-likelihood, and labels' variance."""
    design = problem.design
    share = expit(problem.offset + design @ coefficients)
    variance = problem.weight * share * (1.0 - share)
    bend = (design * variance[:, np.newaxis]).T @ design
    slope = (problem.label - problem.weight * share) @ design + bend @ coefficients
    # Features that all rows lack leave a system to solve.
    bend[np.diag_indices_from(bend)] += np.finfo(float).eps * (1.0 + bend.trace())
    return slope, bend, float(variance.sum())
