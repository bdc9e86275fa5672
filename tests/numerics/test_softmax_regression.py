from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize

from calibrant.numerics import softmax_regression
from calibrant.numerics.softmax_regression import (
    MAX_MATRIX,
    ClassTerms,
    SoftmaxProblem,
    minimise,
)


def rows(n=120, k=4, seed=0, strength=1.5):
    rng = np.random.default_rng(seed)
    column = rng.integers(k, size=n)
    x = rng.normal(size=(n, k)) + strength * np.eye(k)[column]
    share = rng.random(n)
    return x, column, share / share.sum()


def problem(terms, column, share, penalty=0.01):
    identity = terms.identity
    return SoftmaxProblem(
        terms, column, share, np.full_like(identity, penalty), identity
    )


def all_terms(x):
    own, features = x[np.newaxis], np.column_stack([x[:, :2] ** 2, np.ones(len(x))])
    return ClassTerms(own, features, np.stack([x, np.tanh(x)]))


TERMS = pytest.mark.parametrize(
    "terms", [ClassTerms.vector, ClassTerms.matrix, all_terms]
)


@TERMS
def test_the_identity_leaves_predictions_as_they_are(terms):
    x, _, _ = rows()
    terms = terms(x)
    assert_allclose(terms.scores(terms.identity), x)


@TERMS
def test_the_adjoint_is_the_transpose_of_scores(terms):
    x, _, _ = rows()
    rng, terms = np.random.default_rng(1), terms(x)
    parameters, slopes = rng.normal(size=terms.size), rng.normal(size=x.shape)
    expected = np.vdot(terms.scores(parameters), slopes)
    assert_allclose(parameters @ terms.adjoint(slopes), expected)


def test_scores_are_the_formulas_of_vectors_and_matrices():
    x, _, _ = rows()
    drawn = np.random.default_rng(4).normal(size=(4, 5))
    slopes, constants = drawn[:, :2].T
    vector = ClassTerms.vector(x).scores(drawn[:, :2].reshape(-1))
    assert_allclose(vector, slopes * x + constants)
    matrix = ClassTerms.matrix(x).scores(drawn.reshape(-1))
    assert_allclose(matrix, x @ drawn[:, :4].T + drawn[:, 4])


@TERMS
def test_gradient_and_curvature_are_derivatives_of_the_loss(terms):
    x, column, share = rows()
    task = problem(terms(x), column, share)
    rng = np.random.default_rng(1)
    at = task.terms.identity + 0.3 * rng.normal(size=task.terms.identity.shape)
    point = task.at(at)
    slopes = approx_fprime(at, lambda v: task.at(v).loss, 1e-7)
    assert_allclose(point.gradient, slopes, atol=1e-6)
    direction = rng.normal(size=at.shape)
    ahead = task.at(at + 1e-5 * direction).gradient
    behind = task.at(at - 1e-5 * direction).gradient
    assert_allclose(
        task.curvature(point, direction), (ahead - behind) / 2e-5, atol=1e-8
    )


@TERMS
def test_the_exact_hessian_undoes_the_curvature(terms):
    x, column, share = rows()
    task = problem(terms(x), column, share)
    point = task.at(task.terms.identity)
    direction = np.random.default_rng(2).normal(size=point.parameters.shape)
    solve = task.terms.preconditioner(task, point)
    solved = solve(task.curvature(point, direction))
    assert_allclose(solved, direction, atol=1e-10)


def test_blocks_of_many_classes_are_those_of_the_hessian():
    x, column, _ = rows(n=400, k=30, strength=0.5)
    task = problem(ClassTerms.matrix(x), column, np.full(400, 1 / 400))
    point = task.at(0.1 * task.terms.identity)  # flat: no row is negligible
    assert point.parameters.size > MAX_MATRIX
    solve = task.terms.preconditioner(task, point)
    direction, own = np.zeros_like(point.parameters), slice(7 * 31, 8 * 31)
    direction[own] = np.random.default_rng(3).normal(size=31)
    right = np.zeros_like(direction)
    right[own] = task.curvature(point, direction)[own]
    assert_allclose(solve(right)[own], direction[own], atol=1e-8)


@TERMS
def test_the_optimum_is_that_of_a_general_optimiser(terms):
    x, column, share = rows()
    task = problem(terms(x), column, share, penalty=1e-3)
    start = task.terms.identity
    found = minimise(task, start, tolerance=1e-9)
    general = minimize(
        lambda v: task.at(v).loss,
        start,
        jac=lambda v: task.at(v).gradient,
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 5000},
    )
    assert np.linalg.norm(found.gradient) < 1e-9
    assert found.loss <= general.fun + 1e-12
    assert_allclose(found.parameters, general.x, atol=1e-5)


def test_many_classes_reach_the_optimum_too():
    x, column, share = rows(n=500, k=40)
    task = problem(ClassTerms.matrix(x), column, share, penalty=1e-3)
    found = minimise(task, task.terms.identity, tolerance=1e-8)
    assert np.linalg.norm(found.gradient) < 1e-8


def test_separable_rows_end_where_the_pull_holds_them():
    x, column, share = rows(strength=50.0)
    task = problem(ClassTerms.matrix(x), column, share, penalty=1e-9)
    found = minimise(task, task.terms.identity, tolerance=1e-9)
    assert np.isfinite(found.parameters).all()
    assert np.abs(found.parameters).max() < 100


def draw(n=60, k=3, seed=0):
    """Draw terms with two common functions and two features, and a problem."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, k))
    terms = ClassTerms(
        x[np.newaxis],
        np.column_stack([rng.normal(size=(n, 2)), np.ones(n)]),
        np.stack([x, np.exp(x)]),
    )
    share = rng.uniform(size=n)
    penalty = rng.uniform(0.01, 0.1, terms.size)
    y = rng.integers(k, size=n)
    return SoftmaxProblem(terms, y, share / share.sum(), penalty, terms.identity)


def test_the_hessian_is_the_derivative_of_the_gradient(monkeypatch):
    monkeypatch.setattr(softmax_regression, "CHUNK", 7)
    problem = draw()
    at = np.random.default_rng(2).normal(size=problem.terms.size)
    steps = 1e-5 * np.eye(at.size)
    columns = [
        (problem.at(at + step).gradient - problem.at(at - step).gradient) / 2e-5
        for step in steps
    ]
    hessian = problem.terms.curvature_blocks(problem.at(at).prob, problem.share)[0]
    expected = np.stack(columns) - 2.0 * np.diag(problem.penalty)
    assert_allclose(hessian, expected, atol=1e-8)


def test_blocks_are_those_of_the_hessian():
    problem = draw()
    terms, prob = problem.terms, problem.at(problem.anchor).prob
    whole = terms.curvature_blocks(prob, problem.share)[0]
    by_class = replace(terms, max_exact=0)
    blocks = by_class.curvature_blocks(prob, problem.share, negligible=0.0)
    assert_allclose(blocks[1], whole[4:8, 4:8])


@pytest.mark.parametrize("most", [0, 800])
def test_either_preconditioner_leads_to_the_same_minimum(most):
    problem = draw()
    expected = minimise(problem, problem.anchor, tolerance=1e-10).parameters
    problem = replace(problem, terms=replace(problem.terms, max_exact=most))
    ours = minimise(problem, problem.anchor, tolerance=1e-10).parameters
    assert_allclose(ours, expected, atol=1e-7)
