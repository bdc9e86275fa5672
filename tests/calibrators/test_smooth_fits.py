"""What the posterior of a smooth map says, against simulation and closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm

from calibrant.calibrators.smooth import Smooth
from calibrant.core.sample import BinarySample
from calibrant.experiments.synthetic import sample as paper_sample
from calibrant.numerics.links import logit


def fitted(shape="stairs", error=0.05, n=3000, seed=0, **params):
    p, y, c = paper_sample(shape, error, n, seed)
    sample = BinarySample(p, y)
    return Smooth(**params).fit_event(sample), sample, c


def test_bands_of_a_constant_prediction_are_those_of_a_proportion():
    """One free parameter: the logit of a share s has variance 1 / (n s (1 - s))."""
    y = np.repeat([1.0, 0.0], [300, 700])
    sample = BinarySample(np.full(1000, 0.4), y)
    fit = Smooth(penalties=(1e-9, 1e-9, 1.0, 1.0)).fit_event(sample)
    low, high = fit.band(np.array([0.4]), 0.95)
    half = 1.959964 / np.sqrt(1000 * 0.3 * 0.7)
    assert_allclose(
        [low[0], high[0]], expit(logit(0.3) + half * np.array([-1, 1])), rtol=0.01
    )


def test_evidence_is_an_integral_over_the_coefficients():
    """Shift and tilt on a grid, instead of Laplace's approximation."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.95, 150)
    fit = Smooth().fit_event(BinarySample(p, (rng.random(150) < p**1.5).astype(float)))
    best, problem = fit.curve.members[0], fit.curve.problem
    assert best.kept.tolist() == [True, True, False, False]
    spread = best.penalties[:2] ** -0.5
    shift, tilt = (np.linspace(-6, 6, 241) * one for one in spread)
    loss = [
        [problem.loss(problem.offset + problem.design[:, :2] @ [a, b]) for b in tilt]
        for a in shift
    ]
    density = norm.pdf(np.linspace(-6, 6, 241)) * 0.05
    integral = density @ np.exp(-np.array(loss) + np.min(loss)) @ density
    size = max(1.0, np.sqrt(np.mean(problem.offset**2)))
    prior = np.sum(spread**2) / (2 * (3 * size) ** 2)
    expected = problem.loss(problem.offset) - np.min(loss) + np.log(integral)
    assert fit.evidence == pytest.approx(expected - prior - 2.0, abs=0.05)


def test_bands_lie_around_the_map_and_grow_with_confidence():
    fit, sample, _ = fitted()
    wide, narrow = fit.band(sample.p, 0.99), fit.band(sample.p, 0.5)
    map_ = fit.map(sample.p)
    for lower, upper in zip(
        (wide[0], narrow[0], map_), (narrow[0], map_, narrow[1]), strict=True
    ):
        assert (lower <= upper + 1e-12).all()
    assert (narrow[1] < wide[1]).all()


def test_simultaneous_bands_are_wider_and_hold_whole_maps():
    held, pointwise = [], []
    for seed in range(100, 112):
        fit, sample, c = fitted("beta1", 0.05, 1000, seed)
        low, high = fit.band(sample.p, 0.9)
        lower, higher = fit.band(sample.p, 0.9, simultaneous=True)
        assert (lower <= low).all()
        assert (high <= higher).all()
        held.append(((lower <= c) & (c <= higher)).all())
        pointwise.append(((low <= c) & (c <= high)).all())
    assert np.mean(pointwise) < np.mean(held)
    assert np.mean(held) > 0.68  # 0.9 less 2.5 standard errors


def test_simultaneous_bands_hold_where_the_map_bends_in_the_far_tail():
    """Near 0 the true map of sqrt is a square, and no row tells."""
    for seed in range(300, 306):
        fit, sample, c = fitted("sqrt", 0.025, 10_000, seed)
        tail = slice(0, 100)
        low, high = fit.band(sample.p[tail], 0.9, simultaneous=True)
        assert ((low <= c[tail]) & (c[tail] <= high)).all()


def test_simultaneous_limits_are_0_and_1_beyond_the_data():
    p = np.random.default_rng(3).uniform(0.2, 0.8, 500)
    fit = Smooth().fit_event(BinarySample(p, (p > 0.5).astype(float)))
    low, high = fit.band(np.array([0.1, 0.5, 0.9]), 0.9, simultaneous=True)
    assert low[0] == 0.0 < low[1]
    assert high[1] < 1.0 == high[2]


def test_edges_of_bands_are_smooth():
    """Second differences of a smooth line fall with the square of the step."""
    fit, _, _ = fitted(monotone=False)
    bends = []
    for count in (200, 400):
        low, _ = fit.band(np.linspace(0.1, 0.9, count), 0.9)
        bends.append(np.abs(np.diff(low, 2)).mean())
    assert bends[1] < 0.35 * bends[0]  # 0.5 with kinks


def test_simultaneous_limits_of_one_prediction_are_point_wise():
    y = np.repeat([1.0, 0.0], [300, 700])
    fit = Smooth(penalties=(1e-9, 1e-9, 1.0, 1.0)).fit_event(
        BinarySample(np.full(1000, 0.4), y)
    )
    one, all_ = (
        fit.band(np.array([0.4]), 0.9, simultaneous=simultaneous)
        for simultaneous in (False, True)
    )
    assert_allclose(one, all_, atol=2e-3)


def test_bands_cover_the_true_map():
    covered = []
    for seed in range(100, 115):
        for shape in ("square", "stairs"):
            fit, sample, c = fitted(shape, 0.05, 1000, seed)
            low, high = fit.band(sample.p, 0.9)
            covered.append(((low <= c) & (c <= high)).mean())
    assert 0.84 < np.mean(covered) < 0.98


def test_quantiles_of_drawn_errors_cover_the_true_error():
    covered, rng = [], np.random.default_rng(0)
    for seed in range(100, 130):
        for shape in ("square", "beta2"):
            fit, sample, c = fitted(shape, 0.05, 1000, seed)
            low, high = fit.curve.error_quantiles(
                (0.05, 0.95), n_draws=400, random_state=rng
            )
            covered.append(low <= np.abs(sample.p - c).mean() <= high)
    assert 0.8 < np.mean(covered) < 0.99


def test_uncertain_penalties_widen_the_posterior():
    fit, _, _ = fitted("beta2", 0.025, 1000, 1)
    best = tuple(np.minimum(fit.curve.penalties, 1e15).tolist())
    known, _, _ = fitted("beta2", 0.025, 1000, 1, penalties=best)
    rng = np.random.default_rng(0)
    unsure, sure = (
        np.var(fit.curve.problem.design @ one.curve.posterior.draws(1000, rng), axis=1)
        for one in (fit, known)
    )
    assert np.mean(unsure) > 1.2 * np.mean(sure)


def test_likelihoods_that_are_not_quadratic_are_met():
    """All labels 0 at p = 0: the likelihood has no bend there, yet errors stay small.

    A share of more than 3 / n among n = 400 negatives has a chance below 5 %.
    """
    p = np.repeat([0.0, 0.3, 0.6], [400, 50, 50])
    y = np.concatenate([np.zeros(400), np.tile([1.0, 0.0], 50)])
    fit = Smooth().fit_event(BinarySample(p, y))
    at_zero = fit.curve.drawn_curves(np.zeros(1), 500, 0)
    assert np.quantile(at_zero, 0.95) < 0.0075


def test_draws_follow_the_generator():
    fit, sample, _ = fitted(n=1000)
    once, again = (
        fit.curve.drawn_curves(sample.p, 50, np.random.default_rng(3)) for _ in range(2)
    )
    assert once.shape == (1000, 50)
    assert np.array_equal(once, again)


def test_the_same_seed_gives_the_same_draws_made_once():
    fit, _, _ = fitted(n=1000)
    first = fit.curve.drawn_terms(50, 3)
    assert fit.curve.drawn_terms(50, 3) is first
    assert_allclose(fit.curve.drawn_terms(50, np.random.default_rng(3)), first)
    assert not np.allclose(fit.curve.drawn_terms(50, 4), first)
    fit.curve.forget_posterior()
    assert_allclose(fit.curve.drawn_terms(50, 3), first)
