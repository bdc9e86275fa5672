"""Few rows are kept: engines, files and sums of cells give the numbers of rows."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibrant as cb
from calibrant.core.tasks import InputSpec
from calibrant.engines.cells import ExactLimits, merge_cells
from calibrant.engines.groups import group_columns
from calibrant.exceptions import SmallSampleWarning, WeightError
from calibrant.predictions.columns import TableRequest
from calibrant.predictions.predictions import read_table

METHODS = ["es15", "es-sweep", "ew-cv", "pl", "isotonic", "smooth", "kde", "kce"]
WAYS = {"kept": (2**21, 65_536), "cells": (0, 0), "both": (0, 700)}


@pytest.fixture(params=WAYS)
def way(request):
    """Return how rows are aggregated: all kept, all in cells, or by the group."""
    return ExactLimits(*WAYS[request.param])


def predictions(source, limits, *, engine="memory", task=None, by=None, **columns):
    """Return predictions that are aggregated by these limits."""
    spec = InputSpec(task=task)
    request = TableRequest(spec=spec, by=group_columns(by), limits=limits, **columns)
    return cb.Predictions(read_table(source, engine, request))


def values(found):
    frame = found.frame()
    return {name: frame[name] for name in ("value", "low", "high")}


@pytest.mark.parametrize("weight", [None, "count", "share"])
def test_small_tables_are_those_of_memory_to_the_last_digits(
    engine, weight, rows, row_file
):
    wanted = {"y": "y", "p": "p", "weight": weight}
    options = {"methods": METHODS}
    options |= {"n_resamples": 50}
    expected = values(cb.evaluate(cb.Predictions.from_table(rows, **wanted), **options))
    found = values(
        cb.evaluate(
            cb.Predictions.from_table(row_file, engine=engine, **wanted), **options
        )
    )
    for name, own in expected.items():
        assert_allclose(found[name], own, atol=1e-12, err_msg=name)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning")
def test_small_groups_of_large_tables_are_those_of_memory(engine, rows, row_file):
    wanted = {"y": "y", "p": "p", "by": ["place", "year"]}
    options = {"confidence": None, "methods": ["es15", "isotonic", "ew15"]}
    limits = ExactLimits(0, 700)
    found = predictions(row_file, limits, engine=engine, **wanted)
    found = cb.evaluate(found.aggregate(), **options).frame()
    expected = cb.evaluate(
        cb.Predictions.from_table(rows, engine="memory", **wanted), **options
    ).frame()
    small = expected["n"] <= 700
    assert small.any()
    assert_allclose(found["value"][small], expected["value"][small], atol=1e-12)


@pytest.mark.parametrize("case", [{}, {"weight": "count"}, {"by": "place"}])
def test_engines_aggregate_alike_however_many_rows_there_are(
    local_engine, case, rows, row_file, way
):
    options = {"y": "kind", "p": "c_*", "task": "classwise", **case}
    expected = predictions(rows, way, **options).store.aggregate()
    found = predictions(row_file, way, engine=local_engine, **options)
    found = found.store.aggregate()
    assert found.groups == expected.groups
    for name, own in expected.columns.items():
        assert_allclose(found.columns[name], own, rtol=1e-12, err_msg=name)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning")
@pytest.mark.parametrize("case", [{}, {"weight": "count"}, {"by": "place"}])
def test_parts_end_as_the_whole_does(case, rows, tmp_path, way):
    options = {"y": "y", "p": "p", **case}
    whole = predictions(rows, way, **options).aggregate()
    for number, part in enumerate((rows[:600], rows[600:601], rows[601:])):
        own = predictions(part, way, **options).aggregate()
        own.save(tmp_path / f"{number}.parquet")
    told = {"methods": ["es15", "ew-cv", "isotonic"], "confidence": None}
    found = cb.evaluate(cb.Predictions.load(f"{tmp_path}/*.parquet"), **told).frame()
    expected = cb.evaluate(whole, **told).frame()
    names = ["n", *({"place"} & set(found))]
    order = np.lexsort([found[name].astype(str) for name in ("method", *names)])
    other = np.lexsort([expected[name].astype(str) for name in ("method", *names)])
    for name in names:
        assert_array_equal(found[name][order], expected[name][other])
    assert_allclose(found["value"][order], expected["value"][other], atol=1e-12)


def test_a_table_becomes_cells_when_it_grows(rows):
    few = predictions(rows, ExactLimits(4000, 1000), y="y", p="p").store.aggregate()
    assert (few.columns["low"] == few.columns["high"]).all()
    assert len(few) == rows["p"].n_unique()
    many = merge_cells([few, few])
    assert (many.columns["low"] < many.columns["high"]).any()
    assert len(np.unique(many.columns["cell"])) == len(many)


def test_very_many_groups_are_not_kept_row_by_row(local_engine, row_file):
    options = {"y": "y", "p": "p", "by": ["place", "year"], "engine": local_engine}
    kept = predictions(row_file, ExactLimits(0), **options).store.aggregate()
    assert (kept.columns["low"] == kept.columns["high"]).all()
    few = ExactLimits(0, in_all_groups=100)
    in_cells = predictions(row_file, few, **options).store.aggregate()
    assert len(in_cells) < len(kept)
    alone = in_cells.columns["low"] == in_cells.columns["high"]
    assert in_cells.columns["rows"][~alone].sum() > 0


def test_predictions_just_outside_are_held_within_cells(local_engine, tmp_path, way):
    p = np.array([-3e-8, 0.0, 5e-9, 0.5, 1.0 - 6e-8, 1.0, 1.0 + 2e-7] * 200)
    frame = pl.DataFrame({"p": p.astype(np.float32), "y": np.arange(p.size) % 2})
    frame.write_parquet(tmp_path / "ends.parquet")
    source = tmp_path / "ends.parquet"
    found = predictions(source, way, y="y", p="p", engine=local_engine)
    found = found.store.aggregate()
    assert_array_equal(found.columns["rows"], [400, 200, 200, 200, 400])
    assert_array_equal(found.columns["low"][[0, -1]], [0.0, 1.0])


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.full(40, 1e15), "at most 2\\*\\*53"),
        (np.zeros(40), "must have at least one positive value; all 40 weights are 0"),
        (np.append(np.ones(39), np.nan), "must not contain missing"),
        (np.append(np.ones(39), np.inf), "must not contain missing or infinite"),
        (np.append(np.ones(39), -1.0), "must not be negative"),
    ],
)
def test_weights_that_cannot_be(local_engine, weight, words, tmp_path):
    p = np.linspace(0.01, 0.99, 40)
    frame = pl.DataFrame({"p": p, "y": [0, 1] * 20, "w": weight})
    frame.write_parquet(tmp_path / "w.parquet")
    options = {"y": "y", "p": "p", "weight": "w", "engine": local_engine}
    with pytest.raises((WeightError, ValueError), match=words):
        cb.Predictions.from_table(tmp_path / "w.parquet", **options).aggregate()
    with pytest.raises((WeightError, ValueError), match=words):
        cb.evaluate(
            cb.Predictions.from_table(tmp_path / "w.parquet", **options), methods="ew5"
        )


def test_classes_kept_apart_are_not_taken_for_rows_in_order(rows):
    """It is not known which rows aggregated classes share."""
    options = {"y": "kind", "p": "c_*", "task": "classwise"}
    whole = cb.Predictions.from_table(rows, **options).aggregate()
    shuffled = cb.Predictions.from_table(
        rows.sample(fraction=1.0, shuffle=True, seed=1), **options
    ).aggregate()
    told = {"methods": "ew15", "n_resamples": 60}
    first, second = (cb.evaluate(c, **told).frame() for c in (whole, shuffled))
    assert_allclose(first["high"], second["high"], atol=1e-12)


def test_groups_that_are_too_small_are_told(rows):
    few = rows[:12].with_columns(place=pl.Series(["a"] * 2 + ["b"] * 10))
    with pytest.warns(SmallSampleWarning, match="group place=a is skipped"):
        found = cb.evaluate(
            cb.Predictions.from_table(few, y="y", p="p", by="place", engine="duckdb"),
            methods="es5",
        )
    assert found.frame()["n"].tolist() == [10]
