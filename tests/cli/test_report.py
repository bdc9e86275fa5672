"""``calibrant report`` and ``calibrant evaluate --explain``, as users run them."""

import json
from pathlib import Path

import pytest

import calibrant as cb

BINARY = str(cb.datasets.BINARY_FILE)
ONE = (BINARY, "--y", "even", "--p", "bayes", "--methods", "es15")


def test_a_page_with_its_data_beside(run, tmp_path):
    out = tmp_path / "page.html"
    code, told, err = run("report", *ONE, "--out", out)
    assert code == 0, err
    assert "probabilities are clearly off" in told
    assert f"wrote {out}" in err
    summary = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert summary["data"]["source"] == "digits_even.csv"
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Do not evaluate the map on the rows" in page


def test_raw_errors_in_a_report(run):
    code, out, err = run("report", *ONE, "--raw", "--format", "json")
    assert code == 0, err
    p, y = cb.datasets.load_binary("bayes")
    model = json.loads(out)["models"][0]
    wanted = cb.calibration_error(y, p, method="es15", debias=False)
    assert model["errors"][0]["value"] == pytest.approx(wanted, abs=1e-6)
    assert f"error {wanted:.3f}" in model["diagrams"][0]["statistics"][1]


def test_without_a_name_the_page_is_report_html(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("report", *ONE)[0] == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "report.json"]


def test_json_on_standard_output_is_that_of_the_library(run):
    code, out, err = run("report", *ONE, "--format", "json", "--seed", "3")
    assert code == 0, err
    found = json.loads(out)
    own = cb.Report.from_predictions(
        cb.Predictions.from_table(BINARY, y="even", p="bayes"),
        methods="es15",
        random_state=3,
    ).summary
    assert found["models"] == own["models"]
    assert "calibrate digits_even.csv" in own["models"][0]["repairs"]["command"]


def test_a_title(run):
    code, out, err = run("report", *ONE, "--format", "json", "--title", "Even & odd")
    assert code == 0, err
    data = json.loads(out)["data"]
    assert (data["title"], data["source"]) == ("Even & odd", "digits_even.csv")


def test_markdown_by_the_name(run, tmp_path):
    out = tmp_path / "page.md"
    assert run("report", *ONE, "--out", out)[0] == 0
    assert out.read_text(encoding="utf-8").startswith("# Calibration report")


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("page.doc", "reports are written as .html, .htm, .json, .md, .pdf"),
        ("nowhere/page.html", "does not exist"),
        (".", "is a folder"),
    ],
)
def test_names_that_cannot_be_written_are_refused_first(
    run, tmp_path, monkeypatch, out, told
):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(
        "report", "no-such-file.csv", "--y", "y", "--p", "p", "--out", out,
        *(("--format", "html") if out == "." else ()),
    )  # fmt: skip
    assert code == 2
    assert told in err


def test_classes_by_pattern(run, tmp_path):
    out = tmp_path / "page.json"
    source = str(cb.datasets.MULTICLASS_FILE)
    wanted = ("--y", "digit", "--p", "forest_*", "--task", "confidence")
    code, _, err = run("report", source, *wanted, "--methods", "es15", "--out", out)
    assert code == 0, err
    model = json.loads(out.read_text(encoding="utf-8"))["models"][0]
    assert model["name"] == ""
    assert model["repairs"]["advised"] == "auto"


@pytest.mark.parametrize(
    ("fail_on", "expected"),
    [("severe", 1), ("CAL003", 1), ("CAL005,CAL012", 0)],
)
def test_findings_decide_the_exit_code(run, tmp_path, fail_on, expected):
    out = tmp_path / "page.json"
    code, _, err = run("report", *ONE, "--out", out, "--fail-on", fail_on)
    assert code == expected, err
    assert out.exists()
    assert ("failed: found" in err) == bool(expected)


@pytest.mark.parametrize("command", ["evaluate", "report"])
@pytest.mark.parametrize(
    ("fail_on", "told"),
    [
        ("CAL999", "unknown check 'CAL999'"),
        ("terrible", "unknown severity or check 'terrible'; known: 'note', 'minor'"),
        (" ,", "--fail-on must name at least one"),
    ],
)
def test_what_to_fail_on_is_refused_before_any_work(run, command, fail_on, told):
    wanted = ("no-such-file.csv", "--y", "y", "--p", "p")
    code, _, err = run(command, *wanted, "--fail-on", fail_on)
    assert code == 2
    assert told in err


def test_failing_on_every_check_mutes_none(run):
    from calibrant.checks.diagnosis import CHECKS

    code, _, err = run("evaluate", *ONE, "--fail-on", ",".join(CHECKS))
    assert code == 1
    assert "failed: found CAL001" in err


def test_explaining_prints_what_is_wrong(run):
    code, out, _ = run("evaluate", *ONE, "--explain")
    assert code == 0
    assert "CAL001 over-confident, severe" in out
    assert "platt shrinks all predictions" in out
    assert "calibrant calibrate" in out
    assert "Do not evaluate the map on the rows" in out


def test_explaining_nothing_says_so(run, tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 2000)
    path = tmp_path / "good.npz"
    np.savez(path, p=p, y=rng.random(2000) < p)
    wanted = ("--y", "y", "--p", "p", "--methods", "es15", "--explain")
    code, out, _ = run("evaluate", path, *wanted)
    assert code == 0
    assert out.rstrip().endswith("nothing")


def test_muted_checks_are_left_out_of_json(run):
    mute = ("--explain", "--mute", "CAL001,CAL009", "--format", "json")
    code, out, _ = run("evaluate", *ONE, *mute)
    assert code == 0
    found = [finding["code"] for finding in json.loads(out)["findings"]]
    assert found == ["CAL004", "CAL003"]


def test_without_explain_there_are_no_findings(run):
    assert "findings" not in json.loads(run("evaluate", *ONE, "--format", "json")[1])


def test_findings_of_several_models_name_them(run):
    wanted = ("--y", "even", "--p", "bayes,forest", "--methods", "es15")
    out = run("evaluate", BINARY, *wanted, "--explain")[1]
    assert "CAL001 over-confident, severe (model bayes)" in out
    assert "CAL002 under-confident, severe (model forest)" in out


def test_a_report_does_not_overwrite_what_it_reads(run, tmp_path):
    source = tmp_path / "preds.csv"
    source.write_bytes(Path(BINARY).read_bytes())
    code, _, err = run(
        "report", source, "--y", "even", "--p", "forest", "--out", source,
        "--format", "html",
    )  # fmt: skip
    assert code == 2
    assert "--out must not be one of the input files" in err
