import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.numerics.links import log_odds_parts, logit
from calibrant.numerics.logistic import fit_logistic, fit_rising


def batch(problems=5, m=80, seed=0):
    rng = np.random.default_rng(seed)
    p = np.sort(rng.random(m))
    weight = rng.integers(0, 5, (problems, m)).astype(float)
    label = rng.binomial(weight.astype(int), p**1.4).astype(float)
    return p, weight, label


def gradient(features, weight, label, fit):
    f = features @ fit.slopes[0] + fit.intercepts[0]
    rest = (weight * expit(f) - label) / weight.sum()
    return np.append(rest @ features, rest.sum())


def general_optimum(features, weight, label, low):
    def loss(b):
        f = features @ b[:-1] + b[-1]
        failed = weight - label
        terms = label * np.logaddexp(0, -f) + failed * np.logaddexp(0, f)
        return terms.sum() / weight.sum()

    bounds = [(low, None)] * features.shape[1] + [(None, None)]
    start = np.ones(features.shape[1] + 1)
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000}
    return minimize(loss, start, bounds=bounds, method="L-BFGS-B", options=options)


@pytest.mark.parametrize("columns", [1, 2])
def test_the_gradient_vanishes_for_every_problem_of_a_batch(columns):
    p, weight, label = batch()
    features = np.column_stack([logit(p), p])[:, :columns]
    fits = fit_logistic(features, weight, label)
    for i in range(len(weight)):
        alone = fit_logistic(features, weight[[i]], label[[i]])
        assert_allclose(fits.slopes[i], alone.slopes[0], atol=1e-9)
        assert np.linalg.norm(gradient(features, weight[i], label[i], alone)) < 1e-9


@pytest.mark.parametrize("power", [1.5, 0.5, -1.0])
@pytest.mark.parametrize("seed", range(6))
def test_rising_fits_reach_the_optimum_of_a_general_optimiser(power, seed):
    rng = np.random.default_rng(seed)
    p = rng.random(60)
    share = p**power if power > 0 else 1 - 0.7 * p
    weight, label = np.ones((1, 60)), (rng.random((1, 60)) < share).astype(float)
    features = np.column_stack(log_odds_parts(p))
    ours = fit_rising(features, weight, label)
    best = general_optimum(features, weight[0], label[0], low=0.0)
    assert (ours.slopes >= 0).all()
    assert ours.losses[0] <= best.fun + 1e-9


def test_only_one_feature_is_dropped_where_that_is_best():
    """A hump in the middle: log(p) wants a positive slope, -log(1 - p) a negative."""
    p = np.linspace(0.02, 0.98, 200)
    weight = np.full((1, 200), 10.0)
    label = 10 * (0.9 - 1.5 * (p - 0.7) ** 2)[np.newaxis]
    features = np.column_stack(log_odds_parts(p))
    free = fit_logistic(features, weight, label)
    held = fit_rising(features, weight, label)
    assert free.slopes[0, 1] < 0 < free.slopes[0, 0]
    assert held.slopes[0, 1] == 0 < held.slopes[0, 0]
    assert free.losses[0] < held.losses[0]


def test_separable_classes_end_with_finite_slopes_and_no_loss():
    x = np.linspace(-3, 3, 40)[:, np.newaxis]
    fit = fit_logistic(x, np.ones((1, 40)), (x[:, 0] > 0)[np.newaxis].astype(float))
    assert np.isfinite(fit.slopes).all()
    assert fit.losses[0] < 1e-9


def test_huge_and_tiny_weights_give_the_same_fit():
    p, weight, label = batch(1)
    x = logit(p)[:, np.newaxis]
    usual = fit_logistic(x, weight, label)
    for factor in (1e-12, 1e12):
        scaled = fit_logistic(x, weight * factor, label * factor)
        assert_allclose(scaled.slopes, usual.slopes, rtol=1e-9)


def test_without_an_intercept_the_line_passes_through_zero():
    p, weight, label = batch(2)
    features = np.column_stack([p, p**2])
    fit = fit_logistic(features, weight, label, intercept=False)
    assert (fit.intercepts == 0).all()
    rest = weight * expit(fit.slopes @ features.T) - label
    assert_allclose(rest @ features / weight.sum(), 0, atol=1e-9)
