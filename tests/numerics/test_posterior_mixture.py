"""The posterior over coefficients and penalties, against numerical integration."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm

from calibrant.numerics.logistic import PenalisedProblem, solve_penalised
from calibrant.numerics.posterior_mixture import (
    PRIOR_POWER,
    NormalMixture,
    posterior,
    spread_grid,
)


def constant(positives, rows=2000, p=0.3):
    """One feature, which is 1 for all rows."""
    offset = np.full(1, np.log(p / (1 - p)))
    return PenalisedProblem(
        np.ones((1, 1)),
        offset,
        np.array([float(rows)]),
        np.array([float(positives)]),
        np.array([1]),
    )


def integrated(problem, spreads):
    """Mean and variance of the coefficient, by sums over a fine grid of it."""
    at = np.linspace(-8.0, 4.0, 50_001)
    share = expit(problem.offset[0] + at)
    yes, rows = problem.label_sum[0], problem.weight[0]
    loss = -yes * np.log(share) - (rows - yes) * np.log1p(-share)
    prior = spreads**PRIOR_POWER * norm.pdf(at[:, np.newaxis], scale=spreads)
    mass = np.exp(loss.min() - loss) * prior.sum(axis=1)
    mean = (mass * at).sum() / mass.sum()
    return mean, (mass * (at - mean) ** 2).sum() / mass.sum()


def test_one_coefficient_has_the_posterior_of_integration():
    for rows, positives in ((2000, 600), (2000, 625), (2000, 680), (40, 2)):
        problem = constant(positives, rows)
        mode = solve_penalised(problem, np.ones(1))
        share = expit(mode.logits)
        information = float((problem.weight * share * (1 - share)).sum())
        spreads = spread_grid(information, 1)[:, 0]
        mean, variance = integrated(problem, spreads)
        drawn = posterior(problem, mode.coefficients).draws(
            20_000, np.random.default_rng(0)
        )[0]
        assert_allclose(drawn.mean(), mean, rtol=0.03, atol=0.02 * np.sqrt(variance))
        assert_allclose(drawn.var(), variance, rtol=0.1)


def test_known_penalties_give_the_normal_of_the_fit():
    for penalty in (40.0, 0.0):
        problem, known = constant(700), np.array([penalty])
        mode = solve_penalised(problem, known)
        found = posterior(problem, mode.coefficients, known).mixture
        share = expit(mode.logits[0])
        assert_allclose(found.centre, [mode.coefficients], atol=1e-7)
        wanted = 2000 * share * (1 - share) + penalty
        assert_allclose(found.factor**2, [[[wanted]]], rtol=1e-9)
        assert found.share.tolist() == [1.0]


def test_draws_have_the_moments_of_the_mixture():
    factor = np.array([[[2.0, 0.0], [1.0, 1.0]], [[0.5, 0.0], [0.0, 4.0]]])
    centre = np.array([[1.0, 0.0], [-1.0, 2.0]])
    mixture = NormalMixture(np.array([0.25, 0.75]), centre, factor, np.ones((2, 2)))
    inverses = np.linalg.inv(factor @ factor.transpose(0, 2, 1))
    mean = np.array([-0.5, 1.5])
    between = [np.outer(c - mean, c - mean) for c in centre]
    wanted = 0.25 * (inverses[0] + between[0]) + 0.75 * (inverses[1] + between[1])
    drawn = mixture.draws(40_000, np.random.default_rng(0))
    error = np.sqrt(wanted.diagonal() / 40_000)
    assert (np.abs(drawn.mean(axis=1) - mean) < 4 * error).all()
    assert_allclose(np.cov(drawn), wanted, atol=0.1)
