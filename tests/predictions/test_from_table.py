from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cb
from calibrant.exceptions import (
    MissingGroupWarning,
    OptionError,
    SmallSampleWarning,
    UnknownNameError,
)
from calibrant.predictions.columns import typed_like

es15 = partial(cb.calibration_error, method="es15")


@pytest.fixture
def table(sample):
    p, y = sample
    region = np.where(np.arange(p.size) % 2, "north", "south")
    return {"y": y, "a": p, "b": p**2, "w": np.ones(p.size), "region": region}


@pytest.mark.parametrize(
    "frame", [dict, pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table]
)
def test_every_kind_of_table_gives_the_same(table, frame):
    found = cb.evaluate(
        cb.Predictions.from_table(frame(table), y="y", p="a"), methods="es15"
    ).frame()
    assert found["value"][0] == pytest.approx(es15(table["y"], table["a"]), rel=1e-12)


def test_columns_without_a_task_are_models(table):
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p=["a", "b"]), methods="es15"
    ).frame()
    assert found["model"].tolist() == ["a", "b"]
    assert found["value"][1] == pytest.approx(es15(table["y"], table["b"]), rel=1e-12)


def test_groups_are_rows_of_their_own(table):
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="a", by="region"), methods="es15"
    ).frame()
    assert found["region"].tolist() == ["north", "south"]
    north = table["region"] == "north"
    alone = es15(table["y"][north], table["a"][north])
    assert found["value"][0] == pytest.approx(alone, rel=1e-12)


def test_two_group_columns_make_pairs(table):
    table["half"] = np.arange(500) < 250
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="a", by=["region", "half"]),
        methods="es5",
    )
    assert len(found.frame()["half"]) == 4


def test_small_groups_are_left_out_with_a_warning(table):
    table["region"] = np.where(np.arange(500) < 5, "tiny", "rest")
    with pytest.warns(SmallSampleWarning, match="group region=tiny is skipped"):
        found = cb.evaluate(
            cb.Predictions.from_table(table, y="y", p="a", by="region"), methods="es15"
        )
    assert found.frame()["region"].tolist() == ["rest"]


def test_many_small_groups_are_one_warning(table):
    table["region"] = np.where(np.arange(500) < 80, np.arange(500) // 8, 99)
    with pytest.warns(SmallSampleWarning) as told:
        found = cb.evaluate(
            cb.Predictions.from_table(table, y="y", p=["a", "b"], by="region"),
            methods=["es15", "ew15"],
        )
    assert found.frame()["region"].tolist() == [99] * 4
    (warning,) = told
    assert str(warning.message) == (
        "10 groups are skipped: region=0; region=1; region=2; region=3; region=4 and "
        "5 more. Reason for the first: bins must not exceed the number of rows; got "
        "15 bins for 8 rows."
    )
    assert warning.filename == __file__


@pytest.mark.filterwarnings("ignore:only 14 rows")
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_group_loses_only_the_methods_that_need_more_rows(table, engine):
    table["region"] = np.where(np.arange(500) < 14, "tiny", "rest")
    methods = ["platt", "es15", "es5"]
    columns = {"y": "y", "p": ["a", "b"], "by": "region", "engine": engine}
    preds = cb.Predictions.from_table(pl.DataFrame(table), **columns)
    with pytest.warns(SmallSampleWarning) as told:
        found = cb.evaluate(preds, methods=methods, confidence=None).frame()
    (warning,) = told
    assert str(warning.message).startswith("es15 is skipped for group region=tiny: ")
    tiny = found["region"] == "tiny"
    rows = list(zip(found["model"][tiny], found["method"][tiny], strict=True))
    assert rows == [(m, e) for m in "ab" for e in ("platt", "es5")]
    assert found["method"][~tiny].tolist() == methods * 2
    for (model, method), value in zip(rows, found["value"][tiny], strict=True):
        alone = cb.calibration_error(table["y"][:14], table[model][:14], method=method)
        assert value == pytest.approx(alone, abs=1e-12)


def test_methods_that_many_groups_lose_are_one_warning_each(table):
    table["region"] = np.where(np.arange(500) < 84, np.arange(500) // 14, 99)
    methods = ["es15", "es5", "es20"]
    preds = cb.Predictions.from_table(table, y="y", p="a", by="region")
    with pytest.warns(SmallSampleWarning) as told:
        found = cb.evaluate(preds, methods=methods, confidence=None).frame()
    assert found["method"].tolist() == ["es5"] * 6 + methods
    first, second = (str(warning.message) for warning in told)
    assert first.startswith("es15 is skipped for 6 groups: region=0; region=1; ")
    assert second.startswith("es20 is skipped for 6 groups: ")
    assert "and 1 more. Reason for the first: bins must not exceed" in first


def test_only_small_groups_is_an_error(table):
    table["region"] = np.arange(500) // 5
    with (
        pytest.warns(SmallSampleWarning),
        pytest.raises(OptionError, match="no group has"),
    ):
        cb.evaluate(
            cb.Predictions.from_table(table, y="y", p="a", by="region"), methods="es15"
        )


def test_weights_are_a_column(table):
    table["w"] = np.arange(500) % 3
    found = cb.evaluate(
        cb.Predictions.from_table(table, y="y", p="a", weight="w"), methods="es15"
    )
    expected = es15(table["y"], table["a"], sample_weight=table["w"])
    assert found.frame()["value"][0] == expected


def test_a_missing_column_gives_the_nearest_name(table):
    with pytest.raises(
        UnknownNameError, match="unknown column 'regoin'; did you mean 'region'"
    ):
        cb.evaluate(cb.Predictions.from_table(table, y="y", p="a", by="regoin"))


@pytest.fixture
def classes():
    prob, y = cb.datasets.load_multiclass("bayes")
    names = np.array([f"digit {d}" for d in range(10)])
    return {"y": y, "name": names[y]} | {names[d]: prob[:, d] for d in range(10)}


def test_pattern_names_the_classes(classes):
    prob, y = cb.datasets.load_multiclass("bayes")
    backwards = dict(reversed(list(classes.items())))
    found = cb.evaluate(
        cb.Predictions.from_table(backwards, y="y", p="digit *", task=3), methods="es15"
    )
    assert found.frame()["value"][0] == es15(y, prob, task=3)


def test_text_labels_are_names_of_columns(classes):
    prob, y = cb.datasets.load_multiclass("bayes")
    columns = [f"digit {d}" for d in range(10)]
    found = cb.evaluate(
        cb.Predictions.from_table(classes, y="name", p=columns, task="confidence"),
        methods="es15",
    )
    expected = es15(y, prob, task="confidence")
    assert found.frame()["value"][0] == expected


def test_several_multi_class_models_have_names():
    found = cb.evaluate(
        cb.Predictions.from_table(
            cb.datasets.MULTICLASS_FILE,
            y="digit",
            p={"forest": "forest_*", "bayes": "bayes_*"},
            task="confidence",
        ),
        methods="es15",
    )
    assert found.frame()["model"].tolist() == ["forest", "bayes"]


def test_progress_is_reported(table):
    seen = []
    cb.evaluate(
        cb.Predictions.from_table(table, y="y", p=["a", "b"]),
        methods="es5",
        progress=lambda *at: seen.append(at),
    )
    assert seen == [(0, 2), (1, 2)]


def test_engines_are_named(table):
    with pytest.raises(UnknownNameError, match="unknown engine 'abacus'"):
        cb.evaluate(cb.Predictions.from_table(table, y="y", p="a", engine="abacus"))


def test_no_columns_is_an_error(table):
    with pytest.raises(OptionError, match="at least one column"):
        cb.evaluate(cb.Predictions.from_table(table, y="y", p=[]))


@pytest.mark.parametrize(
    ("column", "text", "value"),
    [
        (np.array([True]), "True", True),
        (np.array([True]), "maybe", "maybe"),
        (np.array([1.5]), "2", 2.0),
        (np.array([1]), "x", "x"),
        (np.array(["a"]), "1", "1"),
    ],
)
def test_text_is_read_in_the_type_of_the_column(column, text, value):
    assert typed_like(column, text) == value


@pytest.mark.parametrize("aggregated", [False, True])
def test_rows_without_a_value_of_their_group_are_counted_in_one_warning(aggregated):
    p = np.tile([0.2, 0.4, 0.6, 0.8], 60)
    y = np.random.default_rng(0).random(240) < p
    place = np.array(["a", "b", None] * 80, dtype=object)
    table = {"y": y.astype(int), "old": p, "new": p**2, "place": place}
    preds = cb.Predictions.from_table(table, y="y", p=["old", "new"], by="place")
    if aggregated:
        preds = preds.aggregate()
    with pytest.warns(MissingGroupWarning) as caught:
        result = cb.summary(preds)
    (told,) = (str(one.message) for one in caught)
    assert told == (
        "80 rows have no value of place; they are in a group called (missing). Remove "
        "such rows to leave them out."
    )
    assert {unit.name for unit in result.units if None in unit.key.values()} == {
        "old, (missing)",
        "new, (missing)",
    }
