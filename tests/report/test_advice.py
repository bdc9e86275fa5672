"""Advice, verdicts and commands: they agree with what was measured, and they work."""

import shlex

import numpy as np
import pytest

import calibrant as cb
from calibrant.checks.check import Finding
from calibrant.report.commands import Origin, command, python
from calibrant.report.repairs import advise
from calibrant.report.verdict import reconcile

GOOD = {
    "grade": "good",
    "headline": "probabilities are well calibrated",
    "error": "Calibration error 0.002.",
    "sentences": ["Calibration error 0.002.", "Platt scaling would help."],
}


def fault(code="CAL001", severity="severe", **options):
    told = {"message": "m", "remedy": "platt makes it.", "calibrator": "platt"}
    return Finding(code, "t", severity, **told | options)


def measured(**losses):
    rows = [{"method": name, "log_loss": loss} for name, loss in losses.items()]
    best = min(rows, key=lambda row: row["log_loss"])["method"]
    return {"rows": rows, "advised": best}


def test_advice_is_the_repair_that_was_measured_to_be_best():
    repairs = measured(none=0.7, platt=0.68, smooth=0.65)
    (told,) = advise([fault(besides="Look there.")], repairs)
    assert told.calibrator == "smooth"
    assert told.remedy == (
        "Of the repairs that were tried, smooth helps most: log-loss 0.6500, without "
        "0.7000, by platt 0.6800. Look there."
    )


def test_where_no_repair_helps_none_is_advised():
    (told,) = advise([fault()], measured(none=0.6, platt=0.68))
    assert told.calibrator == ""
    assert "platt" not in told.remedy


def test_general_advice_stays_where_nothing_was_measured():
    of_a_group = fault("CAL010", where={"group": "a"})
    assert advise([fault()], None) == [fault()]
    assert advise([of_a_group], measured(none=0.7, smooth=0.6)) == [of_a_group]
    note = fault("CAL006", calibrator="")
    assert advise([note], measured(none=0.7, smooth=0.6)) == [note]


@pytest.mark.parametrize(
    ("severity", "grade", "told"),
    [
        ("severe", "poor", "well calibrated on average, but far off in places"),
        ("moderate", "fair", "well calibrated on average, but off in places"),
        ("minor", "good", "well calibrated"),
    ],
)
def test_no_verdict_is_better_than_its_findings(severity, grade, told):
    found = reconcile(GOOD, [fault(severity=severity)])
    assert (found["grade"], found["headline"]) == (grade, f"probabilities are {told}")
    bad = GOOD | {"grade": "bad", "headline": "probabilities are badly off"}
    assert reconcile(bad, [fault(severity=severity)]) == bad


def test_verdicts_name_classes_groups_and_failed_certainties():
    classes = [fault(where={"class": name}) for name in "abcdd"]
    failed = fault("CAL009", evidence={"rows": 20.0, "failed": 3.0})
    group = fault("CAL010", where={"group": "north"})
    found = reconcile(GOOD, [*classes, failed, group], classes=list("dcbaxyz"))
    assert found["sentences"][1:-1] == [
        "Of 7 classes 4 are significantly off: the worst are d, c and b.",
        "Of 20 predictions of exactly 0 or 1, 3 failed.",
        "Further off than others with the same predictions: north.",
    ]
    alone = reconcile(GOOD, [failed])
    assert alone["headline"].endswith("calibrated, but certain predictions failed")
    assert alone["grade"] == "fair"


@pytest.fixture(scope="module")
def wavy():
    """Predictions that no line of logits repairs, some of them certain and wrong."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 1, 4000)
    y = (rng.random(4000) < p + 0.3 * np.sin(2 * np.pi * p)).astype(int)
    return np.where(p < 0.02, 0.0, p), np.where(p < 0.01, 1, y)


@pytest.fixture(scope="module")
def wavy_model(wavy, fast):
    p, y = wavy
    return cb.Report.from_predictions(y, {"wavy": p}, **fast).summary["models"][0]


def test_a_report_never_advises_what_its_own_table_shows_to_be_worse(wavy_model):
    repairs = wavy_model["repairs"]
    losses = {row["method"]: row["log_loss"] for row in repairs["rows"]}
    assert repairs["advised"] == min(losses, key=losses.get)
    named = {f["calibrator"] for f in wavy_model["findings"]} - {""}
    assert named == {repairs["advised"]}
    assert {"CAL004", "CAL009"} <= {f["code"] for f in wavy_model["findings"]}


def test_what_is_left_after_a_repair_comes_from_rows_left_out(wavy_model, wavy):
    """The row without repair has the scores of the model, by their definition."""
    p, y = wavy
    none, *others = wavy_model["repairs"]["rows"]
    assert none["event_brier"] == pytest.approx(np.mean((p - y) ** 2))
    held = np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps)
    loss = -np.mean(np.log(np.where(y == 1, held, 1 - held)))
    assert none["event_log_loss"] == pytest.approx(loss)
    isotonic = next(row for row in others if row["method"] == "isotonic")
    in_sample = wavy_model["scores"][0]["refinement"]
    assert isotonic["event_brier"] > in_sample


def test_scores_of_several_classes_say_what_they_are_of(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    report = cb.Report.from_predictions(digit, prob, task="confidence", **fast)
    (model,) = report.summary["models"]
    top = prob.max(axis=1)
    right = prob.argmax(axis=1) == digit
    assert model["repairs"]["rows"][0]["event_brier"] == pytest.approx(
        np.mean((top - right) ** 2)
    )
    page = report.to_html()
    assert "Scores about whether the top label is right" in page
    assert "Log-loss, all classes" in page


def test_diagrams_of_classes_have_the_same_axes(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    report = cb.Report.from_predictions(digit, prob, task="classwise", **fast)
    panels = report.summary["models"][0]["diagrams"]
    assert len({(panel["low"], panel["axes"]) for panel in panels}) == 1
    rows = [sum(panel["histogram"]["logit"]["rows"]) for panel in panels]
    assert rows == [len(digit)] * len(panels)


def lines_of(text):
    return [shlex.split(line)[1:] for line in text.splitlines()]


@pytest.mark.parametrize("task", ["binary", "confidence"])
def test_commands_and_calls_do_the_repair(task, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from calibrant.cli.app import app

    prob, digit = cb.datasets.load_multiclass("forest")
    names = [f"p, {k}" for k in range(10)]
    table = dict(zip(names, prob.T, strict=True)) | {"the digit": digit}
    origin = Origin(
        files=("rows.csv",),
        label="the digit",
        columns=tuple(names),
        several=True,
        task=task,
    )
    p, y, method = prob, digit, "top-smooth"
    if task == "binary":
        columns = ("p, 3",)
        origin = Origin(
            files=("rows.csv",), label="the digit", columns=columns, pos_label=3
        )
        table["the digit"] = y = np.where(digit == 3, 3, 0)
        p, method = prob[:, 3], "smooth"
    monkeypatch.chdir(tmp_path)
    import polars as pl

    for name in ("rows.csv", "new.csv"):
        pl.DataFrame(table).write_csv(name)
    for line in lines_of(command(origin, method)):
        result = CliRunner().invoke(app, line)
        assert result.exit_code == 0, result.output
    names_in_call = {"p": p, "y": y, "new_p": p}
    exec(python(origin, method), names_in_call)  # noqa: S102  (what the page shows)
    column = "p, 3_calibrated"
    written = pl.read_csv("calibrated.csv")[column].to_numpy()
    ours = names_in_call["calibrated"]
    np.testing.assert_allclose(written, ours if ours.ndim == 1 else ours[:, 3], 1e-9)


@pytest.mark.parametrize(
    ("origin", "method", "told"),
    [
        (Origin(scale="logit"), "beta", ".fit(expit(p), y)"),
        (Origin(pos_label="ill"), "beta", ".fit(p, y == 'ill')"),
        (Origin(several=True, task="2"), "beta", ".fit(p[:, 2], y == 2)"),
        (
            Origin(several=True, task="b", labels=("a", "b"), scale="logit"),
            "beta",
            ".fit(softmax(p, axis=1)[:, 1], y == 'b')",
        ),
        (
            Origin(several=True, task="b", labels=("a", "b"), scale="logit"),
            "vector",
            """("vector", scale="logit", labels=['a', 'b']).fit(p, y)""",
        ),
        (Origin(weight="w"), "beta", ".fit(p, y, sample_weight=weight)"),
        (Origin(several=True), "beta", ".fit(p, y)"),
        (
            Origin(several=True, scale="logit"),
            "beta",
            ".fit(softmax(p, axis=1), y)",
        ),
    ],
)
def test_calls_are_those_of_the_data(origin, method, told):
    text = python(origin, method)
    assert told in text
    compile(text, "page", "exec")
    assert command(origin, method) == ""
