import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax

from calibrant.numerics import class_terms
from calibrant.numerics.class_terms import ClassTerms
from calibrant.numerics.softmax_regression import SoftmaxProblem, minimise


def draw(n=60, k=3, seed=0):
    """Draw terms with two common functions and two features, and a problem."""
    rng = np.random.default_rng(seed)
    log_prob = log_softmax(rng.normal(size=(n, k)), axis=1)
    common = np.stack([log_prob, np.exp(log_prob)])
    terms = ClassTerms(common, rng.normal(size=(n, 2)), np.array([3, 3]))
    share = rng.uniform(size=n)
    penalty = rng.uniform(0.01, 0.1, terms.group.size)
    anchor, y = terms.identity, rng.integers(k, size=n)
    return SoftmaxProblem(terms, y, share / share.sum(), penalty, anchor)


def test_the_identity_leaves_predictions_as_they_are():
    terms = draw().operator
    assert_allclose(terms.scores(terms.identity), terms.log_prob)


def test_the_adjoint_is_the_transpose_of_scores():
    rng, terms = np.random.default_rng(1), draw().operator
    parameters, slopes = rng.normal(size=terms.group.size), rng.normal(size=(60, 3))
    expected = np.vdot(terms.scores(parameters), slopes)
    assert_allclose(parameters @ terms.adjoint(slopes), expected)


def test_the_hessian_is_the_derivative_of_the_gradient(monkeypatch):
    monkeypatch.setattr(class_terms, "CHUNK", 7)
    problem = draw()
    terms = problem.operator
    at = np.random.default_rng(2).normal(size=terms.group.size)
    steps = 1e-5 * np.eye(at.size)
    columns = [
        (problem.at(at + step).gradient - problem.at(at - step).gradient) / 2e-5
        for step in steps
    ]
    hessian = terms.curvature_blocks(problem.at(at).prob, problem.share)[0]
    expected = np.stack(columns) - 2.0 * np.diag(problem.penalty)
    assert_allclose(hessian, expected, atol=1e-8)


def test_blocks_are_those_of_the_hessian(monkeypatch):
    problem = draw()
    terms, prob = problem.operator, problem.at(problem.anchor).prob
    whole = terms.curvature_blocks(prob, problem.share)[0]
    monkeypatch.setattr(class_terms, "MAX_EXACT", 0)
    blocks = terms.curvature_blocks(prob, problem.share, negligible=0.0)
    assert_allclose(blocks[1], whole[4:8, 4:8])


@pytest.mark.parametrize("most", [0, 800])
def test_either_preconditioner_leads_to_the_same_minimum(monkeypatch, most):
    problem = draw()
    expected = minimise(problem, problem.anchor, tolerance=1e-10).parameters
    monkeypatch.setattr(class_terms, "MAX_EXACT", most)
    ours = minimise(problem, problem.anchor, tolerance=1e-10).parameters
    assert_allclose(ours, expected, atol=1e-7)
