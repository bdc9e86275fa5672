from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.isotonic import IsotonicRegression

import calibrant as cb
from calibrant.exceptions import (
    OptionError,
    SmallSampleWarning,
    TooFewRowsError,
    UnknownNameError,
    UpsideDownWarning,
)
from calibrant.experiments.synthetic import sample as paper_sample


def test_frame_is_one_row_a_method(sample):
    p, y = sample
    frame = cb.evaluate(y, p, methods=["es15", "ew-cv"]).frame()
    names = ["method", "task", "value", "low", "high", "n", "debiased", "bins"]
    assert list(frame) == names
    assert frame["method"].tolist() == ["es15", "ew-cv"]
    assert pd.DataFrame(frame).shape == (2, 8)
    assert pl.DataFrame(frame).shape == (2, 8)


def test_values_are_those_of_calibration_error(sample):
    p, y = sample
    frame = cb.evaluate(y, p, alpha=2).frame()
    for method, value in zip(frame["method"], frame["value"], strict=True):
        error = cb.calibration_error(y, p, method=str(method), alpha=2)
        assert value == pytest.approx(error, rel=1e-12)


def test_one_method_may_be_a_name(sample):
    p, y = sample
    assert cb.evaluate(y, p, methods="es15").frame()["method"].tolist() == ["es15"]
    with pytest.raises(OptionError, match="at least one method"):
        cb.evaluate(y, p, methods=[])


@pytest.mark.parametrize("estimate", [cb.evaluate, cb.Report.from_predictions])
def test_a_method_is_named_once(estimate):
    p, y = cb.datasets.load_binary("forest")
    with pytest.raises(OptionError, match="methods must differ; 'smooth' is repeated"):
        estimate(y, p, methods=("smooth", "es15", "smooth"))


def test_same_seed_same_interval(sample):
    p, y = sample
    one, other = (cb.evaluate(y, p, random_state=3).frame() for _ in range(2))
    assert_array_equal(one["low"], other["low"])
    assert (one["high"] != cb.evaluate(y, p, random_state=4).frame()["high"]).any()


def test_no_confidence_no_interval(sample):
    p, y = sample
    evaluation = cb.evaluate(y, p, confidence=None)
    assert np.isnan(evaluation.frame()["low"]).all()
    assert "[" not in str(evaluation)


@pytest.mark.parametrize("confidence", [0, 1, 90, "0.9"])
def test_confidence_is_a_fraction(sample, confidence):
    p, y = sample
    with pytest.raises(OptionError, match="confidence must lie strictly between"):
        cb.evaluate(y, p, confidence=confidence)


def test_wider_confidence_wider_interval(sample):
    p, y = sample
    narrow, wide = (cb.evaluate(y, p, confidence=c).frame() for c in (0.5, 0.99))
    assert (wide["low"] <= narrow["low"]).all()
    assert (wide["high"] >= narrow["high"]).all()


@pytest.mark.slow
def test_interval_holds_zero_for_calibrated_predictions():
    """Nominal 95 %, less 2.5 standard errors of 200 draws (1.5 points each)."""
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.02, 0.98, 500)
        y = rng.random(500) < p
        hits += (
            cb.evaluate(y, p, methods="es15", n_resamples=200).frame()["low"][0] == 0.0
        )
    assert hits >= 182


@pytest.mark.slow
def test_interval_holds_a_real_error():
    """Nominal 95 %, less 2.5 standard errors of 200 draws (1.5 points each)."""
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.random(1000)
        c = 0.2 + 0.6 * p
        y = rng.random(1000) < c
        frame = cb.evaluate(y, p, methods="es15", n_resamples=200).frame()
        truth = np.abs(c - p).mean()
        hits += frame["low"][0] <= truth <= frame["high"][0]
    assert hits >= 182


def test_classwise_has_the_classes_at_hand():
    prob, y = cb.datasets.load_multiclass("forest")
    evaluation = cb.evaluate(y, prob, task="classwise", methods=["es15", "ew15"])
    per_class = evaluation.per_class()
    assert per_class["task"].tolist() == [str(d) for d in range(10)] * 2
    first = per_class["value"][:10].mean()
    assert_allclose(evaluation.frame()["value"][0], first)


def test_classwise_of_two_classes_has_the_interval_of_one(smooth_sample):
    p, y = smooth_sample
    both = np.stack([1 - p, p], axis=1)
    options = {"methods": "ew10"}
    two = cb.evaluate(y.astype(int), both, task="classwise", **options).frame()
    one = cb.evaluate(y.astype(int), both, task=1, **options).frame()
    assert_allclose(two["value"], one["value"], atol=0.002)
    assert_allclose(two["high"] - two["low"], one["high"] - one["low"], rtol=0.15)


def test_scores_are_scikit_learns_and_split(sample):
    p, y = sample
    scores = cb.evaluate(y, p).scores()
    assert_allclose(scores["brier"], ((p - y) ** 2).mean())
    total = scores["log_loss_calibration"] + scores["log_loss_refinement"]
    assert_allclose(total, scores["log_loss"])
    assert scores["brier_calibration"][0] > 0
    assert_allclose(scores["base_rate"], y.mean())


def test_isotonic_predictions_have_no_calibration_part():
    p = np.repeat([0.2, 0.8], 50)
    y = np.tile([1, 0, 0, 0, 0], 20)
    y[50:] = 1 - y[50:]
    split = cb.decompose_score(y, p, score="log-loss")
    assert split.calibration == pytest.approx(0.0, abs=1e-12)
    assert split.frame()["refinement"] == pytest.approx(split.score)


def test_split_of_weighted_rows_is_that_of_repeated_ones(sample):
    p, y = sample
    times = np.arange(p.size) % 3 + 1
    weighted = cb.decompose_score(y, p, sample_weight=times)
    repeated = cb.decompose_score(np.repeat(y, times), np.repeat(p, times))
    assert_allclose(weighted.refinement, repeated.refinement)


def test_unknown_score_is_refused(sample):
    p, y = sample
    with pytest.raises(OptionError, match="unknown score 'spherical'"):
        cb.decompose_score(y, p, score="spherical")


def test_scores_are_computed_on_demand_from_rows_without_fits(sample):
    p, y = sample
    (one,) = cb.evaluate(y, p, methods="es15").assessments
    assert "scores" not in vars(one)
    assert one.scores[0] == cb.decompose_score(y, p)
    assert one.scores is one.scores


def test_scores_of_small_groups_together_are_those_of_each(sample):
    p, y = sample
    groups = np.arange(p.size) // 40
    found = cb.evaluate(y, p, groups=groups, methods="es5", confidence=None).scores()
    alone = [
        cb.decompose_score(y[groups == k], p[groups == k], score="log-loss")
        for k in found["group"]
    ]
    assert_allclose(found["log_loss"], [one.score for one in alone])
    assert_allclose(found["log_loss_refinement"], [one.refinement for one in alone])


@dataclass
class Halved:
    """A calibrator that cannot be hashed, since equal ones are equal."""

    share: float = 0.5

    def fit(self, p, y):  # noqa: ARG002
        return self

    def transform(self, p):
        return self.share * p


def test_calibrators_need_not_be_hashable(sample):
    p, y = sample
    assert cb.calibration_error(y, p, method=Halved()) == pytest.approx(p.mean() / 2)
    found = cb.evaluate(y, p, methods=[Halved(), Halved(1.0)]).frame()
    assert_allclose(found["value"], [p.mean() / 2, 0.0], atol=1e-12)


def test_twelve_rows_are_evaluated_by_the_methods_that_can():
    rng = np.random.default_rng(0)
    p = rng.random(12)
    y = rng.random(12) < p
    with pytest.warns(SmallSampleWarning) as told:
        found = cb.evaluate(y, p)
    assert found.frame()["method"].tolist() == ["smooth"]
    assert str(told[1].message).startswith("es15 is skipped: ")
    assert str(told[2].message).startswith("ew15 is skipped: ")
    assert all(warning.filename == __file__ for warning in told)


def test_too_few_rows_for_every_method_are_an_error():
    p = np.linspace(0.1, 0.9, 12)
    with (
        pytest.warns(SmallSampleWarning, match="only 12 rows"),
        pytest.raises(TooFewRowsError, match="for example ew2 or ew-cv"),
    ):
        cb.evaluate(p > 0.5, p, methods=["ew15"])


def test_intervals_of_smooth_start_at_zero_where_the_test_finds_nothing():
    rng = np.random.default_rng(5)
    for power in (1.0, 1.05, 1.5):
        p = rng.uniform(0.02, 0.98, 1000)
        y = (rng.random(1000) < p**power).astype(float)
        pvalue = cb.calibration_test(y, p).pvalue
        for confidence in (0.5, 0.9):
            options = {"methods": "smooth", "confidence": confidence}
            found = cb.evaluate(y, p, **options).frame()
            tail = (1 - confidence) / 2
            assert (found["low"][0] == 0.0) == (pvalue > tail)
            assert found["low"][0] <= found["value"][0] <= found["high"][0]


def test_posterior_intervals_follow_draws_of_the_map(smooth_sample):
    p, y = smooth_sample
    frame = cb.evaluate(y, p, methods="smooth", confidence=0.8, alpha=2).frame()
    fit = cb.make_calibrator("smooth").fit(p, y).fit_
    ends = fit.curve.error_quantiles((0.1, 0.9), n_draws=1000, alpha=2.0)
    assert_allclose([frame["low"][0], frame["high"][0]], ends)


def test_classwise_intervals_of_smooth_are_means_over_classes():
    prob, y = cb.datasets.load_multiclass("bayes")
    found = cb.evaluate(y, prob, task="classwise", methods="smooth", n_resamples=300)
    classes = found.per_class()
    assert_allclose(found.frame()["high"][0], classes["high"].mean(), rtol=0.02)
    assert found.frame()["low"][0] <= classes["low"].mean() + 1e-9


@pytest.mark.slow
def test_intervals_of_smooth_hold_true_errors_small_ones_too():
    """Nominal 95 %, less 2.5 standard errors of 60 draws (2.8 points each)."""
    hits, zeros = 0, 0
    for seed in range(30):
        for error in (0.025, 0.0):
            p, y, c = paper_sample("beta2", error, 1000, 900 + seed)
            frame = cb.evaluate(y, p, methods="smooth", n_resamples=300).frame()
            truth = np.abs(c - p).mean()
            hits += frame["low"][0] <= truth <= frame["high"][0]
            zeros += error == 0.0 and frame["low"][0] == 0.0
    assert hits >= 53
    assert zeros >= 26


def test_posterior_intervals_take_weights_as_counts():
    p, y = cb.datasets.load_binary("bayes")
    rows = np.repeat(np.arange(400), 2)
    weight = np.full(400, 2.0)
    weighted = cb.evaluate(y[:400], p[:400], methods="smooth", sample_weight=weight)
    repeated = cb.evaluate(y[rows], p[rows], methods="smooth")
    for end in ("low", "high"):
        assert_allclose(weighted.frame()[end], repeated.frame()[end], rtol=1e-6)


def test_the_table_in_a_notebook_escapes_names(smooth_sample):
    p, y = smooth_sample
    models = {"good": p, "<img src=x>": p}
    evaluation = cb.evaluate(y, models, methods="es15", n_resamples=20)
    table = evaluation._repr_html_()
    assert "<img" not in table
    assert "&lt;img" in table
    assert f"<td>{evaluation.frame()['value'][0]:.4f}</td>" in table


def test_results_do_not_change_with_the_arrays_they_came_from(sample):
    p, y = (np.array(values, dtype=float) for values in sample)
    evaluation = cb.evaluate(y, p)
    expected = cb.evaluate(y.copy(), p.copy()).scores()["brier"]
    p[:] = 0.5
    assert evaluation.scores()["brier"] == expected


def test_calibrators_of_one_class_are_told_apart(sample):
    p, y = sample
    several = [IsotonicRegression(), IsotonicRegression(y_max=0.5), "es15"]
    frame = cb.evaluate(y, p, methods=several, confidence=None).frame()
    names = ["IsotonicRegression 1", "IsotonicRegression 2", "es15"]
    assert frame["method"].tolist() == names
    alone = cb.evaluate(y, p, methods=several[:1], confidence=None).frame()
    assert alone["method"].tolist() == ["IsotonicRegression"]
    assert alone["value"][0] == frame["value"][0] < frame["value"][1]
    report = cb.Report.from_predictions(y, p, methods=several)
    told = [row["method"] for row in report.summary["models"][0]["errors"]]
    assert told == names


def test_a_number_is_no_method(sample):
    p, y = sample
    with pytest.raises(UnknownNameError, match="unknown method 3"):
        cb.evaluate(y, p, methods=3)


def test_predictions_of_the_other_label_are_named():
    p, y = cb.datasets.load_binary("forest")
    with pytest.warns(UpsideDownWarning, match=r"correlation -0\.9") as caught:
        cb.evaluate(y, 1.0 - p, methods="es15", confidence=None)
    assert [one.filename for one in caught] == [__file__]


def turned_groups(n_groups, turned):
    """Labels, predictions and groups of 200 rows, of which some are upside down."""
    rng = np.random.default_rng(3)
    group = np.repeat([f"g{i}" for i in range(n_groups)], 200)
    p = rng.random(group.size)
    y = (rng.random(group.size) < p).astype(int)
    return y, np.where(np.isin(group, turned), 1.0 - p, p), group


def test_a_group_that_is_upside_down_is_named():
    y, p, group = turned_groups(3, ["g1"])
    with pytest.warns(
        UpsideDownWarning, match=r"down for group=g1: .*-0\.\d\d\)"
    ) as one:
        cb.evaluate(y, p, groups=group, methods="es15", confidence=None)
    assert [warning.filename for warning in one] == [__file__]
    table = {"y": y, "a": 1.0 - p, "b": p, "site": group}
    frame = pd.DataFrame(table)
    preds = cb.Predictions.from_table(frame, y="y", p=["a", "b"], by="site")
    for same in (preds, preds.aggregate()):
        with pytest.warns(
            UpsideDownWarning, match=r"for a, site=g0; a, site=g2; b, site=g1: .* first"
        ) as caught:
            cb.evaluate(same, methods="es15", confidence=None)
        assert len(caught) == 1


def test_many_groups_that_are_upside_down_are_counted():
    turned = [f"g{i}" for i in range(7)]
    y, p, group = turned_groups(8, turned)
    with pytest.warns(UpsideDownWarning, match="group=g4 and 2 more: ") as caught:
        cb.evaluate(y, p, groups=group, methods="es15", confidence=None)
    assert len(caught) == 1


@pytest.mark.filterwarnings("error::calibrant.exceptions.UpsideDownWarning")
def test_many_groups_without_skill_are_not_taken_to_be_upside_down():
    """Each alone would be in one of a hundred samples."""
    rng = np.random.default_rng(1)
    y, p = rng.integers(2, size=40_000), rng.random(40_000)
    groups = np.arange(40_000) // 100
    cb.evaluate(y, p, groups=groups, methods="ew5", confidence=None)
