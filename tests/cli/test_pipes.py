"""Rows from pipes, and names of files that are none."""

import os
import subprocess
import sys
import threading

import numpy as np
import polars as pl
import pytest

OPTIONS = ["--y", "y", "--p", "p", "--methods", "ew5", "--format", "json"]


@pytest.fixture
def rows(tmp_path):
    p = np.linspace(0.05, 0.95, 200)
    y = (np.random.default_rng(5).random(200) < p).astype(int)
    frame = pl.DataFrame({"y": y, "p": p, "late": [None] * 150 + ["x"] * 50})
    frame.write_csv(tmp_path / "rows.csv")
    frame.write_parquet(tmp_path / "rows.parquet")
    return tmp_path


def calibrant(*arguments, **settings):
    command = [sys.executable, "-m", "calibrant", *arguments]
    return subprocess.run(command, capture_output=True, check=False, **settings)


@pytest.mark.parametrize("name", ["/dev/stdin", "-"])
def test_rows_from_the_standard_input(name, rows):
    file = rows / "rows.csv"
    expected = calibrant("evaluate", str(file), *OPTIONS)
    found = calibrant("evaluate", name, *OPTIONS, input=file.read_bytes())
    assert found.returncode == 0, found.stderr
    assert found.stdout == expected.stdout


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_from_a_named_pipe(run, suffix, rows):
    pipe = rows / f"pipe.{suffix}"
    os.mkfifo(pipe)
    data = (rows / f"rows.{suffix}").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True)
    writer.start()
    code, out, err = run("evaluate", str(pipe), *OPTIONS)
    assert code == 0, err
    assert out == run("evaluate", str(rows / f"rows.{suffix}"), *OPTIONS)[1]


def test_engines_that_read_twice_refuse_a_pipe(run, rows):
    os.mkfifo(rows / "pipe.csv")
    pipe = str(rows / "pipe.csv")
    code, _, err = run("evaluate", pipe, *OPTIONS, "--engine", "duckdb")
    assert code == 2
    assert "can be read only once" in err


def test_an_empty_name_is_not_this_folder(run, rows, monkeypatch):
    monkeypatch.chdir(rows)
    code, _, err = run("evaluate", "", *OPTIONS)
    assert code == 2
    assert "the file name is empty" in err
