"""Columns that are computed from others: equality of two, and the file of a row."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import (
    DroppedRowsWarning,
    OptionError,
    SourceError,
    UnpairedRowsWarning,
)

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


@pytest.fixture
def networks(tmp_path):
    """A folder with one npz file per network."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("ant", "bee"):
        logits = rng.normal(size=(200, 3))
        np.savez(folder / f"{name}.npz", y=rng.integers(0, 3, 200), logits=logits)
    return folder


@pytest.mark.parametrize("form", ["list", "pattern", "folder"])
def test_npz_files_with_the_same_arrays_are_rows_of_one_table(networks, form):
    files = sorted(networks.glob("*.npz"))
    source = {"list": files, "pattern": str(networks / "*.npz"), "folder": networks}
    options = {"y": "y", "p": "logits", "scale": "logit", "task": "confidence"}
    preds = cb.Predictions.from_table(source[form], model="filename", **options)
    together = cb.evaluate(preds, methods="smooth", confidence=None).frame()
    assert together["model"].tolist() == ["ant", "bee"]
    alone = [
        cb.evaluate(cb.Predictions.from_table(file, **options), methods="smooth")
        for file in files
    ]
    assert_allclose(together["value"], [one.frame()["value"][0] for one in alone])


def test_npz_files_of_one_table_have_the_same_columns(networks):
    np.savez(networks / "cat.npz", y=np.zeros(5, int), logits=np.zeros((5, 4)))
    with pytest.raises(SourceError, match=r"shape \(200, 3\) in .* \(5, 4\) in .*cat"):
        cb.Predictions.from_table(
            networks, y="y", p="logits", scale="logit", task="confidence"
        )


def test_a_folder_with_other_files_is_not_one_of_arrays(networks):
    pl.DataFrame({"y": [0, 1], "p": [0.2, 0.7]}).write_csv(networks / "a.csv")
    assert cb.Predictions.from_table(networks, y="y", p="p").n == 2


def test_npz_files_of_the_same_name_keep_their_folders(networks):
    (networks / "old").mkdir()
    (networks / "ant.npz").rename(networks / "old" / "bee.npz")
    options = {"y": "y", "p": "logits", "scale": "logit", "task": "confidence"}
    preds = cb.Predictions.from_table(networks, model="filename", **options)
    assert preds.models == tuple(
        str(networks / name) for name in ("bee.npz", "old/bee.npz")
    )


def test_file_names_of_arrays_follow_the_arrays_that_are_used(networks):
    """Files often hold a validation set beside the test set, of another length."""
    for name in ("ant", "bee"):
        with np.load(networks / f"{name}.npz") as arrays:
            held = dict(arrays)
        first = {"y_val": np.zeros(7, int), "logits_val": np.zeros((7, 3))}
        np.savez(networks / f"{name}.npz", **first, **held)
    options = {"y": "y", "p": "logits", "scale": "logit", "task": "confidence"}
    preds = cb.Predictions.from_table(networks, model="filename", **options)
    assert preds.models == ("ant", "bee")
    assert preds.n == 400
    one = networks / "ant.npz"
    assert cb.Predictions.from_table(one, model="filename", **options).n == 200


SAME = {"y": "y", "p": "logits", "scale": "logit", "task": "confidence"}


@pytest.fixture
def same_cases(networks):
    """Two networks that saw the same 200 cases."""
    with np.load(networks / "ant.npz") as arrays:
        labels = arrays["y"]
    with np.load(networks / "bee.npz") as arrays:
        np.savez(networks / "bee.npz", y=labels, logits=arrays["logits"])
    return networks


def test_rows_are_paired_by_number(same_cases):
    preds = cb.Predictions.from_table(same_cases, model="filename", id="row", **SAME)
    found = cb.compare(preds, method="es5").pairs()
    models = {}
    for name in ("ant", "bee"):
        with np.load(same_cases / f"{name}.npz") as arrays:
            y, models[name] = arrays["y"], arrays["logits"]
    options = {"scale": "logit", "task": "confidence", "method": "es5"}
    wanted = cb.compare(y, models, **options).pairs()
    for column in ("difference", "low", "high"):
        assert_allclose(found[column], wanted[column], atol=1e-12)


def test_rows_are_numbered_before_invalid_ones_are_dropped(same_cases):
    with np.load(same_cases / "bee.npz") as arrays:
        logits = arrays["logits"].copy()
        logits[3, 1] = np.nan
        np.savez(same_cases / "bee.npz", y=arrays["y"], logits=logits)
    options = {"model": "filename", "id": "row", "bad_rows": "drop", **SAME}
    with pytest.warns(DroppedRowsWarning):
        preds = cb.Predictions.from_table(same_cases, **options)
    with pytest.warns(UnpairedRowsWarning, match="199 of 200 values of column 'row'"):
        cb.compare(preds, method="es5")


def test_other_rows_are_not_paired_by_number(networks, run):
    options = {"model": "filename", "id": "row", **SAME}
    with pytest.raises(
        OptionError, match="the same labels in the same order; row 1 is 2"
    ):
        cb.Predictions.from_table(networks, **options)
    with pytest.raises(OptionError, match="there is only one file"):
        cb.Predictions.from_table(networks / "ant.npz", **options)
    np.savez(networks / "cat.npz", y=np.zeros(5, int), logits=np.zeros((5, 3)))
    with pytest.raises(OptionError, match=r"ant\.npz has 200 and .*cat\.npz has 5\."):
        cb.Predictions.from_table(networks, **options)
    typed = ("--y", "y", "--p", "logits", "--scale", "logit", "--task", "confidence")
    code, _, err = run("compare", networks, *typed, "--model", "filename")
    assert code == 2
    assert "or pass --id row to pair rows by their number" in err


def test_a_note_says_how_many_files_are_taken_together(networks, run):
    typed = ("--y", "y", "--p", "logits", "--scale", "logit", "--task", "confidence")
    options = (*typed, "--methods", "es5")
    _, _, err = run("evaluate", networks, *options)
    assert "the rows of 2 files are taken together; --by filename separates" in err
    for one in (("--model", "filename"), ("--by", "filename")):
        assert "files" not in run("evaluate", networks, *options, *one)[2]
    assert "files" not in run("evaluate", networks / "ant.npz", *options)[2]
