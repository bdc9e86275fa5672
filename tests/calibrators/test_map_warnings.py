import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import (
    FallingMapWarning,
    OutsideRangeWarning,
    UpsideDownWarning,
)

pytestmark = pytest.mark.filterwarnings("error")
P = np.linspace(0.2, 0.8, 400)
WITH_RATE = np.arange(400) * 7 % 10 + 0.5
FALLING = P, 10 * np.where(P < 0.6, P, 1.2 - P) > WITH_RATE
"""The rate rises up to 0.6 and falls from there on."""
UPSIDE_DOWN = P, WITH_RATE < 10 * (1.0 - P)


def fitted(method, p, y, **params):
    return cb.make_calibrator(method, **params).fit(p, y)


@pytest.mark.parametrize("method", ["quadratic", "pl3", "spline-natural"])
def test_a_map_that_falls_says_so(method):
    with pytest.warns(
        FallingMapWarning,
        match=r"decreases, from 0\.\d+ at 0\.[56]\d* to 0\.[345]\d* at",
    ):
        fitted(method, *FALLING)


@pytest.mark.parametrize("method", ["smooth", "beta", "isotonic", "es15"])
def test_maps_that_rise_and_bins_say_nothing(method):
    fitted(method, *FALLING)


def test_only_a_map_asked_to_be_free_falls():
    with pytest.warns(FallingMapWarning, match="use a monotone method"):
        fitted("smooth", *FALLING, monotone=False)


@pytest.mark.parametrize("method", ["auto", "smooth", "platt", "es15"])
def test_predictions_of_the_other_label_are_no_case_for_a_calibrator(method):
    with pytest.warns(UpsideDownWarning, match=r"correlation -0\.3") as caught:
        fitted(method, *UPSIDE_DOWN)
    assert len(caught) == 1


def test_weights_count_where_predictions_are_upside_down():
    p, y = UPSIDE_DOWN
    contrary = (y == (p > 0.5)).astype(float)
    with pytest.warns(UpsideDownWarning):
        cb.make_calibrator("platt").fit(p, y, sample_weight=1.0 + 0.0 * contrary)
    cb.make_calibrator("platt").fit(p, y, sample_weight=1.0 + 9.0 * contrary)


def test_predictions_far_outside_the_range_are_named(smooth_sample):
    p, y = smooth_sample
    inner = (p > 0.3) & (p < 0.6)
    calibrator = fitted("smooth", p[inner], y[inner])
    assert calibrator.range_ == (p[inner].min(), p[inner].max())
    with pytest.warns(OutsideRangeWarning, match=r"^2 of 3 predictions .* to 0\.5"):
        calibrator.transform([0.1, 0.5, 0.9])
    both = np.array([[0.5, 0.5], [0.1, 0.9]])
    with pytest.warns(OutsideRangeWarning, match=r"^1 of 2 predictions"):
        calibrator.transform(both)


def test_new_rows_a_little_outside_are_usual(smooth_sample):
    p, y = smooth_sample
    inner = (p > 0.3) & (p < 0.6)
    calibrator = fitted("smooth", p[inner], y[inner])
    calibrator.transform([0.26, 0.64])
    calibrator.transform(np.append(np.full(99, 0.5), 0.99))
