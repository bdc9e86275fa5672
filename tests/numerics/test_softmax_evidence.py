from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax
from scipy.stats import norm

from calibrant.numerics import softmax_evidence
from calibrant.numerics.softmax_evidence import QuadraticLikelihood, fit_terms
from calibrant.numerics.softmax_regression import ClassTerms, SoftmaxProblem

SPREADS = np.log([0.3, 0.5, 0.2, 0.4])


def terms_of(log_prob, common, features):
    ones = np.ones(len(features))
    return ClassTerms(log_prob[np.newaxis], np.column_stack([features, ones]), common)


def group_of(terms):
    """Return the group of each parameter: slopes, weights, intercepts, common ones."""
    row = [0] + [3] * (terms.features.shape[1] - 1) + [1]
    return np.array(row * terms.shape[0] + [2] * len(terms.common))


def draw(n=80, k=3, seed=0):
    """Draw terms and labels that follow them with larger intercepts."""
    rng = np.random.default_rng(seed)
    log_prob = log_softmax(rng.normal(size=(n, k)), axis=1)
    common = np.stack([log_prob, np.exp(log_prob)])
    terms = terms_of(log_prob, common, rng.normal(size=(n, 2)))
    scores = log_prob + np.linspace(-1.0, 1.0, k)
    y = (scores + rng.gumbel(size=(n, k))).argmax(axis=1)
    return terms, y


def log_joint(terms, y, away, spreads):
    """Return the log-density of labels and coefficients, by definition."""
    scores = log_softmax(terms.scores(terms.identity + away), axis=1)
    prior = norm.logpdf(away, scale=np.exp(spreads)[group_of(terms)]).sum()
    return scores[np.arange(y.size), y].sum() + prior


def model_at(terms, y, spreads, away):
    n = y.size
    penalty = np.exp(-2.0 * spreads)[group_of(terms)] / (2.0 * n)
    problem = SoftmaxProblem(terms, y, np.full(n, 1.0 / n), penalty, terms.identity)
    point = problem.at(terms.identity + away)
    return QuadraticLikelihood.at(problem, point, n, group_of(terms))


def test_the_evidence_is_laplaces_approximation_at_the_mode_of_a_general_optimiser():
    terms, y = draw()
    mode = minimize(
        lambda away: -log_joint(terms, y, away, SPREADS),
        np.zeros(terms.size),
        tol=1e-8,
    ).x
    model = model_at(terms, y, SPREADS, mode)
    value, coefficients, variance = model.mode(SPREADS)
    assert_allclose(coefficients[0], mode, atol=1e-4)
    precision = model.hessian[0] + np.diag(np.exp(-2.0 * SPREADS)[group_of(terms)])
    half_log_det = 0.5 * np.linalg.slogdet(precision / (2.0 * np.pi))[1]
    prior = -0.5 * np.sum(((SPREADS - softmax_evidence.TYPICAL[:4]) / 2.0) ** 2)
    expected = log_joint(terms, y, mode, SPREADS) - half_log_det + prior
    assert_allclose(value, expected, rtol=1e-8)
    assert_allclose(variance[0], np.linalg.inv(precision).diagonal())


@pytest.mark.parametrize("most", [0, 800])
def test_slopes_of_the_log_density(most):
    terms, y = draw()
    model = model_at(replace(terms, max_exact=most), y, SPREADS, 0.1 * np.ones(14))
    _, coefficients, variance = model.mode(SPREADS)
    numeric = approx_fprime(SPREADS, lambda r: model.mode(r)[0], 1e-6)
    assert_allclose(model.slopes(SPREADS, coefficients, variance), numeric, atol=1e-4)


def test_the_average_over_a_spread_is_that_of_its_grid():
    model = model_at(*draw(), SPREADS, np.zeros(14))
    mean, best = model.averaged(SPREADS), model.mode(SPREADS)[1]
    total = best.copy()
    for group in range(4):
        tried = []
        for step in softmax_evidence.GRID:
            place = SPREADS + step * (np.arange(4) == group)
            tried.append(model.mode(place)[:2])
        share = np.exp([value - tried[0][0] for value, _ in tried])
        total += (
            sum(s * c for s, (_, c) in zip(share, tried, strict=True)) / share.sum()
            - best
        )
    assert_allclose(mean, total)


def test_terms_without_effect_fade_and_others_stay():
    terms, y = draw(2000)
    spreads = np.exp(
        fit_terms(
            terms, group_of(terms), y, np.full(2000, 1 / 2000), 2000.0
        ).log_spreads
    )
    assert spreads[1] > 0.4  # intercepts, of which the true spread is 0.8
    assert spreads[[0, 3]].max() < 0.1


def test_shares_of_repeated_rows_add():
    terms, y = draw()
    times = 1 + np.arange(80) % 3
    rows = np.repeat(np.arange(80), times)
    columns = terms.own[:, rows], terms.features[rows], terms.common[:, rows]
    repeated = ClassTerms(*columns)
    total = float(rows.size)
    one = fit_terms(terms, group_of(terms), y, times / total, total)
    two = fit_terms(
        repeated, group_of(repeated), y[rows], np.full(rows.size, 1 / total), total
    )
    assert_allclose(one.mean, two.mean, atol=1e-5)
    assert_allclose(one.value, two.value, rtol=1e-6)


def test_draws_have_the_covariance_of_the_posterior():
    terms, y = draw()
    posterior = fit_terms(terms, group_of(terms), y, np.full(80, 1 / 80), 80.0)
    drawn = posterior.draws(20_000, np.random.default_rng(0))
    factor = posterior.model.factor(posterior.log_spreads)[0]
    expected = np.linalg.inv(factor @ factor.T)
    assert_allclose(drawn.mean(axis=0), posterior.mean, atol=0.02)
    assert_allclose(np.cov(drawn.T), expected, atol=0.03 * expected.max())


def test_by_class_the_fit_is_nearly_the_same():
    terms, y = draw(500, k=6)
    share = np.full(500, 1 / 500)
    whole = fit_terms(terms, group_of(terms), y, share, 500.0)
    terms = replace(terms, max_exact=0)
    by_class = fit_terms(terms, group_of(terms), y, share, 500.0)
    assert_allclose(by_class.log_spreads[1], whole.log_spreads[1], atol=0.3)
    ours, expected = (
        softmax(terms.scores(fit.mean), axis=1) for fit in (by_class, whole)
    )
    assert_allclose(ours, expected, atol=0.03)
    assert by_class.draws(3, np.random.default_rng(0)).shape == (3, by_class.mean.size)


def test_one_parameter_is_integrated_exactly():
    """Laplace's approximation is near the integral of likelihood times prior."""
    rng = np.random.default_rng(1)
    log_prob = log_softmax(rng.normal(size=(300, 2)), axis=1)
    terms = terms_of(log_prob, log_prob[np.newaxis], np.empty((300, 0)))
    y = (log_prob + rng.gumbel(size=(300, 2))).argmax(axis=1)
    spreads = np.array([-7.0, -7.0, -1.0])  # only the common slope is free
    away = np.linspace(-1.5, 1.5, 601)[:, np.newaxis] * np.eye(5)[4]
    density = [log_joint(terms, y, one, spreads) for one in away]
    fixed = norm.logpdf(np.zeros(4), scale=np.exp(-7.0)).sum()
    integral = np.log(np.exp(np.array(density) - fixed).sum() * 0.005)
    value = model_at(terms, y, spreads, np.zeros(5)).mode(spreads)[0]
    value += 0.5 * np.sum(((spreads - softmax_evidence.TYPICAL[:3]) / 2.0) ** 2)
    assert_allclose(value, integral, atol=0.05)


def test_averages_beyond_where_the_likelihood_is_quadratic_are_not_used(monkeypatch):
    terms, y = draw()
    share = np.full(80, 1 / 80)
    far = np.full((1, terms.size), 50.0) * np.cos(np.arange(terms.size))
    monkeypatch.setattr(QuadraticLikelihood, "averaged", lambda *_: far)
    posterior = fit_terms(terms, group_of(terms), y, share, 80.0)
    penalty = np.exp(-2.0 * posterior.log_spreads)[group_of(terms)] / 160.0
    problem = SoftmaxProblem(terms, y, share, penalty, terms.identity)
    assert np.linalg.norm(problem.at(posterior.mean).gradient) < 1e-5


def test_spreads_may_be_large_where_labels_say_so():
    """Labels that are nearly a function of the predictions need large coefficients."""
    rng = np.random.default_rng(0)
    log_prob = log_softmax(rng.normal(size=(2000, 3)), axis=1)
    common = np.stack([log_prob, np.exp(log_prob)])
    terms = terms_of(log_prob, common, np.empty((2000, 0)))
    scores = log_prob + 60.0 * np.exp(log_prob)
    y = (scores + rng.gumbel(size=(2000, 3))).argmax(axis=1)
    posterior = fit_terms(terms, group_of(terms), y, np.full(2000, 1 / 2000), 2000.0)
    loss = -log_softmax(terms.scores(posterior.mean), axis=1)[np.arange(2000), y]
    truth = -log_softmax(scores, axis=1)[np.arange(2000), y]
    assert loss.sum() < truth.sum() + 1.0
