"""Clusters in every engine: results are those of the rows in memory."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from tests.engines.test_engines import CASES
from tests.engines.test_exact_rows import predictions

import calibrant as cb
from calibrant.engines import aggregation_query
from calibrant.engines.cells import ExactLimits
from calibrant.exceptions import MissingValueError, OptionError, UnknownNameError

TESTS = ("smooth", "cox", "spiegelhalter")
VERBS = {"evaluate": cb.evaluate, "summary": cb.summary, "curve": cb.decision_curve}


def assert_same(found, expected, **tolerance):
    found, expected = found.frame(), expected.frame()
    assert list(found) == list(expected)
    for name, values in expected.items():
        if np.asarray(values).dtype.kind == "f":
            assert_allclose(found[name], values, err_msg=name, **tolerance)
        else:
            assert list(found[name]) == list(values)


@pytest.fixture(scope="module")
def both(row_file):
    """Return the same predictions in memory and aggregated by DuckDB."""
    return [
        cb.Predictions.from_table(row_file, engine=engine, **CASES["clusters"])
        for engine in ("memory", "duckdb")
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_results_are_those_of_memory(verb, both):
    memory, duckdb = (VERBS[verb](preds) for preds in both)
    assert_same(duckdb, memory, atol=1e-9)


def test_checks_and_diagrams_are_those_of_memory(both):
    memory, duckdb = both
    assert str(cb.diagnose(duckdb)) == str(cb.diagnose(memory))
    grids = [cb.ReliabilityGrid.from_predictions(preds) for preds in (duckdb, memory)]
    assert_same(*grids, atol=1e-9)


def few(row_file, engine="duckdb", **wanted):
    """Return one model in clusters."""
    wanted = {"y": "y", "p": "p", "cluster": "patient"} | wanted
    return cb.Predictions.from_table(row_file, engine=engine, **wanted)


@pytest.mark.parametrize("method", TESTS)
def test_p_values_are_those_of_memory(engine, method, row_file):
    found = cb.calibration_test(few(row_file, engine), method=method)
    expected = cb.calibration_test(few(row_file, "memory"), method=method)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9)


def test_saved_clusters_are_read_again_and_grouped(both, tmp_path):
    both[1].save(tmp_path / "cells.parquet")
    again = cb.Predictions.load(tmp_path / "cells.parquet")
    assert_same(cb.evaluate(again), cb.evaluate(both[0]), atol=1e-9)
    with pytest.raises(UnknownNameError, match="year"):
        again.grouped_by("patient")


def test_larger_groups_have_the_same_clusters(row_file):
    halves = few(row_file, by="year")
    whole = cb.evaluate(few(row_file, "memory"))
    assert_same(cb.evaluate(halves.grouped_by([])), whole, atol=1e-9)


def test_many_rows_of_clusters_are_summed_by_cell(rows, tmp_path):
    path = tmp_path / "rows.parquet"
    wanted = {"y": "y", "p": "p", "cluster": "patient", "weight": "count"}
    patients = [f"p{row % 20}" for row in range(len(rows))]
    rows.with_columns(patient=pl.Series(patients)).write_parquet(path)
    found = predictions(path, ExactLimits(in_table=0), engine="duckdb", **wanted)
    assert len(found.store.cells) < found.n
    expected = few(path, "memory", weight="count")
    values = [cb.evaluate(preds).frame()["value"] for preds in (found, expected)]
    assert_allclose(*values, atol=1e-4)
    for method in TESTS:
        one, other = (cb.calibration_test(p, method=method) for p in (found, expected))
        assert one.statistic == pytest.approx(other.statistic, rel=1e-3)


def test_rows_without_a_cluster_are_refused(engine, rows, tmp_path):
    path = tmp_path / "rows.parquet"
    holes = pl.when(pl.col("patient") == "p3").then(None).otherwise(pl.col("patient"))
    rows.with_columns(patient=holes).write_parquet(path)
    with pytest.raises(MissingValueError, match="'patient' must not contain missing"):
        few(path, engine)


def test_more_clusters_than_fit_are_refused(row_file, monkeypatch):
    monkeypatch.setattr(aggregation_query, "MAX_OF_CLUSTERS", 1000)
    with pytest.raises(OptionError, match=r"'patient' has too many .* 1,000 comb"):
        few(row_file)
