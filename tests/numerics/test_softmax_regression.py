import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize

from calibrant.numerics.softmax_regression import (
    MAX_EXACT,
    MatrixScores,
    SoftmaxProblem,
    VectorScores,
    minimise,
)


def rows(n=120, k=4, seed=0, strength=1.5):
    rng = np.random.default_rng(seed)
    column = rng.integers(k, size=n)
    x = rng.normal(size=(n, k)) + strength * np.eye(k)[column]
    share = rng.random(n)
    return x, column, share / share.sum()


def problem(operator, column, share, penalty=0.01):
    identity = operator.identity
    return SoftmaxProblem(
        operator, column, share, np.full_like(identity, penalty), identity
    )


OPERATORS = pytest.mark.parametrize("operator", [VectorScores, MatrixScores])


@OPERATORS
def test_gradient_and_curvature_are_derivatives_of_the_loss(operator):
    x, column, share = rows()
    task = problem(operator(x), column, share)
    rng = np.random.default_rng(1)
    at = task.operator.identity + 0.3 * rng.normal(size=task.operator.identity.shape)
    point = task.at(at)
    flat = at.reshape(-1)
    slopes = approx_fprime(flat, lambda v: task.at(v.reshape(at.shape)).loss, 1e-7)
    assert_allclose(point.gradient.reshape(-1), slopes, atol=1e-6)
    direction = rng.normal(size=at.shape)
    ahead = task.at(at + 1e-5 * direction).gradient
    behind = task.at(at - 1e-5 * direction).gradient
    assert_allclose(
        task.curvature(point, direction), (ahead - behind) / 2e-5, atol=1e-8
    )


@OPERATORS
def test_the_exact_hessian_undoes_the_curvature(operator):
    x, column, share = rows()
    task = problem(operator(x), column, share)
    point = task.at(task.operator.identity)
    direction = np.random.default_rng(2).normal(size=point.parameters.shape)
    solve = task.operator.preconditioner(task, point)
    solved = solve(task.curvature(point, direction))
    assert_allclose(solved, direction, atol=1e-10)


def test_blocks_of_many_classes_are_those_of_the_hessian():
    x, column, share = rows(n=400, k=30, strength=0.5)
    task = problem(MatrixScores(x), column, share)
    point = task.at(0.1 * task.operator.identity)  # flat: no row is negligible
    assert point.parameters.size > MAX_EXACT
    solve = task.operator.preconditioner(task, point)
    direction = np.zeros_like(point.parameters)
    direction[7] = np.random.default_rng(3).normal(size=31)
    own = task.curvature(point, direction)[7]
    right = np.zeros_like(direction)
    right[7] = own
    assert_allclose(solve(right)[7], direction[7], atol=1e-8)


@OPERATORS
def test_the_optimum_is_that_of_a_general_optimiser(operator):
    x, column, share = rows()
    task = problem(operator(x), column, share, penalty=1e-3)
    start = task.operator.identity
    found = minimise(task, start, tolerance=1e-9)
    general = minimize(
        lambda v: task.at(v.reshape(start.shape)).loss,
        start.reshape(-1),
        jac=lambda v: task.at(v.reshape(start.shape)).gradient.reshape(-1),
        method="BFGS",
        options={"gtol": 1e-9, "maxiter": 5000},
    )
    assert np.linalg.norm(found.gradient) < 1e-9
    assert found.loss <= general.fun + 1e-12
    assert_allclose(found.parameters.reshape(-1), general.x, atol=1e-5)


def test_many_classes_reach_the_optimum_too():
    x, column, share = rows(n=500, k=40)
    task = problem(MatrixScores(x), column, share, penalty=1e-3)
    found = minimise(task, task.operator.identity, tolerance=1e-8)
    assert np.linalg.norm(found.gradient) < 1e-8


def test_separable_rows_end_where_the_pull_holds_them():
    x, column, share = rows(strength=50.0)
    task = problem(MatrixScores(x), column, share, penalty=1e-9)
    found = minimise(task, task.operator.identity, tolerance=1e-9)
    assert np.isfinite(found.parameters).all()
    assert np.abs(found.parameters).max() < 100
