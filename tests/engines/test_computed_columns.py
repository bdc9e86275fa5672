"""Columns that are computed from others: equality of two, and the file of a row."""

import numpy as np
import polars as pl
import pytest

import calibrant as cb

RNG = np.random.default_rng(5)
N = 300
CONFIDENCE = RNG.uniform(0.3, 1.0, N)
TRUTH = RNG.choice(["cat", "dog", "owl"], N)
ANSWER = np.where(RNG.random(N) < CONFIDENCE, TRUTH, "fox")
RIGHT = (TRUTH == ANSWER).astype(int)


@pytest.fixture
def answers(tmp_path):
    frame = pl.DataFrame({"truth": TRUTH, "answer": ANSWER, "confidence": CONFIDENCE})
    frame.write_csv(tmp_path / "answers.csv")
    return tmp_path / "answers.csv"


def test_whether_an_answer_is_right_follows_from_two_columns(answers):
    preds = cb.Predictions.from_table(answers, y="truth==answer", p="confidence")
    expected = cb.calibration_error(RIGHT, CONFIDENCE)
    found = cb.evaluate(preds, methods="smooth").frame()["value"][0]
    assert found == pytest.approx(expected, abs=1e-12)


def test_the_command_line_compares_columns_too(answers, run):
    code, out, err = run(
        "evaluate", answers, "--y", "truth==answer", "--p", "confidence"
    )
    assert code == 0, err
    assert f"{RIGHT.mean():.4f}" in out


def test_a_missing_answer_is_a_missing_label():
    rows = {"truth": ["a", "b"] * 30, "answer": ["a", None] * 30, "p": [0.5] * 60}
    with pytest.raises(cb.exceptions.MissingValueError, match="row 1"):
        cb.Predictions.from_table(rows, y="truth==answer", p="p")


def test_a_column_with_such_a_name_comes_first():
    rows = {"a": [1] * 40, "b": [0] * 40, "a==b": [1, 0] * 20, "p": [0.5] * 40}
    preds = cb.Predictions.from_table(rows, y="a==b", p="p")
    assert cb.evaluate(preds, methods="ew1").frame()["value"][0] == pytest.approx(0.0)


@pytest.fixture
def one_file_per_model(tmp_path):
    for name, power in (("good", 1.0), ("bad", 3.0)):
        frame = {"y": RIGHT, "p": CONFIDENCE**power, "id": np.arange(N)}
        pl.DataFrame(frame).write_csv(tmp_path / f"{name}.csv")
    return tmp_path / "*.csv"


def test_each_file_can_be_a_group(one_file_per_model):
    preds = cb.Predictions.from_table(one_file_per_model, y="y", p="p", by="filename")
    frame = cb.evaluate(preds, methods="smooth").frame()
    assert frame["filename"].tolist() == ["bad", "good"]
    assert frame["value"][0] > frame["value"][1]


def test_each_file_can_be_a_model(one_file_per_model, run):
    options = ("--y", "y", "--p", "p", "--model", "filename", "--id", "id")
    code, out, err = run("compare", one_file_per_model, *options, "--format", "csv")
    assert code == 0, err
    head, *lines = (line.split(",") for line in out.splitlines())
    ranks = {line[head.index("model")]: line[head.index("rank")] for line in lines}
    assert ranks == {"good": "1", "bad": "2"}
