import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t as student_t
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import calibrant as cb
from calibrant.exceptions import (
    OptionError,
    SmallSampleWarning,
    TooFewRowsError,
    UnknownNameError,
)
from calibrant.measures.summary import MEASURES

GOLDEN = Path(__file__).parents[1] / "golden"
R = json.loads((GOLDEN / "summary.json").read_text(encoding="utf-8"))
SETS = runpy.run_path(str(GOLDEN / "record_summary.py"))["data_sets"]()
WITHOUT_CERTAIN = [n for n, (p, _) in SETS.items() if ((p > 0) & (p < 1)).all()]
"""Data sets that val.prob fits as they are; it deletes predictions of 0 and 1."""


def clinic(rows=150, seed=7, slope=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(-1.5, 1.2, rows)
    y = (rng.random(rows) < expit(slope * x)).astype(int)
    return y, expit(x)


def only(*args, **options):
    """Return the only unit of a summary."""
    (unit,) = cb.summary(*args, **options).units
    return unit


def limits(measure):
    return [measure.low, measure.high]


@pytest.fixture(scope="module", params=SETS)
def both(request):
    """Give a data set: ours by loess, and what R says."""
    p, y = SETS[request.param]
    return only(y, p, smoother="loess"), R["sets"][request.param], p


def test_coefficients_are_those_of_glm(both):
    unit, r, _ = both
    found = [unit[name].value for name in ("in-the-large", "intercept", "slope")]
    np.testing.assert_allclose(found, [r["large"], *r["line"]], atol=1e-10)


def test_profile_intervals_are_those_of_glm(both):
    unit, r, _ = both
    for place, name in enumerate(("intercept", "slope")):
        np.testing.assert_allclose(limits(unit[name]), r[f"{name}_profile"], atol=1e-8)
        # confint interpolates the same profile.
        interpolated = r["confint"][place]
        np.testing.assert_allclose(limits(unit[name]), interpolated, atol=2e-4)


def test_limits_of_events_are_the_exact_ones(both):
    unit, r, p = both
    found = np.array(limits(unit["O:E"])) * p.sum()
    np.testing.assert_allclose(found, r["events"], atol=2e-3)


def test_in_the_large_has_the_interval_of_glm_where_the_slope_is_1(both):
    unit, r, _ = both
    if unit["slope"].low < 1.0 < unit["slope"].high:
        low, high = r["large_confint"]
        found = limits(unit["in-the-large"])
        np.testing.assert_allclose(found, [low, high], atol=0.05 * (high - low))


def test_area_and_interval_are_those_of_proc(both):
    unit, r, _ = both
    area = unit["AUROC"]
    found = [area.low, area.value, area.high]
    np.testing.assert_allclose(found, r["auroc"], atol=1e-11)


def test_loess_distances_are_those_of_r(both):
    unit, r, _ = both
    for name, value in r["loess"].items():
        assert unit[name].value == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("name", SETS)
def test_lowess_distances_and_brier_are_those_of_val_prob(name):
    p, y = SETS[name]
    unit, r = only(y, p, smoother="lowess"), R["sets"][name]["val.prob"]
    ours = {"ICI": "Eavg", "E90": "E90", "Emax": "Emax", "Brier": "Brier"}
    for measure, theirs in ours.items():
        assert unit[measure].value == pytest.approx(r[theirs], abs=1e-11)


@pytest.mark.parametrize("name", WITHOUT_CERTAIN)
def test_coefficients_and_r2_are_those_of_val_prob(name):
    p, y = SETS[name]
    unit, r = only(y, p, confidence=None), R["sets"][name]["val.prob"]
    ours = {"intercept": "Intercept", "slope": "Slope", "Nagelkerke R2": "R2"}
    for measure, theirs in ours.items():
        assert unit[measure].value == pytest.approx(r[theirs], abs=1e-7)
    # val.prob rounds predictions before it counts pairs.
    assert unit["AUROC"].value == pytest.approx(r["C (ROC)"], abs=5e-4)


def test_scores_are_those_of_scikit_learn():
    y, p = clinic()
    unit = only(y, p)
    assert unit["Brier"].value == pytest.approx(brier_score_loss(y, p))
    assert unit["log-loss"].value == pytest.approx(log_loss(y, p))
    assert unit["AUROC"].value == pytest.approx(roc_auc_score(y, p))
    reference = brier_score_loss(y, np.full(y.size, y.mean()))
    assert unit["scaled Brier"].value == pytest.approx(
        1 - unit["Brier"].value / reference
    )


def test_ici_is_the_error_that_evaluate_gives():
    y, p = clinic(slope=0.4)
    (estimate,) = cb.evaluate(y, p, methods="smooth").assessments[0].estimates
    ici = only(y, p)["ICI"]
    assert (ici.value, ici.low, ici.high) == (
        estimate.value,
        estimate.low,
        estimate.high,
    )


def test_distances_are_quantiles_of_the_curve_of_the_diagram():
    y, p = clinic(slope=0.4)
    unit = only(y, p)
    curve = cb.make_calibrator("smooth", monotone=False).fit(p, y).map_
    gap = np.abs(curve(p) - p)
    assert unit["E50"].value == pytest.approx(np.median(gap))
    assert unit["E90"].value == pytest.approx(np.quantile(gap, 0.9))
    assert unit["Emax"].value == pytest.approx(gap.max())


def test_intervals_hold_their_estimates():
    for name, (p, y) in SETS.items():
        for one in only(y, p).measures:
            assert one.low <= one.value <= one.high, (name, one)
            assert one.low < one.high, (name, one)


def test_a_higher_level_widens_every_interval():
    y, p = clinic()
    for narrow, wide in zip(
        only(y, p, confidence=0.8).measures, only(y, p).measures, strict=True
    ):
        assert wide.low <= narrow.low, wide
        assert narrow.high <= wide.high, wide


def test_frame_has_one_row_per_measure():
    y, p = clinic()
    frame = cb.summary(y, p).frame()
    assert list(frame) == ["measure", "value", "low", "high", "n"]
    assert frame["measure"].tolist() == list(MEASURES)
    assert set(frame["n"].tolist()) == {150}


def test_frame_names_models_and_groups():
    y, p = clinic(300)
    place = np.repeat(["a", "b"], 150)
    frame = cb.summary(y, {"m": p, "half": p / 2}, groups=place).frame()
    assert list(frame)[:3] == ["model", "group", "measure"]
    assert len(frame["model"]) == 4 * len(MEASURES)


def test_each_group_has_the_summary_of_its_own_rows():
    y, p = clinic(300)
    place = np.repeat(["a", "b"], 150)
    grouped = cb.summary(y, p, groups=place)
    for unit, rows in zip(grouped.units, (slice(150), slice(150, None)), strict=True):
        assert unit.measures == only(y[rows], p[rows]).measures


def test_weights_are_counts():
    y, p = clinic(120)
    weight = np.random.default_rng(0).integers(1, 4, y.size)
    weighted = only(y, p, sample_weight=weight, smoother="loess")
    repeated = only(np.repeat(y, weight), np.repeat(p, weight), smoother="loess")
    for one, two in zip(weighted.measures, repeated.measures, strict=True):
        assert limits(one) == pytest.approx(limits(two), abs=1e-8), one.measure
        assert one.value == pytest.approx(two.value, abs=1e-8), one.measure
    assert weighted.n == 120


def test_the_order_of_rows_does_not_matter():
    y, p = clinic()
    order = np.random.default_rng(0).permutation(y.size)
    assert only(y, p).measures == only(y[order], p[order]).measures


def test_aggregated_predictions_give_the_same_numbers():
    rng = np.random.default_rng(5)
    x = rng.normal(-2.0, 1.5, 2_200_000)  # too many to be kept as rows
    y = (rng.random(x.size) < expit(0.1 + 0.9 * x)).astype(int)
    preds = cb.Predictions.from_arrays(y, expit(x))
    cells = preds.aggregate()
    assert cells.store.cells.columns["rows"].max() > 1
    for rows, sums in zip(only(preds).measures, only(cells).measures, strict=True):
        found, expected = [sums.value, *limits(sums)], [rows.value, *limits(rows)]
        np.testing.assert_allclose(found, expected, atol=1e-4, err_msg=rows.measure)


def test_the_two_intercepts_differ_where_the_slope_is_not_1():
    """Too extreme around another base rate: right on average, yet not calibrated."""
    x = np.array([-3.0, 0.0])
    p = np.repeat(expit(x), 1000)
    true = expit(-0.7 + 0.5 * x)
    y = np.concatenate([np.arange(1000) < round(1000 * rate) for rate in true])
    unit = only(y.astype(int), p)
    assert unit["slope"].value == pytest.approx(0.5, abs=0.01)
    assert unit["intercept"].value == pytest.approx(-0.7, abs=0.01)
    # The shift by which the two predictions expect as many events as happened.
    shift = unit["in-the-large"].value
    assert 1000 * expit(x + shift).sum() == pytest.approx(y.sum())


def test_o_to_e_excludes_1_where_in_the_large_excludes_0():
    for seed in range(60):
        y, p = clinic(80, seed, slope=0.8)
        unit = only(y, np.clip(p * 1.4, 0, 0.95), smoother="lowess")
        off = unit["O:E"].low > 1.0 or unit["O:E"].high < 1.0
        assert off == (
            unit["in-the-large"].low > 0.0 or unit["in-the-large"].high < 0.0
        )


def test_exact_zeros_and_ones_are_taken_as_rounded():
    y, p = clinic(400)
    rounded = np.round(p, 2)
    assert (rounded == 0.0).any()
    slope = only(y, rounded)["slope"].value
    assert slope == pytest.approx(only(y, p)["slope"].value, abs=0.05)


def test_separated_labels_have_no_slope_and_say_so():
    p = np.linspace(0.05, 0.95, 60)
    with pytest.warns(SmallSampleWarning) as caught:
        unit = only((p > 0.5).astype(int), p)
    assert sorted(str(one.message) for one in caught) == [
        (
            "no interval for AUROC: it does not vary within the sample, so its "
            "uncertainty cannot be estimated."
        ),
        (
            "no interval for intercept, slope: no row with the event has a lower "
            "prediction than a row without it."
        ),
    ]
    assert np.isnan([unit["slope"].value, *limits(unit["slope"])]).all()
    assert unit["AUROC"].value == 1.0
    assert np.isnan(unit["AUROC"].low)
    assert unit["O:E"].low < 1.0 < unit["O:E"].high


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("label", [0, 1])
def test_equal_labels_leave_an_exact_limit_of_o_to_e(label):
    """With no event, mid-P: half of (1 - rate)^n is 0.025."""
    unit = only(np.full(50, label), np.full(50, 0.5))
    far = 2.0 * (1.0 - 0.05 ** (1 / 50))
    expected = [0.0, far] if label == 0 else [2.0 - far, 2.0]
    assert limits(unit["O:E"]) == pytest.approx(expected, rel=1e-6)
    assert np.isnan(unit["slope"].value)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
def test_reasons_name_groups_once():
    y, p = clinic(300)
    place = np.repeat(["a", "b", "c"], 100)
    y = np.where(place == "a", y, 0)
    with pytest.warns(SmallSampleWarning) as caught:
        cb.summary(y, p, groups=place)
    told = [str(one.message) for one in caught if "all labels" in str(one.message)]
    assert told == [
        (
            "no interval for in-the-large, intercept, slope, scaled Brier, Nagelkerke "
            "R2, AUROC for b; c: all labels are equal."
        )
    ]


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("smoother", ["smooth", "loess", "lowess"])
@pytest.mark.parametrize(
    "p",
    [[0.5] * 8, [0.0, 0.0, 1.0, 1.0], [0.2, 0.7], [0.3], [0.0] * 5, [1e-300, 0.4, 1]],
)
def test_few_or_strange_rows_give_numbers_or_nan(p, smoother):
    y = np.arange(len(p)) % 2
    unit = only(y, p, smoother=smoother)
    for one in unit.measures:
        assert not one.low > one.value, one
        assert not one.high < one.value, one


def test_pooling_needs_groups():
    y, p = clinic()
    with pytest.raises(OptionError, match="pooling needs groups"):
        cb.summary(y, p).pooled()


def test_pooling_takes_the_mean_over_centres():
    y, p = clinic(2000, slope=0.8)
    centre = np.arange(2000) % 10
    result = cb.summary(y, p, groups=centre)
    frame = result.pooled()
    assert frame["measure"].tolist() == [
        "in-the-large",
        "intercept",
        "slope",
        "O:E",
        "AUROC",
    ]
    assert frame["groups"].tolist() == [10] * 5
    assert frame["n"].tolist() == [2000] * 5
    whole = only(y, p)
    for name, value, low, high in zip(
        *(frame[c] for c in ("measure", "value", "low", "high")), strict=True
    ):
        assert low < whole[name].value < high, name
        assert value == pytest.approx(whole[name].value, abs=whole[name].error)
    assert (frame["prediction_low"] <= frame["low"]).all()


def test_pooling_by_model():
    y, p = clinic(400)
    result = cb.summary(y, {"a": p, "b": p**1.1}, groups=np.arange(400) % 4)
    pooled = result.pooled()
    assert pooled["model"].tolist() == ["a"] * 5 + ["b"] * 5


def test_printed_table_has_all_measures_and_levels():
    y, p = clinic()
    text = str(cb.summary(y, p, confidence=0.9))
    assert "90 % intervals: n = 150" in text
    assert [line.split("  ")[0] for line in text.splitlines()[2:]] == list(MEASURES)


def test_tables_for_papers():
    y, p = clinic()
    result = cb.summary(y, {"old_model": p, "50 %": p})
    assert result.table("latex").startswith(
        "\\begin{tabular}{lrr}\n\\toprule\nmeasure (95 \\% interval) &"
    )
    assert r"old\_model & 50 \% \\" in result.table("latex")
    assert result.table("markdown").splitlines()[1] == "|---|---:|---:|"
    with pytest.raises(UnknownNameError, match="unknown format 'html'"):
        result.table("html")


def test_sentence_has_the_numbers_of_the_table():
    y, p = clinic()
    result = cb.summary(y, p)
    slope = result.units[0]["slope"]
    said = f"slope was {slope.value:.2f} ({slope.low:.2f} to {slope.high:.2f})"
    assert said in result.sentence()
    assert re.match(
        r"In 150 observations with \d+ events, calibration", result.sentence()
    )
    assert result.sentence().count("95 % interval") == 1


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
def test_sentence_of_one_row():
    said = cb.summary([1], [0.7], n_resamples=20).sentence()
    assert said.startswith("In 1 observation with 1 event, ")


def test_sentence_says_what_could_not_be_estimated():
    _, p = clinic()
    with pytest.warns(SmallSampleWarning, match="all labels are equal"):
        said = cb.summary(np.zeros(150), p).sentence()
    for what in ("calibration-in-the-large", "the calibration slope", "The c-statis"):
        assert re.search(rf"{what}\w* could not be estimated", said)
    assert "was -" not in said
    assert said.count("95 % interval") == 1


@pytest.mark.parametrize(
    ("smoother", "curve"),
    [("smooth", "a smooth curve fitted by marginal likelihood"), ("loess", "loess")],
)
def test_sentence_names_the_model_first_and_the_curve(smoother, curve):
    y, p = clinic()
    said = cb.summary(y, {"old": p, "new": p**1.5}, smoother=smoother).sentence()
    assert re.match(r"For old, in 150 observations with \d+ events, cal", said)
    assert said.count(f"Based on {curve}, the integrated calibration index was") == 2


def test_a_curve_on_the_diagonal_is_called_so():
    y, p = clinic(400, seed=1)
    result = cb.summary(y, {"right": p, "wrong": p**3})
    line = "The curve of right cannot be distinguished from the diagonal."
    assert str(result).endswith(line)
    said = "; this curve could not be distinguished from the diagonal."
    assert [said in one for one in result.sentence().splitlines()] == [True, False]


def test_numbers_of_a_row_have_the_same_decimals():
    rng = np.random.default_rng(1)
    p = expit(rng.normal(-5.2, 1.0, 20_000))
    y = rng.random(p.size) < p
    table = cb.summary(y, {"a": p, "b": p**1.1}).table("markdown")
    for line in table.splitlines()[2:]:
        decimals = {len(number) for number in re.findall(r"\d\.(\d+)", line)}
        assert len(decimals) <= 1, line
    assert not re.search(r"-0\.0+\b", table)


def test_few_clusters_give_a_warning():
    y, p = clinic()
    with pytest.warns(SmallSampleWarning, match=r"only 5 clusters: with so few, int"):
        cb.summary(y, p, clusters=np.arange(150) % 5)


def test_clusters_are_counted():
    y, p = clinic()
    result = cb.summary(y, p, clusters=np.arange(150) // 3)
    events = int(y.sum())
    assert f"n = 150 rows from 50 clusters, {events} events" in str(result)
    said = f"In 150 observations from 50 clusters, with {events} events, calibration"
    assert result.sentence().startswith(said)
    assert re.search(r"^clusters +50$", result.table(), re.MULTILINE)
    assert "clusters" not in cb.summary(y, p).table()


def test_weighted_rows_and_events_are_counted_alike():
    y, p = clinic()
    weight = np.full(150, 20_000.0)
    result = cb.summary(y, p, sample_weight=weight)
    events = f"{20_000 * int(y.sum()):,}"
    said = f"In 3,000,000 observations with {events} events, calibration"
    assert result.sentence().startswith(said)
    assert f"n = 3,000,000, {events} events" in str(result)


def test_no_intervals_if_none_are_asked_for():
    y, p = clinic()
    frame = cb.summary(y, p, confidence=None).frame()
    assert np.isnan(frame["low"]).all()
    assert np.isfinite(frame["value"]).all()


def test_options_are_checked():
    y, p = clinic()
    with pytest.raises(UnknownNameError, match="unknown smoother 'spline'"):
        cb.summary(y, p, smoother="spline")
    with pytest.raises(OptionError, match="confidence must lie strictly between"):
        cb.summary(y, p, confidence=95)
    with pytest.raises(OptionError, match="not available for a summary"):
        cb.summary(y, np.column_stack([1 - p, p]), task="classwise")


def test_other_tasks():
    y, p = clinic()
    matrix = np.column_stack([1 - p, p])
    assert only(y, matrix, task=1).measures == only(y, p).measures
    assert only(y, logit(p), scale="logit")["slope"].value == pytest.approx(
        only(y, p)["slope"].value
    )


def repeated_visits(patients=60, visits=5, seed=3):
    """Return rows of patients whose visits all have the same label and prediction."""
    y, p = clinic(patients, seed)
    return (
        np.repeat(y, visits),
        np.repeat(p, visits),
        np.repeat(np.arange(patients), visits),
    )


def test_clusters_of_one_row_change_little():
    y, p = clinic(400)
    alone, single = only(y, p), only(y, p, clusters=np.arange(400))
    for one, two in zip(alone.measures, single.measures, strict=True):
        assert two.value == pytest.approx(one.value, abs=0.02), one.measure
        width = one.high - one.low
        assert two.high - two.low == pytest.approx(width, rel=0.25), one.measure


def test_repeated_rows_say_no_more_than_one():
    """Five copies of each patient: the standard errors are those of single rows."""
    y, p, patient = repeated_visits()
    copies = only(y, p, clusters=patient)
    once = only(y[::5], p[::5], clusters=patient[::5])
    naive = only(y, p)
    for name in ("in-the-large", "intercept", "slope", "O:E", "Brier", "AUROC"):
        assert copies[name].error == pytest.approx(once[name].error, rel=1e-6), name
        assert limits(copies[name]) == pytest.approx(limits(once[name]), rel=1e-6), name
        assert naive[name].error < 0.6 * copies[name].error, name


def test_names_of_clusters_do_not_matter():
    y, p, patient = repeated_visits()
    names = np.array([f"patient {1000 - k}" for k in patient])
    assert only(y, p, clusters=names).measures == only(y, p, clusters=patient).measures


def test_clustered_errors_are_those_of_the_sandwich():
    """The slope's standard error, by the formula of Liang and Zeger."""
    y, p, _ = repeated_visits(100, 1)
    cluster = np.arange(100) // 4
    unit = only(y, p, clusters=cluster)
    x = np.column_stack([np.ones(100), logit(p)])
    c = expit(x @ [unit["intercept"].value, unit["slope"].value])
    bread = np.linalg.inv(x.T @ (x * (c * (1 - c))[:, np.newaxis]))
    sums = np.stack(
        [(x * (y - c)[:, np.newaxis])[cluster == g].sum(0) for g in range(25)]
    )
    sandwich = bread @ sums.T @ sums @ bread * 25 / 24
    assert unit["slope"].error == pytest.approx(np.sqrt(sandwich[1, 1]))
    assert unit["intercept"].error == pytest.approx(np.sqrt(sandwich[0, 0]))
    with_both = [len(set(cluster[y == label])) for label in (0, 1)]
    reach = student_t.ppf(0.975, min(with_both) - 1)
    assert unit["slope"].high == pytest.approx(
        unit["slope"].value + reach * unit["slope"].error
    )


def test_few_events_stay_few_with_clusters():
    """A sandwich of one event is too sure: with clusters of one row, as without."""
    p = np.array([0.02, 0.05, 0.1, 0.1, 0.15, 0.2, 0.25, 0.3, 0.3, 0.5])
    y = (np.arange(10) == 8).astype(int)
    with pytest.warns(SmallSampleWarning):
        alone, single = only(y, p), only(y, p, clusters=np.arange(10))
    for name in ("Brier", "scaled Brier", "log-loss", "Nagelkerke R2", "AUROC"):
        assert limits(single[name]) == pytest.approx(limits(alone[name]), nan_ok=True)
    assert np.isnan(single["AUROC"].low)
    for name in ("slope", "intercept"):
        assert single[name].error == pytest.approx(alone[name].error)
        assert single[name].high > alone[name].high


def test_one_cluster_is_an_error():
    y, p = clinic()
    with pytest.raises(TooFewRowsError, match="at least 2 clusters"):
        cb.summary(y, p, clusters=np.zeros(150))


def test_few_events_have_wider_intervals_of_the_area():
    """On the logit scale and by Student's distribution with 9 degrees of freedom."""
    y, p = clinic(60, 11)
    y = np.where(np.cumsum(y) <= 10, y, 0)
    area = only(y, p)["AUROC"]
    reach = 2.2621572 * area.error / (area.value * (1 - area.value))
    expected = expit(logit(area.value) + np.array([-reach, reach]))
    assert limits(area) == pytest.approx(expected.tolist())


def test_lower_limits_of_distances_rise_with_the_quantile():
    for seed in range(3):
        y, p = clinic(1000, seed, slope=0.5)
        unit = only(y, p)
        lows = [unit[name].low for name in ("E50", "E90", "Emax")]
        assert 0.0 < lows[0] <= lows[1] <= lows[2]
        assert unit["ICI"].low <= lows[2]


def test_the_largest_distance_is_not_overstated():
    """The curve of a line too steep for the labels: its Emax of 0.112 is known."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.normal(-1.2, 1.2, 400)
        p, rate = expit(x), expit(0.6 * x)
        unit = only(rng.random(400) < rate, p)
        assert unit["Emax"].low <= np.abs(rate - p).max() <= unit["Emax"].high


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
def test_curves_of_r_may_leave_the_unit_interval():
    p = np.array([0.01, 0.02, 0.4, 0.5, 0.6, 0.98, 0.99])
    unit = only([0, 0, 1, 1, 1, 0, 0], p, smoother="loess")
    for name in ("ICI", "E50", "E90", "Emax"):
        assert unit[name].low <= unit[name].value <= unit[name].high


def test_an_unknown_measure_is_named():
    y, p = clinic()
    with pytest.raises(UnknownNameError, match="unknown measure 'ici'; did you mean"):
        only(y, p)["ici"]


@pytest.mark.parametrize("mirror", [False, True])
def test_weights_that_round_leave_a_perfect_auroc_without_interval(mirror):
    p, y = np.linspace(0.1, 0.9, 17), np.arange(17) > 8
    weight = 0.37 * (1.0 + np.arange(17) % 4)
    with pytest.warns(SmallSampleWarning):
        area = only(y, 1.0 - p if mirror else p, sample_weight=weight)["AUROC"]
    assert area.value == float(not mirror)
    assert np.isnan(area.low)


def test_predictions_that_differ_by_rounding_count_as_equal():
    y, p = clinic()
    p = 0.3 + np.spacing(0.3) * np.arange(y.size)
    with pytest.warns(SmallSampleWarning, match="all predictions are equal, or nearly"):
        assert np.isnan(only(y, p)["slope"].value)


def test_predictions_near_zero_give_no_warning_of_numpy():
    y = np.arange(60) < 4
    with pytest.warns(SmallSampleWarning):
        ratio = only(y, np.full(60, 1e-300))["O:E"]
    assert ratio.value == pytest.approx(4 / 60 * 1e300)


def test_the_sentence_names_the_column_of_clusters():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    table = {
        "p": p,
        "y": (rng.random(200) < p).astype(int),
        "patient": np.arange(200) // 4,
    }
    preds = cb.Predictions.from_table(table, y="y", p="p", cluster="patient")
    wanted = "In 200 observations from 50 clusters (patient), with "
    assert cb.summary(preds).sentence().startswith(wanted)
    arrays = cb.summary(table["y"], p, clusters=table["patient"])
    assert "from 50 clusters, with " in arrays.sentence()
    page = cb.Report.from_predictions(preds, methods="es15", n_resamples=20).to_html()
    assert wanted in page
    assert "<span>50 clusters by <b>patient</b></span>" in page
