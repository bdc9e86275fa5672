"""Decision curves against dcurves, and from every kind of predictions."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import (
    InputError,
    OptionError,
    SmallSampleWarning,
    TooFewRowsError,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "dcurves.json").read_text())
MODELS = ("logistic", "forest", "bayes", "boosting", "network")
NAMES = {"all": "treat-all", "none": "treat-none"}


@pytest.fixture(scope="module")
def models():
    return {name: cb.datasets.load_binary(name)[0] for name in MODELS}


@pytest.fixture(scope="module")
def y():
    return cb.datasets.load_binary("forest")[1]


@pytest.mark.parametrize("name", GOLDEN["net_benefit"])
def test_net_benefits_are_those_of_dcurves(name, models, y):
    frame = cb.decision_curve(y, models, thresholds=GOLDEN["thresholds"]).frame()
    own = frame["net_benefit"][frame["model"] == NAMES.get(name, name)]
    assert_allclose(own, GOLDEN["net_benefit"][name], atol=1e-12)


def test_the_frame_has_the_columns_of_the_contract(models, y):
    frame = cb.decision_curve(y, models).frame()
    assert list(frame) == ["model", "threshold", "net_benefit", "low", "high"]
    assert list(dict.fromkeys(frame["model"])) == [*MODELS, "treat-all", "treat-none"]
    assert all(column.size == 99 * 7 for column in frame.values())
    assert (frame["low"] <= frame["net_benefit"]).all()
    assert (frame["net_benefit"] <= frame["high"]).all()


def test_one_model_without_a_name(y, models):
    frame = cb.decision_curve(y, models["forest"], thresholds=[0.5]).frame()
    assert frame["model"].tolist() == ["model", "treat-all", "treat-none"]


def test_aggregates_give_the_same_curve(y, models):
    aggregated = cb.Predictions.from_arrays(y, models).aggregate()
    rows, cells = (cb.decision_curve(y, models), cb.decision_curve(aggregated))
    assert_allclose(
        cells.frame()["net_benefit"], rows.frame()["net_benefit"], atol=1e-12
    )
    assert_allclose(cells.lost()["lost"], rows.lost()["lost"], atol=1e-4)
    with pytest.raises(OptionError, match="pass the rows"):
        cells.differences()


def test_weights_count_rows(y, models):
    twice = cb.decision_curve(np.tile(y, 2), np.tile(models["bayes"], 2)).frame()
    weighted = cb.decision_curve(
        y, models["bayes"], sample_weight=np.full(y.size, 2)
    ).frame()
    assert_allclose(weighted["high"], twice["high"])


def test_groups_have_their_own_curves(y, models):
    groups = np.where(np.arange(y.size) < 900, "first", "rest")
    frame = cb.decision_curve(y, models["bayes"], groups=groups).frame()
    own = cb.decision_curve(y[:900], models["bayes"][:900]).frame()
    rows = (frame["group"] == "first") & (frame["model"] == "model")
    assert_allclose(frame["net_benefit"][rows], own["net_benefit"][:99])


def test_differences_name_pairs_and_strategies(y, models):
    curve = cb.decision_curve(y, {k: models[k] for k in ("forest", "bayes")})
    pairs = curve.differences()
    names = dict.fromkeys(
        zip(pairs["model_a"].tolist(), pairs["model_b"].tolist(), strict=True)
    )
    assert list(names) == [
        ("forest", "bayes"),
        ("forest", "treat-all"),
        ("forest", "treat-none"),
        ("bayes", "treat-all"),
        ("bayes", "treat-none"),
    ]
    frame = curve.frame()
    expected = frame["net_benefit"][:99] - frame["net_benefit"][99:198]
    assert_allclose(pairs["difference"][:99], expected, atol=1e-12)


@pytest.mark.parametrize("clustered", [False, True])
def test_against_treating_none_a_difference_is_the_net_benefit(clustered, models, y):
    options = {
        "sample_weight": 1.0 + np.arange(y.size) % 3,
        "clusters": np.arange(y.size) // 4 if clustered else None,
    }
    for used in (("forest",), ("forest", "bayes")):
        curve = cb.decision_curve(y, {k: models[k] for k in used}, **options)
        frame, pairs = curve.frame(), curve.differences()
        for name in used:
            own = frame["model"] == name
            none = (pairs["model_a"] == name) & (pairs["model_b"] == "treat-none")
            for column in ("low", "high"):
                assert_allclose(pairs[column][none], frame[column][own], atol=1e-12)


def test_a_model_does_not_differ_from_itself(models, y):
    twice = {"a": models["forest"], "b": models["forest"]}
    pairs = cb.decision_curve(y, twice).differences()
    own = pairs["model_b"] == "b"
    for column in ("difference", "low", "high"):
        assert (pairs[column][own] == 0.0).all()


def test_one_aggregated_model_is_compared_with_the_strategies(models, y):
    preds = cb.Predictions.from_arrays(y, models["forest"])
    rows, cells = (
        cb.decision_curve(one).differences() for one in (preds, preds.aggregate())
    )
    assert list(dict.fromkeys(cells["model_b"])) == ["treat-all", "treat-none"]
    for column in ("difference", "low", "high"):
        assert_allclose(cells[column], rows[column], atol=1e-12)


def test_miscalibration_costs_benefit_and_recalibration_ends_that():
    rng = np.random.default_rng(8)
    chance = rng.beta(1.0, 3.0, 4000)
    y = (rng.random(4000) < chance).astype(int)
    lost = cb.decision_curve(y, {"own": chance, "bold": np.sqrt(chance)}).lost()
    own, bold = lost["model"] == "own", lost["model"] == "bold"
    at = np.isclose(lost["threshold"], 0.4)
    grid = np.linspace(0.0, 1.0, 200_001)
    density = 3.0 * (1.0 - grid) ** 2
    needless = (grid < 0.4) & (np.sqrt(grid) >= 0.4)
    truth = np.mean(density * needless * (0.4 - grid) / 0.6)
    assert lost["low"][bold & at][0] <= truth <= lost["high"][bold & at][0]
    assert lost["low"][bold & at][0] > 0.0
    assert (lost["low"][own] == 0.0).all()
    assert (lost["lost"] >= 0.0).all()


@pytest.mark.parametrize("wrong", [[0.0, 0.5], [1.0], [], [np.nan]])
def test_thresholds_lie_between_0_and_1(wrong, y, models):
    with pytest.raises(OptionError, match="thresholds must be probabilities above 0"):
        cb.decision_curve(y, models["forest"], thresholds=wrong)


def test_a_decision_is_about_one_event():
    prob, digit = cb.datasets.load_multiclass("forest")
    with pytest.raises(OptionError, match="not available for a decision curve"):
        cb.decision_curve(digit, prob, task="classwise")


def test_standardised_benefits_are_shares_of_the_event_rate(y, models):
    curve = cb.decision_curve(y, models["forest"])
    plain, scaled = curve.frame(), curve.frame(standardised=True)
    assert_allclose(scaled["net_benefit"], plain["net_benefit"] / y.mean())


def test_simultaneous_limits_are_wider(y, models):
    curve = cb.decision_curve(y, models["bayes"])
    each, whole = (curve.frame(simultaneous=both) for both in (False, True))
    used = each["model"] == "model"
    assert (whole["high"] >= each["high"])[used].all()
    assert (whole["low"] < each["low"])[used].any()


def test_clusters_widen_intervals_where_their_rows_turn_out_alike(y, models):
    five = np.arange(y.size).repeat(5)
    p = models["bayes"]
    alone = cb.decision_curve(y, p, thresholds=[0.3]).frame()
    fives = cb.decision_curve(y[five], p[five], thresholds=[0.3], clusters=five).frame()
    assert_allclose(fives["low"], alone["low"], atol=5e-4)
    assert_allclose(fives["high"], alone["high"], atol=5e-4)


def test_benefits_lost_may_exceed_one():
    p, y = np.full(40, 0.95), np.zeros(40)
    lost = cb.decision_curve(y, p, thresholds=[0.9]).lost()
    assert lost["lost"][0] > 1.0
    assert lost["low"][0] <= lost["lost"][0] <= lost["high"][0]


def test_without_events_no_benefit_can_be_standardised():
    curve = cb.decision_curve(np.zeros(40), np.linspace(0.1, 0.9, 40))
    assert np.isnan(curve.frame(standardised=True)["net_benefit"]).all()


def test_no_model_may_be_called_like_a_strategy(models, y):
    with pytest.raises(OptionError, match="a strategy called 'treat-all'; rename"):
        cb.decision_curve(y, {"treat-all": models["forest"]})


def test_groups_by_a_column_called_threshold_keep_their_values(models, y):
    table = {"y": y, "p": models["forest"], "threshold": np.arange(y.size) % 2}
    preds = cb.Predictions.from_table(table, y="y", p="p", by="threshold")
    curve = cb.decision_curve(preds, thresholds=[0.3])
    assert set(curve.frame()["threshold"].tolist()) == {0.3}
    assert set(curve.frame()["by_threshold"].tolist()) == {0, 1}
    assert set(curve.differences()["by_threshold"].tolist()) == {0, 1}


@pytest.mark.parametrize("wrong", [["a"], [0.3 + 1j]])
def test_thresholds_must_be_numbers(wrong, models, y):
    with pytest.raises(InputError, match="thresholds must contain numbers"):
        cb.decision_curve(y, models, thresholds=wrong)


def test_one_cluster_is_too_few_and_skipped_in_groups(models, y):
    with pytest.raises(TooFewRowsError, match="at least 2 clusters"):
        cb.decision_curve(y, models, clusters=np.zeros(y.size))
    clusters = np.arange(y.size)
    clusters[: y.size // 2] = -1
    groups = np.where(clusters < 0, "one", "many")
    with pytest.warns(SmallSampleWarning, match="one is skipped"):
        curve = cb.decision_curve(y, models, clusters=clusters, groups=groups)
    assert set(curve.frame()["group"].tolist()) == {"many"}
    assert set(curve.differences()["group"].tolist()) == {"many"}


def two_base_rates():
    """Two models, each with its own labels, of which half and a tenth are events."""
    rng = np.random.default_rng(3)
    prob = {"ant": rng.random(1000), "bee": 0.2 * rng.random(1000)}
    return {name: rng.random(1000) < p for name, p in prob.items()}, prob


def test_models_with_their_own_labels_have_their_own_lines_of_treating_all():
    right, prob = two_base_rates()
    curve = cb.decision_curve(right, prob, thresholds=[0.2, 0.5])
    frame = curve.frame()
    lines = [f"treat-all ({name})" for name in prob]
    names = list(dict.fromkeys(frame["model"].tolist()))
    assert names == [*prob, *lines, "treat-none"]
    for name, line in zip(prob, lines, strict=True):
        rate, odds = right[name].mean(), np.array([0.25, 1.0])
        expected = rate - odds * (1 - rate)
        assert_allclose(frame["net_benefit"][frame["model"] == line], expected)
    standardised = curve.frame(standardised=True)
    for name in prob:
        which = frame["model"] == name
        expected = frame["net_benefit"][which] / right[name].mean()
        assert_allclose(standardised["net_benefit"][which], expected)


def test_labels_of_the_same_base_rate_share_the_line_of_treating_all():
    right, prob = two_base_rates()
    right["bee"] = np.roll(right["ant"], 1)
    frame = cb.decision_curve(right, prob).frame()
    names = list(dict.fromkeys(frame["model"].tolist()))
    assert names == [*prob, "treat-all", "treat-none"]


def test_decisions_about_different_events_are_not_subtracted():
    right, prob = two_base_rates()
    with pytest.raises(OptionError, match="labels of models 'ant' and 'bee' differ"):
        cb.decision_curve(right, prob).differences()
