"""The command line, run as users run it."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import polars as pl
import pytest

import calibrant as cb

es15 = partial(cb.calibration_error, method="es15")

BINARY, MULTI = str(cb.datasets.BINARY_FILE), str(cb.datasets.MULTICLASS_FILE)


def evaluate(run, *arguments):
    code, out, err = run("evaluate", *arguments, "--format", "json")
    assert code == 0, err
    return json.loads(out)


def test_values_are_those_of_the_library(run):
    rows = evaluate(run, BINARY, "--y", "even", "--p", "forest")["rows"]
    p, y = cb.datasets.load_binary("forest")
    assert [row["method"] for row in rows] == ["smooth", "es15", "ew15"]
    assert rows[1]["value"] == pytest.approx(es15(y, p), rel=1e-12)


def test_several_models_by_comma_or_by_repeating(run):
    comma = evaluate(
        run, BINARY, "--y", "even", "--p", "forest,bayes", "--methods", "es15"
    )
    apart = evaluate(
        run, BINARY, "--y", "even", "--p", "forest", "--p", "bayes", "--methods", "es15"
    )
    assert comma == apart
    assert [row["model"] for row in comma["rows"]] == ["forest", "bayes"]


def test_class_columns_are_one_model_with_a_task(run):
    columns = ",".join(f"forest_{d}" for d in range(10))
    rows = evaluate(run, MULTI, "--y", "digit", "--p", columns, "--task", "confidence")[
        "rows"
    ]
    prob, y = cb.datasets.load_multiclass("forest")
    found = es15(y, prob, task="confidence")
    assert rows[1]["value"] == pytest.approx(found, rel=1e-12)


def test_several_multi_class_models(run):
    found = evaluate(
        run,
        MULTI,
        "--y",
        "digit",
        "--p",
        "rf=forest_*",
        "--p",
        "bayes_*",
        "--task",
        "7",
    )
    assert {row["model"] for row in found["rows"]} == {"rf", "bayes_*"}
    assert found["rows"][0]["task"] == "7"


def test_classwise_json_has_the_classes(run):
    found = evaluate(
        run,
        MULTI,
        "--y",
        "digit",
        "--p",
        "forest_*",
        "--task",
        "classwise",
        "--methods",
        "es15",
    )
    assert len(found["classes"]) == 10
    assert found["confidence"] == 0.95


def test_groups_words_and_weights(run, tmp_path, sample):
    p, y = sample
    path = tmp_path / "t.parquet"
    columns = {
        "label": np.where(y, "yes", "no"),
        "score": p,
        "group": np.arange(500) % 2,
        "w": np.arange(500) % 3 + 1,
    }
    pl.DataFrame(columns).write_parquet(path)
    rows = evaluate(
        run, path, "--y", "label", "--p", "score", "--pos-label", "yes",
        "--by", "group", "--weight", "w", "--methods", "es15", "--alpha", "2", "--raw",
    )["rows"]  # fmt: skip
    odd = columns["group"] == 1
    expected = es15(
        y[odd], p[odd], alpha=2, debias=False, sample_weight=columns["w"][odd]
    )
    assert [row["group"] for row in rows] == [0, 1]
    assert rows[1]["value"] == pytest.approx(expected)


def test_labels_state_the_class_of_each_column(run, tmp_path):
    prob, y = cb.datasets.load_multiclass("forest")
    frame = {"y": [f"d{d}" for d in y]} | {f"c{d}": prob[:, d] for d in range(10)}
    pl.DataFrame(frame).write_csv(tmp_path / "t.csv")
    rows = evaluate(
        run, tmp_path / "t.csv", "--y", "y", "--p", "c*", "--task", "d3",
        "--labels", ",".join(f"d{d}" for d in range(10)), "--methods", "es15",
    )["rows"]  # fmt: skip
    assert rows[0]["value"] == pytest.approx(es15(y, prob, task=3))


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("csv", "model,method,task,value,low,high,n,debiased,bins"),
        ("markdown", "| model | method | task | value |"),
        ("table", "Calibration error and 95 % intervals (alpha = 1)"),
    ],
)
def test_formats(run, form, first):
    code, out, _ = run(
        "evaluate", BINARY, "--y", "even", "--p", "forest,bayes", "--format", form
    )
    assert code == 0
    assert out.startswith(first)
    assert "0.0819" in out or "0.08187" in out


def test_plot_is_written_whole(run, tmp_path):
    target = tmp_path / "out.png"
    code, _, err = run(
        "evaluate", BINARY, "--y", "even", "--p", "forest,bayes", "--plot", target
    )
    assert code == 0
    assert f"wrote {target}" in err
    assert target.read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["out.png"]


@pytest.mark.parametrize(("threshold", "code"), [("0.05", 1), ("0.5", 0)])
def test_fail_above_sets_the_exit_code(run, threshold, code):
    found, _, err = run(
        "evaluate", BINARY, "--y", "even", "--p", "forest", "--fail-above", threshold
    )
    assert found == code
    assert ("failed: smooth: 0.0960 exceeds 0.05" in err) == (code == 1)


@pytest.mark.parametrize(
    ("by", "threshold", "code"),
    [("low", 0.095, 0), ("low", 0.09, 1), ("high", 0.1, 1), ("high", 0.11, 0)],
)
def test_an_end_of_the_interval_can_be_judged(run, by, threshold, code):
    one = ("evaluate", BINARY, "--y", "even", "--p", "forest")
    found, _, err = run(*one, "--fail-above", threshold, "--fail-by", by)
    assert found == code
    assert err.startswith("failed:" if code else "passed:")
    assert f"({by} end of the interval)" in err


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        (
            ("--fail-above", "5"),
            "below 1, since no error exceeds 1; got 5. For 5 %, pass ",
        ),
        (("--fail-above", "1"), "below 1"),
        (("--fail-above", "nan"), "at least 0 and below 1"),
        (("--fail-above", "-1"), "at least 0 and below 1"),
        (("--fail-above", "2", "--task", "canonical"), "below 2"),
        (("--fail-by", "low"), "--fail-by needs --fail-above"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_gate_that_means_nothing_is_refused_before_any_work(run, command, gate, told):
    code, _, err = run(command, "no-such-file.csv", "--y", "y", "--p", "p", *gate)
    assert code == 2
    assert told in err


def test_a_gate_names_all_that_fail_or_what_held(run):
    both = ("evaluate", BINARY, "--y", "even", "--p", "forest,bayes")
    one = (*both, "--methods", "smooth", "--fail-above")
    assert run(*one, "0.05")[2].splitlines() == [
        "failed: smooth forest: 0.0960 exceeds 0.05",
        "failed: smooth bayes: 0.0853 exceeds 0.05",
    ]
    assert run(*one, "0.09")[2].count("failed:") == 1
    assert run(*one, "0.2")[2] == (
        "passed: smooth forest: 0.0960, the largest of 2, does not exceed 0.2\n"
    )


def test_failing_findings_say_what_was_found(run):
    one = ("evaluate", BINARY, "--y", "even", "--p", "forest")
    code, _, err = run(*one, "--fail-on", "CAL002")
    assert code == 1
    assert err.startswith("failed: found CAL002: Predictions are not extreme enough")
    assert run(*one, "--fail-on", "CAL012")[2] == "passed: no finding is CAL012\n"


def test_both_gates_are_reported(run):
    one = ("evaluate", BINARY, "--y", "even", "--p", "forest")
    code, _, err = run(*one, "--fail-above", "0.05", "--fail-on", "CAL002")
    assert code == 1
    assert err.startswith("failed: smooth: 0.0960 exceeds 0.05\nfailed: found CAL002:")
    code, _, err = run(*one, "--fail-above", "0.05", "--fail-on", "CAL012")
    assert code == 1
    assert err.endswith("passed: no finding is CAL012\n")


def test_fail_above_judges_the_first_method(run):
    options = ("--y", "even", "--p", "forest", "--fail-above", "0.09")
    for methods, code in (("es15,ew15", 0), ("ew15,es15", 1)):  # 0.0819, 0.0973
        assert run("evaluate", BINARY, *options, "--methods", methods)[0] == code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--y", "evn", "--p", "forest"], "unknown column 'evn'; did you mean 'even'"),
        (
            ["--y", "even", "--p", "forrest"],
            "unknown column 'forrest'; did you mean 'forest'",
        ),
        (
            ["--y", "even", "--p", "forest", "--methods", "es_cv"],
            "did you mean 'es-cv'",
        ),
        (["--y", "even", "--p", "forest", "--plot", "a.exe"], "figures are written as"),
        (
            ["--y", "even", "--p", "forest", "--plot", "no/where/a.png"],
            "does not exist",
        ),
        (
            ["--y", "forest", "--p", "bayes"],
            "column 'forest' must contain binary labels",
        ),
        (["--y", "even", "--p", "forest", "--task", "5"], "unknown class 5"),
        (["--y", "even", "--p", "a=forest", "--p", "a=bayes"], "'a' twice"),
        (
            ["--y", "even", "--p", "f*", "--task", "classwise", "--plot", "a.png"],
            "one event",
        ),
        (["--y", "even", "--p", "forest", "--alpha", "-1"], "error: --alpha must be"),
        (["--y", "even", "--p", "forest", "--seed", "-1"], "error: --seed must be"),
        (["--y", "even", "--p", "forest", "--methods", ""], "--methods must name"),
        (["--y", "even", "--p", "forest", "--by", " ,"], "--by must name at least one"),
        (["--y", "even", "--p", "=forest"], "must have the name of a model before ="),
        (
            ["--y", "even", "--p", "forest", "--fail-on", "CAL001", "--mute", "CAL001"],
            "--mute skips CAL001, which --fail-on needs",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_two(run, arguments, words):
    code, out, err = run("evaluate", BINARY, *arguments)
    assert code == 2
    assert words in err
    assert out == ""
    assert "Traceback" not in err


def test_logits_are_drawn_as_probabilities(run, tmp_path):
    (tmp_path / "t.csv").write_text("y,p\n" + "0,-2\n1,3\n" * 20)
    arguments = [
        "--y",
        "y",
        "--p",
        "p",
        "--scale",
        "logit",
        "--plot",
        tmp_path / "a.png",
    ]
    code, _, _ = run("evaluate", tmp_path / "t.csv", *arguments)
    assert code == 0
    assert (tmp_path / "a.png").exists()


def test_groups_are_drawn_apart(run, tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{i % 2},0.{i % 9}5,{'ns'[i % 3 == 0]}\n" for i in range(200))
    path.write_text("y,p,g\n" + rows)
    arguments = ["evaluate", path, "--y", "y", "--p", "p", "--methods", "es5"]
    run(*arguments, "--plot", tmp_path / "all.png")
    run(*arguments, "--by", "g", "--plot", tmp_path / "by.png")
    assert (tmp_path / "all.png").read_bytes() != (tmp_path / "by.png").read_bytes()


def test_per_class_prints_a_row_a_class(run):
    arguments = [MULTI, "--y", "digit", "--p", "forest_*", "--methods", "es15"]
    code, out, _ = run(
        "evaluate", *arguments, "--task", "classwise", "--per-class", "--format", "csv"
    )
    assert code == 0
    assert len(out.splitlines()) == 11
    code, _, err = run("evaluate", *arguments, "--task", "3", "--per-class")
    assert code == 2
    assert "--task classwise" in err


def test_a_pattern_names_the_classes_of_named_models_too(run, tmp_path):
    prob, y = cb.datasets.load_multiclass("bayes")
    order = sorted(range(10), key=lambda d: -d)
    columns = {"y": y} | {f"p_{d}": prob[:, d] for d in order}
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    options = ["--y", "y", "--task", "confidence", "--methods", "es15"]
    plain = evaluate(run, tmp_path / "t.parquet", "--p", "p_*", *options)["rows"]
    named = evaluate(run, tmp_path / "t.parquet", "--p", "m=p_*", *options)["rows"]
    assert plain[0]["value"] == named[0]["value"]
    expected = es15(y, prob, task="confidence")
    assert plain[0]["value"] == pytest.approx(expected)


def test_one_column_of_one_class_is_enough(run):
    rows = evaluate(
        run,
        MULTI,
        "--y",
        "digit",
        "--p",
        "forest_3",
        "--task",
        "3",
        "--methods",
        "es15",
    )["rows"]
    prob, y = cb.datasets.load_multiclass("forest")
    assert rows[0]["value"] == es15(y, prob, task=3)
    assert rows[0]["task"] == "3"


def test_bad_rows_are_named_by_column_and_place_in_the_file(run, tmp_path):
    lines = [f"{i % 2},0.5,{'ab'[i % 2]}" for i in range(80)]
    lines[61] = "1,1.5,b"
    (tmp_path / "t.csv").write_text("\n".join(["y,score,g", *lines]))
    code, _, err = run(
        "evaluate", tmp_path / "t.csv", "--y", "y", "--p", "score", "--by", "g"
    )
    assert code == 2
    assert "column 'score' must contain probabilities in [0, 1]; row 61 is 1.5" in err
    assert "percentages, pass --scale percent" in err
    assert "--scale logit" in err


def test_a_folder_is_no_figure(run, tmp_path):
    (tmp_path / "a.png").mkdir()
    arguments = ["--y", "even", "--p", "forest", "--plot", tmp_path / "a.png"]
    code, _, err = run("evaluate", BINARY, *arguments)
    assert code == 2
    assert "is a folder" in err


def test_unreadable_file_is_exit_two(run, tmp_path):
    code, _, err = run("evaluate", tmp_path / "none.csv", "--y", "a", "--p", "b")
    assert code == 2
    assert "does not exist" in err


def test_paragraphs_of_help_are_wrapped_once(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    lines = [line.strip() for line in run("calibrate", "--help")[1].splitlines()]
    assert any(
        line.startswith("Pass one") and "get that map." in line for line in lines
    )


@pytest.mark.parametrize("command", ["evaluate", "compare", "report"])
def test_help_has_room_for_sentences(run, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(command, "--help")[1].splitlines()
    first = next(line for line in lines if "Column of labels." in line)
    assert first.index("Column of labels.") <= 45


def test_nan_in_a_file_is_named(run, tmp_path):
    (tmp_path / "t.csv").write_text("y,p\n" + "0,0.5\n" * 40 + "1,\n")
    code, _, err = run("evaluate", tmp_path / "t.csv", "--y", "y", "--p", "p")
    assert code == 2
    assert "row 40 is nan" in err


def test_warnings_are_one_line(run, tmp_path):
    (tmp_path / "t.csv").write_text("y,p\n" + "0,0.5\n1,0.25\n" * 8)
    code, _, err = run("evaluate", tmp_path / "t.csv", "--y", "y", "--p", "p")
    assert code == 0
    assert err.startswith("warning: only 16 rows")


def test_methods_without_a_map_are_evaluated_too(run):
    rows = evaluate(
        run, BINARY, "--y", "even", "--p", "forest", "--methods", "kce,es15"
    )["rows"]
    p, y = cb.datasets.load_binary("forest")
    assert rows[0]["value"] == pytest.approx(cb.kernel_calibration_error(y, p))
    assert [row["bins"] for row in rows] == [0, 15]


def test_methods_lists_all_names(run):
    code, out, _ = run("methods", "--format", "csv")
    assert code == 0
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == [
        *cb.calibrator_names(),
        "kce",
    ]


def test_demo_prints_and_draws(run, tmp_path):
    code, out, err = run("demo", "--out", tmp_path / "demo.png")
    assert code == 0
    assert "forest" in out
    assert "before  smooth (binary)" in out
    for name in ("demo.png", "demo.html"):
        assert f"wrote {tmp_path / name}" in err
        assert (tmp_path / name).exists()


def test_demo_replaces_no_page_of_the_user(run, tmp_path):
    page = tmp_path / "demo.html"
    page.write_text("mine", encoding="utf-8")
    code, _, err = run("demo", "--out", tmp_path / "demo.png")
    assert code == 2
    assert "demo.html" in err
    assert page.read_text(encoding="utf-8") == "mine"


def test_version_and_module_entry():
    found = subprocess.run(
        [sys.executable, "-m", "calibrant", "--version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == f"calibrant {cb.__version__}\n"


def test_without_typer_the_command_says_what_to_install(monkeypatch, capsys):
    from calibrant.__main__ import main

    for name in [n for n in sys.modules if n.startswith("calibrant.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "calibrant[cli]" in capsys.readouterr().err
