"""Maps of folds are evaluated together as each would be alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant.calibrators.registry import find_method
from calibrant.core.sample import BinarySample
from calibrant.maps.base import values_of_each


def folds(ends=(0.0, 1.0)):
    """Return predictions, some of exactly 0 or 1, and a sample without each fold."""
    rng = np.random.default_rng(5)
    p = rng.beta(0.5, 0.7, 300)
    p[:6], p[6:12] = ends
    y = (rng.uniform(size=p.size) < p**1.4).astype(float)
    fold = rng.integers(0, 4, p.size)
    return p, fold, [BinarySample(p[fold != k], y[fold != k]) for k in range(4)]


METHODS = ("smooth", "temperature", "quadratic", "platt", "venn-abers", "isotonic")


@pytest.mark.parametrize("method", METHODS)
def test_each_row_gets_the_value_of_the_map_of_its_fold(method):
    p, fold, samples = folds()
    maps = [fit.map for fit in find_method(method).build().fit_each(samples)]
    expected = np.empty_like(p)
    for number, map_ in enumerate(maps):
        expected[fold == number] = map_.values(p[fold == number])
    assert_allclose(values_of_each(maps, p, fold), expected, rtol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_samples_that_are_fitted_together_have_the_maps_of_each_alone(method):
    p, _, samples = folds(ends=(0.01, 0.98))
    calibrator = find_method(method).build()
    for fit, sample in zip(calibrator.fit_each(samples), samples, strict=True):
        alone = calibrator.fit_event(sample).map
        assert_allclose(fit.map.values(p), alone.values(p), rtol=1e-12)


def test_a_curve_of_one_prediction_is_a_line_of_two_knots():
    sample = BinarySample(np.full(40, 0.3), np.repeat([0.0, 1.0], 20))
    (fit,) = find_method("smooth").build().fit_each([sample])
    assert fit.map.knots.size == 2
    assert 0.3 < fit.map.values(np.array([0.3])).item() < 0.5
