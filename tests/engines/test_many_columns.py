"""A thousand classes, a thousand models, and files with very many columns."""

import time

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibrant as cb
from calibrant.exceptions import MissingValueError, ProbabilityRangeError, RowSumError

K = 1000
N = 300
NAMES = [f"c_{k}" for k in range(K)]
MODELS = {"y": "y", "p": [f"c_{k}" for k in range(30)]}


@pytest.fixture(scope="module")
def prob():
    return np.random.default_rng(45).dirichlet(np.full(K, 0.05), N)


@pytest.fixture(scope="module")
def label(prob):
    chosen = np.random.default_rng(46).random((N, 1)) > prob.cumsum(axis=1)
    return chosen.sum(axis=1).clip(0, K - 1)


def write_classes(folder, prob, label, kind="parquet"):
    frame = pl.DataFrame({"y": label, **dict(zip(NAMES, prob.T, strict=False))})
    path = folder / f"rows.{kind}"
    (frame.write_parquet if kind == "parquet" else frame.write_csv)(path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_top_class_of_a_thousand(local_engine, kind, prob, label, tmp_path):
    wrong = np.roll(label, 1)
    path = write_classes(tmp_path, prob, wrong, kind)
    wanted = {"y": "y", "p": "c_*", "task": "confidence"}
    options = {"methods": "ew10"}
    found = cb.evaluate(
        cb.Predictions.from_table(path, engine=local_engine, **wanted),
        confidence=None,
        **options,
    )
    expected = cb.calibration_error(wrong, prob, task="confidence", method="ew10")
    assert expected > 0.05
    assert_allclose(found.frame()["value"], [expected], atol=1e-9)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_the_top_class_of_hundreds_on_a_cluster(prob, label, tmp_path):
    share = prob[:, :400] / prob[:, :400].sum(axis=1, keepdims=True)
    path = write_classes(tmp_path, share, label % 400)
    found = (
        cb.Predictions.from_table(
            path, y="y", p="c_*", task="confidence", engine="spark"
        )
        .aggregate()
        .store.cells
    )
    assert_allclose(np.sort(found.columns["low"]), np.sort(share.max(axis=1)))


def test_logits_of_a_thousand_classes(local_engine, prob, label, tmp_path):
    path = write_classes(tmp_path, np.log(prob.clip(1e-300)) + 5.0, label)
    found = (
        cb.Predictions.from_table(
            path, y="y", p="c_*", task="confidence", scale="logit", engine=local_engine
        )
        .aggregate()
        .store.cells
    )
    assert_allclose(np.sort(found.columns["low"]), np.sort(prob.max(axis=1)))


def test_each_of_a_thousand_classes(local_engine, prob, label, tmp_path):
    path = write_classes(tmp_path, prob[:50], label[:50])
    found = (
        cb.Predictions.from_table(
            path, y="y", p="c_*", task="classwise", engine=local_engine
        )
        .aggregate()
        .store.cells
    )
    event_rows = np.bincount(
        found.columns["event"], found.columns["event_rows"], minlength=K
    )
    assert_array_equal(event_rows, np.bincount(label[:50], minlength=K))


def test_a_thousand_models(local_engine, prob, label, tmp_path):
    path = write_classes(tmp_path, prob[:50], label[:50] % 2)
    found = (
        cb.Predictions.from_table(path, y="y", p="c_*", engine=local_engine)
        .aggregate()
        .store.cells
    )
    mean = np.bincount(found.columns["event"], found.columns["rows"], minlength=K)
    assert_array_equal(mean, np.full(K, 50))
    low = found.columns["low"][found.columns["event"] == 700]
    assert_allclose(np.unique(low), np.unique(prob[:50, 700]))


BAD = {
    "missing": (None, MissingValueError, "c_"),
    "nan": (np.nan, MissingValueError, "c_"),
    "infinite": (-np.inf, MissingValueError, "c_"),
    "above": (1.25, ProbabilityRangeError, r"1\.25"),
    "below": (-0.25, ProbabilityRangeError, r"-0\.25"),
    "sum": (0.5, RowSumError, "must sum to 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_one_bad_value_among_many_columns_is_found(
    local_engine, case, prob, label, tmp_path
):
    value, error, words = BAD[case]
    columns = dict(zip(NAMES, prob[:40, :30].T.tolist(), strict=False))
    columns["c_29"] = (1.0 - prob[:40, :29].sum(axis=1)).tolist()
    columns["c_17"][23] = value
    pl.DataFrame({"y": label[:40] % 30, **columns}).write_parquet(
        tmp_path / "rows.parquet"
    )
    options = {"y": "y", "p": "c_*", "task": "confidence", "engine": local_engine}
    with pytest.raises(error, match=words):
        cb.Predictions.from_table(tmp_path / "rows.parquet", **options).aggregate()
    with pytest.warns(cb.exceptions.DroppedRowsWarning, match="1 of 40 rows"):
        found = cb.Predictions.from_table(
            tmp_path / "rows.parquet", bad_rows="drop", **options
        ).aggregate()
    assert found.n == 39


SCALED = {
    "percent": (lambda p: 100.0 * p, 100.5, ProbabilityRangeError),
    "logprob": (np.log, 0.5, ProbabilityRangeError),
    "logit": (lambda p: np.log(p / (1.0 - p)), np.inf, MissingValueError),
}


@pytest.mark.parametrize("bad", ["missing", "nan", "outside"])
@pytest.mark.parametrize("scale", SCALED)
def test_one_bad_value_among_many_models_is_found(local_engine, scale, bad, tmp_path):
    of_p, outside, error = SCALED[scale]
    value = {"missing": None, "nan": np.nan, "outside": outside}[bad]
    values = of_p(np.random.default_rng(47).uniform(0.01, 0.99, (40, 30)))
    columns = dict(zip(NAMES, values.T.tolist(), strict=False))
    whole = (
        cb.Predictions.from_table(
            {"y": np.arange(40) % 2, **columns}, scale=scale, **MODELS
        )
        .aggregate()
        .store.cells
    )
    columns["c_17"][23] = value
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": np.arange(40) % 2, **columns}, strict=False).write_parquet(path)
    options = {"scale": scale, "engine": local_engine, **MODELS}
    with pytest.raises(error if bad == "outside" else MissingValueError, match="c_17"):
        cb.Predictions.from_table(path, **options).aggregate()
    with pytest.warns(cb.exceptions.DroppedRowsWarning, match="1 of 40 rows"):
        found = (
            cb.Predictions.from_table(path, bad_rows="drop", **options)
            .aggregate()
            .store.cells
        )
    kept = whole.columns["event"] != 17
    own = found.columns["event"] != 17
    assert kept.sum() - own.sum() == 29
    assert found.n == 39


@pytest.mark.parametrize("engine", ["duckdb"])
def test_no_chance_is_a_log_probability_among_many(engine, tmp_path):
    """Minus infinity is the logarithm of 0, and no missing value."""
    prob = np.random.default_rng(48).dirichlet(np.ones(29), 40)
    columns = dict(zip(NAMES, np.log(prob).T, strict=False)) | {
        "c_29": np.full(40, -np.inf)
    }
    pl.DataFrame({"y": np.arange(40) % 30, **columns}).write_parquet(tmp_path / "r.pq")
    found = (
        cb.Predictions.from_table(
            tmp_path / "r.pq",
            y="y",
            p="c_*",
            task="confidence",
            scale="logprob",
            engine=engine,
        )
        .aggregate()
        .store.cells
    )
    assert_allclose(np.sort(found.columns["low"]), np.sort(prob.max(axis=1)))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_only_columns_that_are_asked_for_take_time(local_engine, kind, tmp_path):
    """Types of 20,000 columns took DuckDB minutes to find."""
    wide = 20_000
    p, y = np.linspace(0.1, 0.9, 9), np.arange(9) % 2
    others = {f"x{i}": np.full(9, 0.5) for i in range(wide)}
    frame = pl.DataFrame({"y": y, **others, "p": p})
    path = tmp_path / f"rows.{kind}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet}[kind](path)
    started = time.process_time()
    found = (
        cb.Predictions.from_table(path, y="y", p="p", engine=local_engine)
        .aggregate()
        .store.cells
    )
    assert_allclose(found.columns["low"], p)
    assert time.process_time() - started < 10.0
