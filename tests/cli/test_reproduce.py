"""``calibrant reproduce``, run as users run it."""

import csv
import io
import json

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.experiments import find_predictions
from calibrant.experiments.figures import FIGURES

QUICK = ["reproduce", "synthetic", "--quick", "--methods", "es15,platt"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder that tests of the synthetic study share; the first one fills it."""
    return tmp_path_factory.mktemp("synthetic")


def test_quick_prints_and_writes_all_tables(run, folder):
    code, out, err = run(*QUICK, "--out", folder)
    assert code == 0
    assert out == (folder / "tables.md").read_text()
    assert "| square | " in out
    assert out.count("| average rank | ") == 6
    assert "Independent draws of labels: 2," in out
    assert "`calibrant reproduce synthetic --quick --methods es15,platt` on " in out
    assert f"with calibrant {cb.__version__}, numpy {np.__version__}" in out
    for name in ("results.parquet", "times.parquet", "log.txt", "tables.tex"):
        assert (folder / name).exists()
    shown = pl.read_parquet(folder / "tables.parquet")
    assert shown["title"].n_unique() == out.count("| average rank | ")
    assert "wrote" in err


def test_the_same_command_continues_an_interrupted_run(run, tmp_path):
    options = [*QUICK, "--out", tmp_path]
    first, second = (run(*options, "--seeds", 1, "--format", "csv")[1] for _ in "ab")
    assert first == second
    assert "30 cells, 30 of them done before" in (tmp_path / "log.txt").read_text()
    run(*options)
    assert "60 cells, 30 of them done before" in (tmp_path / "log.txt").read_text()


def test_formats_hold_the_same_numbers(run, folder):
    options = [*QUICK, "--out", folder, "--format"]
    rows = json.loads(run(*options, "json")[1])["rows"]
    lines = list(csv.DictReader(io.StringIO(run(*options, "csv")[1])))
    for line, row in zip(lines, rows, strict=True):
        assert line["value"] == str("nan" if row["value"] is None else row["value"])
    es15 = next(r for r in rows if (r["table"], r["method"]) == ("calmap", "es15"))
    assert f"${es15['value']:.2f}" in run(*options, "latex")[1].replace(
        r"$\begin{array}{r}", "$"
    )
    assert f"{es15['value']:.2f}<sub>" in run(*options, "markdown")[1]


def test_other_methods_on_the_same_data(run, folder):
    options = ["reproduce", "synthetic", "--quick", "--seeds", 1, "--out", folder]
    code, out, _ = run(*options, "--methods", "isotonic, ew5")
    assert code == 0
    assert "|  | isotonic | ew5 |" in out
    assert "--methods isotonic, ew5" in out
    code, _, err = run(*options, "--methods", "isotonic,platts")
    assert code == 2
    assert "did you mean 'platt'" in err


def test_a_method_that_fails_is_named_with_its_first_error_and_exit_two(run, folder):
    """More bins than the 1,000 rows of a cell."""
    options = ["reproduce", "synthetic", "--quick", "--seeds", 1, "--out", folder]
    code, out, err = run(*options, "--methods", "es15,es1500")
    assert code == 2
    last = err[err.index("error: ") :]
    assert "15 of 30 cells failed (methods: es1500)." in last
    assert "The first: 'es1500' on beta1, error 0, n 1000, seed 0: TooFewRows" in last
    assert str(folder / "results.parquet") in last
    assert "the same command reruns these cells" in last
    assert "Traceback" not in err
    assert "| es15 | es1500 |" in out  # what the others found is not lost
    assert run(*options, "--methods", "es15,es1500")[0] == 2
    log = (folder / "log.txt").read_text()
    assert "30 cells, 15 of them done before" in log
    assert run(*options, "--methods", "es15")[0] == 0


def test_the_fresh_study_has_an_overview_and_a_part_for_each(run, tmp_path):
    options = ["--seeds", 1, "--methods", "platt,beta", "--out", tmp_path]
    options += ["--studies", "skewed,polarised"]
    code, out, _ = run("reproduce", "fresh", *options)
    assert code == 0
    assert "fresh --seeds 1 --methods platt,beta --studies skewed,polarised` on" in out
    assert "|  | platt | beta | oracle |" in out
    assert out.count("| jump | ") == 2 * 3
    assert "| skewed | " in out
    titles = [f"All ten shapes, c from Beta({x})" for x in ("2, 5", "0.5, 0.5")]
    assert f"{titles[1]}: Map error" in out
    rows = json.loads(run("reproduce", "fresh", *options, "--format", "json")[1])
    assert {row["study"] for row in rows["rows"]} == {"", *titles}
    code, _, err = run("reproduce", "fresh", "--studies", "skewd", "--out", tmp_path)
    assert code == 2
    assert "did you mean 'skewed'" in err


def test_wrong_usage_is_one_line_and_exit_two(run, tmp_path):
    code, _, err = run(*QUICK, "--out", tmp_path, "--jobs", 0)
    assert code == 2
    assert "jobs must not be 0" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_figures_are_written(run, tmp_path):
    code, _, err = run("reproduce", "figures", "--out", tmp_path / "new" / "folder")
    assert code == 0
    assert err.count("wrote") == len(FIGURES)
    written = {path.stem for path in (tmp_path / "new" / "folder").iterdir()}
    assert written == set(FIGURES)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with one model of three classes whose exact probabilities are known."""
    rng = np.random.default_rng(0)
    arrays = {}
    for split, rows in (("cal", 500), ("test", 1000), ("holdout", 14_000)):
        exact = rng.dirichlet([0.5, 0.5, 0.5], rows)
        scores = exact**0.7
        arrays[f"probs_{split}"] = scores / scores.sum(axis=1, keepdims=True)
        cumulative = exact.cumsum(axis=1)[:, :2]
        arrays[f"y_{split}"] = (rng.random((rows, 1)) > cumulative).sum(axis=1)
        arrays[f"posterior_{split}"] = exact
    folder = tmp_path_factory.mktemp("models")
    np.savez(folder / "simplex.npz", **arrays)
    return folder


def test_pseudo_real_writes_all_tables_and_can_be_continued(run, tmp_path, models):
    options = ["--quick", "--events", "1=ones,confidence", "--data", models]
    options += ["--seeds", 1, "--out", tmp_path]
    code, out, err = run("reproduce", "pseudo-real", *options)
    assert code == 0, err
    assert out == (tmp_path / "tables.md").read_text()
    assert "| ones vs rest | " in out
    assert "| simplex | " in out
    assert out.count("\n## combo, the paper's chat_dist_c_combo\n") == 1
    assert "true map by exact probabilities" in out
    assert f"--data {models.name} --quick --events 1=ones,confidence" in out
    again = run("reproduce", "pseudo-real", *options, "--format", "json", "--jobs", 2)
    rows = json.loads(again[1])["rows"]
    assert {"temperature", "es15", "smooth"} <= {row["method"] for row in rows}
    names = {(row["study"], row["shape"], row["method"]) for row in rows}
    assert len(names) == len(rows)  # no two tables have the same name
    log = (tmp_path / "log.txt").read_text()
    assert log.count("24 cells, 24 of them done before") == 1
    assert log.count("84 cells, 84 of them done before") == 1


def test_real_data_are_centred_at_zero_or_at_models_with_a_hold_out(
    run, tmp_path, models
):
    options = ["--quick", "--data", models, "--seeds", 1, "--out", tmp_path]
    code, out, err = run("reproduce", "real", *options)
    assert code == 0, err
    assert "pseudo-real, 1000" not in out
    assert "| real, 1000 | " in out
    assert "the mean over methods is 0." in out
    code, out, err = run("reproduce", "real", *options, "--pseudo-real", models)
    assert code == 0, err
    assert "| pseudo-real, 1000 | " in out
    assert "mean over methods equals that of pseudo-real data" in out


@pytest.mark.slow
def test_without_data_the_embedded_digits_are_used(run, tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    options = ["--quick", "--seeds", 1, "--out", tmp_path / "out", "--format", "csv"]
    code, out, err = run("reproduce", "real", *options)
    assert code == 0, err
    assert '"real, 1000",smooth,' in out
    assert '"pseudo-real, 1000",smooth,' in out
    (digits,) = (tmp_path / "cache").iterdir()
    assert len(find_predictions(digits)) == 4


def test_what_cannot_be_read_is_named(run, tmp_path):
    code, _, err = run("reproduce", "pseudo-real", "--data", tmp_path / "none")
    assert code == 2
    assert "is not a folder" in err
    few = tmp_path / "few"
    few.mkdir()
    arrays = {"probs_cal": np.full((9, 2), 0.5), "y_cal": np.zeros(9)}
    arrays |= {"probs_test": np.full((9, 2), 0.5), "y_test": np.zeros(9)}
    np.savez(few / "model.npz", **arrays)
    options = ["--data", few, "--out", tmp_path / "out"]
    code, _, err = run("reproduce", "pseudo-real", *options, "--sizes", "1000,many")
    assert code == 2
    assert "--sizes must be numbers separated by commas; got '1000,many'" in err
    code, _, err = run("reproduce", "real", *options)
    assert code == 2
    assert "at least 1000 rows; the smallest has 9" in err


def test_the_arena_compares_calibrators_of_both_kinds(run, tmp_path, monkeypatch):
    from calibrant.experiments import models

    two = {name: models.classifiers()[name] for name in ("lda", "tree")}
    monkeypatch.setattr(models, "classifiers", lambda: two)
    monkeypatch.setattr(models, "QUICK_DATA_SETS", ("breast cancer", "digits"))
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    p = rng.random(700)
    (tmp_path / "own").mkdir()
    np.savez(tmp_path / "own" / "coin.npz", p=p, y=rng.random(700) < p)
    options = ["--quick", "--methods", "platt,vector", "--data", tmp_path / "own"]
    code, out, _ = run("reproduce", "arena", *options, "--out", tmp_path / "results")
    assert code == 0
    assert "## Binary, 4 cells of 3 models" in out  # the digits have two events
    assert "## Multi-class, 1 cells of 1 models" in out
    assert "arena --data own --quick --methods platt,vector` on" in out
    assert "the 3 data sets as independent" in out
    assert out.count("| 200 rows | ") == 2 * 9
    code, _, err = run("reproduce", "arena", "--quick", "--kinds", "ternary")
    assert code == 2
    assert "ternary" in err
