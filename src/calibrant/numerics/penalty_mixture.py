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
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector
    from calibrant.numerics.penalised_logistic import PenalisedProblem

GRID = 8
"""Spreads that are tried for each group, evenly on the log scale."""
LARGEST = 9.0
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
MOST_ROUNDS = 10
ENOUGH = 400
"""Draws that count, at which no more are drawn."""


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
    """

    share: FloatVector
    centre: FloatMatrix
    factor: FloatMatrix

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the mixture, a column each."""
        counts = rng.multinomial(count, self.share)
        found = []
        for k in np.flatnonzero(counts):
            normal = rng.standard_normal((self.centre.shape[1], counts[k]))
            moved = np.linalg.solve(self.factor[k].T, normal)
            found.append(self.centre[k][:, np.newaxis] + moved)
        return np.hstack(found)


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
    """

    problem: PenalisedProblem
    pilot: FloatVector
    mixture: NormalMixture

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the posterior, a column each.

        Draws from the mixture are drawn again by how much more probable they make the
        labels than was thought: where fitted shares are near 0 or 1 the likelihood is
        far from quadratic. The fewer of them count, the more are drawn.
        """
        found, logs = [], []
        for _ in range(MOST_ROUNDS):
            found.append(self.mixture.draws(max(count, ROUND), rng))
            logs.append(self._surplus(found[-1]))
            value = np.concatenate(logs)
            share = np.exp(value - value.max())
            share /= share.sum()
            if ENOUGH * np.square(share).sum() <= 1.0:
                break
        chosen = rng.choice(share.size, count, p=share)
        return np.hstack(found)[:, chosen]

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


def spread_grid(information: float, groups: int) -> FloatMatrix:
    """Return spreads of groups, a row a choice.

    Examples
    --------
    >>> spread_grid(100.0, 1)[[0, -1]].ravel().round(3)
    array([0.025, 9.   ])
    """
    least = UNSEEN / np.sqrt(1.0 / LARGEST**2 + information)
    each = np.geomspace(least, LARGEST, GRID)
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
        share = np.exp(value - value.max())
        drawn = np.where(problem.group > 0, drawn / LOOSENED**2, drawn)
    kept = share > NEGLIGIBLE
    share = share[kept] / share[kept].sum()
    factor, half = _solved(bend, drawn[kept], slope)
    centre = np.linalg.solve(factor.transpose(0, 2, 1), half[..., np.newaxis])
    mixture = NormalMixture(share, np.asarray(centre[..., 0], np.float64), factor)
    return Posterior(problem, coefficients, mixture)


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
