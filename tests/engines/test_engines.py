"""One suite for all engines: whatever the engine, the cells are the same."""

import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

import calibrant as cb
from calibrant.exceptions import (
    DroppedRowsError,
    DroppedRowsWarning,
    EmptyInputError,
    InputError,
    LabelError,
    MissingValueError,
    OptionError,
    ProbabilityRangeError,
    RowSumError,
    UnknownNameError,
    WeightError,
)

EXACT = ("group", "event", "cell", "rows", "event_rows", "low", "high")

CASES = {
    "binary": {"y": "y", "p": "p"},
    "groups": {"y": "y", "p": "p", "by": ["place", "year"]},
    "weights": {"y": "y", "p": "p", "weight": "count", "by": "year"},
    "shares": {"y": "y", "p": "p", "weight": "share"},
    "text labels": {"y": "happened", "p": "p", "pos_label": "yes"},
    "two models": {"y": "y", "p": {"one": "p", "root": "q"}},
    "top class": {"y": "kind", "p": "c_*", "task": "confidence"},
    "each class": {"y": "kind", "p": "c_*", "task": "classwise", "by": "place"},
    "one class": {"y": "kind", "p": ["c_0", "c_1", "c_2"], "task": 1},
    "clusters": {
        "y": "y",
        "p": {"one": "p", "root": "q"},
        "weight": "share",
        "by": "year",
        "cluster": "patient",
    },
    "classes in clusters": {
        "y": "kind",
        "p": "c_*",
        "task": "classwise",
        "cluster": "patient",
    },
    "a class alone": {"y": "kind", "p": "c_1", "task": 1},
}


def assert_same_cells(found, expected):
    found, expected = (preds.store.cells for preds in (found, expected))
    assert found.origin == expected.origin
    assert found.groups == expected.groups
    assert found.dropped == expected.dropped
    for name, values in expected.columns.items():
        if name in EXACT:
            assert_array_equal(found.columns[name], values, err_msg=name)
        else:
            assert_allclose(found.columns[name], values, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_cells_are_those_of_the_samples(engine, case, rows, row_file):
    """What the door of arrays reads, summed over cells, is what engines give."""
    wanted = CASES[case]
    found = cb.Predictions.from_table(row_file, engine=engine, **wanted).aggregate()
    expected = cb.Predictions.from_table(rows, engine="memory", **wanted).aggregate()
    assert_same_cells(found, expected)
    used = rows.filter(pl.col("count") > 0) if case == "weights" else rows
    assert found.n == used.height


@pytest.mark.parametrize("case", ["groups", "weights", "each class", "clusters"])
def test_parts_add_up_to_the_whole(local_engine, case, rows, row_file, tmp_path):
    wanted = CASES[case]
    parts = []
    for number, part in enumerate((rows[:700], rows[700:701], rows[701:])):
        part.write_parquet(tmp_path / f"{number}.parquet")
        path = tmp_path / f"{number}.parquet"
        parts.append(
            cb.Predictions.from_table(path, engine=local_engine, **wanted).aggregate()
        )
    whole = (
        cb.Predictions.from_table(row_file, engine=local_engine, **wanted)
        .aggregate()
        .store.cells
    )
    merged = (parts[2] + parts[0] + parts[1]).store.cells
    key = [whole.groups.index(group) for group in merged.groups]
    columns = merged.columns | {"group": np.array(key)[merged.columns["group"]]}
    order = np.lexsort([columns[name] for name in ("cell", "event", "group")])
    for name, values in whole.columns.items():
        assert_allclose(columns[name][order], values, rtol=1e-12, err_msg=name)


def test_logits_become_probabilities(local_engine, rows, tmp_path):
    logits = rows.select(
        "y",
        x=(
            pl.col("p").clip(1e-9, 1 - 1e-9) / (1 - pl.col("p").clip(1e-9, 1 - 1e-9))
        ).log(),
    )
    logits.write_parquet(tmp_path / "logits.parquet")
    wanted = {"y": "y", "p": "x", "scale": "logit"}
    options = {"methods": ["ew10", "platt"]}
    found = cb.evaluate(
        cb.Predictions.from_table(
            tmp_path / "logits.parquet", engine=local_engine, **wanted
        ),
        **options,
    )
    p = rows["p"].clip(1e-9, 1 - 1e-9).to_numpy()
    expected = cb.evaluate(rows["y"].to_numpy(), p, methods=["ew10", "platt"])
    assert_allclose(found.frame()["value"], expected.frame()["value"], atol=1e-6)


def test_logits_of_classes_become_shares(engine, rows, tmp_path):
    logits = rows.select(
        "kind", *(pl.col(f"c_{k}").clip(1e-12).log() + 700.0 for k in range(3))
    )
    logits.write_parquet(tmp_path / "logits.parquet")
    wanted = {"y": "kind", "p": "c_*", "task": "confidence"}
    options = {"methods": "ew10"}
    found = cb.evaluate(
        cb.Predictions.from_table(
            tmp_path / "logits.parquet", engine=engine, scale="logit", **wanted
        ),
        **options,
    )
    prob = softmax(logits.select(pl.exclude("kind")).to_numpy(), axis=1)
    expected = cb.calibration_error(
        rows["kind"].to_numpy(), prob, task="confidence", method="ew10"
    )
    assert_allclose(found.frame()["value"], expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning")
@pytest.mark.parametrize("case", ["two models", "each class", "one class", "weights"])
def test_results_have_the_rows_of_the_memory_engine(case, rows, row_file):
    options = {"methods": "ew15", "confidence": None}
    found = cb.evaluate(
        cb.Predictions.from_table(row_file, engine="duckdb", **CASES[case]), **options
    ).frame()
    expected = cb.evaluate(
        cb.Predictions.from_table(rows, **CASES[case]), **options
    ).frame()
    assert list(found) == list(expected)
    for name, values in expected.items():
        if name == "value":
            assert_allclose(found[name], values, atol=1e-12)
        elif name != "bins":
            assert_array_equal(found[name], values, err_msg=name)


BAD = {
    "missing": ("p", None, MissingValueError, "column 'p' must not contain missing"),
    "nan": ("p", np.nan, MissingValueError, "column 'p' must not contain missing"),
    "infinite": (
        "p",
        np.inf,
        MissingValueError,
        "must not contain missing or infinite",
    ),
    "percent": ("p", 99.5, ProbabilityRangeError, "in .0, 1.; .*99.5.*scale=.percent"),
    "negative": ("p", -0.25, ProbabilityRangeError, "-0.25"),
    "label": ("y", 2, LabelError, "binary labels, 0 and 1; .*2"),
    "no label": ("y", None, MissingValueError, "column 'y' must not contain missing"),
    "weight": ("count", -3, WeightError, "must not be negative.*-3"),
    "no weight": ("count", None, MissingValueError, "column 'count' must not contain"),
}


def spoiled(rows, column, value, path, at=(1, 2500)):
    kind = pl.Float64 if isinstance(value, float) else rows[column].dtype
    values = rows[column].cast(kind).to_list()
    for row in at:
        values[row] = value
    rows.with_columns(pl.Series(column, values, dtype=kind)).write_parquet(path)
    return path


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_end_in_an_error_that_shows_one(local_engine, case, rows, tmp_path):
    column, value, error, words = BAD[case]
    path = spoiled(rows, column, value, tmp_path / "bad.parquet")
    with pytest.raises(error, match=words):
        cb.Predictions.from_table(
            path, y="y", p="p", weight="count", engine=local_engine
        ).aggregate()


def test_bad_rows_are_dropped_and_counted_if_asked(engine, rows, tmp_path):
    path = spoiled(rows, "p", 1.5, tmp_path / "bad.parquet")
    with pytest.warns(DroppedRowsWarning, match="2 of 3,000 rows"):
        found = (
            cb.Predictions.from_table(
                path, y="y", p="p", engine=engine, bad_rows="drop"
            )
            .aggregate()
            .store.cells
        )
    kept = rows.filter(~pl.int_range(pl.len()).is_in([1, 2500]))
    assert found.dropped == 2
    expected = cb.Predictions.from_table(kept, y="y", p="p").aggregate().store.cells
    assert_array_equal(found.columns["rows"], expected.columns["rows"])


def test_evaluation_drop_invalid_rows_is_that_of_the_others(
    local_engine, rows, tmp_path
):
    path = spoiled(rows, "y", 7, tmp_path / "bad.parquet")
    with pytest.warns(DroppedRowsWarning):
        found = cb.evaluate(
            cb.Predictions.from_table(
                path, y="y", p="p", engine=local_engine, bad_rows="drop"
            ),
            methods="ew15",
        )
    kept = rows.filter(~pl.int_range(pl.len()).is_in([1, 2500]))
    expected = cb.evaluate(
        cb.Predictions.from_table(kept, y="y", p="p"), methods="ew15"
    )
    assert_allclose(found.frame()["value"], expected.frame()["value"], atol=1e-12)


def test_the_warning_about_dropped_rows_points_at_the_caller(
    local_engine, rows, tmp_path
):
    path = spoiled(rows, "p", 1.5, tmp_path / "bad.parquet")
    wanted = {"y": "y", "p": "p", "engine": local_engine, "bad_rows": "drop"}
    with pytest.warns(DroppedRowsWarning) as gathered:
        cb.Predictions.from_table(path, **wanted).aggregate()
    with pytest.warns(DroppedRowsWarning) as evaluated:
        cb.evaluate(
            cb.Predictions.from_table(path, **wanted), methods="ew15", confidence=None
        )
    told = [*gathered, *evaluated]
    assert [warning.filename for warning in told] == [__file__, __file__]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("y_prob", [0.5]),
        ("task", "confidence"),
        ("sample_weight", [1.0]),
        ("groups", ["a"]),
        ("pos_label", 1),
        ("labels", [0, 1]),
        ("scale", "logit"),
    ],
)
def test_what_predictions_know_is_not_to_be_said_again(name, value, rows):
    cells = cb.Predictions.from_table(rows, y="y", p="p").aggregate()
    with pytest.raises(OptionError, match=f"remove {name}, or pass it when"):
        cb.evaluate(cells, **{name: value})


def test_aggregated_predictions_are_no_table(rows, tmp_path):
    cells = cb.Predictions.from_table(rows, y="y", p="p").aggregate()
    with pytest.raises(OptionError, match="functions accept directly"):
        cb.Predictions.from_table(cells, y="y", p="p")
    cells.save(tmp_path / "cells.parquet")
    for source in (tmp_path / "cells.parquet", f"{tmp_path}/*.parquet"):
        with pytest.raises(OptionError, match=r"parquet contains aggregated .*\.load"):
            cb.Predictions.from_table(source, y="y", p="p")


def test_a_table_of_bad_rows_alone_is_refused(local_engine, rows, tmp_path):
    path = spoiled(rows[:2], "p", 7.0, tmp_path / "bad.parquet", at=(0, 1))
    wanted = {"y": "y", "p": "p", "engine": local_engine, "bad_rows": "drop"}
    with pytest.raises(DroppedRowsError, match=r"2 of 2 rows are invalid"):
        cb.Predictions.from_table(path, **wanted).aggregate()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedRowsWarning)
        with pytest.raises(EmptyInputError):
            cb.Predictions.from_table(path, max_dropped=1.0, **wanted).aggregate()


def test_rounding_beyond_the_ends_counts_as_the_ends(local_engine, tmp_path):
    p = np.array([-1e-16, 0.0, 0.5, 1.0, 1.0 + 2e-16])
    frame = pl.DataFrame({"p": p, "y": [0, 1, 0, 1, 1]})
    frame.write_parquet(tmp_path / "ends.parquet")
    found = (
        cb.Predictions.from_table(
            tmp_path / "ends.parquet", y="y", p="p", engine=local_engine
        )
        .aggregate()
        .store.cells
    )
    assert_array_equal(found.columns["rows"], [2, 1, 2])
    assert_array_equal(found.columns["low"], [0.0, 0.5, 1.0])


def test_rows_that_do_not_sum_to_one_are_refused(engine, rows, tmp_path):
    path = spoiled(rows, "c_1", 0.0, tmp_path / "bad.parquet")
    with pytest.raises(RowSumError, match="must sum to 1"):
        cb.Predictions.from_table(
            path, y="kind", p="c_*", task="confidence", engine=engine
        ).aggregate()


def test_classes_that_have_no_column_are_refused(local_engine, rows, tmp_path):
    path = spoiled(rows, "kind", 9, tmp_path / "bad.parquet")
    with pytest.raises(LabelError, match=r"classes 0, 1, 2.*9"):
        cb.Predictions.from_table(
            path, y="kind", p="c_*", task="classwise", engine=local_engine
        ).aggregate()


def test_a_third_label_is_refused(engine, rows, tmp_path):
    path = spoiled(rows, "happened", "maybe", tmp_path / "bad.parquet", at=(5,))
    with pytest.raises(LabelError, match="one of them the event 'yes'"):
        cb.Predictions.from_table(
            path, y="happened", p="p", pos_label="yes", engine=engine
        ).aggregate()


def test_text_labels_need_to_be_named(local_engine, row_file):
    with pytest.raises(LabelError, match=r"'no'.*'yes'.*pos_label="):
        cb.Predictions.from_table(
            row_file, y="happened", p="p", engine=local_engine
        ).aggregate()


def test_text_is_no_probability(local_engine, row_file):
    with pytest.raises(InputError, match="'happened' must contain numbers"):
        cb.Predictions.from_table(
            row_file, y="y", p="happened", engine=local_engine
        ).aggregate()


@pytest.mark.parametrize("option", ["y", "p", "by", "weight"])
def test_unknown_columns_are_named_with_the_nearest(local_engine, option, row_file):
    wanted = {"y": "y", "p": "p", option: "coumt"}
    with pytest.raises(UnknownNameError, match="did you mean 'count'"):
        cb.Predictions.from_table(row_file, engine=local_engine, **wanted).aggregate()


HOSTILE = [
    '"; DROP TABLE calibrant_rows; --',
    "a.b",
    "`tick` 'quote' \"both\"",
    "p) FROM x; --",
    "naïve 列 \t",
    "{brace} %s :name ?",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_columns_are_never_read_as_sql(local_engine, name, rows, tmp_path):
    odd = rows.rename({"p": name, "y": name + "y", "place": name + "g", "count": "'w"})
    odd.write_parquet(tmp_path / "odd.parquet")
    found = (
        cb.Predictions.from_table(
            tmp_path / "odd.parquet",
            y=name + "y",
            p={"model": name},
            by=name + "g",
            weight="'w",
            engine=local_engine,
        )
        .aggregate()
        .store.cells
    )
    expected = (
        cb.Predictions.from_table(
            rows, y="y", p={"model": "p"}, by="place", weight="count"
        )
        .aggregate()
        .store.cells
    )
    for column in EXACT:
        assert_array_equal(found.columns[column], expected.columns[column])


@pytest.mark.parametrize("label", ["x' OR '1'='1", "'; --", "yes"])
def test_labels_are_values_not_sql(local_engine, label, rows, tmp_path):
    named = rows.with_columns(
        pl.when(pl.col("y") == 1).then(pl.lit(label)).otherwise(pl.lit("no")).alias("t")
    )
    named.write_parquet(tmp_path / "labels.parquet")
    found = (
        cb.Predictions.from_table(
            tmp_path / "labels.parquet",
            y="t",
            p="p",
            pos_label=label,
            engine=local_engine,
        )
        .aggregate()
        .store.cells
    )
    assert found.columns["event_rows"].sum() == rows["y"].sum()


def test_odd_names_bad_rows_and_labels_at_once(engine, rows, tmp_path):
    """What other tests try one by one, for engines that are slow to start."""
    name, label = '`"; DROP TABLE x; -- a.b', "x' OR '1'='1"
    odd = rows.select(
        pl.col("p").alias(name),
        t=pl.when(pl.col("y") == 1).then(pl.lit(label)).otherwise(pl.lit("no")),
    )
    path = spoiled(odd, name, np.nan, tmp_path / "odd.parquet")
    wanted = {"y": "t", "p": name, "pos_label": label, "engine": engine}
    with pytest.raises(MissingValueError, match=r"2 of 3,?000"):
        cb.Predictions.from_table(path, **wanted).aggregate()
    with pytest.warns(DroppedRowsWarning, match="2 of 3,000 rows"):
        found = (
            cb.Predictions.from_table(path, bad_rows="drop", **wanted)
            .aggregate()
            .store.cells
        )
    kept = rows.filter(~pl.int_range(pl.len()).is_in([1, 2500]))
    assert found.columns["event_rows"].sum() == kept["y"].sum()
