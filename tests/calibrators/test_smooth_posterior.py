"""What the posterior of a smooth map says, against simulation and closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from calibrant._validation.sample import BinarySample
from calibrant.calibrators.smooth import Smooth
from calibrant.exceptions import OptionError
from calibrant.experiments.synthetic import sample as paper_sample
from calibrant.numerics.links import logit


def fitted(shape="stairs", error=0.05, n=3000, seed=0, **params):
    p, y, c = paper_sample(shape, error, n, seed)
    sample = BinarySample(p, y)
    return Smooth(**params).fit(sample), sample, c


def test_bands_of_a_constant_prediction_are_those_of_a_proportion():
    """One free parameter: the logit of a share s has variance 1 / (n s (1 - s))."""
    y = np.repeat([1.0, 0.0], [300, 700])
    sample = BinarySample(np.full(1000, 0.4), y)
    fit = Smooth(penalties=(1e-9, 1e-9, 1.0, 1.0)).fit(sample)
    low, high = fit.band(np.array([0.4]), 0.95)
    half = 1.959964 / np.sqrt(1000 * 0.3 * 0.7)
    assert_allclose(
        [low[0], high[0]], expit(logit(0.3) + half * np.array([-1, 1])), rtol=1e-4
    )


def test_bands_lie_around_the_map_and_grow_with_confidence():
    fit, sample, _ = fitted()
    wide, narrow = fit.band(sample.p, 0.99), fit.band(sample.p, 0.5)
    map_ = fit.map(sample.p)
    for lower, upper in zip(
        (wide[0], narrow[0], map_), (narrow[0], map_, narrow[1]), strict=True
    ):
        assert (lower <= upper + 1e-12).all()
    assert (narrow[1] < wide[1]).all()


def test_draws_have_the_moments_of_the_band():
    fit, sample, _ = fitted()
    errors = fit.posterior_errors(
        sample, n_draws=4000, rng=np.random.default_rng(0), alpha=2.0
    )
    low, high = fit.band(sample.p, 0.6826895)  # one standard deviation of the logit
    spread = 0.5 * (high - low)
    expected = ((fit.map(sample.p) - sample.p) ** 2 + spread**2).mean()
    assert_allclose(errors.mean(), expected, rtol=0.03)


def test_bands_cover_the_true_map():
    covered = []
    for seed in range(100, 130):
        for shape in ("square", "stairs"):
            fit, sample, c = fitted(shape, 0.05, 10_000, seed)
            low, high = fit.band(sample.p, 0.9)
            covered.append(((low <= c) & (c <= high)).mean())
    assert 0.85 < np.mean(covered) < 0.98


def test_quantiles_of_drawn_errors_cover_the_true_error():
    covered, rng = [], np.random.default_rng(0)
    for seed in range(100, 150):
        for shape in ("square", "beta2"):
            fit, sample, c = fitted(shape, 0.05, 10_000, seed)
            errors = fit.posterior_errors(sample, n_draws=400, rng=rng)
            low, high = np.quantile(errors, [0.05, 0.95])
            covered.append(low <= np.abs(sample.p - c).mean() <= high)
    assert 0.82 < np.mean(covered) < 0.97


def test_uncertain_penalties_widen_the_posterior():
    fit, _, _ = fitted("beta2", 0.025, 1000, 1)
    for member in fit.members:
        plain = np.linalg.inv(member.mode.factor @ member.mode.factor.T)
        whole = member.roots @ member.roots.T
        assert_allclose(whole - plain, (whole - plain).T, atol=1e-9)
        assert np.linalg.eigvalsh(whole - plain).min() > -1e-9


def test_draws_follow_the_generator():
    fit, sample, _ = fitted(n=1000)
    once, again = (
        fit.posterior_errors(sample, n_draws=50, rng=np.random.default_rng(3))
        for _ in range(2)
    )
    assert once.shape == (50,)
    assert np.array_equal(once, again)


def test_bad_parameters_are_named():
    fit, sample, _ = fitted(n=1000)
    with pytest.raises(OptionError, match="confidence must lie"):
        fit.band(sample.p, 95)
    with pytest.raises(OptionError, match="n_draws must be"):
        fit.posterior_errors(sample, n_draws=0, rng=np.random.default_rng(0))
