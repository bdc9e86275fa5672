"""The penalised fit and its marginal likelihood, against general tools."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from calibrant.core.sample import BinarySample
from calibrant.experiments.synthetic import sample as paper_sample
from calibrant.numerics.logistic import (
    PenalisedProblem,
    solve_many,
    solve_penalised,
)
from calibrant.numerics.marginal_likelihood import (
    evidence_at,
    gain_of_group,
    most_likely,
    most_likely_members,
)
from calibrant.numerics.smooth_terms import STRAIGHT, TERMS, Terms
from calibrant.numerics.weighted_points import compress_to_at_most


def problem_of(shape="stairs", error=0.05, n=1000, seed=0, knots=20):
    p, y, _ = paper_sample(shape, error, n, seed)
    cells = compress_to_at_most(BinarySample(p, y))
    terms = Terms.of(cells, knots)
    return terms.problem(cells.p, cells.weight, cells.label_sum)


def objective(problem, penalties):
    drawn = np.repeat(penalties, problem.sizes)

    def value(coefficients):
        f = problem.offset + problem.design @ coefficients
        no = problem.weight - problem.label_sum
        loss = -(problem.label_sum @ log_expit(f) + no @ log_expit(-f))
        return loss + 0.5 * drawn @ coefficients**2

    return value


def test_the_mode_is_that_of_a_general_optimiser():
    problem, penalties = problem_of(knots=6), np.array([0.5, 1.0, 3.0, 0.2])
    mode = solve_penalised(problem, penalties)
    value = objective(problem, penalties)
    found = minimize(value, np.zeros(10), method="BFGS", options={"gtol": 1e-6})
    assert_allclose(mode.value, value(mode.coefficients), rtol=1e-12)
    assert mode.value <= found.fun + 1e-9
    assert_allclose(mode.coefficients, found.x, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_gain_of_a_curve_is_expanded_well_where_a_line_fits(seed):
    """The expansion against a search over the penalties of line and curve."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 2.0, 20_000)
    u = np.log(p / (1.0 - p))
    y = (rng.random(p.size) < expit(0.8 * u + 0.03 * u**2 + 0.1)).astype(float)
    cells = compress_to_at_most(BinarySample(p, y))
    problem = Terms.of(cells, 20).problem(cells.p, cells.weight, cells.label_sum)
    straight, curved = (
        most_likely(problem.only(np.array([True, True, curve, False])))
        for curve in (False, True)
    )
    gain = gain_of_group(straight.mode, problem.design[:, problem.group == 2])
    assert gain > 0.4
    assert_allclose(gain, straight.value - curved.value, rtol=0.1, atol=0.3)


@pytest.mark.parametrize(
    "logs",
    [(0.0, 0.0, 0.0, 0.0), (1.0, 3.0, 5.0, -2.0), (8.0, -1.0, -4.0, 3.0)],
)
def test_derivatives_are_those_of_finite_differences(logs):
    problem, at = problem_of(), np.array(logs)
    gradient, hessian = evidence_at(problem, at).derivatives
    step = 1e-4
    for k, unit in enumerate(np.eye(TERMS)):
        up, down = (evidence_at(problem, at + s * unit) for s in (step, -step))
        assert_allclose(gradient[k], (up.value - down.value) / 2 / step, atol=1e-6)
        slope = (up.derivatives[0] - down.derivatives[0]) / 2 / step
        assert_allclose(hessian[k], slope, atol=1e-6)


def test_the_value_is_nearly_the_integral_over_coefficients():
    """One coefficient only, so that labels' probability can be integrated."""
    rng = np.random.default_rng(0)
    x, offset = rng.normal(size=(60, 1)), rng.normal(size=60)
    label = (rng.random(60) < expit(offset + 0.7 * x[:, 0])).astype(float)
    problem = PenalisedProblem(x, offset, np.ones(60), label, np.array([1]))
    value = evidence_at(problem, np.log([2.0])).value
    loss = objective(problem, np.array([2.0]))
    least = minimize(lambda b: loss(np.atleast_1d(b)), 0.0).fun
    density = quad(lambda b: np.exp(least - loss(np.array([b]))), -9, 9)[0]
    exact = least - np.log(density) + 0.5 * np.log(2 * np.pi / 2.0)
    # A spread of one over the root of 2 under half of a normal density.
    wide = 3.0 * max(1.0, np.sqrt(np.mean(offset**2)))
    assert_allclose(value, exact + 0.5 / (2.0 * wide**2), atol=0.01)


@pytest.mark.parametrize(
    "case",
    [
        ("square", 0.0, 1000, 0),
        ("stairs", 0.05, 1000, 1),
        ("stairs", 0.1, 3000, 0),
        ("beta2", 0.05, 3000, 2),
        ("sqrt", 0.1, 1000, 3),
    ],
)
def test_no_grid_of_penalties_beats_the_search(case):
    problem = problem_of(*case)
    logs = (-4.0, 0.0, 3.0, 6.0, 15.0)
    places = product(logs, repeat=TERMS)
    grid = [evidence_at(problem, np.array(place)).value for place in places]
    assert most_likely(problem).value < min(grid) + 1e-3
    assert most_likely_members(problem, STRAIGHT)[-1].value < min(grid) + 1e-3


def test_members_are_found_as_each_alone():
    problem = problem_of("beta2", 0.05, 3000, 1)
    members = most_likely_members(problem, STRAIGHT)
    sizes = [member.mode.problem.sizes.tolist() for member in members]
    assert sizes == [[1, 1, 0, 0], [1, 1, 18, 0], [1, 1, 0, 18], [1, 1, 18, 18]]
    for member in members:
        kept = member.mode.problem.sizes > 0
        assert_allclose(member.value, most_likely(problem.only(kept)).value, atol=1e-6)


def test_an_empty_group_is_the_limit_of_an_endless_penalty():
    problem = problem_of()
    logs = np.array([1.0, 0.0, 2.0, 25.0])
    without = evidence_at(
        problem.only(np.array([True, True, True, False])),
        np.array([1.0, 0.0, 2.0, 0.0]),
    )
    assert_allclose(without.value, evidence_at(problem, logs).value, atol=1e-5)


def test_endless_penalties_leave_the_offset():
    problem = problem_of()
    mode = solve_penalised(problem, np.full(TERMS, 1e15))
    assert_allclose(mode.logits, problem.offset, atol=1e-9)


def test_resamples_are_solved_as_one_by_one():
    problem, rng = problem_of(n=3000), np.random.default_rng(0)
    mode = most_likely(problem).mode
    weight = rng.poisson(problem.weight, (4, problem.weight.size)).astype(float)
    label = rng.binomial(weight.astype(int), 0.4).astype(float)
    found = solve_many(problem, mode.penalties, mode.coefficients, weight, label)
    for w, t, logits in zip(weight, label, found, strict=True):
        one = PenalisedProblem(problem.design, problem.offset, w, t, problem.sizes)
        alone = solve_penalised(one, mode.penalties)
        assert_allclose(logits, alone.logits, atol=1e-6)
