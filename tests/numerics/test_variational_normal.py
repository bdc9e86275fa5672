"""Normal approximations against integrals over a grid."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from calibrant import datasets, evaluate
from calibrant.numerics.logistic import PenalisedProblem
from calibrant.numerics.posterior_mixture import posterior
from calibrant.numerics.variational_normal import variational_normals

GRID = np.linspace(-60.0, 60.0, 200_001)


def all_yes(rows):
    """One coefficient, and labels that are all 1: a posterior that is cut on a side."""
    one = np.ones(1)
    return PenalisedProblem(
        one[:, np.newaxis], 0.0 * one, rows * one, rows * one, np.array([1])
    )


def exact(problem, penalty):
    logs = problem.label_sum[0] * GRID - problem.weight[0] * np.logaddexp(0.0, GRID)
    density = np.exp(logs - 0.5 * penalty * GRID**2) * np.sqrt(penalty / (2 * np.pi))
    evidence = np.trapezoid(density, GRID)
    density /= evidence
    mean = np.trapezoid(density * GRID, GRID)
    spread = np.sqrt(np.trapezoid(density * (GRID - mean) ** 2, GRID))
    return mean, spread, np.log(evidence)


@pytest.mark.parametrize("rows", [10.0, 1000.0])
@pytest.mark.parametrize("penalty", [0.02, 1.0])
def test_the_moments_are_near_those_of_the_posterior(rows, penalty):
    problem = all_yes(rows)
    found = variational_normals(problem, np.array([[penalty]]), np.array([3.0]))
    mean, spread, evidence = exact(problem, penalty)
    assert_allclose(found.mean[0, 0], mean, rtol=0.05)
    assert 0.6 * spread < 1.0 / found.factor[0, 0, 0] < 1.01 * spread  # never too wide
    assert evidence - 0.25 < found.evidence[0] < evidence


def test_choices_of_penalties_do_not_disturb_each_other():
    rng = np.random.default_rng(0)
    design = rng.standard_normal((40, 3))
    weight = np.full(40, 2.0)
    problem = PenalisedProblem(
        design, np.zeros(40), weight, rng.binomial(2, 0.9, 40) * 1.0, np.array([3])
    )
    penalty = np.geomspace(1e-2, 1e4, 12)[:, np.newaxis] * np.ones(3)
    together = variational_normals(problem, penalty, np.zeros(3))
    for place, row in enumerate(penalty):
        alone = variational_normals(problem, row[np.newaxis], np.zeros(3))
        assert_allclose(together.mean[place], alone.mean[0], atol=1e-9)
        assert_allclose(together.evidence[place], alone.evidence[0], atol=1e-9)


@pytest.mark.parametrize("rows", [10.0, 1000.0])
def test_draws_follow_the_posterior_where_it_is_far_from_normal(rows):
    problem, penalty = all_yes(rows), 0.02
    mode = np.array([6.0])
    found = posterior(problem, mode, np.array([penalty]))
    rng = np.random.default_rng(0)
    drawn = found.variational_draws(20_000, rng)[0]
    mean, spread, _ = exact(problem, penalty)
    # The nearest normal is too narrow, and what it never draws cannot be kept.
    assert_allclose(drawn.mean(), mean, atol=0.15 * spread)
    assert 0.7 * spread < drawn.std() < 1.05 * spread


@pytest.mark.parametrize("penalty", [0.02, 1.0])
def test_a_start_from_far_off_ends_where_others_do(penalty):
    """Flat where it started from, whole steps went to logits of a million."""
    u = np.array([-20.7, *np.linspace(-1.5, 16.0, 60), 20.7])
    weight = np.array([20.0, *np.full(60, 90.0), 194.0])
    label = weight * np.array([0.0, *np.linspace(0.5, 0.7, 60), 0.75])
    design = np.column_stack([np.ones(u.size), u / 7.0])
    problem = PenalisedProblem(design, u, weight, label, np.array([2]))
    drawn = np.full((1, 2), penalty)
    found, expected = (
        variational_normals(problem, drawn, np.array(start))
        for start in ([0.4, 7.0], [0.4, -6.9])
    )
    assert_allclose(found.evidence, expected.evidence, atol=0.01)
    assert_allclose(found.mean @ design.T, expected.mean @ design.T, atol=0.1)


def test_an_interval_that_rested_on_one_draw():
    """Few rows are wrong near 1; the mode there says nothing, and 0.27 came of it."""
    prob, y = datasets.load_multiclass("bayes")
    logits = np.log(np.clip(prob, 1e-12, 1.0)) / 4.0
    softer = expit(logits) / expit(logits).sum(axis=1, keepdims=True)
    found = evaluate(y, softer, task="confidence", methods=["smooth", "es15"]).frame()
    assert found["low"][0] <= found["value"][0] <= found["high"][0]
    assert found["high"][0] < found["high"][1] + 0.02


def test_one_certain_prediction_that_failed_does_not_unsettle_the_others():
    """Of 34 predictions of 1 one failed; an upper end of 0.126 came of it."""
    rng = np.random.default_rng(0)
    p = np.clip(rng.beta(0.5, 1.5, 24_000), 0.004, 0.97)
    y = np.append(rng.random(p.size) < p, [False] + [True] * 33)
    found = evaluate(y, np.append(p, np.ones(34)), methods="smooth").frame()
    assert found["low"][0] == 0.0
    assert found["high"][0] < 0.012
