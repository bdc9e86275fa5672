"""Cells stand for their rows, in memory and in files."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import calibrant as cb
from calibrant.calibrators.registry import find_evaluator
from calibrant.core.sample import BinarySample
from calibrant.exceptions import OptionError, SourceError, UnknownNameError
from calibrant.numerics.cell_grid import sum_cells


@pytest.fixture(scope="module")
def many():
    """So many rows that most cells hold several."""
    rng = np.random.default_rng(23)
    p = np.concatenate([rng.random(80_000), rng.beta(8.0, 0.4, 40_000)])
    y = (rng.random(p.size) < p - 0.3 * p * (1.0 - p)).astype(float)
    return p, y


def fitted(method, sample):
    found = find_evaluator(method).build().fit_sample(sample)
    return found, found.error(sample, alpha=1.0, debias=found.debiases(1.0))


JUMPING = ("es15", "ew15", "ew10", "es-cv", "ew-cv", "es-sweep", "scaling-binning")
METHODS = (
    *JUMPING,
    *("pl", "pl3", "pl-de", "spline-natural", "smooth", "platt", "beta", "kde"),
    *("temperature", "quadratic"),
)


@pytest.mark.parametrize("method", METHODS)
def test_cells_give_the_errors_and_maps_of_rows(method, many):
    p, y = many
    cells = sum_cells(p, y)
    assert cells.rows.max() > 20
    by_rows, expected = fitted(method, BinarySample(p, y))
    by_cells, found = fitted(method, cells.sample())
    assert found == pytest.approx(expected, abs=1e-4)
    points = np.linspace(0.0, 1.0, 2001)
    if method in JUMPING:  # at predictions that were aggregated
        edges = np.concatenate([by_rows.edges, by_cells.edges])
        points = points[np.abs(points[:, None] - edges).min(axis=1) > 1e-4]
    # Of 44 bins each has few rows: those of a cell that belong to its neighbour show.
    most = 2e-3 if method == "es-sweep" else 1e-3
    assert_allclose(by_cells.map(points), by_rows.map(points), atol=most)


@pytest.mark.parametrize("method", ["isotonic", "venn-abers", "kce"])
def test_cells_give_the_errors_of_rows(method, many):
    p, y = many
    _, expected = fitted(method, BinarySample(p, y))
    _, found = fitted(method, sum_cells(p, y).sample())
    assert found == pytest.approx(expected, abs=1e-4)


def test_bins_of_equal_width_are_exact(many):
    p, y = many
    for bins in (10, 15, 20, 100):
        _, expected = fitted(f"ew{bins}", BinarySample(p, y))
        _, found = fitted(f"ew{bins}", sum_cells(p, y).sample())
        assert found == pytest.approx(expected, abs=1e-13)


def test_intervals_of_cells_are_those_of_rows(many):
    p, y = many
    rows = {"p": p, "y": y}
    options = {"methods": ["es15", "platt"], "n_resamples": 200}
    expected = cb.evaluate(
        cb.Predictions.from_table(rows, y="y", p="p"), **options
    ).frame()
    found = cb.evaluate(
        cb.Predictions.from_table(rows, y="y", p="p").aggregate(), **options
    ).frame()
    for column in ("value", "low", "high"):
        assert_allclose(found[column], expected[column], atol=5e-4)
    assert_array_equal(found["n"], expected["n"])


def test_weight_two_equals_the_row_twice(rows):
    twice = cb.Predictions.from_table(
        rows.with_columns(two=2), y="y", p="p", weight="two"
    ).aggregate()
    both = cb.Predictions.from_table(pl.concat([rows, rows]), y="y", p="p").aggregate()
    for method in ("es15", "ew15", "platt", "isotonic", "kce"):
        values = [
            cb.evaluate(cells, methods=method, confidence=None).frame()["value"]
            for cells in (twice, both)
        ]
        assert_allclose(*values, rtol=1e-9)


def test_small_weights_count_as_rows_in_effect(rows):
    wanted = {"y": "y", "p": "p", "weight": "share"}
    options = {"methods": ["es15", "ew15"], "n_resamples": 300}
    expected = cb.evaluate(cb.Predictions.from_table(rows, **wanted), **options).frame()
    found = cb.evaluate(
        cb.Predictions.from_table(rows, **wanted).aggregate(), **options
    ).frame()
    assert_allclose(found["value"], expected["value"], atol=1e-3)
    assert_allclose(found["high"], expected["high"], atol=2e-3)


def test_classes_and_groups_of_cells(rows):
    wanted = {"y": "kind", "p": "c_*", "task": "classwise", "by": "year"}
    options = {"methods": "ew15", "confidence": None}
    expected = cb.evaluate(cb.Predictions.from_table(rows, **wanted), **options)
    found = cb.evaluate(
        cb.Predictions.from_table(rows, **wanted).aggregate(), **options
    )
    assert_allclose(found.frame()["value"], expected.frame()["value"], atol=1e-12)
    assert_array_equal(found.frame()["year"], expected.frame()["year"])
    assert_allclose(
        found.per_class()["value"], expected.per_class()["value"], atol=1e-12
    )


def test_classwise_intervals_of_cells_are_about_those_of_rows(rows):
    wanted = {"y": "kind", "p": "c_*", "task": "classwise"}
    options = {"methods": "ew15", "n_resamples": 400}
    expected = cb.evaluate(cb.Predictions.from_table(rows, **wanted), **options).frame()
    found = cb.evaluate(
        cb.Predictions.from_table(rows, **wanted).aggregate(), **options
    ).frame()
    widths = [f["high"] - f["low"] for f in (found, expected)]
    assert 0.6 < widths[0] / widths[1] < 1.6


def test_groups_of_cells_can_be_merged(rows):
    cells = cb.Predictions.from_table(
        rows, y="y", p="p", by=["place", "year"]
    ).aggregate()
    options = {"methods": "ew15", "confidence": None}
    found = cb.evaluate(cells.grouped_by(["year"]), **options).frame()
    expected = cb.evaluate(
        cb.Predictions.from_table(rows, y="y", p="p", by="year"), **options
    ).frame()
    assert_allclose(found["value"], expected["value"], atol=1e-12)
    whole = cb.evaluate(cells.grouped_by([]), **options).frame()["value"]
    everything = cb.evaluate(
        cb.Predictions.from_table(rows, y="y", p="p"), **options
    ).frame()["value"]
    assert_allclose(whole, everything, atol=1e-12)
    with pytest.raises(UnknownNameError, match="did you mean 'place'"):
        cells.grouped_by(["plac"])


def test_groups_of_merged_cells_are_in_order(rows):
    """Not in that of the files, nor of their first rows."""
    years = rows.with_columns(pl.Series("month", ["b", "a", "c"] * (rows.height // 3)))
    options = {"y": "y", "p": "p", "by": ["month", "year"]}
    days = [
        cb.Predictions.from_table(
            years.filter(pl.col("month") == month), **options
        ).aggregate()
        for month in ("c", "a", "b")
    ]
    whole = cb.Predictions.from_table(years, **options).aggregate().store.cells
    added = days[0] + days[1] + days[2]
    merged = added.store.cells
    assert merged.groups == whole.groups == tuple(sorted(whole.groups))
    last = len(merged.groups) - 1
    assert_allclose(merged.sample(last, 0).p, whole.sample(last, 0).p)
    found = cb.evaluate(added.grouped_by(["year"]), methods="ew5", confidence=None)
    assert found.frame()["year"].tolist() == sorted(found.frame()["year"])


def test_only_cells_of_the_same_kind_add_up(rows):
    binary = cb.Predictions.from_table(rows, y="y", p="p").aggregate()
    with pytest.raises(OptionError, match="aggregated in the same way"):
        binary + cb.Predictions.from_table(rows, y="y", p="p", by="year").aggregate()


@pytest.fixture
def cell_file(rows, tmp_path):
    cells = cb.Predictions.from_table(
        rows, y="y", p="p", by=["place", "year"]
    ).aggregate()
    cells.save(tmp_path / "cells.parquet")
    return tmp_path / "cells.parquet"


def test_files_of_cells_hold_all_of_them(rows, cell_file):
    cells = (
        cb.Predictions.from_table(rows, y="y", p="p", by=["place", "year"])
        .aggregate()
        .store.cells
    )
    found = cb.Predictions.load(cell_file).store.cells
    assert found.origin == cells.origin
    assert found.groups == cells.groups
    for name, values in cells.columns.items():
        assert_array_equal(found.columns[name], values)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning")
def test_files_of_cells_are_known_by_themselves(rows, cell_file):
    options = {"methods": "ew15", "confidence": None}
    found = cb.evaluate(cb.Predictions.load(cell_file), **options).frame()
    expected = cb.evaluate(
        cb.Predictions.from_table(rows, y="y", p="p", by=["place", "year"]), **options
    ).frame()
    assert_allclose(found["value"], expected["value"], atol=1e-12)
    assert_array_equal(found["n"], expected["n"])


def test_days_are_merged_by_a_pattern(rows, tmp_path):
    for day, part in enumerate((rows[:1000], rows[1000:])):
        cells = cb.Predictions.from_table(part, y="y", p="p").aggregate()
        cells.save(tmp_path / f"day-{day}.parquet")
    found = cb.evaluate(cb.Predictions.load(tmp_path / "day-*.parquet"), methods="ew15")
    expected = cb.evaluate(
        cb.Predictions.from_table(rows, y="y", p="p"), methods="ew15"
    )
    assert_allclose(found.frame()["value"], expected.frame()["value"], atol=1e-12)


def test_rows_and_cells_are_not_mixed(rows, cell_file):
    rows.write_parquet(cell_file.with_name("z.parquet"))
    with pytest.raises(
        SourceError, match=r"z\.parquet contains no aggregated predictions"
    ):
        cb.Predictions.load(str(cell_file.with_name("*.parquet")))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"version": 99}, "another version"),
        ({"grid": "other"}, "another version"),
        ({"version": 5}, "another version of calibrant; aggregate the rows again"),
        ({"events": 7}, "damaged .* its content has changed"),
        ({"by": ["nothing"]}, "damaged"),
        ({"weighted": True}, "damaged"),
        ({"dropped": 1}, "damaged"),
        ({"checksum": None}, "damaged"),
    ],
)
def test_damaged_files_of_cells_are_refused(damage, words, cell_file):
    stored = json.loads(pl.read_parquet_metadata(cell_file)["calibrant_cells"])
    frame = pl.read_parquet(cell_file)
    changed = json.dumps(stored | damage)
    frame.write_parquet(cell_file, metadata={"calibrant_cells": changed})
    with pytest.raises(SourceError, match=words):
        cb.Predictions.load(cell_file)


def forge(path, **columns):
    stored = pl.read_parquet_metadata(path)["calibrant_cells"]
    frame = pl.read_parquet(path).with_columns(**columns)
    frame.write_parquet(path, metadata={"calibrant_cells": stored})
    return path


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("rows", pl.col("rows") + 1),
        ("rows", 1.5),
        ("rows", None),
        ("low", np.nan),
        ("high", pl.col("high") + 1e-3),
        ("cell", "3"),
        ("event", pl.col("event").cast(pl.Int32)),
        ("by.place", pl.lit("other")),
    ],
)
def test_changed_sums_are_refused(column, value, rows, cell_file):
    assert cb.Predictions.load(forge(cell_file)).n == len(rows)
    forge(cell_file, **{column: value if isinstance(value, pl.Expr) else pl.lit(value)})
    with pytest.raises(SourceError, match="its content has changed since"):
        cb.Predictions.load(cell_file)


def test_truncated_and_empty_files_of_cells_are_refused(cell_file):
    stored = pl.read_parquet_metadata(cell_file)["calibrant_cells"]
    frame, whole = pl.read_parquet(cell_file), cell_file.read_bytes()
    for cut in (len(whole) // 2, len(whole) - 5, 10):
        cell_file.write_bytes(whole[:cut])
        with pytest.raises(SourceError, match="cannot be read as parquet"):
            cb.Predictions.load(cell_file)
    frame[:0].write_parquet(cell_file, metadata={"calibrant_cells": stored})
    with pytest.raises(SourceError, match="its content has changed"):
        cb.Predictions.load(cell_file)
    cell_file.write_bytes(whole[:200] + b"\xff" * (len(whole) - 2000) + whole[-1800:])
    with pytest.raises(SourceError, match=r"damaged|cannot be read"):
        cb.Predictions.load(cell_file)


def test_weighted_and_unweighted_cells_do_not_add_up(rows):
    plain = cb.Predictions.from_table(rows, y="y", p="p").aggregate()
    weighted = cb.Predictions.from_table(rows, y="y", p="p", weight="count").aggregate()
    with pytest.raises(OptionError, match=r"with weights differs .* without weights"):
        plain + weighted


def test_cells_are_written_as_parquet(rows, tmp_path):
    cells = cb.Predictions.from_table(rows, y="y", p="p").aggregate()
    with pytest.raises(OptionError, match=r"written as \.parquet"):
        cells.save(tmp_path / "cells.csv")


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize(
    "file", ["forecasts/fivethirtyeight_cow.parquet", "llm/bplaut_llm_mcq_msp.parquet"]
)
def test_real_predictions_by_millions(file, shared_data):
    """Engines against rows in memory: 1.7 and 1.0 million real predictions."""
    methods = ["es15", "ew15", "es-cv", "pl", "isotonic", "platt", "smooth", "kce"]
    wanted = {"y": "y", "p": "p"}
    options = {"methods": methods, "confidence": None}
    path = shared_data / file
    exact = cb.evaluate(
        cb.Predictions.from_table(path, engine="memory", **wanted), **options
    ).frame()
    found = cb.evaluate(
        cb.Predictions.from_table(path, engine="duckdb", **wanted), **options
    ).frame()
    assert_allclose(found["value"], exact["value"], atol=1e-4)
