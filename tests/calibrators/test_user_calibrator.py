"""Calibrators that users bring, wherever a method's name can be given."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.naive_bayes import GaussianNB

import calibrant as cb
from calibrant.exceptions import OptionError, UnknownNameError


class Shift:
    """Move all predictions by what they are off on average."""

    def fit(self, p, y):
        self.shift = float(np.mean(y - p))
        return self

    def transform(self, p):
        return np.clip(p + self.shift, 0.0, 1.0)


@pytest.fixture
def rows():
    rng = np.random.default_rng(7)
    p = rng.uniform(0.2, 0.7, 400)
    return p, (rng.random(400) < p + 0.1).astype(float)


def test_the_error_of_a_shift_is_the_shift(rows):
    p, y = rows
    found = cb.evaluate(y, p, methods=["es15", Shift()]).frame()
    assert found["method"].tolist() == ["es15", "Shift"]
    assert found["value"][1] == pytest.approx(abs(np.mean(y - p)))
    assert cb.calibration_error(y, p, method=Shift()) == found["value"][1]


def test_isotonic_regression_of_scikit_learn_is_ours(rows):
    p, y = rows
    theirs = IsotonicRegression(out_of_bounds="clip")
    weight = np.random.default_rng(1).integers(1, 4, p.size)
    for options in ({}, {"sample_weight": weight}):
        own = cb.calibration_error(y, p, method="isotonic", **options)
        found = cb.calibration_error(y, p, method=theirs, **options)
        assert found == pytest.approx(own, abs=1e-12)
    assert not hasattr(theirs, "X_thresholds_")  # what was given stays unfitted


def test_diagrams_comparisons_and_reports_take_objects(rows):
    p, y = rows
    method = IsotonicRegression(out_of_bounds="clip")
    display = cb.ReliabilityDisplay.from_predictions(y, p, method=method)
    assert display.method == "IsotonicRegression"
    expected = cb.calibration_error(y, p, method="isotonic")
    assert display.error == pytest.approx(expected)
    both = {"a": p, "b": np.clip(p + 0.1, 0.0, 1.0)}
    named = cb.compare(y, both, method="isotonic", n_resamples=50)
    given = cb.compare(y, both, method=method, n_resamples=50)
    assert given.frame()["model"].tolist() == named.frame()["model"].tolist()
    report = cb.Report.from_predictions(y, p, methods=["smooth", method])
    methods = [row["method"] for row in report.summary["measured"]["methods"]]
    assert methods == ["smooth", "IsotonicRegression"]


def test_what_objects_cannot_do_is_said(rows):
    p, y = rows
    with pytest.raises(OptionError, match="Shift does not accept sample_weight"):
        cb.evaluate(y, p, methods=Shift(), sample_weight=np.full(400, 2))
    with pytest.raises(UnknownNameError, match="unknown method"):
        cb.evaluate(y, p, methods=[object()])

    class Short(Shift):
        def transform(self, p):
            return p[:3]

    with pytest.raises(OptionError, match="one finite probability for each"):
        cb.evaluate(y, p, methods=Short())


def test_values_that_are_no_probabilities_are_refused():
    class Doubled:
        def fit(self, _p, _y):
            return self

        def transform(self, p):
            return 2.0 * np.asarray(p)

    with pytest.raises(cb.exceptions.OptionError, match=r"0\.8 it returned 1\.6"):
        cb.calibration_error([0, 1] * 20, [0.2, 0.8] * 20, method=Doubled())


@pytest.mark.parametrize("method", [Shift(), IsotonicRegression(out_of_bounds="clip")])
def test_a_report_can_be_about_an_object_alone(rows, method):
    p, y = rows
    model = cb.Report.from_predictions(y, p, methods=method).summary["models"][0]
    assert model["verdict"]["method"] == type(method).__name__
    assert model["verdict"]["value"] == cb.calibration_error(y, p, method=method)


@pytest.mark.parametrize("faulty", ["fit", "transform"])
def test_errors_of_a_calibrator_of_classes_say_what_it_got(faulty):
    class Shrunk(Shift):
        def fit(self, p, y):
            return super().fit(p[:, 0] if faulty == "fit" else p, y)

        def transform(self, p):
            return 0.8 * p + 0.2 / p.shape[1]

    prob = np.full((60, 3), 1.0 / 3.0)
    words = rf"{faulty} of Shrunk failed \(IndexError: .* It got predictions of one "
    words += r"event, of shape \(\d+,\), .* pass task=\"canonical\""
    with pytest.raises(OptionError, match=words) as caught:
        cb.evaluate([0, 1, 2] * 20, prob, task=0, methods=[Shrunk()], confidence=None)
    assert isinstance(caught.value.__cause__, IndexError)


def test_errors_of_a_calibrator_of_one_event_say_that_it_got_classes():
    class Counted(Shift):
        def fit(self, p, _y):
            self.counts = np.bincount(np.searchsorted([0.5], p))  # vectors only
            return self

    prob = np.full((60, 3), 1.0 / 3.0)
    words = r"fit of Counted failed .* all classes, of shape \(60, 3\), .*classwise"
    with pytest.raises(OptionError, match=words):
        cb.evaluate([0, 1, 2] * 20, prob, task="canonical", methods=[Counted()])


class Cooled:
    """Divide all logits by 2, given probabilities of all classes."""

    def fit(self, prob, _y):
        assert prob.sum(axis=1) == pytest.approx(1.0)
        return self

    def transform(self, prob):
        root = np.sqrt(prob)
        return root / root.sum(axis=1, keepdims=True)


def test_calibrators_of_matrices_are_methods_on_any_scale():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(90, 3))
    y = np.arange(90) % 3
    wanted = np.exp(logits / 2.0)
    wanted /= wanted.sum(axis=1, keepdims=True)
    calibrator = cb.make_calibrator(Cooled(), scale="logit").fit(logits, y)
    assert calibrator.transform(logits) == pytest.approx(wanted)
    with pytest.raises(OptionError, match=r"make_calibrator\(Cooled\(bins=...\)\)"):
        cb.make_calibrator(Cooled(), bins=3)
    found = cb.evaluate(y, logits, scale="logit", task="canonical", methods=[Cooled()])
    assert found.frame()["method"].tolist() == ["Cooled"]


def test_classifiers_take_calibrators_of_ones_own():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.arange(90) % 3
    plain = GaussianNB().fit(X, y)
    model = cb.CalibratedClassifier(plain, Cooled()).fit(X, y)
    wanted = Cooled().transform(plain.predict_proba(X))
    assert model.predict_proba(X) == pytest.approx(wanted)
    with pytest.raises(OptionError, match="or an object with fit"):
        cb.CalibratedClassifier(plain, object()).fit(X, y)
