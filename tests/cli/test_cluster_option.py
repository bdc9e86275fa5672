"""``--cluster``: rows that belong together, on the command line."""

import json

import numpy as np
import polars as pl
import pytest
from tests.numerics.test_cluster_dependence import correlated

import calibrant as cb


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    sample = correlated(50, 10, 0.5, seed=12)
    path = tmp_path_factory.mktemp("clusters") / "rows.parquet"
    columns = {"y": sample.y.astype(int), "p": sample.p, "patient": sample.clusters}
    pl.DataFrame(columns).write_parquet(path)
    return path, sample


def test_numbers_are_those_of_the_library(run, table):
    path, sample = table
    arguments = (path, "--y", "y", "--p", "p", "--cluster", "patient")
    code, out, err = run("evaluate", *arguments, "--format", "json")
    assert code == 0, err
    found = json.loads(out)["rows"][0]
    expected = cb.evaluate(sample.y, sample.p, clusters=sample.clusters).frame()
    np.testing.assert_allclose(found["high"], expected["high"][0])


def test_explanations_name_dependent_rows(run, table):
    arguments = (table[0], "--y", "y", "--p", "p", "--cluster", "patient")
    _, out, _ = run("evaluate", *arguments, "--explain")
    assert "CAL014" in out


def test_aggregates_keep_clusters(run, table, tmp_path):
    options = ("--y", "y", "--p", "p", "--cluster", "patient")
    cells = tmp_path / "cells.parquet"
    code, out, err = run("aggregate", table[0], *options, "--out", cells)
    assert code == 0, err
    assert "500 rows in 500 cells" in out
    rows = [
        json.loads(run("evaluate", *arguments, "--format", "json")[1])["rows"]
        for arguments in ((table[0], *options), (cells,))
    ]
    np.testing.assert_allclose(rows[0][0]["high"], rows[1][0]["high"], rtol=1e-9)


def test_maps_allow_for_clusters(run, tmp_path):
    rng = np.random.default_rng(1)
    p = rng.beta(2.0, 1.0, 100)
    y = (rng.random(100) < p).astype(int)
    columns = {"p": p, "y": y, "question": np.arange(100)}
    path, out = tmp_path / "rows.parquet", tmp_path / "map.json"
    table = pl.DataFrame({name: np.repeat(v, 10) for name, v in columns.items()})
    table.with_columns(pl.lit("a").alias("model")).write_parquet(path)
    given = (path, "--y", "y", "--p", "p", "--out", out)
    code, said, err = run("calibrate", *given, "--cluster", "question")
    assert code == 0, err
    rows = [table[name].to_numpy() for name in ("p", "y", "question")]
    expected = cb.make_calibrator().fit(*rows[:2], clusters=rows[2])
    assert cb.load_map(out).map == expected.map_.map
    assert str(expected.certificate_) in said
    code, _, err = run("calibrate", *given, "--cluster", "question", "--by", "model")
    assert code == 0, err
    err = run("calibrate", *given, "--cluster", "question", "--method", "beta")[2]
    assert "; remove --cluster" in err


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("text", [False, True])
def test_rows_without_a_cluster_are_dropped(run, tmp_path, engine, kind, text):
    p, y = cb.datasets.load_binary("forest")
    numbers = [None if row % 50 == 7 else row // 10 for row in range(300)]
    clusters = [str(n) if text and n is not None else n for n in numbers]
    frame = pl.DataFrame({"p": p[:300], "y": y[:300], "c": clusters})
    full, clean = tmp_path / f"full.{kind}", tmp_path / f"clean.{kind}"
    for path, rows in ((full, frame), (clean, frame.drop_nulls())):
        rows.write_csv(path) if kind == "csv" else rows.write_parquet(path)
    options = ("--y", "y", "--p", "p", "--cluster", "c", "--engine", engine)
    options = (*options, "--methods", "smooth")
    code, _, err = run("evaluate", full, *options)
    assert code == 2
    assert "column 'c' must not contain missing values" in err
    assert "--bad-rows drop" in err
    code, out, err = run("evaluate", full, *options, "--bad-rows", "drop")
    assert code == 0
    assert "6 without a cluster in column 'c'" in err
    assert out == run("evaluate", clean, *options)[1]
