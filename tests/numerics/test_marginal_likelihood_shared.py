"""Penalties that groups share: known spreads, limiting cases, a general optimiser."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.special import expit

from calibrant.numerics.logistic import PenalisedProblem, solve_penalised
from calibrant.numerics.marginal_likelihood import fit_shared


def shifted_groups(count, rows, spread, seed=0):
    """Return one problem per group, whose logits have a shift of their own."""
    rng = np.random.default_rng(seed)
    problems = []
    for shift in rng.normal(0.0, spread, count):
        u = rng.normal(0.0, 1.0, rows)
        y = (rng.random(rows) < expit(u + shift)).astype(float)
        design = np.ones((rows, 1))
        problems.append(PenalisedProblem(design, u, np.ones(rows), y, np.array([1])))
    return problems


def minus_log_evidence(problems, penalty):
    """Return Laplace's approximation for a shift per group."""
    modes = [solve_penalised(one, np.array([penalty])) for one in problems]
    fits = [mode.value + np.log(mode.factor[0, 0]) for mode in modes]
    return sum(fits) - 0.5 * len(modes) * np.log(penalty)


def test_the_spread_of_groups_is_found():
    fit = fit_shared(shifted_groups(200, 200, 0.7))
    assert_allclose(fit.penalties**-0.5, 0.7, rtol=0.15)


def test_penalties_nearly_maximise_the_evidence():
    problems = shifted_groups(40, 100, 0.5)

    def loss(log_penalty):
        return minus_log_evidence(problems, np.exp(log_penalty))

    best = minimize_scalar(loss, bounds=(-4.0, 8.0), method="bounded")
    (found,) = fit_shared(problems).penalties
    assert loss(np.log(found)) - best.fun < 0.01
    assert_allclose(np.log(found), best.x, atol=0.15)


def test_equal_groups_are_drawn_together():
    """Alone, their shifts would differ by 0.33."""
    spreads = [
        fit_shared(shifted_groups(100, 50, 0.0, seed)).coefficients.std()
        for seed in range(5)
    ]
    assert np.median(spreads) < 0.08


def test_groups_without_rows_do_not_differ():
    empty = PenalisedProblem(np.ones((0, 1)), *np.zeros((3, 0)), np.array([1]))
    alone = fit_shared(shifted_groups(20, 100, 0.5))
    fit = fit_shared([*shifted_groups(20, 100, 0.5), empty])
    assert_allclose(fit.coefficients[:-1], alone.coefficients, rtol=1e-6)
    assert fit.coefficients[-1] == 0.0
