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

import calibrant as cb

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
