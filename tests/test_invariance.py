"""What does not matter: the order of rows and of classes, down to the last digit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression

import calibrant as cb
from calibrant.numerics.sorted_rows import tie_starts

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")


def neighbours(seed, n=60):
    """Predictions a few units in the last place apart, with ties, and labels."""
    rng = np.random.default_rng(seed)
    centre = rng.choice([0.5, 0.3, 0.999, 1e-3, 1e-12])
    p = centre + np.spacing(centre) * rng.integers(-8, 9, n)
    return p, (rng.random(n) < rng.choice([0.2, 0.5, 0.8])).astype(float)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "method", ["platt", "beta", "scaling-binning", "isotonic", "pl", "pl3", "smooth"]
)
def test_maps_of_neighbouring_floats_do_not_depend_on_the_order_of_rows(method, seed):
    p, y = neighbours(seed)
    order = np.random.default_rng(seed).permutation(p.size)
    one = cb.make_calibrator(method).fit(p, y)
    other = cb.make_calibrator(method).fit(p[order], y[order])
    assert_allclose(one.transform(p), other.transform(p), rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", ["platt", "beta"])
def test_weights_are_copies_to_the_last_digit(method, seed):
    p, y = neighbours(seed)
    times = np.random.default_rng(seed).integers(1, 5, p.size)
    weighted = cb.make_calibrator(method).fit(p, y, sample_weight=times)
    copied = cb.make_calibrator(method).fit(np.repeat(p, times), np.repeat(y, times))
    assert_array_equal(weighted.transform(p), copied.transform(p))


def isotonic_of(x, y):
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    return theirs.fit(x, y)


@pytest.mark.parametrize(
    ("n", "gap"), [(20_000, 9e-16), (3000, 3e-16), (500, 1.2e-16), (40, 1e-15)]
)
def test_isotonic_regression_of_a_row_of_neighbours_is_scikit_learns(n, gap):
    p = 0.3 + gap * np.arange(n)
    y = (np.random.default_rng(n).random(n) < np.arange(n) / n).astype(float)
    ours = cb.make_calibrator("isotonic").fit(p, y)
    starts = tie_starts(p)  # between them scikit-learn's line rises
    found, wanted = ours.transform(p[starts]), isotonic_of(p, y).predict(p[starts])
    assert_allclose(found, wanted, atol=1e-12)
    assert np.unique(found).size > 3


def test_steps_are_on_the_right_side_of_neighbouring_floats():
    rng = np.random.default_rng(0)
    p = 0.5 + np.spacing(0.5) * np.sort(rng.choice(400, 300, replace=False))
    y = (rng.random(300) < np.arange(300) / 300).astype(float)
    lines = cb.make_calibrator("isotonic").fit(p, y)
    steps = cb.make_calibrator("isotonic", evaluation="step").fit(p, y)
    assert steps.fit_.n_pieces > 10
    assert_allclose(steps.transform(p), lines.transform(p), atol=1e-12)


@pytest.mark.parametrize(
    ("values", "starts"),
    [
        ([0.0], [0]),
        ([0.2, 0.2, 0.2], [0]),
        ([0.0, 5e-324, 1e-300, 9e-16, 1e-15], [0, 4]),
        (np.arange(7) * 4e-16, [0, 3, 6]),
        ([0.1, 0.1 + 6e-16, 0.1 + 12e-16, 0.5, 0.5 + 2e-16], [0, 2, 3]),
    ],
)
def test_a_tie_is_narrow(values, starts):
    assert tie_starts(np.array(values)).tolist() == starts


def class_rows(kind, seed):
    """Rows whose probabilities lie on edges of bins, or tie between rows."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(20, 200)), int(rng.integers(3, 6))
    if kind == "votes":
        prob = rng.multinomial(10, np.ones(k) / k, n) / 10
    elif kind == "sevenths":
        prob = rng.multinomial(7, np.ones(k) / k, n) / 7
    else:
        logits = np.round(rng.normal(size=(n, k)))
        prob = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > prob.cumsum(axis=1)).sum(axis=1).clip(max=k - 1)
    return prob, y, rng.permutation(k)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["votes", "sevenths", "logits"])
@pytest.mark.parametrize("method", ["es5", "ew10", "es-sweep", "isotonic", "platt"])
def test_the_order_of_classes_does_not_matter(method, kind, seed):
    prob, y, order = class_rows(kind, seed)
    one = cb.make_calibrator(f"ovr-{method}").fit(prob, y).transform(prob)
    turned, new_y = prob[:, order], np.argsort(order)[y]
    other = cb.make_calibrator(f"ovr-{method}").fit(turned, new_y).transform(turned)
    assert_allclose(one[:, order], other, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["es5", "ew10", "es-sweep"])
def test_the_order_of_classes_does_not_matter_for_errors_of_logits(method, seed):
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=(100, 4)))
    y, order = rng.integers(0, 4, 100), rng.permutation(4)
    settings = {"method": method, "task": "classwise", "scale": "logit"}
    one = cb.calibration_error(y, logits, **settings)
    other = cb.calibration_error(np.argsort(order)[y], logits[:, order], **settings)
    assert one == pytest.approx(other, abs=1e-14)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_votes_stay_in_the_bin_that_they_are_given_in(k):
    """Divided by a sum of 1 - 1e-16, a vote of 3 in 10 would leave its bin."""
    rng = np.random.default_rng(k)
    votes = rng.multinomial(10, np.ones(k) / k, 400)
    y = rng.integers(0, k, 400)
    fitted = cb.make_calibrator("ovr-ew10", tops="flat").fit(votes / 10, y)
    for level in np.unique(votes[:, 0]):
        share = np.mean(y[votes[:, 0] == level] == 0)
        assert_allclose(fitted.map_.maps[0](np.array([level / 10])), share, atol=1e-12)
