"""Verdicts: regions, grades and sentences that agree with the findings."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.core.tasks import InputSpec
from calibrant.report.regions import regions_of, remark_of
from calibrant.report.verdict import _repair_sentence, reconcile, verdict_of

GOOD = {
    "grade": "good",
    "headline": "probabilities are well calibrated",
    "error": "Calibration error 0.002.",
    "sentences": ["Calibration error 0.002.", "Platt scaling would help."],
}


@pytest.mark.parametrize(
    ("severity", "grade", "words"),
    [
        ("severe", "poor", "well calibrated on average, but far off in places"),
        ("moderate", "fair", "well calibrated on average, but off in places"),
        ("minor", "good", "well calibrated"),
    ],
)
def test_no_verdict_is_better_than_its_findings(fault, severity, grade, words):
    found = reconcile(GOOD, [fault(severity=severity)])
    assert (found["grade"], found["headline"]) == (grade, f"probabilities are {words}")
    bad = GOOD | {"grade": "bad", "headline": "probabilities are badly off"}
    assert reconcile(bad, [fault(severity=severity)]) == bad


def test_verdicts_name_classes_groups_and_failed_certainties(fault):
    classes = [fault(where={"class": name}) for name in "abcdd"]
    failed = fault("CAL009", evidence={"rows": 20.0, "failed": 3.0})
    group = fault("CAL010", where={"group": "north"})
    found = reconcile(GOOD, [*classes, failed, group], classes=list("dcbaxyz"))
    assert found["sentences"][1:-1] == [
        "Of 7 classes, 4 are significantly off: the worst are d, c and b.",
        "Of 20 predictions of exactly 0 or 1, 3 turned out wrong.",
        "Group north is worse calibrated than other rows with the same predictions.",
    ]
    alone = reconcile(GOOD, [failed])
    assert alone["headline"].endswith(
        "calibrated, but some predictions of 0 or 1 are wrong"
    )
    assert alone["grade"] == "fair"


def test_regions_are_where_the_band_leaves_the_diagonal():
    p = np.linspace(0, 1, 101)
    shift = np.where(p > 0.6, -0.1, 0.0)
    curve = {
        "p": p,
        "calibrated": p + shift,
        "low": p + shift - 0.02,
        "high": p + shift + 0.02,
        "whole_low": p + shift - 0.05,
        "whole_high": p + shift + 0.05,
    }
    sample = InputSpec().tasks(np.zeros(101), p).samples[0]
    (region,) = regions_of(curve, sample)
    assert str(region) == "above 0.61"
    assert region.too_high
    assert region.predicted - region.observed == pytest.approx(0.1)
    assert region.high - region.low == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (0.0, 0.0, "at 0"),
        (9.3e-05, 0.39, "below 0.39"),
        (0.86, 0.9996, "above 0.86"),
        (0.997, 1.0, "above 0.997"),
        (0.2, 0.4, "between 0.2 and 0.4"),
    ],
)
def test_regions_are_named_in_numbers_that_people_read(left, right, words):
    grid = np.linspace(0.0, 1.0, 101)
    p = np.unique(np.concatenate([grid, [left, right]]))
    off = (p >= left) & (p <= right)
    high = np.where(off, p + 0.5, p)
    limits = dict.fromkeys(("low", "high", "whole_low", "whole_high"), high)
    rows = np.concatenate([p, np.full(20, left)])
    sample = InputSpec().tasks(np.zeros(rows.size), rows).samples[0]
    (region,) = regions_of({"p": p, "calibrated": high, **limits}, sample)
    assert str(region) == words


@pytest.mark.parametrize(
    ("value", "low", "high", "grade"),
    [
        (0.004, 0.001, 0.008, "good"),
        (0.02, 0.01, 0.03, "fair"),
        (0.05, 0.04, 0.06, "poor"),
        (0.2, 0.1, 0.3, "bad"),
        (0.02, 0.0, 0.02, "fair"),
        (0.02, 0.0, 0.06, "unknown"),
    ],
)
def test_grades_go_by_error_and_interval(value, low, high, grade):
    error = {"method": "es15", "value": value, "low": low, "high": high}
    found = verdict_of(error, [], None, base_rate=0.5, confidence=0.95, task="binary")
    assert found["grade"] == grade


def test_errors_of_rare_events_are_judged_by_their_spread():
    error = {"method": "es15", "value": 0.005, "low": 0.004, "high": 0.006}
    found = verdict_of(error, [], None, base_rate=0.01, confidence=0.95, task="binary")
    assert found["relative_error"] == pytest.approx(0.005 / (2 * 0.0995), rel=1e-3)
    assert found["grade"] == "fair"


def test_squared_errors_are_graded_by_their_root():
    """A gap of 0.05 everywhere is poor, whatever the exponent; so is its interval."""
    for alpha in (1.0, 2.0, 3.0):
        ends = {"low": 0.04**alpha, "high": 0.06**alpha}
        error = {"method": "es15", "value": 0.05**alpha, **ends}
        options = {"base_rate": 0.5, "confidence": 0.95, "task": "binary"}
        found = verdict_of(error, [], None, alpha=alpha, **options)
        assert (found["grade"], found["relative_error"]) == (
            "poor",
            pytest.approx(0.05),
        )
        unsure = verdict_of(error | {"low": 0.0}, [], None, alpha=alpha, **options)
        assert unsure["grade"] == "unknown"


def test_reports_of_squared_errors_have_the_grade_of_plain_ones(rows, fast):
    data = rows(n=2000)
    y, p = data["label"], np.clip(data["good"] + 0.15, 0, 1)
    report = cb.Report.from_predictions(y, p, alpha=2, **fast)
    assert report.summary["models"][0]["verdict"]["grade"] == "bad"


def test_the_kernel_error_gives_no_grade_and_leaves_it_to_others(rows, fast):
    data = rows(n=600)
    y, p = data["label"], np.clip(data["good"] + 0.15, 0, 1)
    models = {"high": p, "good": data["good"]}
    options = fast | {"methods": ["kce", "es15"]}
    report = cb.Report.from_predictions(y, models, **options)
    plain = cb.Report.from_predictions(y, models, **fast).summary
    for ours, other in zip(report.summary["models"], plain["models"], strict=True):
        assert ours["verdict"] == other["verdict"]
        assert [row["method"] for row in ours["errors"]] == ["kce", "es15"]
    assert report.summary["measured"]["method"] == "es15"
    assert report.summary["comparison"] == plain["comparison"]
    table = report.to_html().split("Errors of all models")[1].split("</table>")[0]
    assert f"{plain['models'][0]['errors'][0]['value']:.3f}" in table
    alone = cb.Report.from_predictions(y, p, **fast | {"methods": "kce"})
    verdict = alone.summary["models"][0]["verdict"]
    assert (verdict["grade"], verdict["relative_error"]) == ("unknown", None)
    assert "Not graded, because kce is a squared norm" in str(alone)


def test_a_verdict_names_its_certainty(rows, hostile):
    data = rows()
    report = cb.Report.from_predictions(data["label"], data[hostile], n_resamples=50)
    text = str(report)
    assert "95 % interval" in text
    assert "the observed rate is" in text
    assert "Automatic recalibration would" in text
    assert "\N{PLUS-MINUS SIGN}" not in text


def test_a_repair_that_leaves_next_to_nothing_has_a_limit_instead_of_a_number():
    error = {"method": "es15", "value": 0.05, "low": 0.04, "high": 0.06}
    options = {"base_rate": 0.5, "confidence": 0.95, "task": "binary"}
    row = {"method": "auto", "error": 0.0, "low": 0.0, "high": 0.04, "gain": 0.01}

    def told(**more):
        repairs = {"advised": "auto", "rows": [row | more]}
        return verdict_of(error, [], repairs, **options)["sentences"][-1]

    assert told() == (
        "Automatic recalibration would leave an error of at most 0.040 (upper end of "
        "the 95 % interval) on held-out rows."
    )
    assert told(error=0.008) == (
        "Automatic recalibration would reduce the error to 0.008 (95 % interval 0.000 "
        "to 0.040) on held-out rows."
    )


def test_findings_name_the_regions_of_the_verdict():
    p, y = cb.datasets.load_binary("forest")
    (model,) = cb.Report.from_predictions(y, p).summary["models"]
    (finding,) = [f for f in model["findings"] if f["code"] == "CAL004"]
    region = model["verdict"]["sentences"][0].split(" too low ")[1].split(":")[0]
    assert f"too low {region} and too high" in finding["message"]


@pytest.mark.parametrize(
    ("low", "significant", "words"),
    [
        (0.05, False, "at all predictions at once, no gap is significant"),
        (-0.05, True, "the test looks at all rows together"),
        (0.05, True, ""),
        (-0.05, False, ""),
    ],
)
def test_a_band_that_seems_to_contradict_the_verdict_is_explained(
    low, significant, words
):
    p = np.linspace(0.1, 0.8, 20)
    panel = {"curves": [{"p": p, "low": p + low, "high": p + 0.1}]}
    told = remark_of(panel, [], significant=significant)
    assert words in told
    assert bool(told) == bool(words)


def test_of_predictions_of_the_other_label_only_that_is_said(rows, fast):
    drawn = rows(1000)
    report = cb.Report.from_predictions(1 - drawn["label"], drawn["good"], **fast)
    (model,) = report.summary["models"]
    verdict = model["verdict"]
    assert verdict["headline"] == "predictions are upside down"
    assert verdict["sentences"][1].startswith("Are the labels swapped")
    assert verdict["sentences"][2] == verdict["error"]
    assert model["findings"][0]["code"] == "CAL012"
    assert model["repairs"] is None
    assert not any("ecalibra" in finding["remedy"] for finding in model["findings"])
    for output in ("html", "markdown"):
        assert "redictions are upside down" in report.text(output)


def test_a_falling_order_that_is_not_all_is_said_first(fault):
    error = {"method": "es15", "value": 0.2, "low": 0.1, "high": 0.3}
    verdict = verdict_of(error, [], None, base_rate=0.5, confidence=0.95, task="binary")
    evidence = {"correlation": -0.1, "turned_skill": -0.2}
    found = reconcile(
        verdict, [fault("CAL012", message="It falls.", evidence=evidence)]
    )
    assert found["sentences"] == ["It falls.", *verdict["sentences"]]
    assert found["headline"] == verdict["headline"]


def test_no_repair_is_said_to_leave_a_larger_error_than_there_is():
    best = {"method": "auto", "error": 0.0005, "low": 0.0, "high": 0.049}
    repairs = {"advised": "auto", "rows": [best]}
    told = _repair_sentence(repairs, 0.035, 0.95)[0]
    assert "would reduce the error to below 0.001 (95 % interval" in told
    assert "at most 0.049" in _repair_sentence(repairs, 0.09, 0.95)[0]
