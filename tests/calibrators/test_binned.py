import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.core.sample import BinarySample
from calibrant.exceptions import OptionError, TooFewRowsError, UnknownNameError
from strategies import binary_samples, counts

METHODS = [name for name in cb.calibrator_names() if name.startswith("e")]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tops", ["slope-1", "flat"])
def test_error_is_the_mean_distance_of_the_map(sample, method, tops):
    p, y = sample
    fit = cb.make_calibrator(method, tops=tops).fit(p, y).fit_
    found = fit.error(BinarySample(p, y), alpha=1.0, debias=False)
    assert_allclose(found, np.abs(fit.map(p) - p).mean(), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(binary_samples(min_size=30), st.data())
@pytest.mark.parametrize("method", ["es5", "ew5", "es-sweep", "ew-sweep"])
def test_weight_two_equals_repeating_the_row(method, sample, data):
    p, y = sample
    weight = np.array(data.draw(st.lists(counts, min_size=p.size, max_size=p.size)))
    times = weight.astype(int)
    for debias in (False, "auto"):
        weighted = cb.calibration_error(
            y, p, method=method, sample_weight=weight, debias=debias
        )
        repeated = cb.calibration_error(
            np.repeat(y, times), np.repeat(p, times), method=method, debias=debias
        )
        assert_allclose(weighted, repeated, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_rows_in_any_order_give_the_same_map(sample, method):
    p, y = sample
    order = np.random.default_rng(5).permutation(p.size)
    one = cb.make_calibrator(method).fit(p, y).map_
    other = cb.make_calibrator(method).fit(p[order], y[order]).map_
    assert_allclose(one(p), other(p), atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_transform_stays_within_zero_and_one(sample, method):
    p, y = sample
    calibrated = cb.make_calibrator(method).fit(p, y).transform(np.linspace(0, 1, 101))
    assert calibrated.min() >= 0.0
    assert calibrated.max() <= 1.0


def test_calibration_repairs_new_predictions():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = (rng.random(20_000) < p**2).astype(float)
    fitted = cb.make_calibrator("es-cv").fit(p[:10_000], y[:10_000])
    repaired = fitted.transform(p[10_000:])
    assert np.abs(repaired - p[10_000:] ** 2).mean() < 0.02


def test_cross_validation_prefers_few_bins_for_calibrated_predictions():
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    y = (rng.random(3000) < p).astype(float)
    fit = cb.make_calibrator("es-cv").fit(p, y).fit_
    assert fit.n_pieces == 1
    assert fit.losses.shape == (40,)


def test_one_row_is_one_bin():
    with pytest.warns(cb.exceptions.SmallSampleWarning, match="only 1 row:"):
        fitted = cb.make_calibrator("es-cv").fit([0.4], [1])
    assert_allclose(fitted.map_(np.array([0.4])), [1.0])


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        ("es-cv", {"max_bins": 0}, "max_bins must be a whole number"),
        ("es-cv", {"folds": 1}, "folds must be .* at least 2"),
        ("es-cv", {"tolerance": -1}, "tolerance must be"),
        ("es-sweep", {"max_bins": 2.5}, "max_bins"),
        ("es15", {"tops": "round"}, "unknown tops 'round'"),
    ],
)
def test_bad_hyper_parameters_are_named(sample, name, params, words):
    with pytest.raises(OptionError, match=words):
        cb.make_calibrator(name, **params).fit(*sample)


def test_unknown_parameters_and_fixed_ones_have_errors_of_their_own():
    with pytest.raises(UnknownNameError, match="did you mean 'max_bins'"):
        cb.make_calibrator("es-cv", maxbins=3)
    with pytest.raises(OptionError, match="bins is fixed by the method's name 'es15'"):
        cb.make_calibrator("es15", bins=3)


def test_more_bins_than_rows_are_refused(sample):
    p, y = sample
    with pytest.raises(TooFewRowsError, match="501 bins for 500 rows"):
        cb.make_calibrator("es501").fit(p, y)
