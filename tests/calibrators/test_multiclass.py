import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import calibrant as cb
from calibrant.exceptions import (
    LabelError,
    MissingValueError,
    OptionError,
    RowSumError,
    ShapeError,
    UnknownNameError,
)

NETWORKS = ["iop-oi", "iop-op", "iop-diag"]
CONVEX = [m for m in cb.calibrator_names("multi-class") if m not in NETWORKS]
LIFTED = ["ovr-es5", "top-pl3"]
SMALL = {
    "iop-oi": {"hidden": (8,), "epochs": 3, "folds": 2},
    "iop-op": {"hidden": (8,), "epochs": 3, "folds": 2},
    "iop-diag": {"hidden": (4,), "max_steps": 20, "folds": 2},
}
ALL = [*CONVEX, *LIFTED, *NETWORKS]
KEEP_ORDER = ["temperature", *NETWORKS]


def draw(n=400, k=4, seed=0):
    """Draw over-confident logits whose classes are confused and biased."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    logits = rng.normal(size=(n, k)) + 1.5 * np.eye(k)[y]
    return 3.0 * logits + rng.normal(size=k), y


def make(method, **params):
    return cb.make_calibrator(
        method, **{"scale": "logit", **SMALL.get(method, {}), **params}
    )


def log_loss(prob, y, weight=None):
    own = prob[np.arange(len(y)), y]
    return np.average(-np.log(np.maximum(own, 1e-16)), weights=weight)


@pytest.mark.parametrize("method", ALL)
def test_rows_are_probabilities_and_maps_survive_json(method, tmp_path):
    logits, y = draw()
    fitted = make(method).fit(logits, y)
    prob = fitted.transform(logits)
    assert prob.shape == logits.shape
    assert prob.min() >= 0
    assert_allclose(prob.sum(axis=1), 1.0, atol=1e-12)
    again = cb.map_from_dict(json.loads(json.dumps(fitted.map_.to_dict())))
    assert again == fitted.map_
    assert hash(again) == hash(fitted.map_)
    assert_array_equal(again(logits), prob)
    cb.save_map(fitted.map_, tmp_path / "map.json")
    assert_array_equal(cb.load_map(tmp_path / "map.json").transform(logits), prob)


@pytest.mark.parametrize("method", [*CONVEX, *NETWORKS])
def test_fitting_never_makes_the_fitted_rows_worse(method):
    logits, y = draw()
    before = log_loss(softmax(logits, axis=1), y)
    assert log_loss(make(method).fit(logits, y).transform(logits), y) <= before


@pytest.mark.parametrize("method", ALL)
def test_a_constant_added_to_logits_changes_nothing(method):
    logits, y = draw()
    shift = np.random.default_rng(1).integers(-64, 64, size=(len(y), 1))
    one = make(method).fit(logits, y).transform(logits)
    other = make(method).fit(logits + shift, y).transform(logits + shift)
    assert_allclose(one, other, atol=1e-3 if method in NETWORKS else 1e-6)


@pytest.mark.parametrize("method", [*CONVEX, *LIFTED, "iop-diag"])
def test_permuted_classes_permute_the_map(method):
    logits, y = draw()
    order = np.array([2, 0, 3, 1])
    position = np.argsort(order)
    one = make(method).fit(logits, y).transform(logits)
    other = make(method).fit(logits[:, order], position[y]).transform(logits[:, order])
    assert_allclose(other, one[:, order], atol=1e-6)


@pytest.mark.parametrize("method", ALL)
def test_the_order_of_rows_does_not_matter(method):
    logits, y = draw()
    order = np.random.default_rng(5).permutation(len(y))
    one = make(method).fit(logits, y).transform(logits)
    other = make(method).fit(logits[order], y[order]).transform(logits)
    # networks see rows in another order, though the folds are the same
    assert_allclose(one, other, atol=0.2 if method in NETWORKS else 1e-6)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("temperature", {}),
        ("one-temp", {}),
        ("vector", {}),
        ("matrix-odir", {"penalty": 1.0}),
        ("dirichlet-l2", {"penalty": 1.0}),
        ("dirichlet-odir", {"penalty": 1.0, "intercept_penalty": 0.1}),
        ("ovr-ew5", {}),
        ("top-ew5", {}),
    ],
)
def test_weight_two_equals_the_row_twice_and_zero_none(method, params):
    logits, y = draw()
    weight = np.random.default_rng(2).integers(0, 4, size=len(y))
    one = make(method, **params).fit(logits, y, sample_weight=weight)
    repeated = np.repeat(np.arange(len(y)), weight)
    other = make(method, **params).fit(logits[repeated], y[repeated])
    assert_allclose(one.transform(logits), other.transform(logits), atol=1e-7)


@pytest.mark.parametrize("method", ["one-temp", "ovr-temperature"])
def test_weights_are_counts_where_predictions_of_zero_are_rounded_too(method):
    logits, y = draw()
    prob = np.where(softmax(logits, axis=1) < 0.02, 0.0, softmax(logits, axis=1))
    prob /= prob.sum(axis=1, keepdims=True)
    three = np.full(len(y), 3)
    one = cb.make_calibrator(method).fit(prob, y, sample_weight=three)
    other = cb.make_calibrator(method).fit(np.tile(prob, (3, 1)), np.tile(y, 3))
    assert_allclose(one.transform(prob), other.transform(prob), atol=1e-7)


@pytest.mark.parametrize("method", KEEP_ORDER)
def test_order_preserving_maps_keep_the_order_of_classes(method):
    logits, y = draw()
    prob = make(method).fit(logits, y).transform(logits)
    order = np.argsort(logits, axis=1)
    assert (np.diff(np.take_along_axis(prob, order, axis=1), axis=1) >= 0).all()
    assert_array_equal(prob.argmax(axis=1), logits.argmax(axis=1))


@pytest.mark.parametrize("method", ALL)
def test_logits_in_the_thousands_survive(method):
    logits, y = draw()
    prob = make(method).fit(1e4 * logits, y).transform(1e4 * logits)
    assert np.isfinite(prob).all()
    if method not in LIFTED:  # nothing but 0 and 1 is left for a binary method
        assert log_loss(prob, y) < 2.0  # uncalibrated: 12 where the floor is 1e-16


@pytest.mark.parametrize("method", ALL)
def test_a_class_that_never_happened_survives(method):
    logits, y = draw()
    kept = y != 2
    prob = make(method).fit(logits[kept], y[kept]).transform(logits)
    assert np.isfinite(prob).all()
    assert_allclose(prob.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("method", ALL)
def test_separable_rows_survive(method):
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=200)
    logits = rng.normal(size=(200, 3)) + 40.0 * np.eye(3)[y]
    prob = make(method).fit(logits, y).transform(logits)
    assert np.isfinite(prob).all()


@pytest.mark.parametrize("method", ["vector", "matrix-odir", "dirichlet-odir"])
def test_probabilities_are_their_own_logits(method):
    logits, y = draw()
    prob = softmax(logits, axis=1)
    one = make(method).fit(logits, y).transform(logits)
    other = make(method, scale="prob").fit(prob, y).transform(prob)
    assert_allclose(one, other, atol=1e-6)


def test_temperature_repairs_what_a_temperature_broke():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(20_000, 5))
    cumulated = softmax(truth, axis=1).cumsum(axis=1)
    y = (rng.random((20_000, 1)) > cumulated).sum(axis=1)
    fitted = make("temperature").fit(2.5 * truth, y)
    assert fitted.map_.temperature == pytest.approx(2.5, rel=0.05)


def test_one_temp_of_two_classes_is_temperature():
    logits, y = draw(k=2)
    one, both = (make(m).fit(logits, y) for m in ("one-temp", "temperature"))
    assert_allclose(one.transform(logits), both.transform(logits), atol=1e-8)


def test_penalties_are_chosen_by_cross_validation():
    logits, y = draw(n=600)
    fitted = make("matrix-odir", penalty=(1e4, 1.0, 1e-2), intercept_penalty=(1.0, 9.0))
    fitted.fit(logits, y)
    assert fitted.fit_.chosen[0] in {1e4, 1.0, 1e-2}
    assert 3 <= fitted.fit_.losses.size <= 6
    assert len(fitted.map_.maps) == 5
    refit = make("matrix-odir", ensemble="refit").fit(logits, y)
    assert refit.map_.kind == "softmax"


def test_strong_penalties_leave_a_diagonal():
    logits, y = draw()
    map_ = make("matrix-odir", penalty=1e9).fit(logits, y).map_
    off = map_.weights[~np.eye(4, dtype=bool)]
    assert np.abs(off).max() < 1e-6
    assert np.abs(map_.intercepts).max() < 1e-6


def test_one_row_and_two_rows_can_be_fitted():
    with pytest.warns(cb.exceptions.CalibrantWarning, match="only 1 row:"):
        one = make("matrix-odir").fit([[1.0, 2.0]], [1])
    assert np.isfinite(one.transform([[1.0, 2.0]])).all()
    with pytest.warns(cb.exceptions.CalibrantWarning, match="only 2 rows"):
        make("dirichlet-l2").fit([[1.0, 2.0], [2.0, 1.0]], [1, 0])


def test_labels_name_the_columns():
    logits, y = draw()
    names = np.array(["ant", "bee", "cat", "dog"])
    labelled = make("vector", labels=list(names)).fit(logits, names[y])
    assert_array_equal(labelled.classes_, names)
    assert_array_equal(
        labelled.transform(logits), make("vector").fit(logits, y).transform(logits)
    )
    with pytest.raises(LabelError, match=r"labels=\.\.\."):
        make("vector").fit(logits, names[y])


def test_missing_rows_are_named():
    logits, y = draw()
    logits[[17, 40]] = np.nan
    with pytest.raises(
        MissingValueError, match=r"p must not contain.* row 17, column 0"
    ):
        make("temperature").fit(logits, y)


def test_bad_input_says_what_to_pass():
    logits, y = draw()
    with pytest.raises(ShapeError, match=r"one column per class.*binary method"):
        make("vector").fit(logits[:, 0], y)
    with pytest.raises(RowSumError, match=r'pass scale="logit"'):
        cb.make_calibrator("vector").fit(np.full((40, 3), 0.5), np.zeros(40))
    fitted = make("temperature").fit(logits, y)
    with pytest.raises(ShapeError, match="4 columns"):
        fitted.transform(logits[:, :3])
    with pytest.raises(UnknownNameError, match="unknown scale"):
        cb.make_calibrator("temperature", scale="log")
    with pytest.raises(OptionError, match="penalty must be a number of at least 0"):
        cb.make_calibrator("matrix-odir", penalty=-1.0)
    with pytest.raises(OptionError, match="inputs is fixed"):
        cb.make_calibrator("matrix-odir", inputs="log-prob")
    with pytest.raises(NotFittedError, match="not been fitted"):
        make("temperature").transform(logits)


def test_multi_class_methods_are_no_evaluators():
    prob, digit = cb.datasets.load_multiclass("forest")
    with pytest.raises(OptionError, match="calibrates all classes at once"):
        cb.calibration_error(digit, prob, method="vector", task="confidence")
    with pytest.raises(OptionError, match='task="classwise"'):
        cb.ReliabilityDisplay.from_predictions(digit == 3, prob[:, 3], method="vector")


def test_wrapped_methods_take_the_parameters_of_the_binary_one():
    for name in ("ovr-es7", "top-es7"):
        one = make(name, tops="flat")
        assert clone(one).calibrator is not one.calibrator
        assert repr(clone(one)) == repr(one)
        assert one.get_params()["calibrator__tops"] == "flat"
        assert one.set_params(calibrator__bins=3).calibrator.bins == 3
    with pytest.raises(OptionError, match="already a multi-class method"):
        cb.make_calibrator("ovr-vector")
    with pytest.raises(UnknownNameError, match="pl33"):
        cb.make_calibrator("top-pl33")


def test_top_label_is_calibrated_and_the_rest_shares_in_proportion():
    logits, y = draw(n=2000)
    before = softmax(logits, axis=1)
    after = (
        cb.make_calibrator("top-es10", scale="logit").fit(logits, y).transform(logits)
    )
    error = cb.calibration_error(y, before, task="confidence", debias=False)
    top = before.argmax(axis=1)
    confidence = after[np.arange(len(y)), top]
    assert error > 0.1
    assert cb.calibration_error(top == y, confidence, method="es10") < 0.02
    others = np.arange(4) != top[:, np.newaxis]
    for old, new, other in zip(before[:50], after[:50], others[:50], strict=True):
        assert_allclose(new[other] / new[other].sum(), old[other] / old[other].sum())


def test_certain_rows_are_lifted_too():
    prob = np.tile(np.eye(3), (40, 1))
    y = np.tile([0, 1, 2, 0, 1, 1], 20)
    after = cb.make_calibrator("top-ew5", tops="flat").fit(prob, y).transform(prob)
    assert_allclose(after.sum(axis=1), 1.0)
    assert after[0, 1] == after[0, 2] > 0
    flat = cb.make_calibrator("ovr-ew5", tops="flat").fit(prob[y == 0], y[y == 0])
    assert_allclose(flat.transform(np.eye(3)).sum(axis=1), 1.0)


def test_clone_pickle_and_parameters():
    logits, y = draw()
    original = make("dirichlet-odir", folds=3)
    copied = clone(original)
    assert copied.get_params() == original.get_params()
    assert repr(copied) == "MatrixScaling(scale='logit', inputs='log-prob', folds=3)"
    fitted = copied.fit(logits, y)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert again.map_ == fitted.map_
    assert fitted.set_params(folds=4).fit(logits, y).fit_.chosen is not None
    assert_array_equal(
        make("vector").fit_transform(logits, y),
        make("vector").fit(logits, y).transform(logits),
    )
