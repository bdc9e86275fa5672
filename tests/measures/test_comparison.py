from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import calibrant as cb
from calibrant.exceptions import (
    LengthMismatchError,
    OptionError,
    ProbabilityRangeError,
    SmallSampleWarning,
    TooFewRowsError,
    UnknownNameError,
)

Z90 = norm.ppf(0.95)
FAST = {"n_resamples": 200}


@pytest.fixture
def models(smooth_sample):
    """Three models of one event, and whether it happened."""
    p, y = smooth_sample
    return {"own": p, "repaired": p**1.5, "raised": p**0.5}, y


def test_errors_and_intervals_are_those_of_evaluate(models):
    predictions, y = models
    for method in ("smooth", "es15", "kce"):
        found = cb.compare(y, predictions, method=method, **FAST)
        for standing in found.standings:
            alone = cb.evaluate(y, predictions[standing.model], methods=method, **FAST)
            estimate = alone.assessments[0].estimates[0]
            # Sums of bins are taken over rows as given, or over sorted ones.
            assert standing.estimate.value == pytest.approx(estimate.value, abs=1e-14)
            assert replace(standing.estimate, value=0.0) == replace(estimate, value=0.0)


def test_a_model_and_its_copy_are_a_tie(smooth_sample):
    p, y = smooth_sample
    found = cb.compare(y, {"a": p, "b": p.copy()}, **FAST)
    (pair,) = found.differences
    assert (pair.difference, pair.probability, pair.distinct) == (0.0, 0.5, False)
    assert found.frame()["rank"].tolist() == [1, 1]


def test_what_models_share_does_not_blur_their_difference(smooth_sample):
    """One bin: errors are abs(mean p - mean y), so that labels cancel out."""
    p, y = smooth_sample
    a, b = 0.5 + 0.3 * p, 0.5 + 0.4 * p
    found = cb.compare(y, {"a": a, "b": b}, method="es1", debias=False)
    (pair,) = found.differences
    assert_allclose(pair.difference, a.mean() - b.mean())
    half = Z90 * np.std(a - b) / np.sqrt(p.size)
    assert_allclose([pair.low, pair.high], pair.difference + half * np.array([-1, 1]),
                    rtol=0.02)  # fmt: skip
    assert_allclose(half, 0.00194, rtol=0.02)  # unpaired it were 0.04


@pytest.fixture
def answers():
    """Questions that are easy or hard for both models, which are right on their own.

    Both say the same; "plain" is right as often as it says and "bold" less often.
    """
    rng = np.random.default_rng(41)
    said = rng.uniform(0.4, 0.95, 3000)
    draw = rng.random(3000)
    right = {"plain": draw < said, "bold": draw < said - 0.2}
    return {"plain": said, "bold": said + 0.0}, right


def test_labels_of_their_own_tell_models_apart_that_say_the_same(answers):
    said, right = answers
    for one in right.values():  # whose labels they are decides, not what was said
        alone = cb.compare(one, said, **FAST)
        assert alone.differences[0].difference == 0.0
    found = cb.compare(right, said, **FAST)
    assert found.frame()["model"].tolist() == ["plain", "bold"]
    assert found.frame()["rank"].tolist() == [1, 2]
    (pair,) = found.differences
    assert_allclose(pair.difference, -0.2, atol=0.03)  # known by construction
    assert pair.low < -0.2 < pair.high


def test_rows_of_labels_of_their_own_stay_pairs(answers):
    """One bin: errors are means of p - y, whose row-wise differences give the noise."""
    said, right = answers
    found = cb.compare(
        right, {name: p + 0.04 for name, p in said.items()}, method="es1", debias=False
    )
    (pair,) = found.differences
    apart = right["bold"].astype(float) - right["plain"].astype(float)
    half = Z90 * np.std(apart) / np.sqrt(apart.size)
    assert_allclose(pair.difference, apart.mean())
    assert_allclose([pair.low, pair.high], pair.difference + half * np.array([-1, 1]),
                    rtol=0.02)  # fmt: skip
    unpaired = Z90 * np.sqrt(sum(np.var(y) for y in right.values()) / apart.size)
    assert half < 0.7 * unpaired


def test_the_same_labels_for_each_are_one_vector(models):
    predictions, y = models
    each = cb.compare(dict.fromkeys(predictions, y), predictions, **FAST)
    assert str(each) == str(cb.compare(y, predictions, **FAST))


def test_weights_belong_to_rows_of_all_models(answers):
    said, right = answers
    weight = np.random.default_rng(2).integers(0, 3, 3000)
    options = {"method": "es10", "debias": False}
    weighted = cb.compare(right, said, sample_weight=weight, **options)
    repeated = cb.compare(
        {name: np.repeat(y, weight) for name, y in right.items()},
        {name: np.repeat(p, weight) for name, p in said.items()},
        **options,
    )
    for one, other in zip(weighted.standings, repeated.standings, strict=True):
        assert one.model == other.model
        assert one.estimate.value == pytest.approx(other.estimate.value, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        (lambda y: {"plain": y}, OptionError, "y_true must have the labels of each"),
        (
            lambda y: {"plain": y, "bold": y, "third": y},
            OptionError,
            "it has 'plain', 'bold', 'third'",
        ),
        (
            lambda y: {"plain": y, "bold": y[1:]},
            LengthMismatchError,
            r"y_true\['bold'\] has 2999, y_prob\['bold'\] has 3000",
        ),
        (lambda y: {"plain": y, "bold": y + 1}, ValueError, r"y_true\['bold'\] must"),
    ],
)
def test_labels_by_model_name_what_is_wrong(answers, labels, error, words):
    said, right = answers
    with pytest.raises(error, match=words):
        cb.compare(labels(right["plain"].astype(int)), said)


def test_models_on_different_rows_are_no_pairs(answers):
    said, right = answers
    right["bold"], said["bold"] = right["bold"][:2000], said["bold"][:2000]
    with pytest.raises(
        LengthMismatchError,
        match=r"y_true\['plain'\] has 3000, y_true\['bold'\] has 2000\.",
    ):
        cb.compare(right, said)


def test_labels_of_classes_may_differ_by_model():
    rng = np.random.default_rng(5)
    prob = rng.dirichlet([1.0, 1.0, 1.0], 500)
    y = {name: rng.integers(0, 3, 500) for name in "ab"}
    found = cb.compare(y, {"a": prob, "b": prob}, task="confidence", method="es5")
    for standing in found.standings:
        alone = cb.evaluate(y[standing.model], prob, task="confidence", methods="es5")
        assert standing.estimate == alone.assessments[0].estimates[0]


def test_mirrored_models_double_the_noise_of_labels(smooth_sample):
    """One bin, one model above and one below the share of positives."""
    p, y = smooth_sample
    a, b = np.full(p.size, 0.9), np.full(p.size, 0.1)
    options = {"method": "es1", "debias": False, "confidence": 0.9}
    (pair,) = cb.compare(y, {"a": a, "b": b}, **options).differences
    assert_allclose(abs(pair.difference), abs(2 * y.mean() - 1))
    half = 2.0 * Z90 * y.std() / np.sqrt(p.size)
    assert_allclose(pair.high - pair.difference, half, rtol=0.08)


@pytest.mark.parametrize("method", ["smooth", "es15", "pl", "kce"])
def test_the_order_of_models_does_not_matter(models, method):
    predictions, y = models
    backwards = dict(reversed(predictions.items()))
    options = {"method": method, "n_resamples": 50}
    assert cb.compare(y, predictions, **options) == cb.compare(y, backwards, **options)


def test_names_do_not_matter_beyond_ties(models):
    predictions, y = models
    renamed = {f"z{name[::-1]}": p for name, p in predictions.items()}
    found, other = (
        cb.compare(y, m, method="es15", **FAST) for m in (predictions, renamed)
    )
    for column in ("value", "rank", "low"):
        assert_allclose(found.frame()[column], other.frame()[column])
    assert_allclose(found.pairs()["probability"], other.pairs()["probability"])


def test_weights_are_repeated_rows(models):
    predictions, y = models
    weight = np.arange(y.size) % 3 + 1
    repeated = {name: np.repeat(p, weight) for name, p in predictions.items()}
    for method, tolerance in (("es15", 1e-12), ("smooth", 1e-6)):
        options = {"method": method, "n_resamples": 400}
        weighted = cb.compare(y, predictions, sample_weight=weight, **options)
        rows = cb.compare(np.repeat(y, weight), repeated, **options)
        assert weighted.frame()["model"].tolist() == rows.frame()["model"].tolist()
        assert_allclose(
            weighted.frame()["value"], rows.frame()["value"], rtol=tolerance
        )
        widths = [c.pairs()["high"] - c.pairs()["low"] for c in (weighted, rows)]
        assert_allclose(widths[0], widths[1], rtol=0.2)


def test_rows_without_weight_do_not_count(models):
    predictions, y = models
    weight = (np.arange(y.size) < 400).astype(float)
    some = {name: p[:400] for name, p in predictions.items()}
    assert cb.compare(
        y, predictions, sample_weight=weight, method="es15"
    ).differences == (
        cb.compare(y[:400], some, sample_weight=np.ones(400), method="es15").differences
    )


def test_seeds_give_the_same_numbers_and_others_nearly(models):
    predictions, y = models
    one, same, other = (
        cb.compare(y, predictions, random_state=seed, **FAST).pairs()["high"]
        for seed in (1, 1, 2)
    )
    assert_allclose(one, same, rtol=0.0)
    assert (one != other).any()
    assert_allclose(one, other, atol=0.01)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_generators_are_seeds_too(models, kind):
    predictions, y = models
    first, second = (
        cb.compare(y, predictions, method="es15", random_state=kind(5), **FAST)
        for _ in range(2)
    )
    assert first == second


def test_very_different_models_are_significantly_different(models):
    predictions, y = models
    found = cb.compare(y, predictions, **FAST)
    assert found.frame()["model"].tolist() == ["repaired", "own", "raised"]
    assert found.frame()["rank"].tolist() == [1, 1, 3]
    assert (found.pairs()["probability"][1:] > 0.999).all()


@pytest.mark.parametrize("method", ["smooth", "es15", "isotonic"])
def test_calibrated_models_are_rarely_significantly_different(method):
    """One predicts three values only, so that bias and noise of its error are less."""
    extreme = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        y = rng.random(500) < p
        coarse = (np.floor(3 * p) + 0.5) / 3
        found = cb.compare(y, {"a": p, "b": coarse}, method=method, n_resamples=60)
        extreme += abs(found.differences[0].probability - 0.5) > 0.45
    assert extreme <= 6  # more in 0.2 % of cases, were it 10 % of runs


def test_tasks_reduce_all_models_alike():
    forest, digit = cb.datasets.load_multiclass("forest")
    bayes, _ = cb.datasets.load_multiclass("bayes")
    for task in ("confidence", "classwise", 3):
        found = cb.compare(
            digit, {"forest": forest, "bayes": bayes}, task=task, method="es15", **FAST
        )
        alone = cb.calibration_error(digit, bayes, task=task, method="es15")
        value = dict(zip(found.frame()["model"], found.frame()["value"], strict=True))
        assert_allclose(value["bayes"], alone)
        assert set(found.frame()["task"]) == {str(task)}


def test_frames_are_columns_for_any_library(models):
    predictions, y = models
    found = cb.compare(y, predictions, **FAST)
    frame, pairs = pd.DataFrame(found.frame()), pd.DataFrame(found.pairs())
    assert list(frame) == ["model", "rank", "method", "task", "value", "low", "high",
                           "n", "debiased", "bins"]  # fmt: skip
    assert list(pairs) == ["model_a", "model_b", "difference", "low", "high",
                           "probability", "distinct"]  # fmt: skip
    assert len(pairs) == 3
    order = frame["model"].tolist()
    assert all(
        order.index(r.model_a) < order.index(r.model_b) for r in pairs.itertuples()
    )
    assert repr(found).startswith(
        "<Comparison, alpha = 1>\n1. repaired  smooth (binary)"
    )
    assert "better with probability" in str(found)


def test_hostile_names_stay_as_they_are(smooth_sample):
    p, y = smooth_sample
    names = ["", "a,b", "x=1", "[bold]", "日本語", "two\nlines", "{0}", "%s", "a|b"]
    models = {name: p ** (1 + i / 10) for i, name in enumerate(names)}
    found = cb.compare(y, models, method="es5", n_resamples=20)
    assert sorted(found.frame()["model"].tolist()) == sorted(names)


def test_ten_copies_share_the_first_rank(smooth_sample):
    p, y = smooth_sample
    found = cb.compare(y, {str(i): p for i in range(10)}, method="es5", **FAST)
    assert set(found.frame()["rank"]) == {1}
    assert set(found.pairs()["probability"]) == {0.5}


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (
            {"a": [0.5] * 40},
            "at least 2 models are needed to compare; got 1. For one model use",
        ),
        ([[0.5] * 40], "y_prob must be a dict of predictions by name.*got list"),
        ({1: [0.5] * 40, "1": [0.5] * 40}, "different name.*'1', '1'"),
    ],
)
def test_models_must_be_several_by_name(models, words):
    with pytest.raises(OptionError, match=words):
        cb.compare([0, 1] * 20, models)


def test_errors_name_the_model():
    y, good = [0, 1] * 20, [0.5] * 40
    bad = [0.5] * 39 + [1.5]
    with pytest.raises(
        ProbabilityRangeError, match=r"y_prob\['b'\] must.*row 39 is 1.5"
    ):
        cb.compare(y, {"a": good, "b": bad})
    with pytest.raises(LengthMismatchError, match=r"y_prob\['b'\] has 39"):
        cb.compare(y, {"a": good, "b": good[:39]})


def test_options_are_checked(models):
    predictions, y = models
    with pytest.raises(UnknownNameError, match="did you mean 'smooth'"):
        cb.compare(y, predictions, method="smoth")
    with pytest.raises(OptionError, match="confidence must lie strictly"):
        cb.compare(y, predictions, confidence=None)
    with pytest.raises(OptionError, match="n_resamples must be"):
        cb.compare(y, predictions, n_resamples=1)


def test_few_rows_are_warned_about():
    y, p = [0, 1] * 10, np.linspace(0.1, 0.9, 20)
    with pytest.warns(SmallSampleWarning, match="only 20 rows"):
        cb.compare(y, {"a": p, "b": p**2}, method="es5", n_resamples=20)


def test_certain_and_right_predictions_can_be_compared():
    """No spread at all: one model is never wrong, the other always says 1/2."""
    y = np.tile([0.0, 1.0], 50)
    found = cb.compare(y, {"right": y, "half": 0.5 + 0.2 * y}, method="es2", **FAST)
    assert found.frame()["model"].tolist() == ["right", "half"]
    assert found.differences[0].probability > 0.999


def test_groups_of_a_table_are_compared_apart(models):
    predictions, y = models
    table = {**predictions, "y": y, "region": np.where(np.arange(600) % 2, "n", "s")}
    found = cb.compare(
        cb.Predictions.from_table(table, y="y", p=["own", "raised"], by="region"),
        method="es15",
        **FAST,
    )
    south = table["region"] == "s"
    alone = cb.compare(
        y[south],
        {n: predictions[n][south] for n in ("own", "raised")},
        method="es15",
        **FAST,
    )
    assert [one.key for one in found.groups] == [{"region": "n"}, {"region": "s"}]
    assert found.groups[1].standings == alone.standings
    assert found.groups[1].pairs()["region"].tolist() == ["s"]


def test_small_groups_of_a_table_are_left_out(models):
    predictions, y = models
    table = {**predictions, "y": y, "region": np.minimum(np.arange(600) // 4, 9)}
    columns = {"y": "y", "p": ["own", "raised"], "by": "region"}
    options = {"method": "es15"}
    preds = cb.Predictions.from_table(table, **columns)
    with pytest.warns(SmallSampleWarning, match="9 groups are skipped: region=0;"):
        found = cb.compare(preds, **options, **FAST)
    assert [one.key for one in found.groups] == [{"region": 9}]
    table["region"] = np.arange(600) // 4
    with (
        pytest.warns(SmallSampleWarning, match="150 groups are skipped"),
        pytest.raises(OptionError, match="no group has"),
    ):
        cb.compare(cb.Predictions.from_table(table, **columns), **options)


def test_tables_say_what_is_wrong(models):
    predictions, y = models
    table = {**predictions, "y": y, "rank": np.zeros(600)}
    with pytest.raises(
        OptionError, match="at least 2 models are needed to compare; got 1"
    ):
        cb.compare(cb.Predictions.from_table(table, y="y", p="own"))
    with pytest.raises(OptionError, match="names the model 'own' twice"):
        cb.compare(cb.Predictions.from_table(table, y="y", p=["own", "own"]))
    table["by_rank"] = table["rank"]
    with pytest.raises(OptionError, match="both 'rank' and 'by_rank'"):
        cb.compare(
            cb.Predictions.from_table(
                table, y="y", p=["own", "raised"], by=["rank", "by_rank"]
            )
        )


def test_groups_called_like_a_result_get_another_name(models):
    predictions, y = models
    table = {**predictions, "y": y, "rank": np.repeat(["a", "b"], 300)}
    found = cb.compare(
        cb.Predictions.from_table(table, y="y", p=["own", "raised"], by="rank"),
        method="ew5",
        **FAST,
    )
    assert [one.key for one in found.groups] == [{"by_rank": "a"}, {"by_rank": "b"}]
    with pytest.raises(TooFewRowsError, match="Use fewer bins, for example es120 or"):
        cb.compare(
            cb.Predictions.from_table(table, y="y", p=["own", "raised"]), method="es900"
        )
