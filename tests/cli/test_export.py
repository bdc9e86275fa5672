"""``calibrant export``, run as users run it."""

import duckdb
import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb

P = [0.0, 0.2, 0.7, 1.0]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "map.json"
    p, y = cb.datasets.load_binary("forest")
    map_ = cb.make_calibrator("smooth").fit(p, y).map_
    cb.save_map(map_, path, columns=["forest"])
    return path


def test_sql_is_printed_for_the_column_of_the_fit(run, saved):
    code, out, err = run("export", saved, "--dialect", "duckdb")
    assert code == 0, err
    rows = duckdb.sql(f"SELECT {out} FROM (SELECT UNNEST({P}) AS forest)").fetchall()  # noqa: S608
    assert_allclose(np.ravel(rows), cb.load_map(saved).transform(P), atol=1e-6)


def test_columns_are_named_in_the_way_of_the_dialect(run, saved):
    out = run("export", saved, "--dialect", "bigquery", "--p", "score")[1]
    assert out.startswith("CASE WHEN `score` BETWEEN 0 AND 1")


def test_python_is_printed(run, saved):
    namespace = {}
    exec(run("export", saved, "--python")[1], namespace)  # noqa: S102
    found = [namespace["calibrate"](p) for p in P]
    assert_allclose(found, cb.load_map(saved).transform(P), atol=1e-6)


def test_wrong_uses_are_told(run, saved, tmp_path):
    code, _, err = run("export", saved, "--dialect", "sqlight")
    assert (code, "did you mean 'sqlite'" in err) == (2, True)
    unnamed, classes = tmp_path / "unnamed.json", tmp_path / "classes.json"
    cb.save_map(cb.load_map(saved), unnamed)
    assert "--p must name the column" in run("export", unnamed)[2]
    rng = np.random.default_rng(0)
    fitted = cb.make_calibrator("temperature").fit(
        rng.dirichlet(np.ones(3), 90), rng.integers(0, 3, 90)
    )
    cb.save_map(fitted.map_, classes)
    assert "Use --python" in run("export", classes)[2]


def test_sql_of_percentages_gives_what_apply_gives(run, tmp_path):
    rng = np.random.default_rng(4)
    percent = rng.integers(0, 101, 500)
    right = (rng.random(500) < (percent / 100.0) ** 2).astype(int)
    rows = tmp_path / "rows.csv"
    lines = [f"{c},{r}" for c, r in zip(percent, right, strict=True)]
    rows.write_text("\n".join(["confidence,correct", *lines]) + "\n")
    given = ("--p", "confidence", "--scale", "percent")
    map_file, applied = tmp_path / "map.json", tmp_path / "applied.csv"
    assert run("calibrate", rows, "--y", "correct", *given, "--out", map_file)[0] == 0
    assert run("apply", map_file, rows, *given[:2], "--out", applied)[0] == 0
    sql = run("export", map_file, "--dialect", "duckdb")[1]
    query = f"SELECT {sql} AS c, confidence_calibrated FROM '{applied}'"  # noqa: S608
    found = duckdb.sql(query).fetchnumpy()
    assert_allclose(found["c"], found["confidence_calibrated"], atol=2e-6)
    sql = run("export", map_file, "--dialect", "duckdb", "--scale", "prob")[1]
    assert "BETWEEN 0 AND 1 THEN" in sql
