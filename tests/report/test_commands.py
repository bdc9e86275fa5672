"""Printed commands and calls do the repair, on the data that they name."""

import shlex
from dataclasses import replace

import numpy as np
import pytest

import calibrant as cb
from calibrant.report.commands import Origin, command, python


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
    ("origin", "method", "call"),
    [
        (Origin(scale="logit"), "beta", """("beta", scale="logit").fit(p, y)"""),
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
            """("beta", scale="logit").fit(p, y)""",
        ),
    ],
)
def test_calls_are_those_of_the_data(origin, method, call):
    text = python(origin, method)
    assert call in text
    compile(text, "page", "exec")
    assert command(origin, method) == ""


@pytest.mark.parametrize(
    ("several", "task", "expected"),
    [
        (True, "confidence", (True, None)),
        (True, "2", (False, 2)),
        (False, "binary", (False, None)),
    ],
)
def test_a_method_of_both_kinds_follows_the_task(several, task, expected):
    origin = Origin(columns=("a", "b", "c"), several=several, task=task)
    found = origin.is_of_classes("temperature"), origin.column("temperature")
    assert found == expected


def test_new_files_may_lack_predictions_where_rows_were_dropped():
    origin = Origin(files=("a.csv",), columns=("p",), max_dropped=0.2)
    _, apply = command(origin, "auto").splitlines()
    assert apply.endswith("--allow-missing --out calibrated.csv")
    assert "--allow-missing" not in command(replace(origin, max_dropped=None), "auto")
