"""Files as all commands open them: several at once, with bad rows, or cells."""

import json

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.engines.files import find_files
from calibrant.engines.memory import read_files
from calibrant.exceptions import OptionError
from calibrant.report.report import Report

COLUMNS = ("--y", "y", "--p", "p")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A whole file, its two parts, and files with bad rows."""
    rng = np.random.default_rng(3)
    p = rng.random(300)
    rows = pl.DataFrame(
        {
            "p": p,
            "q": 0.2 + 0.6 * p,
            "y": (rng.random(300) < p).astype(int),
            "model": np.where(p > 0.5, "high", "low"),
            "place": ["None", None, "here"] * 100,
        }
    )
    monkeypatch.chdir(tmp_path)
    rows.write_parquet("whole.parquet")
    rows[:100].write_parquet("part_1.parquet")
    rows[100:].write_parquet("part_2.parquet")
    text = rows["p"].cast(pl.String).to_list()
    text[7], text[8] = "broken", "NaN"
    rows.with_columns(p=pl.Series(text)).write_csv("text.csv")
    good = pl.int_range(300).is_between(7, 8).not_()
    rows.filter(good).write_parquet("good.parquet")
    rows.with_columns(p=pl.when(good).then("p").otherwise(float("nan"))).write_csv(
        "nan.csv"
    )
    return tmp_path


def printed(run, *arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    return out


COMMANDS = {
    "compare": ("--y", "y", "--p", "p,q", "--method", "es15", "--format", "json"),
    "report": (*COLUMNS, "--methods", "es15", "--format", "markdown"),
    "evaluate": (*COLUMNS, "--methods", "es15", "--engine", "memory"),
}


def without_made(text):
    """Return a report without its name and time, and commands that name the file."""
    named = ("#", "Errors", "calibrant")
    return [line for line in text.splitlines() if not line.startswith(named)]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("files", [("part_1.parquet", "part_2.parquet"), ("part_*",)])
@pytest.mark.usefixtures("folder")
def test_files_together_are_the_whole(run, command, files):
    whole = printed(run, command, "whole.parquet", *COMMANDS[command])
    parts = printed(run, command, *files, *COMMANDS[command])
    assert without_made(parts) == without_made(whole)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_bad_rows_are_left_out_as_if_they_were_not_there(run, command):
    good = printed(run, command, "good.parquet", *COMMANDS[command])
    code, out, err = run(command, "text.csv", *COMMANDS[command], "--bad-rows", "drop")
    assert code == 0, err
    assert "2 of 300 rows were invalid" in err
    assert without_made(out) == without_made(good)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("by", ["place", "model,place"])
@pytest.mark.usefixtures("folder")
def test_groups_of_a_file_with_bad_rows_are_those_of_the_good_ones(run, command, by):
    options = (*COMMANDS[command], "--by", by)
    good = printed(run, command, "good.parquet", *options)
    dropped = printed(run, command, "text.csv", *options, "--bad-rows", "drop")
    assert without_made(dropped) == without_made(good)


@pytest.mark.usefixtures("folder")
def test_groups_of_a_file_with_bad_rows_are_drawn(run, tmp_path):
    options = (*COLUMNS, "--by", "place", "--bad-rows", "drop", "--out", "plot.png")
    code, _, err = run("plot", "text.csv", *options)
    assert code == 0, err
    assert (tmp_path / "plot.png").stat().st_size > 1000


@pytest.mark.usefixtures("folder")
def test_a_map_of_several_files_without_their_bad_rows(run):
    options = (*COLUMNS, "--method", "platt", "--out")
    assert run("calibrate", "good.parquet", *options, "good.json")[0] == 0
    dropped = run("calibrate", "text.csv", *options, "text.json", "--bad-rows", "drop")
    assert dropped[0] == 0, dropped[2]
    assert run("calibrate", "part_*", *options, "parts.json")[0] == 0
    assert run("calibrate", "whole.parquet", *options, "whole.json")[0] == 0

    def heights(name):
        with open(name, encoding="utf-8") as file:  # noqa: PTH123
            return json.load(file)["map"]

    assert heights("text.json") == heights("good.json")
    assert heights("parts.json") == heights("whole.json")


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.usefixtures("folder")
def test_engines_drop_text_among_numbers_alike(run, engine):
    options = (*COLUMNS, "--methods", "ew10", "--format", "json", "--engine")
    good = json.loads(printed(run, "evaluate", "good.parquet", *options, "memory"))
    found = json.loads(
        printed(run, "evaluate", "text.csv", *options, engine, "--bad-rows", "drop")
    )
    assert found["rows"][0]["n"] == 298
    assert found["rows"][0]["value"] == pytest.approx(
        good["rows"][0]["value"], abs=1e-12
    )


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "nan.csv", *COLUMNS),
        ("report", "nan.csv", *COLUMNS),
        ("compare", "nan.csv", "--y", "y", "--p", "p,q"),
        ("plot", "nan.csv", *COLUMNS, "--out", "plot.png"),
        ("calibrate", "nan.csv", *COLUMNS, "--out", "map.json"),
        ("evaluate", "text.csv", *COLUMNS),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_about_rows_name_the_way_to_drop_them(run, command):
    code, _, err = run(*command)
    assert code == 2
    assert err.rstrip().endswith("--bad-rows drop.")


@pytest.mark.usefixtures("folder")
def test_a_lake_and_its_cells_are_explained_and_drawn(run, tmp_path):
    code, _, err = run("aggregate", "part_*", *COLUMNS, "--out", "cells.parquet")
    assert code == 0, err
    told = {}
    for name, source in {
        "rows": ("whole.parquet", *COLUMNS),
        "lake": ("part_*", *COLUMNS),
        "cells": ("cells.parquet",),
    }.items():
        figure = tmp_path / f"{name}.png"
        out = printed(
            run, "evaluate", *source, "--methods", "ew5", "--explain", "--plot", figure
        )
        told[name] = out[out.index("What the checks found") :].split("\nTo repair")[0]
        assert figure.stat().st_size > 1000
    assert "CAL006" in told["rows"]
    assert told["lake"] == told["cells"] == told["rows"]
    code, _, err = run("plot", "cells.parquet", "--out", "plot.png")
    assert code == 0, err


@pytest.mark.usefixtures("folder")
def test_a_report_of_cells_is_that_of_the_rows(run):
    columns = ("--y", "y", "--p", "p,q", "--by", "model")
    assert run("aggregate", "part_*", *columns, "--out", "cells.parquet")[0] == 0
    options = ("--methods", "ew10", "--format", "json")
    of_rows = json.loads(printed(run, "report", "whole.parquet", *columns, *options))
    of_cells = json.loads(printed(run, "report", "cells.parquet", *options))
    lake = {"y": "y", "p": ["p", "q"], "by": "model", "engine": "duckdb"}
    preds = cb.Predictions.from_table("part_*", **lake)
    of_lake = Report.from_predictions(preds, methods="ew10").summary
    assert of_lake["models"] == of_cells["models"]
    assert (of_rows["comparison"] is None, of_cells["comparison"]) == (False, None)
    for rows, cells in zip(of_rows["models"], of_cells["models"], strict=True):
        assert (cells["name"], cells["rows"]) == (rows["name"], 300)
        for one, other in zip(rows["errors"], cells["errors"], strict=True):
            assert other["value"] == pytest.approx(one["value"], abs=1e-4)
        assert [f["code"] for f in cells["findings"]] == [
            f["code"] for f in rows["findings"]
        ]
        assert {g["group"]: g["rows"] for g in cells["groups"]} == {
            g["group"]: g["rows"] for g in rows["groups"]
        }
        # Folds differ, but no row is fitted on that is held out: gains agree by noise.
        gains = [{r["method"]: r for r in m["repairs"]["rows"]} for m in (rows, cells)]
        for name in ("none", "auto", "smooth"):
            one, other = (found[name] for found in gains)
            assert other["log_loss"] == pytest.approx(one["log_loss"], abs=0.01)
    assert "Based on aggregated predictions" in Report(of_cells).to_html()


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("compare", "--y", "y", "--p", "p,q"), "pass the original files"),
        (("calibrate", *COLUMNS, "--out", "map.json"), "pass the original files"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cells_cannot_tell_is_said(run, command, told):
    run("aggregate", "part_*", *COLUMNS, "--out", "cells.parquet")
    code, _, err = run(command[0], "cells.parquet", *command[1:])
    assert code == 2
    assert told in err


def test_files_that_differ_in_columns_or_types(run, folder):
    other = pl.read_parquet(folder / "part_2.parquet")
    other.drop("q").write_parquet(folder / "part_2.parquet")
    code, _, err = run("compare", "part_*", "--y", "y", "--p", "p,q")
    assert (code, "part_2.parquet has no column 'q'" in err) == (2, True)
    typed = other.with_columns(pl.lit([1]).alias("q"))
    typed.write_parquet(folder / "part_2.parquet")
    code, _, err = run("compare", "part_*", "--y", "y", "--p", "p,q")
    assert (code, "different column types" in err) == (2, True)


def test_what_does_not_fit_into_memory_names_a_way(run, folder):
    with pytest.raises(OptionError, match="Aggregate their rows with 'calibrant agg"):
        read_files(find_files("part_*"), max_size=1000)
    assert run("aggregate", "part_*", *COLUMNS, "--out", folder / "c.parquet")[0] == 0


@pytest.mark.parametrize("output", ["csv", "markdown"])
@pytest.mark.usefixtures("folder")
def test_explanations_stand_aside_of_what_programs_read(run, output):
    code, out, err = run(
        "evaluate", "whole.parquet", *COLUMNS, "--methods", "ew5", "--explain",
        "--format", output,
    )  # fmt: skip
    assert code == 0
    assert "CAL006 few rows" in err
    assert "CAL006" not in out


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_checks_that_there_are_not_are_refused_before_any_work(run, command):
    code, _, err = run(
        command, "no-such-file.csv", *COLUMNS, "--mute", "CAL999", "--out", "x.html"
    ) if command == "report" else run(
        command, "no-such-file.csv", *COLUMNS, "--mute", "CAL999"
    )  # fmt: skip
    assert code == 2
    assert "unknown check 'CAL999'" in err


@pytest.mark.usefixtures("folder")
def test_groups_called_like_results_and_missing_ones(run):
    options = (*COLUMNS, "--methods", "ew5", "--format", "json", "--by")
    for source in (("whole.parquet",), ("part_*",)):
        found = json.loads(printed(run, "evaluate", *source, *options, "model"))
        assert [row["by_model"] for row in found["rows"]] == ["high", "low"]
        places = json.loads(printed(run, "evaluate", *source, *options, "place"))
        rows = [(row["place"], row["n"]) for row in places["rows"]]
        assert rows == [(None, 100), ("None", 100), ("here", 100)]
    report = json.loads(printed(run, "report", "whole.parquet", *options, "place"))
    names = {row["group"]: row["rows"] for row in report["models"][0]["groups"]}
    assert names == {"(missing)": 100, "None": 100, "here": 100}
