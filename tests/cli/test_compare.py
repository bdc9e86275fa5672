"""``calibrant compare``, run as users run it."""

import csv
import io
import json

import numpy as np
import polars as pl
import pytest

import calibrant as cb

BINARY, MULTI = str(cb.datasets.BINARY_FILE), str(cb.datasets.MULTICLASS_FILE)
TWO = [BINARY, "--y", "even", "--p", "forest,network", "--method", "es15"]


def compare(run, *arguments):
    code, out, err = run("compare", *arguments, "--format", "json")
    assert code == 0, err
    return json.loads(out)


def test_numbers_are_those_of_the_library(run):
    found = compare(run, *TWO)
    y = cb.datasets.load_binary("forest")[1]
    models = {n: cb.datasets.load_binary(n)[0] for n in ("forest", "network")}
    expected = cb.compare(y, models, method="es15")
    assert [row["model"] for row in found["rows"]] == ["network", "forest"]
    assert found["rows"][1]["low"] == expected.standings[1].estimate.low
    assert found["pairs"][0]["probability"] == expected.differences[0].probability
    assert (found["alpha"], found["confidence"]) == (1.0, 0.95)


def test_smooth_is_the_method_unless_another_is_named(run):
    rows = compare(run, BINARY, "--y", "even", "--p", "forest,bayes")["rows"]
    assert {row["method"] for row in rows} == {"smooth"}


def test_a_table_ranks_models_and_shows_pairs(run):
    code, out, _ = run("compare", *TWO)
    assert code == 0
    assert out.startswith(
        "Calibration error (method es15)\nwith 95 % intervals, bias-corrected"
    )
    assert "a is better" in out
    assert "Rank: 1 + the number of significantly better" in out
    assert "Holm" not in out
    three = [BINARY, "--y", "even", "--p", "forest,network,bayes", "--method", "es15"]
    assert "corrected for the number of pairs (Holm)" in run("compare", *three)[1]


@pytest.mark.parametrize("form", ["csv", "markdown"])
def test_pairs_are_rows_of_their_own(run, form):
    _, models, _ = run("compare", *TWO, "--format", form)
    _, pairs, _ = run("compare", *TWO, "--format", form, "--pairs")
    assert "model" in models.splitlines()[0]
    assert "model_a" in pairs.splitlines()[0]
    assert "network" in pairs.splitlines()[-1]


def test_groups_are_compared_apart(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    columns = {"y": rng.random(300) < p, "a": p, "b": p**2, "g": np.arange(300) % 2}
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    found = compare(run, tmp_path / "t.parquet", "--y", "y", "--p", "a,b", "--by", "g",
                    "--method", "es5")  # fmt: skip
    assert [row["g"] for row in found["rows"]] == [0, 0, 1, 1]
    assert [row["g"] for row in found["pairs"]] == [0, 1]


def test_models_of_several_classes(run):
    found = compare(run, MULTI, "--y", "digit", "--p", "rf=forest_*", "--p", "bayes_*",
                    "--task", "confidence", "--method", "es15")  # fmt: skip
    assert {row["model"] for row in found["rows"]} == {"rf", "bayes_*"}


def test_the_figure_is_written_whole(run, tmp_path):
    target = tmp_path / "out.svg"
    code, _, err = run("compare", *TWO, "--plot", target)
    assert code == 0
    assert f"wrote {target}" in err
    assert "<svg" in target.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["out.svg"]


@pytest.mark.parametrize(("threshold", "code"), [("0.05", 1), ("0.5", 0)])
def test_fail_above_looks_at_every_model(run, threshold, code):
    found, _, err = run("compare", *TWO, "--fail-above", threshold)
    assert found == code
    assert ("failed: es15 forest: 0.0819 exceeds 0.05" in err) == (code == 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--p", "forest"], "at least 2 models are needed to compare; got 1"),
        (["--p", "forest,forest"], "names the model 'forest' twice"),
        (["--p", "forest,bayes", "--method", "smoth"], "did you mean 'smooth'"),
        (["--p", "forest,bayes", "--confidence", "1"], "strictly between 0 and 1"),
        (["--p", "forest,bayes", "--plot", "a.exe"], "figures are written as"),
        (["--p", "forest,bayes", "--plot", "a.png", "--by", "even"], "remove --by"),
        (["--p", "forest,bayes", "--scale", "per"], "unknown scale 'per'"),
    ],
)
def test_wrong_usage_is_exit_two(run, arguments, words):
    code, out, err = run("compare", BINARY, "--y", "even", *arguments)
    assert code == 2
    assert words in err
    assert out == ""
    assert "Traceback" not in err


def test_names_with_commas_and_equals_signs_go_in_quotes(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(60)
    columns = {"y": rng.random(60) < p, "a,b": p, "x=1": p**2, 'say "c"': p**3}
    pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    options = [tmp_path / "t.parquet", "--y", "y", "--method", "es3"]
    found = compare(run, *options, "--p", '"a,b","x=1"', "--p", '"say ""c"""')
    assert {row["model"] for row in found["rows"]} == {"a,b", "x=1", 'say "c"'}
    named = compare(run, *options, "--p", '"k=1"="a,b"', "--p", 'm="x=1"')
    assert {row["model"] for row in named["rows"]} == {"k=1", "m"}


def test_hostile_names_are_printed_as_they_are(run, tmp_path):
    p = np.linspace(0.05, 0.95, 60)
    columns = {"y": np.tile([0, 1], 30), "[bold]": p, "a|b": p**2}
    pl.DataFrame(columns).write_csv(tmp_path / "t.csv")
    options = ["compare", tmp_path / "t.csv", "--y", "y", "--p", "[bold],a|b",
               "--method", "es3"]  # fmt: skip
    assert "[bold]" in run(*options)[1]
    assert "a\\|b" in run(*options, "--format", "markdown")[1]
    rows = csv.reader(io.StringIO(run(*options, "--format", "csv")[1]))
    assert {row[0] for row in rows} == {"model", "[bold]", "a|b"}


def test_a_table_shows_the_first_of_very_many_pairs(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(100)
    columns = {f"m{i}": p**power for i, power in enumerate(np.linspace(0.8, 1.2, 12))}
    rows = {"y": (rng.random(100) < p).astype(int)} | columns
    pl.DataFrame(rows).write_csv(tmp_path / "many.csv")
    models = ("--y", "y", "--p", "m*", "--method", "ew5")
    code, out, _ = run("compare", tmp_path / "many.csv", *models)
    assert code == 0
    assert "and 16 more pairs: --format csv --pairs shows all." in out
    _, out, _ = run(
        "compare", tmp_path / "many.csv", *models, "--format", "csv", "--pairs"
    )
    assert len(out.splitlines()) == 1 + 12 * 11 // 2


def test_a_column_of_models_is_no_group(run, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("m,p,y\na,0.2,0\nb,0.7,1\n", encoding="utf-8")
    code, _, err = run("compare", path, "--y", "y", "--p", "p", "--by", "m")
    assert code == 2
    assert "If column 'm' names the model of each row, pass --model m and --id" in err


def test_repeated_questions_are_told_apart_by_a_second_column(run, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(240)
    rows = {
        "model": np.repeat(["a", "b"], 120),
        "question": np.tile(np.repeat(np.arange(40), 3), 2),
        "sample": np.tile([0, 1, 2], 80),
        "p": p,
        "right": rng.random(240) < p,
    }
    path = str(tmp_path / "asked.csv")
    pl.DataFrame(rows).write_csv(path)
    asked = [path, "--y", "right", "--p", "p", "--model", "model"]
    found = compare(run, *asked, "--id", "question,sample", "--cluster", "question")
    assert [row["n"] for row in found["rows"]] == [120, 120]
    code, _, err = run("compare", *asked, "--id", "question")
    assert code != 0
    assert "--id question,sample" in err
