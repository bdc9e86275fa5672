import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logit

import calibrant as cb
from calibrant.exceptions import MapFormatError
from calibrant.maps.parametric import BetaMap
from calibrant.numerics.class_probabilities import inverse_temperature

LOGISTIC = ["platt", "quadratic", "temperature", "beta"]


def test_platt_fits_logits_so_that_calibrated_ones_are_left_alone():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(0, 2, 50_000))
    map_ = cb.make_calibrator("platt").fit(p, rng.random(p.size) < p).map_
    assert_allclose([map_.a, map_.b, map_.intercept], [1, 1, 0], atol=0.05)


def test_platt_undoes_a_change_of_slope_and_intercept():
    rng = np.random.default_rng(1)
    c = expit(rng.normal(0, 2, 50_000))
    p = expit((logit(c) - 0.5) / 2)
    map_ = cb.make_calibrator("platt").fit(p, rng.random(c.size) < c).map_
    assert_allclose([map_.a, map_.intercept], [2, 0.5], atol=0.05)


def test_platt_may_fall_where_the_classes_are_swapped():
    rng = np.random.default_rng(2)
    p = rng.random(2000)
    y = rng.random(2000) > p
    assert cb.make_calibrator("platt").fit(p, y).map_.a < 0
    flat = cb.make_calibrator("beta").fit(p, y).map_
    assert flat == BetaMap(0.0, 0.0, pytest.approx(logit(y.mean())), flat.ends)


def test_smoothing_moves_labels_as_platt_did():
    """One prediction only: the fit is the mean of the moved labels."""
    fitted = cb.make_calibrator("platt", smoothing=True)
    map_ = fitted.fit(np.full(40, 0.3), np.arange(40) < 10).map_
    moved = (10 * 11 / 12 + 30 * 1 / 32) / 40
    assert_allclose(map_(np.array([0.3])), moved)


def test_smoothing_keeps_one_class_off_certainty():
    p, y = np.linspace(0, 1, 50), np.zeros(50)
    smoothed = cb.make_calibrator("platt", smoothing=True).fit(p, y).transform(p)
    assert_allclose(smoothed, 1 / 52, atol=1e-6)
    assert (cb.make_calibrator("platt").fit(p, y).transform(p) < 1e-12).all()


def beta_sample(a=0.5, b=2.0, c=0.3, n=100_000):
    rng = np.random.default_rng(3)
    p = rng.random(n)
    return p, rng.random(n) < BetaMap(a, b, c)(p)


def test_beta_finds_the_coefficients_that_made_the_labels():
    map_ = cb.make_calibrator("beta").fit(*beta_sample()).map_
    assert_allclose([map_.a, map_.b, map_.intercept], [0.5, 2, 0.3], atol=0.1)


def test_variants_hold_what_they_promise():
    sample = beta_sample(n=5000)
    ab = cb.make_calibrator("beta", variant="ab").fit(*sample).map_
    assert_allclose(ab(np.array([0.5])), 0.5)
    assert ab.a != ab.b
    am = cb.make_calibrator("beta", variant="am").fit(*sample).map_
    platt = cb.make_calibrator("platt").fit(*sample).map_
    assert am.a == am.b
    assert_allclose([am.a, am.intercept], [platt.a, platt.intercept], rtol=1e-8)


def test_beta_does_not_fall():
    rng = np.random.default_rng(5)
    p = rng.random(500)
    y = rng.random(500) < 0.5 + 0.4 * np.sin(7 * p)
    for variant in ("abm", "ab", "am"):
        map_ = cb.make_calibrator("beta", variant=variant).fit(p, y).map_
        assert map_.a >= 0
        assert map_.b >= 0


GOOD = {"kind": "beta", "a": 1.0, "b": 1.0, "intercept": 0.0, "ends": [0.1, 0.9]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": "1"}, "field 'a' of a map must be a number"),
        ({"b": None}, "field 'b' of a map must be a number"),
        ({"b": True}, "field 'b' of a map must be a number"),
        ({"intercept": float("nan")}, "finite"),
        ({"intercept": 10**400}, "finite"),
    ],
)
def test_damaged_maps_are_refused(change, words):
    with pytest.raises(MapFormatError, match=words):
        cb.map_from_dict(GOOD | change)


@pytest.mark.parametrize("method", ["platt", "beta"])
@pytest.mark.parametrize("seed", range(6))
def test_predictions_that_differ_by_rounding_alone_keep_the_base_rate(method, seed):
    """A slope of 1e16 would be fitted well and evaluated to anything."""
    rng = np.random.default_rng(seed)
    p = 0.3 + np.spacing(0.3) * rng.integers(-8, 9, 40)
    y = (rng.random(40) < 0.4).astype(float)
    fitted = cb.make_calibrator(method).fit(p, y)
    assert_allclose(fitted.transform(p).sum(), y.sum(), rtol=1e-6)


def test_each_bin_of_scaling_binning_predicts_the_mean_of_its_scaled_values(
    smooth_sample,
):
    p, y = smooth_sample
    order = np.argsort(p)
    scaled = cb.make_calibrator("platt").fit(p, y).transform(p[order])
    expected = np.repeat([part.mean() for part in np.array_split(scaled, 15)], 40)
    found = cb.make_calibrator("scaling-binning").fit(p, y).transform(p[order])
    assert_allclose(found, expected, atol=1e-12)


def test_bins_and_smoothing_of_scaling_binning_are_parameters(smooth_sample):
    p, y = smooth_sample
    few = cb.make_calibrator("scaling-binning", bins=4).fit(p, y)
    assert np.unique(few.transform(p)).size == few.fit_.n_pieces == 4
    smoothed = cb.make_calibrator("scaling-binning", bins=4, smoothing=True).fit(p, y)
    assert not np.allclose(few.transform(p), smoothed.transform(p), atol=1e-6)


def test_scaling_binning_has_a_value_everywhere(smooth_sample):
    fitted = cb.make_calibrator("scaling-binning").fit(*smooth_sample)
    assert (np.diff(fitted.transform(np.linspace(0, 1, 500))) >= 0).all()


def confidences(n=600):
    """Percentages that say little about labels, some of them exactly 0 and 100."""
    rng = np.random.default_rng(8)
    p = np.round(rng.beta(4.0, 1.5, n), 2)
    p[:30], p[30:120] = 0.0, 1.0
    return p, rng.random(n) < expit(0.3 * logit(np.clip(p, 0.005, 0.995)))


@pytest.mark.parametrize("method", [*LOGISTIC, "scaling-binning"])
def test_exact_predictions_count_as_rounded(method):
    """At the logit of machine precision they would flatten the map to slope 0.04."""
    p, y = confidences()
    finest = min(0.01, 1 / p.size)
    inside = np.clip(p, finest / 2, 1 - finest / 2)
    grid = np.linspace(0, 1, 101)
    at = np.clip(grid, finest / 2, 1 - finest / 2)
    found = cb.make_calibrator(method).fit(p, y).map_
    expected = cb.make_calibrator(method).fit(inside, y).map_
    assert_allclose(found(grid), expected(at), atol=1e-6)
    assert cb.map_from_dict(found.to_dict()) == found


def test_platt_finds_the_slope_beside_exact_predictions():
    assert_allclose(
        cb.make_calibrator("platt").fit(*confidences()).map_.a, 0.3, atol=0.1
    )


def quadratic_sample(n=5000, coefficients=(0.3, 0.8, -0.15)):
    rng = np.random.default_rng(4)
    p = expit(rng.normal(0, 2, n))
    f = np.polynomial.Polynomial(coefficients)(logit(p))
    return p, (rng.random(n) < expit(f)).astype(float)


def quadratic_loss(coefficients, p, y):
    f = np.polynomial.Polynomial(coefficients)(logit(p))
    return np.mean(np.logaddexp(0, f) - y * f)


def test_quadratic_finds_the_coefficients_that_made_the_labels():
    map_ = cb.make_calibrator("quadratic").fit(*quadratic_sample(100_000)).map_
    found = [map_.intercept, map_.slope, map_.curvature]
    assert_allclose(found, [0.3, 0.8, -0.15], atol=0.03)


def test_quadratic_is_the_optimum_of_a_general_optimiser():
    p, y = quadratic_sample(300)
    map_ = cb.make_calibrator("quadratic").fit(p, y).map_
    best = minimize(quadratic_loss, [0, 1, 0], (p, y), tol=1e-10)
    ours = [map_.intercept, map_.slope, map_.curvature]
    assert_allclose(ours, best.x, atol=1e-5)


def test_quadratic_shifts_logits_beyond_the_data_as_at_the_last_prediction():
    p, y = quadratic_sample(300)
    fitted = cb.make_calibrator("quadratic").fit(p, y)
    last = np.array([p.min(), p.max()])
    beyond = expit(logit(last) + np.array([-1, 1]))
    shift, further = (logit(fitted.transform(at)) - logit(at) for at in (last, beyond))
    assert_allclose(further, shift, atol=1e-9)


QUADRATIC = {"kind": "quadratic", "intercept": 0.0, "slope": 1.0, "curvature": 0.0}
QUADRATIC |= {"data": [0.1, 0.9], "ends": [0.01, 0.99]}


@pytest.mark.parametrize("limits", ["data", "ends"])
@pytest.mark.parametrize("values", [[0.0, 0.9], [0.9, 0.1], [0.5, 1.0]])
def test_limits_of_damaged_quadratic_maps_are_refused(limits, values):
    with pytest.raises(MapFormatError, match="two ascending probabilities"):
        cb.map_from_dict(QUADRATIC | {limits: values})


def test_temperature_of_one_event_is_that_of_two_columns():
    p, y = confidences()
    p = np.clip(p, 0.01, 0.99)
    map_ = cb.make_calibrator("temperature").fit(p, y).map_
    share = np.full(p.size, 1 / p.size)
    both = np.column_stack([np.zeros(p.size), logit(p)])
    assert_allclose(map_.a, inverse_temperature(both, y.astype(int), share), rtol=1e-9)
    assert map_.a == map_.b
    assert map_(0.5) == 0.5


def test_temperature_of_wrong_predictions_is_the_flat_map():
    p = np.linspace(0.1, 0.9, 50)
    assert_allclose(cb.make_calibrator("temperature").fit(p, p < 0.5).transform(p), 0.5)
