"""Maps as SQL, run by the databases that are at hand, against the maps themselves."""

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

import calibrant as cb
from calibrant.maps.smooth import SmoothMap

METHODS = cb.calibrator_names("binary")
NO_PROBABILITIES = [None, -0.1, 1.1]
NAN = float("nan")


@pytest.fixture(scope="module")
def map_of():
    """The map of a method, fitted once."""
    rng = np.random.default_rng(5)
    p = rng.beta(0.5, 0.7, 1500)
    y = (rng.random(1500) < p**1.4).astype(float)
    fitted = {}

    def map_of(method):
        if method not in fitted:
            fitted[method] = cb.make_calibrator(method).fit(p, y).map_
        return fitted[method]

    return map_of


@pytest.fixture(scope="module")
def predictions():
    """1,000 predictions at every scale, 0 and 1."""
    rng = np.random.default_rng(6)
    small = 10.0 ** rng.uniform(-12, -1, 200)
    return np.concatenate([rng.random(600), small, 1.0 - small, [0.0, 1.0]])


def check(found, map_, p):
    """Assert that predictions became what they should, and all else NULL."""
    assert set(found[p.size :]) == {None}
    expected = map_.transform(p)
    assert_allclose(np.array(found[: p.size], dtype=float), expected, rtol=0, atol=1e-6)


def run_in_duckdb(expression, values, type_="DOUBLE"):
    query = f"SELECT {expression} FROM (SELECT UNNEST(?::{type_}[]) AS p)"  # noqa: S608
    with duckdb.connect() as connection:
        return [value for (value,) in connection.execute(query, [values]).fetchall()]


@pytest.mark.parametrize("dialect", ["duckdb", "ansi"])
@pytest.mark.parametrize("method", METHODS)
def test_duckdb_gives_what_the_map_gives(map_of, predictions, method, dialect):
    map_, values = map_of(method), [*predictions, *NO_PROBABILITIES, NAN]
    check(run_in_duckdb(map_.to_sql("p", dialect), values), map_, predictions)


@pytest.mark.parametrize("method", METHODS)
def test_sqlite_without_functions_gives_what_the_map_gives(map_of, predictions, method):
    map_, values = map_of(method), [*predictions, *NO_PROBABILITIES]
    expression = map_.to_sql("p", "sqlite")
    assert not any(name in expression for name in ("EXP", "LN", "POWER"))
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (p REAL)")
    connection.executemany("INSERT INTO t VALUES (?)", [(v,) for v in values])
    rows = connection.execute(f"SELECT {expression} FROM t").fetchall()  # noqa: S608
    check([c for (c,) in rows], map_, predictions)


@pytest.mark.parametrize("method", METHODS)
def test_python_gives_what_the_map_gives(map_of, predictions, method):
    map_, namespace = map_of(method), {}
    exec(map_.to_python(), namespace)  # noqa: S102
    values = [*predictions.tolist(), *NO_PROBABILITIES, NAN]
    check([namespace["calibrate"](p) for p in values], map_, predictions)


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "mysql"])
@pytest.mark.parametrize("method", METHODS)
def test_other_dialects_mean_the_same_to_a_parser(map_of, predictions, method, dialect):
    sqlglot = pytest.importorskip("sqlglot")
    map_ = map_of(method)
    (expression,) = sqlglot.transpile(
        map_.to_sql("p", dialect), read=dialect, write="duckdb"
    )
    values = [*predictions, *NO_PROBABILITIES, NAN]
    check(run_in_duckdb(expression, values), map_, predictions)


@pytest.fixture(scope="module")
def postgres():
    """A function that runs a query on a server of its own, which ends with the tests.

    The server refuses to be run by root; then the user of Debian's package runs it.
    """
    found = [shutil.which("initdb"), *Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not any(found):
        pytest.skip("Postgres is not installed (make postgres)")
    programs = Path(next(filter(None, found))).resolve().parent
    owner = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    folder = tempfile.mkdtemp()
    shutil.chown(folder, owner)

    def call(program, *options, text=None):
        command = [programs / program, *options]
        user = owner if os.geteuid() == 0 else None
        done = subprocess.run(
            command,
            user=user,
            input=text,
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def query(text):
        where = ("-h", folder, "-U", owner, "-d", "postgres")
        out = call("psql", *where, "-v", "ON_ERROR_STOP=1", "-qAt", text=text)
        return [float(line) if line else None for line in out.splitlines()]

    data = f"{folder}/data"
    call("initdb", "-D", data, "-A", "trust", "-N")
    local = f"-c listen_addresses= -k {folder} -F"
    call("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", local, "start")
    yield query
    call("pg_ctl", "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("method", METHODS)
def test_postgres_gives_what_the_map_gives(map_of, predictions, postgres, method):
    map_, values = map_of(method), [*predictions, *NO_PROBABILITIES, NAN]
    rows = "".join("\\N\n" if v is None else f"{float(v)!r}\n" for v in values)
    create = "CREATE TEMPORARY TABLE t (p double precision);\nCOPY t FROM STDIN;"
    select = f"SELECT {map_.to_sql('p', 'postgres')} FROM t;"  # noqa: S608
    check(postgres(f"{create}\n{rows}\\.\n{select}\n"), map_, predictions)


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("method", ["smooth", "beta", "auto"])
@pytest.mark.parametrize("type_", ["real", "numeric"])
def test_postgres_takes_columns_of_other_types(map_of, postgres, method, type_):
    p = np.arange(101) / 100
    map_ = map_of(method)
    rows = "".join(f"{v!r}\n" for v in p.tolist())
    create = f"CREATE TEMPORARY TABLE u (p {type_});\nCOPY u FROM STDIN;"
    select = f"SELECT {map_.to_sql('p', 'postgres')} FROM u; DROP TABLE u;"  # noqa: S608
    stored = p if type_ != "real" else p.astype(np.float32).astype(np.float64)
    check([*postgres(f"{create}\n{rows}\\.\n{select}\n"), None], map_, stored)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("method", METHODS)
def test_spark_gives_what_the_map_gives(map_of, predictions, spark, method):
    map_, values = map_of(method), [*predictions.tolist(), *NO_PROBABILITIES, NAN]
    table = spark.createDataFrame([(v,) for v in values], "p DOUBLE").coalesce(1)
    rows = table.selectExpr(f"{map_.to_sql('p', 'spark')} AS c").collect()
    check([row.c for row in rows], map_, predictions)


@pytest.mark.parametrize("method", ["smooth", "beta", "isotonic", "es15"])
@pytest.mark.parametrize("type_", ["DECIMAL(9, 3)", "FLOAT"])
def test_columns_of_other_types(map_of, method, type_):
    p = np.arange(1001) / 1000
    map_ = map_of(method)
    found = run_in_duckdb(map_.to_sql("p", "duckdb"), p.tolist(), type_)
    stored = p if type_ != "FLOAT" else p.astype(np.float32).astype(np.float64)
    check([*found, None], map_, stored)


SCALES = {
    "percent": (lambda p: 100.0 * p, [-1.0, 100.5]),
    "logprob": (np.log, [0.1, 5.0]),
    "logit": (special.logit, [float("inf"), -float("inf")]),
}
"""Predictions on each scale, and values outside its range."""


@pytest.fixture(scope="module")
def scaled():
    """A map of a method that was fitted on a scale, with predictions and results."""
    rng = np.random.default_rng(8)
    p = rng.beta(0.5, 0.7, 600).round(2).clip(0.01, 0.99)
    y = (rng.random(600) < p**1.6).astype(float)
    new = np.append(rng.random(200), [1e-9, 1.0 - 1e-9, 0.5])
    calibrators = {}

    def scaled(method, scale):
        to_scale, _ = SCALES[scale]
        if (method, scale) not in calibrators:
            calibrator = cb.make_calibrator(method, scale=scale)
            calibrators[method, scale] = calibrator.fit(to_scale(p), y)
        calibrator = calibrators[method, scale]
        values = to_scale(new)
        return calibrator.map_, values, calibrator.transform(values)

    return scaled


SCALED_METHODS = ["auto", "smooth", "beta", "isotonic", "es15", "platt"]


def check_scaled(found, expected):
    assert set(found[expected.size :]) == {None}
    assert_allclose(np.array(found[: expected.size], dtype=float), expected, atol=2e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", SCALED_METHODS)
def test_expressions_take_what_the_map_was_fitted_to(scaled, method, scale):
    map_, values, expected = scaled(method, scale)
    wrong = [None, *SCALES[scale][1]]
    rows = [*values.tolist(), *wrong]
    for dialect in ("duckdb", "ansi"):
        found = run_in_duckdb(map_.to_sql("p", dialect), [*rows, NAN])
        check_scaled(found, expected)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (p REAL)")
    connection.executemany("INSERT INTO t VALUES (?)", [(row,) for row in rows])
    query = f"SELECT {map_.to_sql('p', 'sqlite')} FROM t"  # noqa: S608
    check_scaled([c for (c,) in connection.execute(query)], expected)
    namespace = {}
    exec(map_.to_python(), namespace)  # noqa: S102
    check_scaled([namespace["calibrate"](row) for row in [*rows, NAN]], expected)


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "mysql", "postgres"])
@pytest.mark.parametrize("scale", SCALES)
def test_other_dialects_convert_scales_too(scaled, scale, dialect):
    sqlglot = pytest.importorskip("sqlglot")
    map_, values, expected = scaled("auto", scale)
    text = map_.to_sql("p", dialect)
    (expression,) = sqlglot.transpile(text, read=dialect, write="duckdb")
    check_scaled(
        run_in_duckdb(expression, [*values, None, *SCALES[scale][1]]), expected
    )


@pytest.mark.xdist_group("postgres")
@pytest.mark.parametrize("scale", SCALES)
def test_postgres_converts_scales_too(scaled, postgres, scale):
    map_, values, expected = scaled("auto", scale)
    rows = "".join(f"{float(v)!r}\n" for v in [*values, *SCALES[scale][1]])
    create = "CREATE TEMPORARY TABLE t (p double precision);\nCOPY t FROM STDIN;"
    select = f"SELECT {map_.to_sql('p', 'postgres')} FROM t; DROP TABLE t;"  # noqa: S608
    check_scaled(postgres(f"{create}\n{rows}\\.\n{select}\n"), expected)


@pytest.mark.parametrize("decimals", [2, 17])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", ["venn-abers", "scaling-binning", "es15", "ew15"])
def test_rows_at_a_jump_lie_on_the_side_of_the_map(method, scale, decimals):
    """Databases and Python convert logits with another last digit than the fit."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 0.7, 300).round(decimals).clip(0.01, 0.99)
    y = (rng.random(300) < p**1.6).astype(float)
    values = SCALES[scale][0](p)
    calibrator = cb.make_calibrator(method, scale=scale).fit(values, y)
    map_, expected = calibrator.map_, calibrator.transform(values)
    rows = values.tolist()
    for dialect in ("duckdb", "ansi"):
        found = run_in_duckdb(map_.to_sql("p", dialect), [*rows, None])
        check_scaled(found, expected)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (p REAL)")
    connection.executemany(
        "INSERT INTO t VALUES (?)", [(row,) for row in [*rows, None]]
    )
    query = f"SELECT {map_.to_sql('p', 'sqlite')} FROM t"  # noqa: S608
    check_scaled([c for (c,) in connection.execute(query)], expected)
    namespace = {}
    exec(map_.to_python(), namespace)  # noqa: S102
    check_scaled([namespace["calibrate"](row) for row in [*rows, None]], expected)


@pytest.mark.parametrize("type_", ["TEXT", "", "NUMERIC"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("method", ["isotonic", "beta"])
def test_sqlite_reads_numbers_in_columns_of_text(scaled, method, scale, type_):
    """Text is compared as text, or is above all numbers, by the type of the column."""
    map_, values, expected = scaled(method, scale)
    wrong = ["abc", "0.5x", "", None, *map(repr, SCALES[scale][1])]
    rows = [*map(repr, values.tolist()), f" {float(values[0])!r} ", *wrong]
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t (p {type_})")
    connection.executemany("INSERT INTO t VALUES (?)", [(row,) for row in rows])
    query = f"SELECT {map_.to_sql('p', 'sqlite')} FROM t"  # noqa: S608
    found = [c for (c,) in connection.execute(query)]
    check_scaled(found, np.append(expected, expected[0]))


@pytest.mark.parametrize("dialect", ["duckdb", "ansi"])
def test_duckdb_raises_on_columns_of_text(scaled, dialect):
    expression = scaled("beta", "percent")[0].to_sql("p", dialect)
    with pytest.raises(duckdb.BinderException, match="explicit cast"):
        run_in_duckdb(expression, ["0.5"], "VARCHAR")


def test_extreme_logarithms_are_valid_predictions(scaled):
    map_ = scaled("beta", "logprob")[0]
    values = [-1e5, -float("inf"), -800.0]
    expected = np.full(3, map_.transform([0.0])[0])
    found = run_in_duckdb(map_.to_sql("p", "duckdb"), values)
    assert_allclose(np.array(found, dtype=float), expected, atol=1e-6)


def test_the_scale_can_be_another_one_and_survives_the_file(scaled, tmp_path):
    map_, values, expected = scaled("auto", "percent")
    cb.save_map(map_, tmp_path / "map.json")
    loaded = cb.load_map(tmp_path / "map.json")
    assert loaded == map_
    assert cb.map_from_dict(map_.to_dict()) == map_
    assert "BETWEEN 0 AND 100" in loaded.to_sql("p")
    found = run_in_duckdb(
        loaded.to_sql("p", "duckdb", scale="prob"), [*(values / 100.0), None]
    )
    check_scaled(found, expected)


def test_maps_of_groups_keep_the_scale(tmp_path):
    rng = np.random.default_rng(3)
    percent, site = 100.0 * rng.random(2000), np.repeat(["north", "south"], 1000)
    power = np.where(site == "north", 2.0, 0.5)
    y = rng.random(2000) < (percent / 100.0) ** power
    calibrator = cb.make_calibrator(scale="percent").fit(percent, y, groups=site)
    cb.save_map(calibrator.map_, tmp_path / "map.json")
    map_ = cb.load_map(tmp_path / "map.json")
    expression = map_.to_sql("p", "duckdb", by="site")
    query = f"SELECT {expression} FROM (SELECT 40 AS p, UNNEST(?) AS site)"  # noqa: S608
    sites = ["north", "south", "west"]
    with duckdb.connect() as connection:
        found = connection.execute(query, [sites]).fetchall()
    expected = calibrator.transform([40.0] * 3, groups=sites)
    assert_allclose(np.ravel(found), expected, atol=2e-6)
    namespace = {}
    exec(map_.of_group("north").to_python(), namespace)  # noqa: S102
    assert_allclose(namespace["calibrate"](40), expected[0], atol=2e-6)


def test_sqlite_need_not_read_many_cases_within_cases():
    """Its parser gives up on some maps of a hundred pieces if they are nested."""
    knots = np.linspace(-6.0, 6.0, 160)
    map_ = SmoothMap(knots=knots, shifts=0.3 * np.sin(8.0 * knots), ends=(1e-6, 1.0))
    sql = map_.to_sql("c", dialect="sqlite")
    assert sql.count("CASE") == 2  # one for the range, one for all pieces
    p = np.linspace(0.01, 0.99, 50)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (c REAL)")
    connection.executemany("INSERT INTO t VALUES (?)", [(one,) for one in p.tolist()])
    query = f"SELECT {sql} FROM t"  # noqa: S608
    found = [row[0] for row in connection.execute(query)]
    assert_allclose(found, map_.values(p), atol=2e-6)
