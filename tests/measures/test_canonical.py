"""The error of the whole vector of class probabilities."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.core.probabilities import softmax
from calibrant.exceptions import OptionError, ShapeError


def drawn(calibrated, rng):
    """Return labels with the given probabilities."""
    below = calibrated.cumsum(axis=1) < rng.random((len(calibrated), 1))
    return below.sum(axis=1).clip(max=calibrated.shape[1] - 1)


def over_confident(n, classes, seed=0):
    """Return labels, predictions, and probabilities by temperature 2."""
    rng = np.random.default_rng(seed)
    prob = softmax(rng.normal(0.0, 2.0, (n, classes)))
    calibrated = softmax(0.5 * np.log(prob))
    return drawn(calibrated, rng), prob, calibrated


@pytest.fixture(scope="module")
def three_classes():
    return over_confident(600, 3)


@pytest.mark.parametrize(
    ("method", "alpha"), [("temperature", 1), ("temperature", 2), ("smooth", 1)]
)
def test_many_rows_give_the_true_error(method, alpha):
    y, prob, calibrated = over_confident(100_000, 4)
    true = (np.abs(calibrated - prob) ** alpha).sum(axis=1).mean()
    error = cb.calibration_error(y, prob, task="canonical", method=method, alpha=alpha)
    # Four standard deviations: over 20 seeds they are 0.6 % and 1.2 % of the error.
    assert error == pytest.approx(true, rel=0.025 * alpha)


def test_calibrated_predictions_have_nearly_no_error():
    rng = np.random.default_rng(1)
    prob = softmax(rng.normal(0.0, 2.0, (20_000, 4)))
    assert cb.calibration_error(drawn(prob, rng), prob, task="canonical") < 0.02


@pytest.mark.parametrize("alpha", [1, 2])
def test_of_two_classes_it_is_twice_the_error_of_one(alpha):
    y, prob, _ = over_confident(2000, 2)
    settings = {"method": "temperature", "alpha": alpha}
    both = cb.calibration_error(y, prob, task="canonical", **settings)
    one = cb.calibration_error(y, prob[:, 1], **settings)
    assert both == pytest.approx(2 * one, rel=1e-6)


@pytest.mark.parametrize("method", ["smooth", "sms", "ovr-es15", "kce"])
def test_the_order_of_classes_does_not_matter(three_classes, method):
    y, prob, _ = three_classes
    order = np.array([2, 0, 1])
    settings = {"task": "canonical", "method": method}
    error = cb.calibration_error(y, prob, **settings)
    moved = cb.calibration_error(np.argsort(order)[y], prob[:, order], **settings)
    assert moved == pytest.approx(error, rel=1e-3)


def test_a_weight_of_two_counts_the_row_twice(three_classes):
    y, prob, _ = three_classes
    weight = np.random.default_rng(2).integers(0, 3, y.size)
    rows = np.repeat(np.arange(y.size), weight)
    for method in ("temperature", "kce"):
        settings = {"task": "canonical", "method": method}
        error = cb.calibration_error(y, prob, sample_weight=weight, **settings)
        repeated = cb.calibration_error(y[rows], prob[rows], **settings)
        assert error == pytest.approx(repeated, rel=1e-6)


def test_predictions_arrays_logits_and_files_give_the_same(three_classes, tmp_path):
    y, prob, _ = three_classes
    np.savez(tmp_path / "a.npz", y=y, p=prob)
    columns = {"y": y} | {f"c{k}": prob[:, k] for k in range(3)}
    settings = {"task": "canonical"}
    sources = (
        cb.Predictions.from_arrays(y, prob, **settings),
        cb.Predictions.from_arrays(y, np.log(prob), scale="logit", **settings),
        cb.Predictions.from_table(tmp_path / "a.npz", y="y", p="p", **settings),
        cb.Predictions.from_table(columns, y="y", p=["c0", "c1", "c2"], **settings),
        cb.Predictions.from_table(
            columns, y="y", p=["c0", "c1", "c2"], bad_rows="drop", **settings
        ),
    )
    frames = [cb.evaluate(source).frame() for source in sources]
    error = cb.calibration_error(y, prob, **settings)
    for frame in frames:
        assert frame["method"].tolist() == ["smooth"]
        assert frame["task"].tolist() == ["canonical"]
        assert frame["value"] == pytest.approx(error, rel=1e-6)
        assert np.isnan(frame["low"]).all()
        assert np.isnan(frame["high"]).all()


def test_models_and_groups_are_evaluated(three_classes):
    y, prob, _ = three_classes
    groups = np.where(np.arange(y.size) < 300, "a", "b")
    frame = cb.evaluate(
        y, {"m": prob, "n": np.sqrt(prob) / np.sqrt(prob).sum(1, keepdims=True)},
        groups=groups, methods=["smooth", "temperature"], task="canonical",
    ).frame()  # fmt: skip
    assert frame["value"].size == 8
    alone = cb.calibration_error(y[:300], prob[:300], task="canonical")
    assert frame["value"][0] == pytest.approx(alone)


@pytest.mark.parametrize("kernel", ["rbf", "laplace"])
@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_the_kernel_error_is_a_sum_over_pairs(three_classes, kernel, estimator):
    y, prob, _ = (part[:40] for part in three_classes)
    residual = np.eye(3)[y] - prob
    total = 0.0
    for i in range(40):
        for j in range(40):
            if estimator == "biased" or i != j:
                gap = np.abs(prob[i] - prob[j])
                distance = (
                    0.5 * gap.sum() / 0.3
                    if kernel == "laplace"
                    else 0.25 * (gap**2).sum() / 0.3**2
                )
                total += np.exp(-distance) * (residual[i] @ residual[j])
    pairs = 40 * 40 if estimator == "biased" else 40 * 39
    error = cb.kernel_calibration_error(
        y, prob, task="canonical", kernel=kernel, bandwidth=0.3, estimator=estimator,
        outcome_kernel="white",
    )  # fmt: skip
    assert error == pytest.approx(total / pairs)


@pytest.mark.parametrize("kernel", ["rbf", "laplace"])
def test_the_kernel_error_of_two_classes_is_that_of_one(kernel):
    y, prob, _ = over_confident(500, 2)
    settings = {"kernel": kernel, "bandwidth": 0.2}
    both = cb.kernel_calibration_error(y, prob, task="canonical", **settings)
    one = cb.kernel_calibration_error(y, prob[:, 1], **settings)
    assert both == pytest.approx(one, rel=1e-9)


class Halfway:
    """Half the way to the rates of the classes."""

    def fit(self, p, y):
        self.rates = np.bincount(y, minlength=p.shape[1]) / y.size
        return self

    def transform(self, p):
        return 0.5 * (p + self.rates)


class Unnormalised(Halfway):
    def transform(self, p):
        return 0.5 * p


class Outside(Halfway):
    def transform(self, p):
        return 2.0 * p


def test_calibrators_of_users_get_the_matrix(three_classes):
    y, prob, _ = three_classes
    error = cb.calibration_error(y, prob, method=Halfway(), task="canonical")
    gaps = 0.5 * (np.bincount(y) / y.size - prob)
    assert error == pytest.approx(np.abs(gaps).sum(axis=1).mean())
    with pytest.raises(OptionError, match=r"must sum to 1; row 0 sums to 0\.5"):
        cb.calibration_error(y, prob, method=Unnormalised(), task="canonical")
    with pytest.raises(OptionError, match=r"probabilities in \[0, 1\]; for prediction"):
        cb.calibration_error(y, prob, method=Outside(), task="canonical")


def test_a_calibrator_object_is_its_name(three_classes):
    y, prob, _ = three_classes
    by_object, by_name = (
        cb.calibration_error(y, prob, method=method, task="canonical")
        for method in (cb.make_calibrator("vector"), "vector")
    )
    assert by_object == pytest.approx(by_name)


def test_methods_of_one_event_are_refused_with_those_that_work(three_classes):
    y, prob, _ = three_classes
    with pytest.raises(OptionError, match=r"use 'ovr-es15'.*'temperature'.*'kce'"):
        cb.evaluate(y, prob, task="canonical", methods=["smooth", "es15"])


@pytest.mark.parametrize(
    "verb",
    [
        cb.summary,
        cb.decision_curve,
        cb.calibration_test,
        cb.diagnose,
        cb.decompose_score,
        cb.ReliabilityDisplay.from_predictions,
        cb.ReliabilityGrid.from_predictions,
        cb.Report.from_predictions,
    ],
)
def test_what_is_about_events_names_the_tasks_that_work(three_classes, verb):
    y, prob, _ = three_classes
    with pytest.raises(OptionError, match=r'^task="canonical" is not .*; pass task='):
        verb(y, prob, task="canonical")


def test_models_are_not_compared(three_classes):
    y, prob, _ = three_classes
    with pytest.raises(OptionError, match="is not available for a comparison"):
        cb.compare(y, {"a": prob, "b": prob}, task="canonical")


def test_sums_over_rows_and_kernel_options_are_refused(three_classes):
    y, prob, _ = three_classes
    preds = cb.Predictions.from_arrays(y, prob, task="canonical")
    with pytest.raises(OptionError, match='engine="memory"'):
        preds.aggregate()
    with pytest.raises(OptionError, match="is for one event; with task"):
        cb.kernel_calibration_error(y, prob, task="canonical", estimator="block")
    with pytest.raises(OptionError, match="pass a number for the whole vector"):
        cb.kernel_calibration_error(y, prob, task="canonical", bandwidth="median")
    with pytest.raises(ShapeError, match="must have one column per class"):
        cb.calibration_error(y, prob[:, 0], task="canonical")
