import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibrant as cb
from calibrant.exceptions import MapFormatError


def fitted(p, y, **options):
    return cb.make_calibrator("venn-abers").fit(p, y, **options).map_


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return p, (rng.random(n) < p**2).astype(float)


def test_the_value_is_the_mean_of_the_two_probabilities_by_regret():
    """Of p0 and p1 it loses as much to the one as to the other."""
    map_ = fitted(*draw())
    at = np.linspace(0, 1, 401)
    low, high = map_.intervals(at)
    value = map_(at)
    assert (low < high).all()
    assert ((low <= value) & (value <= high)).all()
    assert_allclose(value / high, (1 - value) / (1 - low))


def test_neither_limit_falls():
    for limit in fitted(*draw()).intervals(np.linspace(0, 1, 401)):
        assert (np.diff(limit) >= 0).all()


def test_limits_hold_at_their_own_prediction_and_meet_0_and_1_outside():
    map_ = fitted(np.tile([0.4, 0.6], 20), np.arange(40) % 4 < 1)
    low, high = map_.intervals([0.3, 0.4, 0.5, 0.6, 0.7])
    assert_allclose(low, [0, 10 / 41, 10 / 41, 10 / 41, 10 / 41])
    assert_allclose(high, [11 / 41, 11 / 41, 11 / 41, 11 / 41, 1])


@pytest.mark.parametrize("n", [40, 400])
def test_one_of_the_two_is_calibrated(n):
    """The probability selected by the label of a new row has the mean of the labels."""
    gaps = []
    for seed in range(300):
        p, y = draw(n + 1, seed)
        low, high = fitted(p[1:], y[1:]).intervals(p[:1])
        gaps.append(float(np.where(y[0] == 1, high, low)[0] - y[0]))
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / np.sqrt(len(gaps))


def test_weights_are_counts():
    p, y = draw(60)
    weight = np.arange(60) % 4
    repeated = fitted(np.repeat(p, weight), np.repeat(y, weight))
    assert fitted(p, y, sample_weight=weight) == repeated


def test_predictions_of_any_shape_have_limits():
    map_ = fitted(*draw())
    low, high = map_.intervals([[0.2, 0.3], [0.4, 0.5]])
    assert low.shape == high.shape == (2, 2)
    assert_array_equal(low[1], map_.intervals([0.4, 0.5])[0])


GOOD = {"kind": "venn-abers", "starts": [0.5], "lower": [0.0, 0.5]}
GOOD |= {"ends": [0.5], "upper": [0.6, 1.0]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lower": [0.0]}, "must contain 2 numbers"),
        ({"upper": [0.6, 0.5]}, "must not decrease"),
        ({"upper": [0.0, 1.0]}, "must be probabilities"),
        ({"lower": [0.0, 1.0]}, "must be probabilities"),
    ],
)
def test_damaged_maps_are_refused(change, words):
    assert cb.map_from_dict(GOOD)(0.5) == pytest.approx(0.6 / 1.1)
    with pytest.raises(MapFormatError, match=words):
        cb.map_from_dict(GOOD | change)
