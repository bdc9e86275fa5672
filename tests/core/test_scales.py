"""Scales: every door takes all of them, and errors say what values look like."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logit

import calibrant as cb
from calibrant import exceptions as ex

SCALES = {
    "percent": lambda prob: 100.0 * prob,
    "logprob": np.log,
    "logit": logit,
}


@pytest.fixture
def binary():
    rng = np.random.default_rng(8)
    p = rng.uniform(0.05, 0.95, 300)
    return p, (rng.random(300) < p**1.3).astype(int)


@pytest.fixture
def classes():
    rng = np.random.default_rng(9)
    prob = rng.dirichlet([0.7, 0.7, 0.7], 300)
    return prob, (rng.random((300, 1)) > prob.cumsum(axis=1)).sum(axis=1).clip(0, 2)


DOORS = {
    "calibration_error": lambda y, p, **o: cb.calibration_error(
        y, p, method="es10", **o
    ),
    "evaluate": lambda y, p, **o: cb.evaluate(y, p, methods="es10", **o).frame()[
        "high"
    ],
    "kernel": cb.kernel_calibration_error,
    "test": lambda y, p, **o: cb.calibration_test(y, p, method="cox", **o).pvalue,
    "split": lambda y, p, **o: cb.decompose_score(y, p, **o).calibration,
    "compare": lambda y, p, **o: cb.compare(
        y, {"a": p, "b": p[::-1]}, method="es10", **o
    ).pairs()["difference"],
    "diagnose": lambda y, p, **o: cb.diagnose(y, p, **o).codes,
    "report": lambda y, p, **o: cb.Report.from_predictions(
        y, p, methods="es10", **o
    ).summary["models"][0]["errors"][0]["high"],
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("door", DOORS)
def test_a_vector_on_another_scale_is_the_same_predictions(binary, door, scale):
    p, y = binary
    found = DOORS[door](y, SCALES[scale](p), scale=scale)
    wanted = DOORS[door](y, p)
    if door == "diagnose":
        assert found == wanted
    else:
        assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("scale", ["percent", "logprob"])
@pytest.mark.parametrize("task", ["confidence", "classwise", 1])
def test_a_matrix_on_another_scale_is_the_same_predictions(classes, scale, task):
    prob, y = classes
    options = {"task": task, "method": "ew10"}
    found = cb.calibration_error(y, SCALES[scale](prob), scale=scale, **options)
    assert found == pytest.approx(cb.calibration_error(y, prob, **options), rel=1e-9)


def test_minus_infinity_is_the_logarithm_of_zero():
    y, p = [0, 1] * 20, [0.0, 0.5] * 20
    with np.errstate(divide="ignore"):
        log = np.log(p)
    found = cb.calibration_error(y, log, scale="logprob", method="ew10", debias=False)
    assert found == pytest.approx(0.25)  # half of the rows say 0.5 and all happen
    matrix = np.column_stack([log, np.log1p(-np.array(p))])
    confidence = {"task": "confidence", "method": "ew10", "debias": False}
    found = cb.calibration_error(y, matrix, scale="logprob", **confidence)
    wanted = cb.calibration_error(y, np.exp(matrix), **confidence)
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("scale", "low", "high"),
    [("percent", -0.01, 100.01), ("logprob", None, 0.01), ("prob", -1e-4, 1.0001)],
)
def test_what_leaves_the_range_is_named(scale, low, high):
    values = np.log([0.2, 0.7]) if scale == "logprob" else [0.2, 0.7]
    for bad in (low, high):
        if bad is None:
            continue
        p = np.concatenate([np.tile(values, 20), [bad]])
        with pytest.raises(
            ex.ProbabilityRangeError, match=rf"row 40 is {bad} \(1 of 41"
        ):
            cb.calibration_error([0, 1] * 20 + [0], p, method="es2", scale=scale)


@pytest.mark.parametrize("scale", ["percent", "logprob"])
def test_rounding_past_the_ends_is_an_end(scale):
    end = {"percent": 100.0 * (1 + 1e-16), "logprob": 4e-16}[scale]
    p = SCALES[scale](np.array([0.2, 0.7] * 20))
    p[3] = end
    y = [0, 1] * 20
    as_one = np.array([0.2, 0.7] * 20)
    as_one[3] = 1.0
    found = cb.calibration_error(y, p, method="es2", scale=scale)
    assert found == pytest.approx(cb.calibration_error(y, as_one, method="es2"))


def test_percentages_with_gaps_are_told_before_the_gaps(binary):
    p, y = binary
    percent = np.round(100 * p, 1)
    percent[[3, 77]] = np.nan
    with pytest.raises(ex.ScaleError) as told:
        cb.calibration_error(y, percent)
    words = str(told.value)
    assert 'These look like percentages: pass scale="percent".' in words
    assert "(298 of 300 values outside, 2 missing or infinite)" in words
    with pytest.raises(ex.MissingValueError, match=r"row 3 is nan \(2 of 300"):
        cb.calibration_error(y, percent, scale="percent")


def test_rare_events_in_percent_are_recognised():
    """Most values are below 1 %, as those of a fraud model are."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.3, 60.0, 5000)
    y = (rng.random(5000) < p).astype(int)
    assert 0.05 < np.mean(100 * p > 1.0) < 0.2
    with pytest.raises(ex.ScaleError, match="look like percentages"):
        cb.calibration_error(y, 100 * p)


def test_a_few_slips_among_probabilities_are_not_taken_for_percentages(binary):
    p, y = binary
    p[5] = 1.5
    with pytest.raises(ex.ProbabilityRangeError, match="If these are perc") as told:
        cb.calibration_error(y, p)
    assert told.type is ex.ProbabilityRangeError


def test_log_probabilities_are_recognised(binary):
    p, y = binary
    with pytest.raises(ex.ScaleError) as told:
        cb.calibration_error(y, np.log(p))
    words = str(told.value)
    assert 'These look like log-probabilities: pass scale="logprob"' in words
    assert words.index("logprob") < words.index('scale="logit"')


def test_logits_of_both_signs_are_only_logits(binary):
    p, y = binary
    with pytest.raises(
        ex.ScaleError, match=r'If these are logits, pass scale="logit"\.$'
    ):
        cb.calibration_error(y, logit(p) * 3)


def test_probabilities_that_are_said_to_be_logarithms(binary):
    p, y = binary
    with pytest.raises(
        ex.ScaleError, match='look like probabilities: pass scale="prob"'
    ):
        cb.calibration_error(y, p, scale="logprob")


def test_a_matrix_of_percentages_is_recognised(classes):
    prob, y = classes
    with pytest.raises(ex.ScaleError, match="look like percentages"):
        cb.calibration_error(y, 100 * prob, task="confidence")


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (
            "percent",
            r"each row of y_prob \(3 columns\) must sum to 100 \(within 0.1\); ",
        ),
        (
            "logprob",
            r"the exponentials of each row of y_prob .* must sum to 1 \(within",
        ),
    ],
)
def test_rows_of_other_scales_must_add_up(classes, scale, words):
    prob, y = classes
    short = 0.9 * prob
    with pytest.raises(ex.RowSumError, match=words + ".*row 0 sums to (90|0.9) "):
        cb.calibration_error(y, SCALES[scale](short), task="confidence", scale=scale)


@pytest.mark.parametrize("method", ["temperature", "vector", "ovr-platt", "top-beta"])
@pytest.mark.parametrize("scale", ["percent", "logprob"])
def test_calibrators_of_classes_take_every_scale(classes, scale, method, tmp_path):
    prob, y = classes
    given = SCALES[scale](prob)
    plain = cb.make_calibrator(method).fit(prob, y)
    other = cb.make_calibrator(method, scale=scale).fit(given, y)
    assert_allclose(other.transform(given), plain.transform(prob), atol=1e-9)
    cb.save_map(other.map_, tmp_path / "map.json")
    stored = cb.load_map(tmp_path / "map.json")
    assert stored.scale == scale
    assert_allclose(stored.transform(given), plain.transform(prob), atol=1e-9)


def test_a_stored_map_of_percentages_refuses_probabilities(classes):
    prob, y = classes
    map_ = cb.make_calibrator("temperature", scale="percent").fit(100 * prob, y).map_
    with pytest.raises(ex.RowSumError, match="must sum to 100"):
        map_.transform(prob)


@pytest.mark.parametrize("scale", ["percent", "logprob", "logit"])
def test_a_model_gives_its_calibrator_what_that_takes(scale):
    from sklearn.datasets import make_classification
    from sklearn.naive_bayes import GaussianNB

    X, y = make_classification(
        600, n_informative=5, n_classes=3, n_redundant=5, random_state=0
    )
    bayes = GaussianNB().fit(X[:300], y[:300])

    def calibrated(**options):
        calibrator = cb.make_calibrator("temperature", **options)
        model = cb.CalibratedClassifier(bayes, calibrator).fit(X[300:], y[300:])
        return model.predict_proba(X)

    assert_allclose(calibrated(scale=scale), calibrated(), atol=1e-6)


def test_binary_calibrators_name_the_scale(binary):
    p, y = binary
    with pytest.raises(ex.ScaleError, match='percentages: pass scale="percent"'):
        cb.make_calibrator("platt").fit(100 * p, y)
    with pytest.raises(ex.ScaleError, match='scale="logprob"'):
        cb.make_calibrator("platt").fit(np.log(p), y)


def test_models_on_different_scales_are_compared(binary):
    p, y = binary
    models = {"a": p, "b": np.sqrt(p), "c": p**2, "d": 0.5 * p + 0.2}
    given = {
        "a": logit(p),
        "b": 100 * np.sqrt(p),
        "c": 2 * np.log(p),
        "d": 0.5 * p + 0.2,
    }
    scale = {"a": "logit", "b": "percent", "c": "logprob", "d": "prob"}
    found = cb.compare(y, given, method="es10", scale=scale).pairs()
    wanted = cb.compare(y, models, method="es10").pairs()
    assert found["model_a"].tolist() == wanted["model_a"].tolist()
    assert_allclose(found["difference"], wanted["difference"], atol=1e-9)


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ({"a": "logit"}, "scale must be given for every model; 'b' is missing"),
        ({"a": "prob", "b": "prob", "z": "prob"}, "unknown model in scale, 'z'"),
        ({"a": "prob", "b": "pct"}, "unknown scale 'pct'"),
    ],
)
def test_scales_of_models_must_be_complete(binary, scale, words):
    p, y = binary
    with pytest.raises(ex.OptionError, match=words):
        cb.compare(y, {"a": p, "b": p}, scale=scale)


def test_probabilities_that_are_said_to_be_percentages(binary):
    p, y = binary
    with pytest.warns(ex.ScaleWarning, match=r"y_prob is 0\.9\d*; .* scale is prob"):
        cb.calibration_error(y, p, method="es10", scale="percent")
    with pytest.warns(ex.ScaleWarning, match="column 'p' is 0"):
        cb.Predictions.from_table(
            {"y": y, "p": p}, y="y", p="p", scale="percent", engine="memory"
        )
