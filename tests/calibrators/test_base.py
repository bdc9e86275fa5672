import inspect
import pickle
import pydoc
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks, get_tags

import calibrant as cb


def test_clone_keeps_method_and_parameters():
    original = cb.make_calibrator("es-cv", max_bins=7)
    assert clone(original).get_params() == original.get_params()
    assert original.get_params()["max_bins"] == 7


def test_get_params_lists_what_can_be_set():
    own = {"bins": 15, "spacing": "size", "tops": "slope-1"}
    params = cb.make_calibrator("es15").get_params()
    assert params == {"scale": "prob", "pos_label": None, **own}


@pytest.mark.parametrize("method", cb.calibrator_names())
def test_help_shows_and_describes_every_parameter(method):
    calibrator = type(cb.make_calibrator(method))
    parameters = inspect.signature(calibrator).parameters
    assert all(one.kind is one.KEYWORD_ONLY for one in parameters.values())
    page = pydoc.render_doc(calibrator, renderer=pydoc.plaintext)
    for name in parameters:
        assert f"{name}: " in page.split("Parameters")[0]
        assert re.search(rf"\n +\|  {name} : .+\n +\|      \S", page), name


def test_predictions_may_be_on_any_scale(sample):
    p, y = np.clip(sample[0], 0.01, 0.99), sample[1]
    usual = cb.make_calibrator("platt").fit(p, y).transform(p)
    percent = cb.make_calibrator("platt", scale="percent")
    assert_allclose(percent.fit(100 * p, y).transform(100 * p), usual, rtol=1e-9)
    both = np.log(np.stack([1.0 - p, p], axis=1))
    logits = cb.make_calibrator("platt", scale="logit").fit(both, y)
    assert_allclose(logits.transform(both)[:, 1], usual, rtol=1e-6)


def test_labels_of_the_wrong_kind_are_refused():
    with pytest.raises(
        cb.exceptions.OptionError, match="label of the event as pos_label"
    ):
        cb.make_calibrator("es5", labels=["a", "b"])
    with pytest.raises(cb.exceptions.OptionError, match="pass labels"):
        cb.make_calibrator("vector", pos_label="a")


def test_set_params_changes_what_is_fitted(sample):
    calibrator = cb.make_calibrator("es15").set_params(bins=4, tops="flat")
    assert calibrator.fit(*sample).fit_.n_pieces == 4
    assert repr(calibrator) == "Binned(tops='flat', bins=4)"
    with pytest.raises(cb.exceptions.OptionError, match="bins must be a whole number"):
        calibrator.set_params(bins=0).fit(*sample)


def test_what_was_fitted_keeps_its_parameters(sample):
    fitted = cb.make_calibrator("smooth", penalties=(1.0, 1.0, 1.0, 1.0)).fit(*sample)
    before = fitted.fit_.band(np.array([0.2]))
    again = cb.make_calibrator("smooth", penalties=(1.0, 1.0, 1.0, 1.0)).fit(*sample)
    again.set_params(penalties=(9.0, 9.0, 9.0, 9.0))
    assert_array_equal(again.fit_.band(np.array([0.2])), before)


def test_pickle_keeps_the_map(sample):
    fitted = cb.make_calibrator("es-sweep").fit(*sample)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert again.map_ == fitted.map_


def test_it_is_a_step_of_a_pipeline(sample):
    p, y = sample
    pipe = make_pipeline(
        FunctionTransformer(np.clip, kw_args={"a_min": 0.01, "a_max": 0.99}),
        cb.make_calibrator("es5"),
    )
    assert pipe.fit(p, y).transform(p).shape == p.shape


@pytest.mark.parametrize(("steep", "best"), [(True, 10), (False, 1)])
def test_hyper_parameters_can_be_searched(steep, best):
    """One bin only moves predictions; ten follow a jump, or else noise."""
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (p > 0.5 if steep else rng.random(400) < p).astype(float)

    def score(calibrator, held_out_p, held_out_y):
        return -np.mean((calibrator.transform(held_out_p) - held_out_y) ** 2)

    search = GridSearchCV(cb.make_calibrator("es5"), {"bins": [1, 10]}, scoring=score)
    assert search.fit(p, y).best_params_["bins"] == best
    assert search.best_estimator_.fit_.n_pieces == best


def test_an_unfitted_calibrator_says_so():
    with pytest.raises(NotFittedError, match="has not been fitted"):
        cb.make_calibrator("es15").transform([0.5])


def test_bad_predictions_name_the_argument():
    with pytest.raises(cb.exceptions.ProbabilityRangeError, match="p must contain"):
        cb.make_calibrator("es15").fit([2.0] * 40, [0, 1] * 20)


def test_two_columns_are_those_of_predict_proba(sample):
    p, y = sample
    both = np.stack([1.0 - p, p], axis=1)
    fitted = cb.make_calibrator("platt").fit(both, y)
    assert_array_equal(
        fitted.map_(p), cb.make_calibrator("platt").fit(p, y).transform(p)
    )
    calibrated = fitted.transform(both)
    assert_array_equal(calibrated[:, 1], fitted.transform(p))
    assert_array_equal(calibrated[:, 0], 1.0 - calibrated[:, 1])


def test_two_columns_must_sum_to_1_and_three_are_classes(sample):
    p, y = sample
    with pytest.raises(cb.exceptions.RowSumError, match=r"each row of p \(2 columns"):
        cb.make_calibrator("platt").fit(np.stack([p, p], axis=1), y)
    with pytest.raises(cb.exceptions.ShapeError, match="vector of shape"):
        cb.make_calibrator("platt").fit(np.full((p.size, 3), 1.0 / 3.0), y)


def test_pos_label_names_the_event(sample):
    p, y = sample
    words = np.where(y == 1.0, "spam", "ham")
    named = cb.make_calibrator("es5", pos_label="spam").fit(p, words)
    assert named.map_ == cb.make_calibrator("es5").fit(p, y).map_
    assert clone(named).get_params()["pos_label"] == "spam"
    assert repr(named) == "Binned(pos_label='spam', bins=5)"
    with pytest.raises(cb.exceptions.LabelError, match="pos_label="):
        cb.make_calibrator("es5").fit(p, words)


def test_two_columns_in_the_other_order_are_not_guessed(sample):
    p, y = sample
    words, both = np.where(y == 1.0, "bad", "good"), np.stack([p, 1.0 - p], axis=1)
    with pytest.raises(
        cb.exceptions.LabelError, match=r"'good'.*only the first column"
    ):
        cb.make_calibrator("es5", pos_label="bad").fit(both, words)


def test_fit_transform_is_fit_then_transform(sample):
    p, y = sample
    one = cb.make_calibrator("ew7").fit_transform(p, y)
    assert_array_equal(one, cb.make_calibrator("ew7").fit(p, y).transform(p))


@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimators_unfitted",
        "check_fit1d",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_transformers_unfitted",
    ],
)
@pytest.mark.parametrize("method", ["es15", "pl3", "beta", "isotonic", "spline-cubic"])
def test_scikit_learn_s_checks_pass_that_need_no_features(method, check):
    run = getattr(estimator_checks, check, None)
    if run is None:
        pytest.skip(f"this scikit-learn has no {check}")
    calibrator = cb.make_calibrator(method)
    assert get_tags(calibrator).input_tags.one_d_array
    run("Calibrator", calibrator)


def test_labels_may_be_an_array():
    named = cb.make_calibrator("temperature", labels=np.array([1, 2, 3]))
    assert repr(named) == "Temperature(labels=array([1, 2, 3]))"
