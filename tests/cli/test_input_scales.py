"""What predictions are, said on the command line: scales, gaps, labels by model."""

import json

import numpy as np
import polars as pl
import pytest
from scipy.special import logit, softmax

import calibrant as cb

COLUMNS = ("--y", "y", "--p", "p")
JSON = ("--format", "json")


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Verbalised confidences: percentages, a few missing, and their logarithms."""
    rng = np.random.default_rng(31)
    p = np.round(rng.beta(3, 1.5, 600), 2).clip(0.05, 0.99)
    y = (rng.random(600) < p).astype(int)
    percent = (100 * p).round().tolist()
    for row in (3, 60, 599):
        percent[row] = None
    monkeypatch.chdir(tmp_path)
    frame = pl.DataFrame({"p": percent, "log": np.log(p), "y": y, "q": p})
    frame.write_csv("said.csv")
    frame.write_parquet("said.parquet")
    return frame


def printed(run, *arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    return json.loads(out)


COMMANDS = {
    "evaluate": ("--methods", "es10", "--fail-above", "0.05"),
    "compare": ("--p", "q", "--method", "es10", "--fail-above", "0.05"),
    "report": ("--methods", "es10", "--out", "report.html"),
    "plot": ("--out", "plot.png"),
    "calibrate": ("--out", "map.json"),
    "aggregate": ("--out", "cells.parquet"),
}


@pytest.mark.parametrize("dropping", [(), ("--bad-rows", "drop")])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("rows")
def test_percentages_end_in_the_way_out(run, command, dropping, tmp_path):
    code, out, err = run(command, "said.csv", *COLUMNS, *COMMANDS[command], *dropping)
    assert code == 2, out
    assert "These look like percentages: pass --scale percent." in err
    assert "--bad-rows drop" not in err
    assert not any((tmp_path / name).exists() for name in COMMANDS[command][-1:])


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_gate_does_not_pass_on_percentages(run, rows, engine):
    """All but a few rows would be dropped, and what is left fits by chance."""
    options = ("--engine", engine, "--methods", "ew1", "--fail-above", "0.9")
    dropping = ("--bad-rows", "drop", "--max-dropped", "1")
    code, _, err = run("evaluate", "said.parquet", *COLUMNS, *options, *dropping)
    assert (code, "percentages" in err) == (2, True)
    said = ("--scale", "percent", "--bad-rows", "drop")
    found = printed(run, "evaluate", "said.parquet", *COLUMNS, *options, *said, *JSON)[
        "rows"
    ][0]
    kept = rows.drop_nulls()
    wanted = cb.calibration_error(kept["y"], kept["p"] / 100, method="ew1")
    assert found["n"] == 597
    assert found["value"] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.usefixtures("rows")
def test_log_probabilities_are_offered_as_such(run, rows):
    options = ("--y", "y", "--p", "log", "--methods", "es10")
    code, _, err = run("evaluate", "said.csv", *options)
    assert code == 2
    assert "These look like log-probabilities: pass --scale logprob" in err
    found = printed(run, "evaluate", "said.csv", *options, "--scale", "logprob", *JSON)
    wanted = cb.calibration_error(rows["y"], rows["q"], method="es10")
    assert found["rows"][0]["value"] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_more_than_a_fifth_is_dropped_only_if_asked(run, tmp_path, engine):
    p = np.linspace(0.1, 0.9, 100)
    given = [None if k % 4 == 0 else v for k, v in enumerate(p)]
    path = tmp_path / "gaps.parquet"
    pl.DataFrame({"p": given, "y": (p > 0.5).astype(int)}).write_parquet(path)
    options = (path, *COLUMNS, "--methods", "es5", "--engine", engine, *JSON)
    dropping = ("--bad-rows", "drop")
    code, _, err = run("evaluate", *options, *dropping)
    assert code == 2
    assert "25 of 100 rows are invalid, but at most 20 % may be dropped: 25 " in err
    assert "--max-dropped 0.3." in err
    code, out, err = run("evaluate", *options, *dropping, "--max-dropped", "0.3")
    assert (code, json.loads(out)["rows"][0]["n"]) == (0, 75)
    assert "25 of 100 rows were invalid and were dropped: 25 missing" in err
    assert run("evaluate", *options, *dropping, "--max-dropped", "1.1")[0] == 2


def test_a_map_of_other_scales_remembers_them(run, rows):
    options = ("--y", "y", "--p", "q", "--method", "platt", "--out")
    assert run("calibrate", "said.csv", *options, "plain.json")[0] == 0
    code, out, err = run(
        "calibrate", "said.csv", "--y", "y", "--p", "log", "--scale", "logprob",
        "--method", "platt", "--out", "log.json",
    )  # fmt: skip
    assert code == 0, err
    assert "apply expects the same scale, logprob" in out
    apply = ("apply", "log.json", "said.csv", "--p", "log", "--out", "o.parquet")
    assert run(*apply, "--scale", "prob")[0] == 2
    code, out, err = run(*apply)
    assert code == 0, err
    assert "new log_calibrated (probabilities from 0 to 1)" in out
    found = pl.read_parquet("o.parquet")["log_calibrated"].to_numpy()
    wanted = cb.load_map("plain.json").transform(rows["q"].to_numpy())
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (("percentage",), "unknown scale 'percentage'; did you mean 'percent'?"),
        (("p=percent", "prob"), "--scale must be given once, or once for each model"),
        (("x=prob",), "unknown model in scale, 'x'"),
        (("p=percent",), "'q' is missing"),
    ],
)
@pytest.mark.usefixtures("rows")
def test_scales_that_are_none(run, scale, words):
    given = [part for one in scale for part in ("--scale", one)]
    code, _, err = run("evaluate", "said.csv", "--y", "y", "--p", "p,q", *given)
    assert (code, words in err) == (2, True), err


@pytest.fixture
def logits(tmp_path, monkeypatch):
    """Over-confident logits of 6 classes, in columns."""
    rng = np.random.default_rng(33)
    z = rng.normal(0, 1.5, (800, 6))
    prob = softmax(z, axis=1)
    y = (rng.random((800, 1)) > prob.cumsum(axis=1)).sum(axis=1).clip(0, 5)
    monkeypatch.chdir(tmp_path)
    columns = {f"z_{k}": 2.0 * z[:, k] for k in range(6)} | {"y": y}
    pl.DataFrame(columns).write_parquet("z.parquet")
    return 2.0 * z, y


CLASSES = ("--y", "y", "--p", "z_*", "--task", "confidence", "--scale", "logit")


@pytest.mark.parametrize("ending", ["_calibrated", "_cal"])
def test_columns_that_apply_added_are_no_more_classes(run, logits, ending):
    z, y = logits
    fit = ("--y", "y", "--p", "z_*", "--scale", "logit", "--out", "map.json")
    assert run("calibrate", "z.parquet", *fit)[0] == 0
    apply = ("apply", "map.json", "z.parquet", "--p", "z_*", "--out", "after.parquet")
    assert run(*apply, "--suffix", ending)[0] == 0
    found = printed(run, "evaluate", "after.parquet", *CLASSES, *JSON)
    assert found == printed(run, "evaluate", "z.parquet", *CLASSES, *JSON)
    assert found["n_classes"] == {"z_*": 6}
    assert "Number of classes: 6\n" in run("evaluate", "after.parquet", *CLASSES)[1]

    models = ("--p", "before=z_*", "--p", f"after=z_*{ending}")
    scales = ("--scale", "before=logit", "--scale", "after=prob")
    options = ("--y", "y", "--task", "confidence", "--method", "es10")
    pairs = printed(run, "compare", "after.parquet", *options, *models, *scales, *JSON)
    assert pairs["n_classes"] == {"before": 6, "after": 6}
    after = cb.load_map("map.json").transform(z)
    wanted = cb.compare(
        y,
        {"before": softmax(z, axis=1), "after": after},
        task="confidence",
        method="es10",
    ).frame()
    assert [row["model"] for row in pairs["rows"]] == wanted["model"].tolist()
    for row, value in zip(pairs["rows"], wanted["value"], strict=True):
        assert row["value"] == pytest.approx(value, abs=1e-9)
    again = ("calibrate", "after.parquet", *fit[:-1], "again.json")
    assert run(*again)[0] == 0
    assert cb.load_map("again.json") == cb.load_map("map.json")


def test_models_with_different_numbers_of_classes_are_told(run, logits):
    z, y = logits
    more = {f"u_{k}": z[:, k % 6] - 3.0 * (k > 5) for k in range(8)}
    pl.read_parquet("z.parquet").with_columns(
        **{name: pl.Series(values) for name, values in more.items()}
    ).write_parquet("two.parquet")
    options = ("--y", "y", "--task", "confidence", "--scale", "logit")
    models = ("--p", "a=z_*", "--p", "b=u_*", "--method", "es10")
    code, out, err = run("compare", "two.parquet", *options, *models)
    assert code == 0, err
    assert "Number of classes: a 6, b 8\n" in out
    assert y.max() == 5


def test_without_a_task_calibrated_columns_are_models_of_their_own(run, rows):
    rows.select("y", m="q", m_calibrated=pl.col("q") ** 2).write_csv("m.csv")
    options = ("--y", "y", "--p", "m*", "--method", "es10", *JSON)
    found = printed(run, "compare", "m.csv", *options)
    assert {row["model"] for row in found["rows"]} == {"m", "m_calibrated"}


@pytest.fixture
def answers(tmp_path, monkeypatch):
    """Two models that answer the same questions; the first is calibrated."""
    rng = np.random.default_rng(34)
    hard = rng.random(1500)
    said_a = 1.0 - 0.8 * hard
    said_b = np.minimum(said_a + 0.15, 0.99)
    draw = rng.random(1500)
    frame = pl.DataFrame(
        {
            "a": said_a,
            "b": logit(said_b),
            "right_a": (draw < said_a).astype(int),
            "right_b": (rng.permutation(draw) < said_a - 0.1).astype(int),
            "task": np.where(np.arange(1500) % 2, "odd", "even"),
        }
    )
    monkeypatch.chdir(tmp_path)
    frame.write_parquet("answers.parquet")
    return frame


def test_each_model_has_its_own_column_of_labels(run, answers):
    options = ("--p", "a,b", "--scale", "a=prob", "--scale", "b=logit", *JSON)
    labels = ("--y", "a=right_a", "--y", "b=right_b", "--method", "es10")
    found = printed(run, "compare", "answers.parquet", *labels, *options)
    wanted = cb.compare(
        {"a": answers["right_a"], "b": answers["right_b"]},
        {"a": answers["a"], "b": answers["b"]},
        scale={"a": "prob", "b": "logit"},
        method="es10",
    )
    assert [row["value"] for row in found["rows"]] == wanted.frame()["value"].tolist()
    assert [row["low"] for row in found["pairs"]] == wanted.pairs()["low"].tolist()
    by = printed(run, "compare", "answers.parquet", *labels, *options, "--by", "task")
    assert [row["n"] for row in by["rows"]] == [750] * 4


def test_rows_are_dropped_where_any_label_is_missing(run, answers):
    wrong = answers["right_b"].cast(pl.Float64).to_list()
    wrong[4], wrong[900] = None, 3.0
    spoiled = answers.with_columns(right_b=pl.Series(wrong))
    spoiled.write_parquet("spoiled.parquet")
    answers.filter(~pl.int_range(1500).is_in([4, 900])).write_parquet("good.parquet")
    options = ("--p", "a,b", "--scale", "a=prob", "--scale", "b=logit", *JSON)
    labels = ("--y", "a=right_a", "--y", "b=right_b", "--method", "es10")
    code, out, err = run(
        "compare", "spoiled.parquet", *labels, *options, "--bad-rows", "drop"
    )
    assert code == 0, err
    assert "2 of 1,500 rows were invalid and were dropped: 1 without a la" in err
    assert json.loads(out) == printed(run, "compare", "good.parquet", *labels, *options)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (("a=right_a",), "y must have the labels of each model by its name, 'a', 'b'"),
        (("a=right_a", "c=right_b"), "it has 'a', 'c'"),
        (("truth=right_a",), "two columns are equal, pass --y truth==right_a."),
        (("a=right_a", "right_b"), "--y must be given once, or once for each model"),
        (("a=right_a", "b=wrong"), "unknown column 'wrong'"),
    ],
)
@pytest.mark.usefixtures("answers")
def test_labels_by_model_must_be_complete(run, labels, words):
    given = [part for one in labels for part in ("--y", one)]
    scales = ("--scale", "a=prob", "--scale", "b=logit")
    code, _, err = run("compare", "answers.parquet", *given, "--p", "a,b", *scales)
    assert (code, words in err) == (2, True), err
