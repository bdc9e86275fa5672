"""Repairs are measured on rows left out, and remedies name the best of them."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.calibrators.auto import Auto
from calibrant.core.sample import BinarySample, ClassSample
from calibrant.core.tasks import BinaryTasks, InputSpec
from calibrant.measures.estimate import ErrorSettings, FittedTasks
from calibrant.report.repairs import advise, repairs_of


def repairs_of_event(sample, method, **settings):
    tasks = BinaryTasks("binary", ("binary",), (sample,))
    return repairs_of(sample, FittedTasks(tasks, ErrorSettings(**settings)), method)


def measured(**losses):
    rows = [{"method": name, "log_loss": loss} for name, loss in losses.items()]
    best = min(rows, key=lambda row: row["log_loss"])["method"]
    return {"rows": rows, "advised": best}


def test_advice_is_the_repair_that_was_measured_to_be_best(fault):
    repairs = measured(none=0.7, beta=0.68, auto=0.65)
    (finding,) = advise([fault(besides="Look there.")], repairs)
    assert finding.calibrator == "auto"
    assert finding.remedy == (
        "Recalibrate with auto, which lowers the log-loss of held-out rows from 0.7000 "
        "to 0.6500. Look there."
    )


def test_where_no_repair_helps_none_is_advised(fault):
    (finding,) = advise([fault()], measured(none=0.6, platt=0.68))
    assert finding.calibrator == ""
    assert "platt" not in finding.remedy


def test_general_advice_stays_where_nothing_was_measured(fault):
    of_a_group = fault("CAL010", where={"group": "a"})
    assert advise([fault()], None) == [fault()]
    assert advise([of_a_group], measured(none=0.7, smooth=0.6)) == [of_a_group]
    note = fault("CAL006", calibrator="")
    assert advise([note], measured(none=0.7, smooth=0.6)) == [note]


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
    assert repairs["advised"] == "auto"
    assert losses["auto"] <= min(losses.values()) + 1e-3
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
    in_sample = wavy_model["scores"][0]["refinement"]
    assert all(row["event_brier"] > in_sample for row in others)


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
    assert "Scores for whether the top label is right" in page
    assert "Log-loss, all classes" in page


def test_classes_are_repaired_by_smooth(fast):
    prob, digit = cb.datasets.load_multiclass("forest")
    repairs = cb.Report.from_predictions(
        digit, prob, task="confidence", **fast
    ).summary["models"][0]["repairs"]
    by_name = {row["method"]: row for row in repairs["rows"]}
    assert by_name["auto"]["error"] < 0.1 * by_name["none"]["error"]
    assert by_name["smooth"]["log_loss"] < by_name["none"]["log_loss"]


def test_repairs_are_measured_on_rows_left_out():
    """Pure noise: a curve would gain on its own rows; on others it must lose."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.7, 2000)
    y = (rng.random(2000) < p).astype(float)
    sample = InputSpec().tasks(y, p).samples[0]
    found = repairs_of_event(sample, "es15")
    rows = {row["method"]: row for row in found["rows"]}
    assert rows["quadratic"]["gain"] < 0
    assert rows["auto"]["gain"] == 0.0
    assert found["advised"] == "none"
    assert "stay unchanged" in found["certificate"]


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_repairs_hold_however_many_rows_there_are(weighted):
    """Above 131,072 rows they come from cells, below from the rows."""
    rng = np.random.default_rng(0)
    n = 140_000
    p = rng.random(n)
    y = (rng.random(n) < 0.2 + 0.6 * p).astype(float)
    weight = rng.exponential(0.5, n) if weighted else None

    def first_row(rows):
        own = None if weight is None else weight[:rows]
        sample = InputSpec().tasks(y[:rows], p[:rows], own).samples[0]
        found = repairs_of_event(sample, "ew10", confidence=0.95, n_resamples=50)
        return found["rows"][0]

    few, many = first_row(131_000), first_row(n)
    for row in (few, many):
        assert row["error"] == pytest.approx(0.1, abs=0.005)  # mean of |0.2 - 0.4 p|
        assert row["low"] < row["error"] < row["high"]
        assert row["high"] - row["low"] < 0.02
    for name in ("error", "low", "high", "brier", "log_loss"):
        assert many[name] == pytest.approx(few[name], abs=0.004), name


def test_whole_clusters_are_held_out():
    """Labels are coins, one for each cluster: nothing predicts better than 1/2.

    Held out one by one, rows seem to be predictable, as others of their cluster tell
    what they are.
    """
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.arange(20).repeat(100))
    p, y = rng.random(20)[rows], rng.integers(0, 2, 20)[rows] * 1.0
    whole, alone = (
        {row["method"]: row for row in repairs["rows"]}
        for repairs in (
            repairs_of_event(sample, "smooth", confidence=0.95)
            for sample in (BinarySample(p, y, clusters=rows), BinarySample(p, y))
        )
    )
    assert min(row["log_loss"] for row in alone.values()) < np.log(2) - 0.05
    assert min(row["log_loss"] for row in whole.values()) > np.log(2) - 0.01
    # A hundred copies of a row tell as much as one.
    ratio = whole["temperature"]["gain_error"] / alone["temperature"]["gain_error"]
    assert ratio == pytest.approx(np.sqrt(100), rel=0.15)


@pytest.mark.parametrize("task", ["confidence", "classwise"])
def test_clusters_of_several_classes_are_held_out_whole(task):
    rng = np.random.default_rng(0)
    prob, y = rng.dirichlet(np.ones(3), 80), rng.integers(0, 3, 80)
    rows = np.arange(80).repeat(5)
    sample = ClassSample(prob[rows], y[rows], clusters=rows)
    held_out = Auto().held_out(sample)
    assert (np.ptp(held_out.rows.fold.reshape(80, 5), axis=1) == 0).all()
    report = cb.Report.from_predictions(
        y[rows], prob[rows], task=task, clusters=rows, methods="es15", n_resamples=2
    )
    gains = report.summary["models"][0]["repairs"]["rows"][1]
    alone = cb.Report.from_predictions(
        y[rows], prob[rows], task=task, methods="es15", n_resamples=2
    )
    assert (
        gains["gain_error"]
        > 1.5 * alone.summary["models"][0]["repairs"]["rows"][1]["gain_error"]
    )


def test_repairs_of_few_rows_are_not_tried():
    sample = InputSpec().tasks([0, 1] * 10, [0.5] * 20).samples[0]
    assert repairs_of_event(sample, "es15") is None


def test_a_certificate_has_the_errors_of_the_table():
    p, y = cb.datasets.load_binary("bayes")
    repairs = cb.Report.from_predictions(y, p).summary["models"][0]["repairs"]
    before, after = repairs["rows"][:2]
    limits = f"({before['low']:.4f} to {before['high']:.4f})"
    assert f"{before['error']:.4f} {limits}" in repairs["certificate"]
    assert after["low"] == 0.0
    limits = f"({after['low']:.4f} to {after['high']:.4f})"
    assert f"is {after['error']:.4f} {limits} after." in repairs["certificate"]
    assert all(row["error"] is None for row in repairs["rows"][2:])
