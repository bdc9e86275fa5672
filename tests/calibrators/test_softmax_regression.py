import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import calibrant as cb
from calibrant.exceptions import MapFormatError

METHODS = ["svs", "sms"]


def draw(n=120, k=3, seed=0):
    """Draw over-confident probabilities of classes that are confused and biased."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    logits = 2.0 * rng.normal(size=(n, k)) + 3.0 * np.eye(k)[y]
    return softmax(logits @ rng.normal(np.eye(k), 0.2) + rng.normal(size=k), axis=1), y


def fitted(method, prob, y, **options):
    return cb.make_calibrator(method).fit(prob, y, **options)


def by_definition(method, prob, y):
    """Minimise by a general optimiser, from the formulas of Berta et al."""
    n, k = prob.shape
    tempered = cb.make_calibrator("temperature").fit(prob, y).transform(prob)
    x = np.log(n / (n + 1) * tempered + 1 / (n + 1) / k)
    off = (1 - np.eye(k)) * (method == "sms")

    def scores(parameters):
        matrix, b = parameters[:-k].reshape(k, k), parameters[-k:]
        return x + x @ (matrix * (np.eye(k) + off)).T + b

    def loss(parameters):
        matrix, b = parameters[:-k].reshape(k, k), parameters[-k:]
        squares = k * (np.sum(b**2) + np.sum(np.diag(matrix) ** 2))
        squares += k * (k - 1) * np.sum((off * matrix) ** 2)
        fit = -log_softmax(scores(parameters), axis=1)[np.arange(n), y].mean()
        return fit + squares / n

    return softmax(scores(minimize(loss, np.zeros(k * k + k), tol=1e-9).x), axis=1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [30, 120])
def test_the_fit_is_the_optimum_of_a_general_optimiser(method, n):
    prob, y = draw(n)
    ours = fitted(method, prob, y).transform(prob)
    assert_allclose(ours, by_definition(method, prob, y), atol=2e-6)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_counts(method):
    prob, y = draw()
    weight = np.arange(len(y)) % 3
    one = fitted(method, prob, y, sample_weight=weight).transform(prob)
    rows = np.repeat(np.arange(len(y)), weight)
    assert_allclose(one, fitted(method, prob[rows], y[rows]).transform(prob), atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_an_absent_class_and_exact_zeros_leave_positive_probabilities(method):
    prob, y = draw()
    prob = np.where(prob < 0.2, 0.0, prob)
    prob /= prob.sum(axis=1, keepdims=True)
    calibrated = fitted(method, prob[y > 0], y[y > 0]).transform(prob)
    assert np.isfinite(calibrated).all()
    assert (calibrated > 0).all()
    assert calibrated[y > 0, 0].mean() < 0.05


@pytest.mark.parametrize("method", METHODS)
def test_five_distinct_rows_are_enough(method):
    prob, _ = draw(5)
    rows = np.arange(200) % 5
    y = np.random.default_rng(1).integers(3, size=200)
    calibrated = fitted(method, prob[rows], y).transform(prob)
    assert_allclose(calibrated.sum(axis=1), 1.0)


def test_the_matrix_without_confusion_is_nearly_the_temperature():
    """The penalty of 200 rows outweighs what noise there is."""
    rng = np.random.default_rng(2)
    truth = softmax(rng.normal(size=(200, 4)), axis=1)
    y = (truth.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    prob = softmax(2.0 * np.log(truth), axis=1)
    scaled = cb.make_calibrator("temperature").fit(prob, y).transform(prob)
    assert np.abs(fitted("sms", prob, y).transform(prob) - scaled).mean() < 0.03


@pytest.mark.parametrize(
    ("change", "words"),
    [({"uniform": 1.0}, "must be below 1"), ({"inverse": 0.0}, "must be above 0")],
)
def test_damaged_maps_are_refused(change, words):
    stored = json.loads(json.dumps(fitted("svs", *draw()).map_.to_dict()))
    with pytest.raises(MapFormatError, match=words):
        cb.map_from_dict(stored | change)
