"""The summary: plain data that agree with what the library computes."""

import json

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import (
    OptionError,
    SmallSampleWarning,
    TooFewRowsError,
    UnpairedRowsWarning,
)
from calibrant.report.model_summary import largest_error_first
from calibrant.report.page import unbroken


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


def test_the_over_confident_model_is_distinguished_from_the_calibrated_one(report):
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


def long_table(n=400):
    """Two models that answer the same questions, each right on its own ones."""
    rng = np.random.default_rng(5)
    said = rng.integers(50, 100, 2 * n).astype(float)
    order = rng.permutation(2 * n)
    share = np.where(np.arange(2 * n) < n, 0.01, 0.006)
    columns = {
        "right": (rng.random(2 * n) < share * said).astype(int),
        "said": said,
        "who": np.repeat(["ant", "bee"], n),
        "question": np.tile(np.arange(n), 2),
        "kind": np.tile(["easy", "hard"], n),
    }
    return {name: column[order] for name, column in columns.items()}


def read_long_table(table, **more):
    options = {"y": "right", "p": "said", "scale": "percent", "model": "who"}
    return cb.Predictions.from_table(table, **options, **more)


def test_models_of_a_long_table_are_compared_by_id(fast):
    preds = read_long_table(long_table(), id="question")
    found = cb.compare(preds, method="es15", n_resamples=20)
    grouped = read_long_table(long_table(), id="question", by="kind")
    for one in (preds, grouped):  # groups do not keep all rows from being compared
        made = cb.Report.from_predictions(one, **fast).summary
        expected = found.pairs()
        (pair,) = made["comparison"]["pairs"]
        assert pair == {name: values.tolist()[0] for name, values in expected.items()}
        assert (made["comparison"]["rows"], made["notes"]) == (400, [])


def test_models_are_compared_on_the_ids_that_they_share(fast):
    table = {name: column[:-10] for name, column in long_table().items()}
    preds = read_long_table(table, id="question")
    with pytest.warns(UnpairedRowsWarning):
        made = cb.Report.from_predictions(preds, **fast).summary
    rows = made["comparison"]["rows"]
    assert rows < 395
    assert any(f"only on the {rows} rows" in note for note in made["notes"])


def test_without_an_id_the_report_says_how_models_can_be_compared(fast):
    made = cb.Report.from_predictions(read_long_table(long_table()), **fast).summary
    assert made["comparison"] is None
    assert any("--id" in note for note in made["notes"])


def test_an_id_that_a_model_has_twice_is_an_error(fast):
    table = long_table()
    table["question"] = table["question"] // 2
    with pytest.raises(OptionError, match="at most once per model"):
        cb.Report.from_predictions(read_long_table(table, id="question"), **fast)


def test_groups_are_sorted_worst_first_and_all_there(report):
    for model in report.summary["models"]:
        errors = [row["error"] for row in model["groups"]]
        assert errors == sorted(errors, reverse=True)
        assert sum(row["rows"] for row in model["groups"]) == model["rows"]


def test_groups_of_clusters_have_the_p_values_of_the_check(fast):
    rng = np.random.default_rng(0)
    case = np.repeat(np.arange(300), 4)
    p = rng.random(300)[case]
    y = (rng.random(300)[case] < p).astype(int)  # all labels of a case agree
    groups = np.where(rng.random(300)[case] < 0.2, "few", "many")
    p = np.where(groups == "few", np.clip(p + 0.25, 0.0, 1.0), p)
    report = cb.Report.from_predictions(y, p, groups=groups, clusters=case, **fast)
    (model,) = report.summary["models"]
    (found,) = [one for one in model["findings"] if one["code"] == "CAL010"]
    (row,) = [one for one in model["groups"] if one["group"] == "few"]
    assert row["pvalue"] == found["evidence"]["pvalue"]


def test_a_group_with_too_few_events_for_a_test_has_no_p_value(fast):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 640)
    groups = np.where(np.arange(640) < 40, "few", np.where(p < 0.5, "low", "high"))
    y = (rng.random(640) < np.where(groups == "few", 1.0 - p, p)).astype(int)
    report = cb.Report.from_predictions(y, p, groups=groups, **fast)
    (model,) = report.summary["models"]
    pvalues = {row["group"]: row["pvalue"] for row in model["groups"]}
    assert pvalues["few"] is None
    assert min(pvalues["low"], pvalues["high"]) > 0.01  # corrected for two groups


def test_an_error_of_nothing_is_smaller_than_any_and_known():
    rows = [{"error": error, "rows": 50.0} for error in (None, -0.001, 0.0, 0.2)]
    rows.append({"error": 0.9, "rows": 11.0})  # mostly noise
    order = [row["error"] for row in sorted(rows, key=largest_error_first)]
    assert order == [0.2, 0.0, -0.001, 0.9, None]


def test_a_group_of_few_rows_has_the_error_that_evaluate_gives():
    rng = np.random.default_rng(4)
    p = rng.random(150)
    y, place = (rng.random(150) < p).astype(int), np.arange(150) < 11
    report = cb.Report.from_predictions(y, p, groups=place, methods="smooth")
    (few,) = [row for row in report.summary["models"][0]["groups"] if row["rows"] == 11]
    frame = cb.evaluate(y, p, groups=place, methods="smooth").frame()
    assert few["error"] in frame["value"].tolist()


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
    assert found["notes"] == ["Only the 200 largest of 1604 groups are shown."]
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
    assert model["repairs"]["advised"] == "auto"


def test_few_rows_leave_out_default_methods_with_many_bins():
    p = np.linspace(0.1, 0.9, 9)
    y = np.arange(9) % 2
    with pytest.warns(SmallSampleWarning) as told:
        report = cb.Report.from_predictions(y, {"few": p}, n_resamples=20)
    messages = [str(warning.message) for warning in told]
    assert [m.partition(" is skipped")[0] for m in messages] == ["es15", "ew15"]
    (model,) = report.summary["models"]
    named = [row["method"] for row in model["errors"]]
    assert named == ["smooth"]
    told = [row["method"] for row in report.summary["measured"]["methods"]]
    assert told == named
    (diagram,) = model["diagrams"]
    drawn = [one["method"] for one in diagram["curves"] + diagram["bins"]]
    assert drawn == [*named, "1 bin"]
    assert "too few rows to rule it out" in report.to_html()
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
        ({1: [0.5], "1": [0.5]}, "different name"),
    ],
)
def test_models_must_be_there_and_differ_in_name(models, told):
    with pytest.raises(OptionError, match=told):
        cb.Report.from_predictions([1], models)


def test_reports_are_saved_only_under_known_endings(report, tmp_path):
    with pytest.raises(OptionError, match=r"as \.html, .*\.pdf; got '\.doc'.*output="):
        report.save(tmp_path / "report.doc")
    assert not list(tmp_path.iterdir())
    report.save(tmp_path / "report.doc", output="markdown")


def test_decision_curves_are_those_of_the_library(report, rows, hostile):
    data = rows()
    models = {"good": data["good"], hostile: data[hostile]}
    own = cb.decision_curve(data["label"], models).frame()
    decisions = report.summary["decisions"]
    for curve in decisions["curves"]:
        which = own["model"] == curve["name"]
        np.testing.assert_allclose(
            curve["net_benefit"], own["net_benefit"][which], rtol=1e-5
        )
        np.testing.assert_allclose(curve["low"], own["low"][which], rtol=1e-5)
    assert [curve["name"] for curve in decisions["curves"]] == [*models, "treat-all"]
    prob, digit = cb.datasets.load_multiclass("forest")
    top = cb.Report.from_predictions(
        digit, prob, task="confidence", methods="es15", n_resamples=20
    )
    assert top.summary["decisions"] is None


def test_the_largest_loss_of_net_benefit_is_that_of_the_library(report, rows, hostile):
    data = rows()
    own = cb.decision_curve(data["label"], data[hostile]).lost()
    k = int(own["lost"].argmax())
    lost = report.summary["decisions"]["curves"][1]["lost"]
    assert lost == {name: own[name][k] for name in ("threshold", "lost", "low", "high")}
    assert report.summary["decisions"]["curves"][-1]["lost"] is None
    sentence = (
        f"lost to miscalibration at threshold {lost['threshold']:.2f}: "
        f"{lost['lost']:.4f} (95 % interval {lost['low']:.4f} to {lost['high']:.4f})"
    )
    assert sentence in report.to_markdown()
    assert unbroken(sentence) in report.to_html()


def test_models_with_other_labels_are_drawn_against_their_own_line(fast):
    made = cb.Report.from_predictions(read_long_table(long_table()), **fast)
    names = [curve["name"] for curve in made.summary["decisions"]["curves"]]
    assert names == ["ant", "bee", "treat-all (ant)", "treat-all (bee)"]
    page = made.to_html()
    assert page.count('class="curve always') == 2
    assert "dashed line of its colour" in page
