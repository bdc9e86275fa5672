"""The summary: plain, complete, honest, the same each time."""

import json

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import OptionError, SmallSampleWarning, TooFewRowsError
from calibrant.measures.estimate import ErrorSettings
from calibrant.predictions.input_spec import InputSpec
from calibrant.report.diagram import nearest_end, wilson
from calibrant.report.model import largest_error_first
from calibrant.report.regions import regions_of
from calibrant.report.repairs import repairs_of
from calibrant.report.verdict import verdict_of


def test_a_summary_is_plain_json(report):
    again = json.loads(report.to_json())
    assert again == report.summary
    assert (again["format"], again["version"]) == ("calibrant-report", 1)
    assert again["made"]["time"] == "2024-05-17T12:00:00+00:00"


def test_errors_are_those_of_evaluate(report, rows):
    data = rows()
    found = cb.evaluate(
        data["label"],
        data["good"],
        methods=["smooth", "pl", "es15", "ew15"],
        confidence=0.95,
        n_resamples=50,
    ).frame()
    errors = report.summary["models"][0]["errors"]
    assert [row["value"] for row in errors] == found["value"].tolist()
    assert [row["high"] for row in errors] == found["high"].tolist()


def test_the_over_confident_model_is_told_from_the_calibrated_one(report):
    good, bad = report.summary["models"]
    assert good["verdict"]["grade"] in ("good", "fair")
    assert bad["verdict"]["grade"] in ("poor", "bad")
    assert "too high" in " ".join(bad["verdict"]["sentences"])
    assert next(f["code"] for f in bad["findings"]) == "CAL001"


def test_models_are_compared_as_compare_does(report, rows, hostile):
    data = rows()
    models = {name: data[name] for name in ("good", hostile)}
    found = cb.compare(data["label"], models, confidence=0.95, n_resamples=50).pairs()
    (pair,) = report.summary["comparison"]["pairs"]
    assert pair == {name: values.tolist()[0] for name, values in found.items()}
    assert (pair["model_a"], pair["distinct"]) == ("good", True)
    assert [row["rank"] for row in report.summary["comparison"]["models"]] == [1, 2]


def test_groups_are_sorted_worst_first_and_all_there(report):
    for model in report.summary["models"]:
        errors = [row["error"] for row in model["groups"]]
        assert errors == sorted(errors, reverse=True)
        assert sum(row["rows"] for row in model["groups"]) == model["rows"]


def test_an_error_of_nothing_is_smaller_than_any_and_known():
    rows = [{"error": error} for error in (None, -0.001, 0.0, 0.2)]
    order = [row["error"] for row in sorted(rows, key=largest_error_first)]
    assert order == [0.2, 0.0, -0.001, None]


def test_bins_are_those_of_the_library(report, rows):
    data = rows()
    display = cb.ReliabilityDisplay.from_predictions(
        data["label"], data["good"], method="es15"
    )
    bins = report.summary["models"][0]["diagrams"][0]["bins"][0]
    assert bins["method"] == "es15"
    np.testing.assert_allclose(bins["observed"], display.frame()["observed"], 1e-5)
    assert sum(bins["rows"]) == 3000


def test_histograms_hold_every_row(report):
    for model in report.summary["models"]:
        for scale in ("prob", "logit"):
            assert sum(model["diagrams"][0]["histogram"][scale]["rows"]) == 3000


def test_no_row_of_the_user_is_in_it(report, rows):
    text = report.to_json()
    assert not any(f"{value!r}" in text for value in rows()["good"][:200])


def test_the_same_seed_gives_the_same_summary(rows, fast):
    data = rows(n=400)
    first, second = (
        cb.Report.from_predictions(
            cb.Predictions.from_table(data, y="label", p="good"), **fast
        ).summary
        for _ in range(2)
    )
    assert first == second


def test_progress_ends_where_it_should(rows, hostile, fast):
    seen = []
    cb.Report.from_predictions(
        cb.Predictions.from_table(
            rows(n=400), y="label", p=["good", hostile], by="region"
        ),
        progress=lambda *now: seen.append(now),
        **fast,
    )
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1]


def test_arrays_and_tables_give_the_same(rows, fast):
    data = rows(n=600)
    table = cb.Report.from_predictions(
        cb.Predictions.from_table(data, y="label", p="good", by="region"), **fast
    ).summary
    arrays = cb.Report.from_predictions(
        data["label"], {"good": data["good"]}, groups=data["region"], **fast
    ).summary
    assert table["models"] == arrays["models"]


def test_many_groups_are_cut_to_the_largest_and_said_so(rows, fast):
    n = 2000
    data = rows(n=n)
    data["id"] = np.where(np.arange(n) < 400, np.arange(n) % 4, np.arange(n))
    found = cb.Report.from_predictions(
        cb.Predictions.from_table(data, y="label", p="good", by="id"), **fast
    ).summary
    assert len(found["models"][0]["groups"]) == 200
    assert found["notes"] == ["Of 1604 groups the 200 largest are shown."]
    assert sum(row["error"] is not None for row in found["models"][0]["groups"]) == 4


def test_many_classes_get_a_ranking_and_few_diagrams(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    found = cb.Report.from_predictions(digit, prob, task="classwise", **fast).summary
    model = found["models"][0]
    assert len(model["diagrams"]) == 4
    errors = [row["error"] for row in model["classes"]]
    assert errors == sorted(errors, reverse=True)
    assert [d["event"] for d in model["diagrams"]] == [
        row["class"] for row in model["classes"][:4]
    ]
    assert model["repairs"]["advised"] in ("temperature", "vector")


def test_temperature_repairs_the_top_label(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    repairs = cb.Report.from_predictions(
        digit, prob, task="confidence", **fast
    ).summary["models"][0]["repairs"]
    by_name = {row["method"]: row for row in repairs["rows"]}
    assert by_name["temperature"]["error"] < 0.1 * by_name["none"]["error"]


def test_repairs_are_measured_on_rows_left_out():
    """Pure noise: isotonic on its own rows would gain, on others it must lose."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, 2000)
    y = (rng.random(2000) < p).astype(float)
    sample = InputSpec().tasks(y, p).samples[0]
    found = repairs_of(
        sample, measure="es15", settings=ErrorSettings(), methods=("isotonic", "es15")
    )
    assert all(row["gain"] < 0 for row in found["rows"][1:])
    assert found["advised"] == "none"


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_repairs_hold_however_many_rows_there_are(weighted):
    """Above 131,072 rows they come from cells, below from the rows."""
    rng = np.random.default_rng(0)
    n = 140_000
    p = rng.random(n)
    y = (rng.random(n) < 0.2 + 0.6 * p).astype(float)
    weight = rng.exponential(0.5, n) if weighted else None
    settings = ErrorSettings(confidence=0.95, n_resamples=50)

    def first_row(rows):
        own = None if weight is None else weight[:rows]
        sample = InputSpec().tasks(y[:rows], p[:rows], own).samples[0]
        found = repairs_of(sample, measure="ew10", settings=settings, methods=())
        return found["rows"][0]

    few, many = first_row(131_000), first_row(n)
    for row in (few, many):
        assert row["error"] == pytest.approx(0.1, abs=0.005)  # mean of |0.2 - 0.4 p|
        assert row["low"] < row["error"] < row["high"]
        assert row["high"] - row["low"] < 0.02
    for name in ("error", "low", "high", "brier", "log_loss"):
        assert many[name] == pytest.approx(few[name], abs=0.004), name


def test_repairs_of_few_rows_are_not_spoken_of():
    sample = InputSpec().tasks([0, 1] * 10, [0.5] * 20).samples[0]
    assert repairs_of(sample, measure="es15", settings=ErrorSettings()) is None


def test_wilson_at_a_half_is_the_textbook_formula():
    low, high = wilson(np.array([50.0]), np.array([100.0]), 0.95)
    z2 = 1.959963984540054**2  # by hand: centre 1/2, half-width z / 2 / sqrt(n + z2)
    half = 0.5 * np.sqrt(z2 / (100 + z2))
    assert (low[0], high[0]) == pytest.approx((0.5 - half, 0.5 + half))


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
    assert region.margin == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        (0.0, 0.0, "at 0"),
        (9.3e-05, 0.39, "below 0.39"),
        (0.86, 0.9996, "above 0.86"),
        (0.997, 1.0, "above 0.997"),
        (0.2, 0.4, "between 0.2 and 0.4"),
    ],
)
def test_regions_are_named_in_numbers_that_people_read(left, right, told):
    grid = np.linspace(0.0, 1.0, 101)
    p = np.unique(np.concatenate([grid, [left, right]]))
    off = (p >= left) & (p <= right)
    high = np.where(off, p + 0.5, p)
    limits = dict.fromkeys(("low", "high", "whole_low", "whole_high"), high)
    rows = np.concatenate([p, np.full(20, left)])
    sample = InputSpec().tasks(np.zeros(rows.size), rows).samples[0]
    (region,) = regions_of({"p": p, "calibrated": high, **limits}, sample)
    assert str(region) == told


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
def test_grades_golargest_error_first_and_interval(value, low, high, grade):
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
    assert "not graded, as kce is a squared norm" in str(alone)


def test_few_rows_leave_out_default_methods_with_many_bins():
    p = np.linspace(0.1, 0.9, 9)
    y = np.arange(9) % 2
    with pytest.warns(SmallSampleWarning) as told:
        report = cb.Report.from_predictions(y, {"few": p}, n_resamples=20)
    messages = [str(warning.message) for warning in told]
    assert [m.partition(" is left out")[0] for m in messages] == ["es15", "ew15"]
    (model,) = report.summary["models"]
    named = [row["method"] for row in model["errors"]]
    assert named == ["smooth"]
    told = [row["method"] for row in report.summary["measured"]["methods"]]
    assert told == named
    (diagram,) = model["diagrams"]
    assert [c["method"] for c in diagram["curves"] + diagram["bins"]] == named
    assert "not enough data" in report.to_html()
    with pytest.raises(TooFewRowsError):
        cb.Report.from_predictions(y, p, methods=["es15"], n_resamples=20)


@pytest.mark.parametrize("seed", [None, "generator"])
def test_every_model_has_the_same_folds_and_draws(rows, fast, seed):
    data = rows(n=400)
    both = {"a": data["good"], "b": data["good"]}
    random_state = np.random.default_rng(3) if seed else None
    found = cb.Report.from_predictions(
        data["label"], both, random_state=random_state, **fast
    ).summary
    one, other = (dict(model) for model in found["models"])
    assert (one.pop("name"), other.pop("name")) == ("a", "b")
    assert one == other
    again = cb.Report.from_predictions(
        data["label"], both, random_state=found["made"]["seed"], **fast
    ).summary
    assert again == found


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ({}, "y_prob must have at least one model"),
        ({1: [0.5], "1": [0.5]}, "different names"),
    ],
)
def test_models_must_be_there_and_differ_in_name(models, told):
    with pytest.raises(OptionError, match=told):
        cb.Report.from_predictions([1], models)


def test_logit_axes_reach_about_to_the_outermost_rows():
    assert nearest_end(np.array([0.2, 0.5, 0.9])) == 0.05
    assert nearest_end(np.full(1000, 1e-9)) == 1e-6
    assert nearest_end(np.array([0.0, 1.0])) == 0.01


def test_rare_events_are_drawn_on_logit_axes(fast):
    rng = np.random.default_rng(0)
    for scale, axes in ((0.04, "logit"), (1.0, "prob")):
        p = scale * rng.random(500)
        y = (rng.random(500) < p).astype(int)
        y[0] = 1
        found = cb.Report.from_predictions(y, p, **fast).summary["models"][0]
        assert found["diagrams"][0]["axes"] == axes


def test_a_verdict_names_its_certainty(rows, hostile):
    data = rows()
    report = cb.Report.from_predictions(data["label"], data[hostile], n_resamples=50)
    told = str(report)
    assert "95 % interval" in told
    assert "the observed rate is" in told
    assert "would bring the error to" in told
