"""A classifier and its calibrator as one classifier, the way scikit-learn uses one."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

import calibrant as cb
from calibrant.exceptions import InputError, LabelError, OptionError


@pytest.fixture(scope="module")
def rows():
    return make_classification(2400, n_redundant=8, random_state=0)


@pytest.fixture(scope="module")
def bayes(rows):
    X, y = rows
    return GaussianNB().fit(X[:800], y[:800])


def test_prefit_is_the_calibrator_on_the_classifier_s_probabilities(rows, bayes):
    X, y = rows
    model = cb.CalibratedClassifier(bayes, "beta").fit(X[800:1600], y[800:1600])
    p = bayes.predict_proba(X)[:, 1]
    calibrator = cb.make_calibrator("beta").fit(p[800:1600], y[800:1600])
    assert_allclose(model.predict_proba(X)[:, 1], calibrator.transform(p))
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.array_equal(model.predict(X), (calibrator.transform(p) > 0.5).astype(int))


def test_two_fitted_parts_need_no_fit(rows, bayes):
    X, y = rows
    p = bayes.predict_proba(X)[:, 1]
    calibrator = cb.make_calibrator("isotonic").fit(p[800:1600], y[800:1600])
    model = cb.CalibratedClassifier(bayes, calibrator)
    assert_allclose(model.predict_proba(X)[:, 1], calibrator.transform(p))
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == X.shape[1]


def test_folds_give_what_scikit_learn_gives_for_isotonic(rows):
    X, y = rows
    folds = StratifiedKFold(5)
    ours = cb.CalibratedClassifier(GaussianNB(), "isotonic", cv=folds).fit(X, y)
    theirs = CalibratedClassifierCV(
        GaussianNB(), method="isotonic", cv=folds, ensemble=False
    ).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


def test_decision_functions_count_as_logits(rows):
    X, y = rows
    svm = LinearSVC(random_state=0).fit(X[:800], y[:800])
    model = cb.CalibratedClassifier(svm, "platt").fit(X[800:], y[800:])
    logit = svm.decision_function(X)
    sigmoid = LogisticRegression(C=np.inf, tol=1e-9).fit(logit[800:, None], y[800:])
    assert_allclose(
        model.predict_proba(X), sigmoid.predict_proba(logit[:, None]), atol=1e-4
    )


@pytest.mark.parametrize(
    "calibrator",
    [
        "temperature",
        "isotonic",
        cb.make_calibrator("vector", scale="logit"),
        cb.make_calibrator("es10", tops="flat"),
        cb.make_calibrator("top-platt"),
    ],
    ids=str,
)
def test_several_classes_with_names(calibrator):
    X, digit = load_digits(return_X_y=True)
    names = np.array([f"digit {d}" for d in range(10)])[digit]
    model = cb.CalibratedClassifier(GaussianNB(var_smoothing=1e-3), calibrator, cv=3)
    prob = model.fit(X[:1000], names[:1000]).predict_proba(X[1000:])
    plain = GaussianNB(var_smoothing=1e-3).fit(X[:1000], names[:1000])
    assert_allclose(prob.sum(axis=1), 1.0)
    assert model.classes_.tolist() == [f"digit {d}" for d in range(10)]

    def loss(prob):
        own = prob[np.arange(797), digit[1000:]]
        return -np.log(np.maximum(own, 1e-9)).mean()

    assert loss(prob) < loss(plain.predict_proba(X[1000:]))


@pytest.mark.parametrize("method", ["temperature", "vector"])
def test_two_classes_with_a_multi_class_method(rows, bayes, method):
    X, y = rows
    model = cb.CalibratedClassifier(bayes, method).fit(X[800:], y[800:])
    assert model.predict_proba(X).shape == (2400, 2)


def test_two_classes_have_one_temperature(rows, bayes):
    X, y = rows
    model = cb.CalibratedClassifier(bayes, "temperature").fit(X[800:], y[800:])
    assert model.calibrator_.map_.temperature > 1.0


def test_scikit_learn_tools_take_it(rows, bayes):
    X, y = rows
    piped = make_pipeline(
        StandardScaler(), cb.CalibratedClassifier(GaussianNB(), "platt", cv=3)
    )
    held_out = cross_val_predict(piped, X, y, cv=3, method="predict_proba")
    assert cb.calibration_error(y, held_out[:, 1]) < 0.05
    assert cross_val_score(piped, X, y, cv=3).mean() > 0.7
    search = GridSearchCV(
        cb.CalibratedClassifier(GaussianNB(), cv=3),
        {"calibrator": ["es1", "platt"], "classifier__var_smoothing": [1e-9, 1e6]},
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, y)
    # One bin only moves predictions, and such smoothing leaves none but the base rate.
    assert search.best_params_ == {
        "calibrator": "platt",
        "classifier__var_smoothing": 1e-9,
    }
    assert search.best_estimator_.classifier_.var_smoothing == 1e-9
    prefit = cb.CalibratedClassifier(bayes, "platt")
    folds = cross_val_predict(
        prefit, X[800:], y[800:], cv=3, method="predict_proba"
    )  # clones keep the fitted classifier
    assert cb.calibration_error(y[800:], folds[:, 1]) < 0.05
    pytest.importorskip("matplotlib")
    shown = CalibrationDisplay.from_estimator(search.best_estimator_, X, y)
    assert shown.prob_true.size > 0


def test_clones_pickles_and_parameters(rows, bayes):
    X, y = rows
    model = cb.CalibratedClassifier(bayes, cb.make_calibrator("pl3", max_pieces=3))
    copied = clone(model)
    assert copied.classifier is bayes
    assert copied.calibrator.get_params()["max_pieces"] == 3
    model.set_params(calibrator__max_pieces=5)
    assert model.calibrator.get_params()["max_pieces"] == 5
    fitted = model.fit(X[800:], y[800:])
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_weights_reach_both_parts(rows):
    X, y = rows
    weight = np.where(y == 1, 3.0, 1.0)
    model = cb.CalibratedClassifier(GaussianNB(), "platt", cv=3)
    plain = model.fit(X, y).predict_proba(X)[:, 1].mean()
    heavy = clone(model).fit(X, y, sample_weight=weight).predict_proba(X)[:, 1].mean()
    assert_allclose(plain, y.mean(), atol=0.02)
    assert heavy > plain + 0.1


def test_what_is_wrong_is_told(rows, bayes):
    X, y = rows
    with pytest.raises(OptionError, match="must already be fitted"):
        cb.CalibratedClassifier(GaussianNB()).fit(X, y)
    with pytest.raises(NotFittedError):
        cb.CalibratedClassifier(bayes).predict_proba(X)
    with pytest.raises(OptionError, match="predict_proba or decision_function"):
        cb.CalibratedClassifier(StandardScaler().fit(X)).fit(X, y)
    with pytest.raises(OptionError, match="method's name"):
        cb.CalibratedClassifier(bayes, GaussianNB()).fit(X, y)
    with pytest.raises(LabelError, match="row 2 is 7"):
        cb.CalibratedClassifier(bayes).fit(X, np.where(np.arange(y.size) == 2, 7, y))


SKIPPED_BY_SCIKIT_LEARN = {"check_array_api_input"}


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of a label that is inf
def test_scikit_learn_s_own_checks_pass():
    model = cb.CalibratedClassifier(LogisticRegression(), "platt", cv=2)
    failed = {}
    for estimator, check in estimator_checks_generator(model):
        name = getattr(check, "func", check).__name__
        try:
            check(estimator)
        except Exception as error:  # noqa: BLE001  (whatever a check raises)
            failed[name] = repr(error)
    assert failed.keys() <= SKIPPED_BY_SCIKIT_LEARN, failed


def test_weights_reach_the_last_step_of_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    weight = rng.integers(1, 4, 300).astype(float)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    model = cb.CalibratedClassifier(pipe, cv=3).fit(X, y, sample_weight=weight)
    alone = pipe.fit(X, y, logisticregression__sample_weight=weight)
    fitted = model.classifier_[-1].coef_
    np.testing.assert_allclose(fitted, alone[-1].coef_)
    assert not np.allclose(fitted, pipe.fit(X, y)[-1].coef_)


def weighted_pipeline():
    """Return a pipeline that asks for weights, where routing is enabled."""
    return make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        LogisticRegression().set_fit_request(sample_weight=True),
    )


@pytest.fixture
def weighted_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    return X, y, rng.integers(1, 4, 300).astype(float)


def test_routed_weights_reach_the_classifier_as_without_routing(weighted_rows):
    X, y, weight = weighted_rows
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    plain = cb.CalibratedClassifier(pipe, "platt", cv=3)
    expected = plain.fit(X, y, sample_weight=weight).predict_proba(X)
    with config_context(enable_metadata_routing=True):
        model = cb.CalibratedClassifier(weighted_pipeline(), "platt", cv=3)
        model.fit(X, y, sample_weight=weight)
        assert_allclose(model.predict_proba(X), expected)
        # A part that does not say whether it takes weights is an error, as always.
        unset = cb.CalibratedClassifier(LogisticRegression(), "platt", cv=3)
        with pytest.raises(ValueError, match="not explicitly set as requested"):
            unset.fit(X, y, sample_weight=weight)


def test_routing_leads_through_other_meta_estimators(weighted_rows):
    X, y, weight = weighted_rows
    with config_context(enable_metadata_routing=True):
        held_out = {
            model: cross_val_predict(
                model.set_fit_request(sample_weight=True),
                X,
                y,
                cv=3,
                params={"sample_weight": weight},
                method="predict_proba",
            )
            for model in (
                cb.CalibratedClassifier(weighted_pipeline(), "isotonic", cv=3),
                CalibratedClassifierCV(
                    weighted_pipeline(), method="isotonic", cv=3, ensemble=False
                ),
            )
        }
    ours, theirs = held_out.values()
    # Isotonic maps are lines between probabilities here, between logits there.
    assert_allclose(ours, theirs, atol=1e-4)


def test_groups_reach_the_splitter(weighted_rows):
    X, y, _ = weighted_rows
    groups = np.arange(300) // 10
    folds = [*GroupKFold(3).split(X, y, groups)]
    expected = cb.CalibratedClassifier(GaussianNB(), "platt", cv=folds).fit(X, y)
    with config_context(enable_metadata_routing=True):
        model = cb.CalibratedClassifier(GaussianNB(), "platt", cv=GroupKFold(3))
        model.fit(X, y, groups=groups)
    assert_allclose(model.predict_proba(X), expected.predict_proba(X))


def test_other_parameters_go_to_the_classifier_that_is_fitted(weighted_rows):
    X, y, weight = weighted_rows
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    by_name = {"logisticregression__sample_weight": weight}
    model = cb.CalibratedClassifier(pipe, "platt", cv=3).fit(X, y, **by_name)
    alone = pipe.fit(X, y, **by_name)
    assert_allclose(model.classifier_[-1].coef_, alone[-1].coef_)
    with pytest.raises(OptionError, match="pass cv=5"):
        cb.CalibratedClassifier(alone, "platt").fit(X, y, **by_name)


def test_names_of_features_are_those_of_the_classifier(weighted_rows):
    X, y, _ = weighted_rows
    frame = pd.DataFrame(X, columns=["age", "dose"])
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    model = cb.CalibratedClassifier(pipe, "platt", cv=3).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["age", "dose"]
    assert not hasattr(model.fit(X, y), "feature_names_in_")


class NeverFitted(LogisticRegression):
    def fit(self, *_, **__):
        raise AssertionError("fitted before the calibrator was checked")


def test_a_misspelt_calibrator_is_found_before_the_classifier_is_fitted(rows):
    with pytest.raises(OptionError, match="did you mean 'platt'"):
        cb.CalibratedClassifier(NeverFitted(), "plat", cv=3).fit(*rows)


def test_rows_of_a_cluster_are_in_one_fold():
    """Copies of rows in other folds would make predictions look certain."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(200, 20)), 5, axis=0)
    y, patient = np.repeat(rng.integers(0, 2, 200), 5), np.repeat(np.arange(200), 5)
    model = cb.CalibratedClassifier(GaussianNB(), "auto", cv=5)
    together = model.fit(x, y, clusters=patient).calibrator_
    alone = clone(model).fit(x, y).calibrator_
    spread = [np.ptp(c.transform([0.1, 0.9])) for c in (together, alone)]
    assert spread[0] < spread[1]
    with pytest.raises(OptionError, match="allow for clusters"):
        cb.CalibratedClassifier(GaussianNB(), "platt", cv=5).fit(x, y, clusters=patient)


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        (np.zeros(60), "at least 2 clusters are needed"),
        (np.arange(60) % 2, "got 5 folds for 2 clusters"),
        (np.arange(9), "must have the same number of rows"),
        ([None, *map(str, range(59))], "clusters must not contain missing values"),
    ],
)
def test_clusters_that_cannot_be_divided_are_refused(clusters, words):
    x, y = np.linspace(-1.0, 1.0, 60)[:, np.newaxis], np.arange(60) % 2
    model = cb.CalibratedClassifier(GaussianNB(), cv=5)
    with pytest.raises((InputError, OptionError), match=words):
        model.fit(x, y, clusters=clusters)


def test_numbers_of_numpy_keep_clusters_together():
    rng = np.random.default_rng(4)
    x, patient = rng.normal(size=(300, 2)), np.arange(300) % 60
    y = (x[:, 0] + rng.normal(size=300) > 0.0).astype(int)
    one, other = (
        cb.CalibratedClassifier(GaussianNB(), cv=cv).fit(x, y, clusters=patient)
        for cv in (5, np.int64(5))
    )
    assert_allclose(one.predict_proba(x), other.predict_proba(x), rtol=0, atol=0)
