"""Matrices in npz files: what every command makes of columns, it makes of them."""

import json
import shlex

import numpy as np
import polars as pl
import pytest
from scipy.special import log_softmax, softmax

import calibrant as cb

N, K = 400, 4


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Over-confident logits of two models as matrices, and the same as columns."""
    rng = np.random.default_rng(21)
    logits = rng.normal(0.0, 1.5, (N, K))
    prob = softmax(logits, axis=1)
    y = (rng.random((N, 1)) > prob.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    other = logits + rng.normal(0.0, 0.5, (N, K))
    arrays = {"z": 2.0 * logits, "u": 2.0 * other, "y": y, "w": rng.integers(1, 3, N)}
    monkeypatch.chdir(tmp_path)
    np.savez("m.npz", **arrays)
    as_frame(arrays).write_parquet("m.parquet")
    bad = {name: values.copy() for name, values in arrays.items()}
    bad["z"][7, 2], bad["z"][9, 0] = np.nan, np.inf
    np.savez("bad.npz", **bad)
    good = {name: np.delete(values, [7, 9], axis=0) for name, values in bad.items()}
    np.savez("good.npz", **good)
    return tmp_path


def stored(path, **options):
    """Return the arrays of an npz file, and leave it closed."""
    with np.load(path, **options) as arrays:
        return dict(arrays)


def as_frame(arrays):
    columns = {}
    for name, values in arrays.items():
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f"{name}_{k}": values[:, k] for k in range(values.shape[1])}
    return pl.DataFrame(columns)


SCALE = ("--scale", "logit", "--task", "confidence")
JSON = ("--format", "json")
ONE = ("--y", "y", "--p", "z")
COMMANDS = {
    "evaluate": (*SCALE, *JSON, "--methods", "es10,ew10"),
    "report": (*SCALE, *JSON, "--methods", "es10"),
}


def printed(run, *arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    return json.loads(out)


def without_names(found):
    """Return results without what the file and its columns are called."""
    if isinstance(found, dict):
        named = ("name", "title", "source", "made", "command", "python", "n_classes")
        return {k: without_names(v) for k, v in found.items() if k not in named}
    return [without_names(v) for v in found] if isinstance(found, list) else found


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_a_matrix_is_its_columns(run, command):
    options = COMMANDS[command]
    found = printed(run, command, "m.npz", *ONE, *options)
    wanted = printed(run, command, "m.parquet", "--y", "y", "--p", "z_*", *options)
    assert without_names(found) == without_names(wanted)
    if command == "report":
        repairs = found["models"][0]["repairs"]
        assert repairs["advised"] == "auto"
        assert len(repairs["rows"]) > 2


@pytest.mark.usefixtures("folder")
def test_the_whole_vector_is_evaluated_without_an_interval(run):
    options = (*ONE, "--scale", "logit", "--task", "canonical")
    (row,) = printed(run, "evaluate", "m.npz", *options, *JSON)["rows"]
    arrays = stored("m.npz")
    error = cb.calibration_error(
        arrays["y"], arrays["z"], scale="logit", task="canonical"
    )
    assert row["value"] == pytest.approx(error)
    assert (row["low"], row["high"]) == (None, None)
    _, out, _ = run("evaluate", "m.npz", *options)
    assert "no intervals for the error of the whole vector" in out
    gate = ("--fail-above", "1.5", "--fail-by", "high")  # an end that does not exist
    assert run("evaluate", "m.npz", *options, *gate)[0] == 1
    code, _, err = run("evaluate", "m.npz", *options, "--methods", "es15")
    assert code == 2
    assert "with --task canonical use 'ovr-es15'" in err


@pytest.mark.usefixtures("folder")
def test_npy_files_are_the_arrays_of_an_npz_file(run):
    arrays = stored("m.npz")
    for name in ("z", "y"):
        np.save(f"{name}.npy", arrays[name])
    options = (*ONE, *COMMANDS["evaluate"])
    found = printed(run, "evaluate", "z.npy", "y.npy", *options)
    assert without_names(found) == without_names(
        printed(run, "evaluate", "m.npz", *options)
    )
    fit = ("--method", "temperature", "--scale", "logit", "--out", "map.json")
    assert run("calibrate", "z.npy", "y.npy", *ONE, *fit)[0] == 0
    code, out, err = run("apply", "map.json", "z.npy", "--p", "z", "--out", "o.npz")
    assert code == 0, err
    assert "400 rows, new z_calibrated" in out
    assert set(stored("o.npz")) == {"z", "z_calibrated"}


@pytest.mark.usefixtures("folder")
def test_matrices_are_compared(run):
    options = (*SCALE, *JSON, "--method", "es10", "--by", "w")
    models = ("--y", "y", "--p", "a=z", "--p", "b=u")
    found = printed(run, "compare", "m.npz", *models, *options)
    columns = ("--y", "y", "--p", "a=z_*", "--p", "b=u_*")
    wanted = printed(run, "compare", "m.parquet", *columns, *options)
    assert found == wanted
    assert found["n_classes"] == {"a": K, "b": K}


@pytest.mark.parametrize("command", ["evaluate", "report", "compare", "aggregate"])
@pytest.mark.usefixtures("folder")
def test_rows_of_a_matrix_are_dropped(run, command):
    options = {
        **{name: (*ONE, *given) for name, given in COMMANDS.items()},
        "compare": ("--y", "y", "--p", "a=z", "--p", "b=u", *SCALE, *JSON),
        "aggregate": (*ONE, *SCALE, "--out", "cells.parquet"),
    }[command]
    code, out, err = run(command, "bad.npz", *options, "--bad-rows", "drop")
    assert code == 0, err
    assert "2 of 400 rows were invalid and were dropped: 2 missing or in" in err
    assert "column 'z'" in err
    if command == "aggregate":
        assert cb.Predictions.load("cells.parquet").n == N - 2
    else:
        found = json.loads(out)
        wanted = printed(run, command, "good.npz", *options)
        if command == "report":
            assert sum(found["data"].pop("dropped").values()) == 2
            assert wanted["data"].pop("dropped") == {}
        assert without_names(found) == without_names(wanted)


@pytest.mark.usefixtures("folder")
def test_nothing_to_drop_is_no_error(run):
    options = (*ONE, *COMMANDS["evaluate"])
    found = printed(run, "evaluate", "m.npz", *options, "--bad-rows", "drop")
    assert found == printed(run, "evaluate", "m.npz", *options)


@pytest.mark.usefixtures("folder")
def test_a_missing_value_of_a_matrix_names_the_way_that_works(run):
    code, _, err = run("evaluate", "bad.npz", *ONE, *SCALE)
    assert code == 2
    assert "row 7, column 2 is nan" in err
    assert err.rstrip().endswith("or drop them: --bad-rows drop.")


@pytest.mark.parametrize("bad_rows", ["error", "drop"])
@pytest.mark.usefixtures("folder")
def test_a_matrix_needs_a_task(run, bad_rows):
    code, _, err = run("evaluate", "m.npz", *ONE, "--bad-rows", bad_rows)
    assert code == 2
    assert "column 'z' must be" in err
    assert "--task confidence" in err


def test_a_matrix_is_drawn(run, folder):
    code, _, err = run("plot", "m.npz", *ONE, *SCALE, "--out", "plot.png")
    assert code == 0, err
    assert (folder / "plot.png").stat().st_size > 1000


@pytest.mark.parametrize("method", ["temperature", "vector", "ovr-platt"])
@pytest.mark.usefixtures("folder")
def test_a_map_of_a_matrix_is_that_of_its_columns(run, method):
    options = ("--scale", "logit", "--method", method, "--out")
    code, out, err = run("calibrate", "m.npz", *ONE, *options, "npz.json")
    assert code == 0, err
    assert f"fitted to {N} rows of {K} classes" in out
    columns = ("--y", "y", "--p", "z_*")
    assert run("calibrate", "m.parquet", *columns, *options, "columns.json")[0] == 0
    assert cb.load_map("npz.json") == cb.load_map("columns.json")


def fitted(run):
    options = ("--scale", "logit", "--out", "map.json", "--bad-rows", "drop")
    options += ("--method", "temperature")
    assert run("calibrate", "bad.npz", *ONE, *options)[0] == 0
    return cb.load_map("map.json")


def test_a_map_is_applied_to_a_matrix(run, folder):
    rng = np.random.default_rng(1)
    others = {"y_val": rng.integers(0, 2, 7), "names": np.array(["a", "b"])}
    others |= {"odd": np.array([None, "x"], dtype=object)}
    new = {"z": rng.normal(size=(30, K)), "y": rng.integers(0, K, 30)}
    np.savez_compressed(folder / "new.npz", **new, **others)
    map_ = fitted(run)
    code, out, err = run("apply", "map.json", "new.npz", "--p", "z", "--out", "o.npz")
    assert code == 0, err
    assert out == "wrote o.npz: 30 rows, new z_calibrated (probabilities from 0 to 1)\n"
    found = stored(folder / "o.npz", allow_pickle=True)
    assert set(found) == {*new, *others, "z_calibrated"}
    np.testing.assert_array_equal(found["z_calibrated"], map_.transform(new["z"]))
    for name, values in (new | others).items():
        np.testing.assert_array_equal(found[name], values)


def test_a_map_of_one_event_is_applied_to_a_vector(run, folder):
    p = np.linspace(0.01, 0.99, 100)
    y = (np.arange(100) % 3 == 0).astype(int)
    np.savez(folder / "v.npz", p=p, y=y)
    options = ("--y", "y", "--p", "p", "--method", "platt", "--out", "v.json")
    assert run("calibrate", "v.npz", *options)[0] == 0
    assert run("apply", "v.json", "v.npz", "--p", "p", "--out", "o.npz")[0] == 0
    wanted = cb.load_map("v.json").transform(p)
    np.testing.assert_array_equal(stored("o.npz")["p_calibrated"], wanted)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("m.npz", "--p", "z", "--out", "m.npz"), "one of the input files"),
        (("m.npz", "m.npz", "--p", "z", "--out", "o.npz"), "is named twice"),
        (("m.npz", "good.npz", "--p", "z", "--out", "o.npz"), "at a time"),
        (("m.npz", "--p", "z", "--out", "o.npz", "--engine", "duckdb"), "in memory"),
        (
            ("m.npz", "--p", "z", "--out", "o.csv"),
            "--out must end in .npz, since m.npz",
        ),
        (("m.npz", "--p", "q", "--out", "o.npz"), "unknown column 'q'"),
        (
            ("m.npz", "--p", "z", "--suffix", "", "--out", "o.npz"),
            "already has a column 'z'",
        ),
        (
            ("m.npz", "--p", "z[1]", "--out", "o.npz"),
            "needs the columns of all 4 classes",
        ),
        (("m.parquet", "--p", "z_*", "--out", "o.npz"), "cannot be written"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_applied(run, options, words):
    fitted(run)
    code, _, err = run("apply", "map.json", *options)
    assert code == 2
    assert words in err


@pytest.mark.usefixtures("folder")
def test_one_column_of_a_matrix_is_an_event(run):
    arrays = stored("m.npz")
    np.savez("p.npz", p=softmax(arrays["z"], axis=1), y=arrays["y"])
    options = ("--methods", "es10", *JSON, "--task", "1")
    found = printed(run, "evaluate", "p.npz", "--y", "y", "--p", "p[1]", *options)
    wanted = printed(run, "evaluate", "p.npz", "--y", "y", "--p", "p", *options)
    assert found["rows"][0]["value"] == wanted["rows"][0]["value"]


@pytest.mark.usefixtures("folder")
def test_the_commands_of_a_report_run(run):
    found = printed(run, "report", "m.npz", *ONE, *COMMANDS["report"])
    fit, apply = found["models"][0]["repairs"]["command"].splitlines()
    assert run(*shlex.split(fit)[1:])[0] == 0
    (here, new) = ("m.npz", "new.npz")
    assert (
        run(*(here if part == new else part for part in shlex.split(apply)[1:]))[0] == 0
    )
    after = stored("calibrated.npz")
    error = cb.calibration_error(
        after["y"], after["z_calibrated"], task="confidence", method="es10"
    )
    assert error < found["models"][0]["errors"][0]["value"] / 2


@pytest.mark.usefixtures("folder")
def test_matrices_of_percentages_and_logarithms(run):
    arrays = stored("m.npz")
    prob, y = softmax(arrays["z"], axis=1), arrays["y"]
    log = log_softmax(arrays["z"], axis=1)
    np.savez("s.npz", prob=prob, percent=100 * prob, logprob=log, y=y)
    options = ("--y", "y", "--task", "confidence", "--methods", "ew10", *JSON)
    values = [
        printed(run, "evaluate", "s.npz", *options, "--p", s, "--scale", s)["rows"]
        for s in ("prob", "percent", "logprob")
    ]
    assert values[0][0]["value"] == pytest.approx(values[1][0]["value"], abs=1e-12)
    assert values[0][0]["value"] == pytest.approx(values[2][0]["value"], abs=1e-12)
    code, _, err = run("evaluate", "s.npz", *options, "--p", "percent")
    assert (code, "These look like percentages: pass --scale percent." in err) == (2, 1)


def test_a_matrix_in_a_dict_is_the_same(folder):
    arrays = stored(folder / "m.npz")
    options = {"y": "y", "p": "z", "task": "classwise", "scale": "logit"}
    preds = cb.Predictions.from_table(arrays, **options)
    as_columns = cb.Predictions.from_table("m.parquet", **options | {"p": "z_*"})
    found, of_columns, of_cells = (
        cb.evaluate(one, methods="ew10", confidence=None).frame()
        for one in (preds, as_columns, preds.aggregate())
    )
    assert found["value"] == of_columns["value"]
    assert of_cells["value"] == pytest.approx(found["value"], abs=1e-12)


def test_arrays_of_other_lengths_are_named(folder):
    arrays = {"z": np.zeros((5, 3)), "y": np.zeros(4, dtype=int)}
    np.savez(folder / "short.npz", **arrays)
    options = {"y": "y", "p": "z", "task": "confidence", "scale": "logit"}
    for bad_rows in ("error", "drop"):
        with pytest.raises(cb.exceptions.LengthMismatchError, match="rows"):
            cb.Predictions.from_table(
                folder / "short.npz", bad_rows=bad_rows, **options
            )


def test_files_with_some_of_the_same_arrays_are_refused(run, tmp_path):
    y = np.tile([0, 1], 20)
    for name in ("p", "q"):
        np.savez(tmp_path / f"{name}.npz", y=y, **{name: np.linspace(0.1, 0.9, 40)})
    files = [tmp_path / "p.npz", tmp_path / "q.npz"]
    _, _, err = run("evaluate", *files, "--y", "y", "--p", "p")
    assert "the files together have two columns 'y'; rename one." in err


def test_engines_that_read_no_npz_say_so(run, tmp_path):
    np.savez(tmp_path / "m.npz", y=[0, 1], p=[0.2, 0.7])
    code, _, err = run(
        "evaluate", tmp_path / "m.npz", "--y", "y", "--p", "p", "--engine", "duckdb"
    )
    assert code == 2
    assert "is read in memory, not by the duckdb engine; pass --engine memory" in err


@pytest.mark.usefixtures("folder")
def test_several_matrices_are_not_one_model(run):
    arrays = stored("m.npz")
    np.savez("nets.npz", y=arrays["y"], net_a=arrays["z"], net_b=arrays["u"])
    code, _, err = run("evaluate", "nets.npz", "--y", "y", "--p", "net_*", *SCALE)
    assert code == 2
    assert "it names 'net_a', 'net_b' for one. Pass one of them, --p net_a, or" in err
