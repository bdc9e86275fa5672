"""Rows that cannot be used: left out as if they were not there, told, and not many."""

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.engines.aggregation_query import AggregationQuery
from calibrant.exceptions import (
    DroppedRowsError,
    DroppedRowsWarning,
    InputError,
    MissingValueError,
    OptionError,
    ProbabilityRangeError,
    ScaleError,
)

N = 400


@pytest.fixture
def frame():
    """Rows of which four cannot be used, each for a reason of its own."""
    rng = np.random.default_rng(5)
    p = rng.random(N)
    rows = {
        "p": p.tolist(),
        "y": (rng.random(N) < p).astype(int).tolist(),
        "w": np.ones(N).tolist(),
        "town": [["a", "b", None][i % 3] for i in range(N)],
        "year": [[2023, 2024, None][i % 3] for i in range(N)],
    }
    rows["p"][3], rows["p"][50], rows["y"][101], rows["w"][202] = None, 1.5, 7, -1.0
    return pl.DataFrame(rows)


BAD = (3, 50, 101, 202)


def good_rows(frame):
    return frame.filter(~pl.int_range(N).is_in(BAD))


def saved(frame, folder, kind):
    path = folder / f"rows.{kind}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet}[kind](path)
    return path


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("by", ["town", "year", ["town", "year"]])
def test_groups_of_the_rows_that_are_left(frame, tmp_path, local_engine, kind, by):
    columns = {"y": "y", "p": "p", "by": by}
    options = {"methods": "ew5", "confidence": None}
    columns |= {"weight": "w"}
    wanted = cb.evaluate(
        cb.Predictions.from_table(good_rows(frame), **columns), **options
    ).frame()
    path = saved(frame, tmp_path, kind)
    with pytest.warns(DroppedRowsWarning, match="4 of 400 rows"):
        found = cb.evaluate(
            cb.Predictions.from_table(
                path, engine=local_engine, bad_rows="drop", **columns
            ),
            **options,
        )
    assert found.frame().keys() == wanted.keys()
    for name, values in wanted.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found.frame()[name], values, atol=1e-12)
        else:
            assert found.frame()[name].tolist() == values.tolist()


REASONS = (
    "4 of 400 rows were invalid and were dropped: 1 missing or infinite in "
    "column 'p', 1 outside [0, 1] in column 'p', 1 with an unknown label in column "
    "'y', 1 with a negative weight in column 'w'."
)


def test_the_warning_tells_why_rows_were_dropped(frame, tmp_path, engine):
    path = saved(frame, tmp_path, "parquet")
    wanted = {"y": "y", "p": "p", "weight": "w", "engine": engine}
    with pytest.warns(DroppedRowsWarning) as told:
        cb.Predictions.from_table(path, bad_rows="drop", **wanted).aggregate()
    assert [str(warning.message) for warning in told] == [REASONS]


def test_rows_of_classes_are_dropped_for_a_reason(tmp_path, engine):
    rng = np.random.default_rng(2)
    prob = rng.dirichlet([1.0, 1.0, 1.0], 100)
    prob[3, 1], prob[4, 2], prob[5] = np.nan, 1.2, prob[5] / 2
    kind = rng.choice(["a", "b", "c"], 100).astype(object)
    kind[6], kind[7] = None, "z"
    names = {f"c_{name}": prob[:, k] for k, name in enumerate("abc")}
    path = saved(pl.DataFrame(names | {"kind": kind.tolist()}), tmp_path, "parquet")
    with pytest.warns(DroppedRowsWarning) as told:
        found = (
            cb.Predictions.from_table(
                path,
                y="kind",
                p="c_*",
                task="confidence",
                engine=engine,
                bad_rows="drop",
            )
            .aggregate()
            .store.cells
        )
    assert (found.n, found.dropped) == (95, 5)
    columns = "columns 'c_a' .. 'c_c'"
    assert str(told[0].message).endswith(
        f"dropped: 1 missing or infinite in {columns}, 1 outside [0, 1] in {columns}, "
        f"1 that do not sum to 1 in {columns}, 1 without a label in column 'kind', 1 "
        f"with an unknown label in column 'kind'."
    )


@pytest.fixture
def percentages():
    """Percentages, some of them missing."""
    rng = np.random.default_rng(6)
    p = rng.random(N)
    percent = np.round(100.0 * p, 1).tolist()
    percent[7] = percent[91] = None
    return pl.DataFrame({"p": percent, "y": (rng.random(N) < p).astype(int)})


@pytest.mark.parametrize("bad_rows", ["error", "drop"])
@pytest.mark.parametrize("max_dropped", [0.2, 1.0])
def test_percentages_are_told_before_any_row_is_dropped(
    percentages, tmp_path, engine, bad_rows, max_dropped
):
    path = saved(percentages, tmp_path, "parquet")
    wanted = {"y": "y", "p": "p", "engine": engine}
    options = {"methods": "ew5"}
    wanted |= {"bad_rows": bad_rows, "max_dropped": max_dropped}
    with pytest.raises(ScaleError) as told:
        cb.evaluate(cb.Predictions.from_table(path, **wanted), **options)
    words = str(told.value)
    assert "column 'p' must contain probabilities in [0, 1]" in words
    assert 'These look like percentages: pass scale="percent".' in words
    assert "bad_rows" not in words


def test_percentages_are_read_as_such_if_said(percentages, tmp_path, engine):
    path = saved(percentages, tmp_path, "parquet")
    columns = {"y": "y", "p": "p"}
    options = {"methods": "ew5", "confidence": None}
    said = {"engine": engine, "scale": "percent"}
    with pytest.raises(MissingValueError, match='bad_rows="drop"'):
        cb.evaluate(cb.Predictions.from_table(path, **said, **columns), **options)
    with pytest.warns(DroppedRowsWarning, match="2 of 400 .*2 missing or infinite in"):
        found = cb.evaluate(
            cb.Predictions.from_table(path, bad_rows="drop", **said, **columns),
            **options,
        )
    kept = percentages.drop_nulls().with_columns(pl.col("p") / 100)
    wanted = cb.evaluate(cb.Predictions.from_table(kept, **columns), **options)
    np.testing.assert_allclose(
        found.frame()["value"], wanted.frame()["value"], atol=1e-12
    )


def test_percentages_of_rare_events_are_told_too(tmp_path, engine):
    """So few are above 1 that dropping them would pass for a few bad rows."""
    rng = np.random.default_rng(3)
    p = rng.beta(0.3, 60.0, 3000)
    assert 0.05 < np.mean(100 * p > 1.0) < 0.2
    rows = pl.DataFrame({"p": 100 * p, "y": (rng.random(3000) < p).astype(int)})
    path = saved(rows, tmp_path, "parquet")
    with pytest.raises(ScaleError, match="These look like percentages"):
        cb.Predictions.from_table(
            path, y="y", p="p", engine=engine, bad_rows="drop"
        ).aggregate()


def test_classes_in_percent_are_told_even_if_most_are_below_one(tmp_path, local_engine):
    rng = np.random.default_rng(4)
    prob = rng.dirichlet(np.full(40, 0.05), 200)
    assert np.mean(100 * prob > 1.0) < 0.2
    names = {f"c_{k}": 100 * prob[:, k] for k in range(40)}
    rows = pl.DataFrame(names | {"kind": rng.integers(0, 40, 200)})
    path = saved(rows, tmp_path, "parquet")
    options = {"y": "kind", "p": "c_*", "task": "confidence"}
    with pytest.raises(ScaleError, match=r"columns 'c_0' .. 'c_39' .*percentages"):
        cb.Predictions.from_table(
            path, engine=local_engine, bad_rows="drop", **options
        ).aggregate()


def test_log_probabilities_are_told_before_any_row_is_dropped(tmp_path, engine):
    rng = np.random.default_rng(5)
    p = rng.random(300)
    rows = pl.DataFrame({"p": np.log(p), "y": (rng.random(300) < p).astype(int)})
    path = saved(rows, tmp_path, "parquet")
    for bad_rows in ("error", "drop"):
        with pytest.raises(ScaleError, match='log-probabilities: pass scale="logprob"'):
            cb.Predictions.from_table(
                path, y="y", p="p", engine=engine, bad_rows=bad_rows
            ).aggregate()


def with_missing(share, folder):
    rng = np.random.default_rng(7)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    p[: round(100 * share)] = np.nan
    return saved(pl.DataFrame({"p": p, "y": y}), folder, "parquet")


def test_a_fifth_of_the_rows_is_dropped_and_no_more(tmp_path, engine):
    options = {"y": "y", "p": "p", "engine": engine, "bad_rows": "drop"}
    with pytest.warns(DroppedRowsWarning, match="20 of 100"):
        assert (
            cb.Predictions.from_table(with_missing(0.20, tmp_path), **options)
            .aggregate()
            .n
            == 80
        )
    path = with_missing(0.21, tmp_path)
    with pytest.raises(DroppedRowsError) as told:
        cb.Predictions.from_table(path, **options).aggregate()
    assert str(told.value) == (
        "21 of 100 rows are invalid, but at most 20 % may be dropped: 21 missing or "
        "infinite in column 'p'. Repair these rows, or allow more to be dropped: "
        "max_dropped=0.3."
    )
    with pytest.warns(DroppedRowsWarning, match="21 of 100"):
        assert (
            cb.Predictions.from_table(path, max_dropped=0.3, **options).aggregate().n
            == 79
        )
    with pytest.raises(DroppedRowsError, match="at most 5 %"):
        cb.Predictions.from_table(
            with_missing(0.06, tmp_path), max_dropped=0.05, **options
        ).aggregate()


def test_many_values_out_of_range_are_hinted_at_but_can_be_dropped(tmp_path, engine):
    """Minus one for a missing prediction, in three rows of ten."""
    rng = np.random.default_rng(7)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    p[:30] = -1.0
    rows = pl.DataFrame({"p": p, "y": y})
    path = saved(rows, tmp_path, "parquet")
    options = {"y": "y", "p": "p", "engine": engine, "bad_rows": "drop"}
    with pytest.raises(
        DroppedRowsError, match=r"30 outside .0, 1. in .*max_dropped=0.3"
    ):
        cb.Predictions.from_table(path, **options).aggregate()
    with pytest.warns(DroppedRowsWarning, match="30 of 100"):
        assert (
            cb.Predictions.from_table(path, max_dropped=0.3, **options).aggregate().n
            == 70
        )


def test_one_value_for_missing_ones_does_not_look_like_percentages(
    tmp_path, local_engine
):
    rng = np.random.default_rng(8)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    p[:9] = 99.0
    rows = pl.DataFrame({"p": p, "y": y})
    path = saved(rows, tmp_path, "parquet")
    options = {"y": "y", "p": "p", "engine": local_engine, "bad_rows": "drop"}
    with pytest.warns(DroppedRowsWarning, match="9 outside"):
        assert cb.Predictions.from_table(path, **options).aggregate().n == 91


def test_a_model_without_predictions_is_named(tmp_path, local_engine):
    """Rows are dropped for all models together, so one empty column is told."""
    rng = np.random.default_rng(9)
    p = rng.random(100)
    rows = pl.DataFrame(
        {"a": p, "b": [None] * 60 + p[60:].tolist(), "y": rng.integers(0, 2, 100)}
    )
    path = saved(rows, tmp_path, "parquet")
    options = {"y": "y", "p": ["a", "b"], "engine": local_engine, "bad_rows": "drop"}
    with pytest.raises(DroppedRowsError, match="60 missing or infinite in column 'b'"):
        cb.Predictions.from_table(path, **options).aggregate()


@pytest.mark.parametrize("share", [-0.1, 1.5, "all", True])
def test_the_share_is_a_share(frame, share):
    with pytest.raises(OptionError, match="max_dropped must be a share from 0 to 1"):
        cb.evaluate(
            cb.Predictions.from_table(
                frame, y="y", p="p", bad_rows="drop", max_dropped=share
            )
        )


def test_lines_that_are_no_rows_count_among_those_dropped(tmp_path):
    lines = [f"0.{k % 90 + 10},{k % 2}" for k in range(100)]
    lines[10:15] = ["0.5,1,7"] * 5
    path = tmp_path / "lines.csv"
    path.write_text("\n".join(["p,y", *lines]))
    options = {"y": "y", "p": "p", "engine": "duckdb", "bad_rows": "drop"}
    with pytest.warns(DroppedRowsWarning, match="5 of 100 .* 5 in lines that cannot"):
        assert cb.Predictions.from_table(path, **options).aggregate().n == 95
    with pytest.raises(DroppedRowsError, match="5 in lines that cannot be read"):
        cb.Predictions.from_table(path, max_dropped=0.01, **options).aggregate()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_label_that_ends_with_a_nul_is_no_label(engine, tmp_path):
    path = tmp_path / "rows.csv"
    rows = ["0,0.1", "0\0,0.9", "1,0.8", *["0,0.2", "1,0.7"] * 10]
    path.write_text("y,p\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.warns(DroppedRowsWarning, match="1 of 23 rows"):
        preds = cb.Predictions.from_table(
            path, y="y", p="p", bad_rows="drop", engine=engine
        )
    assert preds.n == 22


@pytest.fixture(params=["a", "b"])
def mixed_precision(request, tmp_path):
    """Classes in single and double precision; one is below 0 by a little in one row."""
    a, b = np.full(100, 0.4, np.float32), np.full(100, 0.6)
    {"a": a, "b": b}[request.param][0] = -3e-7
    kind = np.array(["a", "b", "c"])[np.arange(100) % 3]
    rows = pl.DataFrame({"y": kind, "c_a": a, "c_b": b, "c_c": 1.0 - a - b})
    return saved(rows, tmp_path, "parquet")


def test_classes_of_mixed_precision_keep_to_the_higher_one(mixed_precision, engine):
    options = {"y": "y", "p": "c_*", "task": "confidence", "engine": engine}
    with pytest.raises(ProbabilityRangeError, match=r"-3e-07|-3\.0.*e-07"):
        cb.evaluate(cb.Predictions.from_table(mixed_precision, **options))
    with pytest.warns(DroppedRowsWarning, match=r"1 outside .0, 1. in columns"):
        preds = cb.Predictions.from_table(mixed_precision, bad_rows="drop", **options)
    assert preds.n == 99


@pytest.mark.parametrize(
    "table_engine",
    [
        "duckdb",
        pytest.param(
            "spark", marks=[pytest.mark.slow, pytest.mark.xdist_group("spark")]
        ),
    ],
)
def test_columns_with_types_are_read_once(table_engine, tmp_path, request, monkeypatch):
    if table_engine == "spark":
        request.getfixturevalue("spark")
    whole = {"y": [0, 1] * 20, "p": [0, 1] * 20, "w": [1] * 39 + [-1]}
    path = saved(pl.DataFrame(whole), tmp_path, "parquet")
    passes, cells = [], AggregationQuery.cells
    monkeypatch.setattr(
        AggregationQuery, "cells", lambda query: passes.append(1) or cells(query)
    )
    options = {"y": "y", "p": "p", "weight": "w", "engine": table_engine}
    with pytest.warns(DroppedRowsWarning, match="1 of 40"):
        cb.Predictions.from_table(path, bad_rows="drop", **options).aggregate()
    assert len(passes) == 1


def test_clusters_that_are_nan_are_missing(tmp_path, engine):
    rows = {"y": [0, 1] * 20, "p": [0.4] * 40, "c": [np.nan] * 3 + [1.5, np.inf] * 18}
    path = saved(pl.DataFrame(rows | {"c": [*rows["c"], -2.0]}), tmp_path, "parquet")
    options = {"y": "y", "p": "p", "cluster": "c", "engine": engine}
    with pytest.raises(MissingValueError, match=r"column 'c'.*bad_rows="):
        cb.evaluate(cb.Predictions.from_table(path, **options))
    with pytest.warns(DroppedRowsWarning, match="3 without a cluster in column 'c'"):
        preds = cb.Predictions.from_table(path, bad_rows="drop", **options)
    assert preds.n == 37


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("w", -5e-324, "with a negative weight in column 'w'"),
        ("y", 5e-324, "with an unknown label in column 'y'"),
    ],
)
def test_the_smallest_numbers_are_not_zero(column, value, reason, tmp_path, engine):
    rows = {"y": [0.0, 1.0] * 20, "p": [0.4] * 40, "w": [1.0] * 40}
    rows[column][0] = value
    path = saved(pl.DataFrame(rows), tmp_path, "parquet")
    options = {"y": "y", "p": "p", "weight": "w", "engine": engine}
    with pytest.raises(InputError, match=f"column '{column}'"):
        cb.evaluate(cb.Predictions.from_table(path, **options))
    with pytest.warns(DroppedRowsWarning, match=f"1 of 40 rows .* 1 {reason}"):
        preds = cb.Predictions.from_table(path, bad_rows="drop", **options)
    assert preds.n == 39
