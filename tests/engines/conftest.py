"""Rows that every engine is given, and a small cluster."""

import os
import shutil
import signal
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest

N = 3000


@pytest.fixture(scope="session")
def rows():
    """Predictions at every scale with ties, labels, weights, groups and classes."""
    rng = np.random.default_rng(17)
    p = np.concatenate(
        [rng.random(N // 3), 10.0 ** rng.uniform(-15, 0, N // 3), rng.random(N // 3)]
    )
    p[1000:1500] = 1.0 - p[1000:1500]
    p[2000:] = np.round(p[2000:], 2)
    p[:20], p[20:40] = 0.0, 1.0
    y = (rng.random(N) < 0.1 + 0.7 * p).astype(int)
    classes = rng.dirichlet([0.4, 0.4, 0.4], N)
    classes[:10] = 0.25, 0.5, 0.25
    classes[10:20] = 0.5, 0.5, 0.0
    kind = (rng.random((N, 1)) > classes.cumsum(axis=1)).sum(axis=1)
    place = [None if g == "-" else str(g) for g in rng.choice(["a", "b", "-"], N)]
    return pl.DataFrame(
        {
            "p": p,
            "q": np.sqrt(p),
            "y": y,
            "happened": np.where(y == 1, "yes", "no"),
            "place": place,
            "year": rng.choice([2023, 2024], N),
            "count": rng.integers(0, 4, N),
            "share": rng.random(N),
            "kind": kind.clip(0, 2),
            "patient": [f"p{row // 7}" for row in range(N)],
            **{f"c_{k}": classes[:, k] for k in range(3)},
        }
    )


@pytest.fixture(scope="session")
def row_file(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    rows.write_parquet(path)
    return path


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A cluster of two executors, processes of their own."""
    if find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed (make heavy)")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or later")
    from pyspark.sql import SparkSession

    work = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("tests")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.local.dir": str(work),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    interrupt = signal.getsignal(signal.SIGINT)
    session = builder.getOrCreate()
    signal.signal(signal.SIGINT, interrupt)  # Spark's own would break other tests
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(
    params=[
        "memory",
        "duckdb",
        pytest.param(
            "spark", marks=[pytest.mark.slow, pytest.mark.xdist_group("spark")]
        ),
    ]
)
def engine(request):
    """Return the name of an engine; Spark gets its cluster first."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


@pytest.fixture(params=["memory", "duckdb"])
def local_engine(request):
    """Return the name of an engine that is quick to start."""
    return request.param
