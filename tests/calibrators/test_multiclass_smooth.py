import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

import calibrant as cb
from calibrant.calibrators import multiclass_smooth


def draw(n=400, k=4, seed=0, sharpness=2.0, bias=1.0):
    """Draw probabilities that are too sharp and ignore how frequent classes are."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n, k))
    scores = logits + bias * np.linspace(-1.0, 1.0, k)
    y = (scores + rng.gumbel(size=(n, k))).argmax(axis=1)
    return softmax(sharpness * logits, axis=1), y, softmax(scores, axis=1)


def fitted(prob, y, **options):
    return cb.make_calibrator("smooth").fit(prob, y, **options)


def divergence(truth, prob):
    return float((truth * np.log(truth / prob)).sum(axis=1).mean())


def test_the_true_probabilities_are_found():
    smooth = fitted(*draw(5_000)[:2])
    prob, _, truth = draw(2_000, seed=1)
    assert divergence(truth, smooth.transform(prob)) < 0.003
    temperature = cb.make_calibrator("temperature").fit(*draw(5_000)[:2])
    assert divergence(truth, temperature.transform(prob)) > 0.1


@pytest.mark.parametrize("n", [30, 100, 1_000])
def test_calibrated_predictions_are_hardly_changed(n):
    prob, _, _ = draw(2_000, seed=9, sharpness=1.0)
    harms = []
    for seed in range(5):
        new, y, _ = draw(n, seed=seed, sharpness=1.0, bias=0.0)
        harms.append(divergence(prob, fitted(new, y).transform(prob)))
    assert np.mean(harms) < 3.0 / n


def test_weights_are_counts():
    prob, y, _ = draw(150)
    weight = np.arange(150) % 3
    rows = np.repeat(np.arange(150), weight)
    one, two = fitted(prob, y, sample_weight=weight), fitted(prob[rows], y[rows])
    assert_allclose(one.transform(prob), two.transform(prob), atol=2e-4)


def test_the_order_of_the_classes_does_not_matter():
    prob, y, _ = draw(200)
    order = np.array([2, 0, 3, 1])
    turned = fitted(prob[:, order], np.argsort(order)[y])
    expected = fitted(prob, y).transform(prob)
    assert_allclose(turned.transform(prob[:, order]), expected[:, order], atol=2e-4)


def test_two_fits_are_the_same():
    prob, y, _ = draw(100)
    assert fitted(prob, y).map_ == fitted(prob, y).map_


def test_exact_zeros_of_single_precision_and_an_absent_class():
    prob, y, _ = draw(300, sharpness=60.0)
    rounded = prob[y > 0].astype(np.float32)
    assert (rounded == 0.0).mean() > 0.1
    calibrated = fitted(rounded, y[y > 0]).transform(rounded)
    assert (calibrated > 0.0).all()
    assert calibrated[:, 0].mean() < 0.02


@pytest.mark.parametrize("impossible", [False, True])
def test_zeros_are_impossible_or_rounded_as_the_labels_have_it(impossible):
    rng = np.random.default_rng(0)
    _, y, prob = draw(3_000, sharpness=1.0)
    if impossible:
        never = rng.integers(4, size=3_000)
        keep = never != y
        prob, y = prob[keep], y[keep]
        prob[np.arange(y.size), never[keep]] = 0.0
    else:
        prob = np.round(10.0 * prob) / 10.0
    prob /= prob.sum(axis=1, keepdims=True)
    at_zero = fitted(prob, y).transform(prob)[prob == 0.0].mean()
    assert at_zero < 0.002 if impossible else 0.01 < at_zero < 0.05


@pytest.mark.parametrize(("n", "k"), [(30, 2), (30, 10), (40, 3)])
def test_few_rows(n, k):
    prob, y, _ = draw(n, k)
    calibrated = fitted(prob, y).transform(prob)
    assert_allclose(calibrated.sum(axis=1), 1.0)
    assert (calibrated > 1e-6).all()


@pytest.mark.parametrize("k", [30, 150])
def test_many_classes(k):
    prob, y, _ = draw(600, k)
    smooth = fitted(prob, y)
    assert (smooth.map_.probability_weights is None) == (k > 128)
    loss, before = (
        -np.log(p[np.arange(600), y]).mean() for p in (smooth.transform(prob), prob)
    )
    assert loss < 0.8 * before
    assert cb.map_from_dict(smooth.map_.to_dict()) == smooth.map_


def test_drawn_maps_scatter_around_the_map_as_fits_do():
    prob, y, _ = draw(300)
    fit = fitted(prob, y).fit_
    new = draw(50, seed=5)[0]
    drawn = np.stack([one(new) for one in fit.drawn_maps(100)])
    refitted = np.stack([fitted(*draw(300, seed=s)[:2]).map_(new) for s in range(12)])
    assert_allclose(drawn.mean(axis=0), fit.map(new), atol=0.03)
    ratio = drawn.std(axis=0).mean() / refitted.std(axis=0).mean()
    assert 0.6 < ratio < 2.0
    again = fit.drawn_maps(2, random_state=0)
    assert again[1] == fit.drawn_maps(2)[1]


def test_terms_are_written_into_the_map():
    """The map's scores are those of the terms that were fitted."""
    prob, _, _ = draw(20)
    inputs = multiclass_smooth._Inputs("prob", 1e-3, 0.7, 0.05)
    terms, _ = inputs.terms(prob)
    parameters = np.random.default_rng(3).normal(size=terms.size)
    expected = softmax(terms.scores(parameters), axis=1)
    assert_allclose(inputs.map(parameters, 4)(prob), expected)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("network", "most"),
    [("probs_resnet110_c10_logits", 0.2025), ("probs_densenet40_c10_logits", 0.2215)],
)
def test_log_loss_of_published_networks(shared_data, network, most):
    """Structured matrix scaling has 0.2031 and 0.2206."""
    stored = np.load(shared_data / "nn_calibration_valtest" / f"{network}.npz")
    smooth = cb.make_calibrator("smooth", scale="logit")
    smooth.fit(stored["logits_val"], stored["y_val"].reshape(-1))
    y = stored["y_test"].reshape(-1)
    prob = smooth.transform(stored["logits_test"])
    assert -np.log(prob[np.arange(y.size), y]).mean() < most
