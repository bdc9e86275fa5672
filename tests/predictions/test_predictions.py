"""One value for all doors: arrays, tables, long tables and aggregates."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cb
from calibrant.exceptions import (
    LengthMismatchError,
    OptionError,
    ProbabilityRangeError,
    ShapeError,
    SmallSampleWarning,
    SourceError,
    UnpairedRowsWarning,
)

METHODS = ["smooth", "es5", "ew5"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(11)
    p = rng.beta(1.0, 1.5, 300)
    return {
        "y": (rng.random(300) < p**1.3).astype(int),
        "a": p,
        "b": np.sqrt(p),
        "region": np.where(np.arange(300) % 3 == 0, "north", "south"),
        "w": rng.integers(1, 4, 300),
        "question": np.arange(300),
    }


@pytest.fixture
def long(rows):
    """Return the same predictions with one row per model and question, shuffled."""
    order = np.random.default_rng(5).permutation(600)
    table = {name: np.tile(rows[name], 2) for name in ("y", "question", "region", "w")}
    table["model"] = np.repeat(["a", "b"], 300)
    table["percent"] = 100.0 * np.concatenate([rows["a"], rows["b"]])
    return {name: column[order] for name, column in table.items()}


def frames_agree(one, other):
    assert list(one) == list(other)
    for name, column in one.items():
        if column.dtype.kind == "f":
            np.testing.assert_allclose(column, other[name], rtol=1e-9, atol=1e-12)
        else:
            assert column.tolist() == other[name].tolist()


def test_arrays_and_tables_are_the_same(rows):
    arrays = cb.Predictions.from_arrays(
        rows["y"],
        {"a": rows["a"], "b": rows["b"]},
        sample_weight=rows["w"],
        groups=rows["region"],
    )
    table = cb.Predictions.from_table(
        rows, y="y", p=["a", "b"], by="region", weight="w"
    )
    found = cb.evaluate(arrays, methods=METHODS).frame()
    found = {"model": found.pop("model"), "region": found.pop("group")} | found
    frames_agree(found, cb.evaluate(table, methods=METHODS).frame())


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_long_tables_are_wide_tables(rows, long, engine):
    options = {"y": "y", "by": "region", "weight": "w", "engine": engine}
    wide = cb.Predictions.from_table(pl.DataFrame(rows), p=["a", "b"], **options)
    tall = cb.Predictions.from_table(
        pl.DataFrame(long), p="percent", model="model", scale="percent", **options
    )
    assert tall.models == ("a", "b")
    assert tall.n == 600
    frames_agree(
        cb.evaluate(tall, methods=METHODS).frame(),
        cb.evaluate(wide, methods=METHODS).frame(),
    )


def test_models_of_a_long_table_are_paired_by_id(rows, long):
    options = {"y": "y", "model": "model", "p": "percent", "scale": "percent"}
    tall = cb.Predictions.from_table(long, id="question", **options)
    wide = cb.Predictions.from_table(rows, y="y", p=["a", "b"])
    found, wanted = (
        cb.compare(one, method="es5", n_resamples=100) for one in (tall, wide)
    )
    assert str(found) == str(wanted)
    with pytest.raises(OptionError, match=r"must be paired.*pass id"):
        cb.compare(cb.Predictions.from_table(long, **options))


def test_rows_without_a_partner_are_left_out_of_pairs(long):
    kept = ~((long["model"] == "b") & (long["question"] < 40))
    some = {name: column[kept] for name, column in long.items()}
    options = {"y": "y", "model": "model", "p": "percent", "scale": "percent"}
    preds = cb.Predictions.from_table(some, id="question", **options)
    with pytest.warns(UnpairedRowsWarning, match="260 of 300 values"):
        found = cb.compare(preds, method="es5", n_resamples=50)
    assert found.frame()["n"].tolist() == [260, 260]
    kept &= ~((long["model"] == "a") & (long["question"] >= 290))
    some = {name: column[kept] for name, column in long.items()}
    preds = cb.Predictions.from_table(some, id="question", **options)
    with pytest.warns(UnpairedRowsWarning, match="250 of 300 values"):
        cb.compare(preds, method="es5", n_resamples=50)
    twice = cb.Predictions.from_table(long, id="region", **options)
    with pytest.raises(OptionError, match="'region' must have each value at most once"):
        cb.compare(twice)


def test_several_columns_identify_rows_together(rows, long):
    """Each question asked three times is the wide table with the rows as they are."""
    options = {"y": "y", "model": "model", "p": "percent", "scale": "percent"}
    asked = long | {"topic": long["question"] // 3, "sample": long["question"] % 3}
    tall = cb.Predictions.from_table(asked, id=["topic", "sample"], **options)
    wide = cb.Predictions.from_table(rows, y="y", p=["a", "b"])
    found, wanted = (
        cb.compare(one, method="es5", n_resamples=100) for one in (tall, wide)
    )
    assert str(found) == str(wanted)
    some = {name: column[20:] for name, column in asked.items()}
    preds = cb.Predictions.from_table(some, id=["topic", "sample"], **options)
    with pytest.warns(
        UnpairedRowsWarning, match="of columns 'topic' and 'sample' occur"
    ):
        cb.compare(preds, method="es5", n_resamples=50)
    repeated = cb.Predictions.from_table(asked, id="topic", **options)
    with pytest.raises(OptionError, match=r"further column .*id=\['topic', 'sample'\]"):
        cb.compare(repeated)
    with pytest.raises(OptionError, match="id names the column 'topic' twice"):
        cb.Predictions.from_table(asked, id=["topic", "topic"], **options)


def test_aggregates_add_up_and_can_be_stored(rows, tmp_path):
    halves = [slice(0, 120), slice(120, 300)]
    parts = [{name: column[half] for name, column in rows.items()} for half in halves]
    options = {"y": "y", "p": ["a", "b"], "by": "region"}
    first, second = (
        cb.Predictions.from_table(part, **options).aggregate() for part in parts
    )
    whole = cb.Predictions.from_table(rows, **options)
    first.save(tmp_path / "one.parquet")
    second.save(tmp_path / "two.parquet")
    wanted = cb.evaluate(whole, methods=METHODS).frame()
    for preds in (first + second, cb.Predictions.load(tmp_path / "*.parquet")):
        assert preds.aggregated
        assert preds.by == ("region",)
        frames_agree(cb.evaluate(preds, methods=METHODS).frame(), wanted)
    together = (first + second).grouped_by([])
    plain = cb.Predictions.from_table(rows, y="y", p=["a", "b"])
    frames_agree(
        cb.evaluate(together, methods=METHODS).frame(),
        cb.evaluate(plain, methods=METHODS).frame(),
    )


def test_aggregates_of_a_long_table_know_their_models(long, tmp_path):
    preds = cb.Predictions.from_table(
        long, y="y", p="percent", model="model", scale="percent", by="region"
    )
    preds.aggregate().save(tmp_path / "m.parquet")
    again = cb.Predictions.load(tmp_path / "m.parquet")
    assert (again.models, again.by) == (("a", "b"), ("region",))
    frames_agree(
        cb.evaluate(again, methods=METHODS).frame(),
        cb.evaluate(preds, methods=METHODS).frame(),
    )
    report = cb.Report.from_predictions(again, methods="es5", n_resamples=50)
    assert [model["name"] for model in report.summary["models"]] == ["a", "b"]
    assert report.summary["comparison"] is None


def test_every_verb_takes_predictions(rows):
    preds = cb.Predictions.from_arrays(rows["y"], rows["a"])
    assert cb.calibration_test(preds) == cb.calibration_test(rows["y"], rows["a"])
    assert cb.diagnose(preds).codes == cb.diagnose(rows["y"], rows["a"]).codes
    display = cb.ReliabilityDisplay.from_predictions(preds)
    alone = cb.ReliabilityDisplay.from_predictions(rows["y"], rows["a"])
    assert display.error == alone.error
    both = cb.Predictions.from_table(rows, y="y", p=["a", "b"])
    grid = cb.ReliabilityGrid.from_predictions(both, method="es5")
    assert [one.name for one in grid.displays] == ["a", "b"]
    with pytest.raises(OptionError, match="one model without groups; got 2"):
        cb.calibration_test(both)


def test_the_error_about_groups_names_ways_that_work(rows):
    table = rows | {"g": np.arange(len(rows["y"])) % 2}
    several = cb.Predictions.from_table(table, y="y", p=["a", "b"], by="g")
    with pytest.raises(OptionError, match=r'preds.model\("name"\).*without by='):
        cb.calibration_test(several)
    with pytest.raises(OptionError, match="without by=") as told:
        cb.calibration_test(several.model("a"))
    assert "preds.model" not in str(told.value)
    alone = cb.Predictions.from_table(table, y="y", p=["a", "b"]).model("a")
    assert cb.calibration_test(alone).pvalue > 0.0


def test_a_dict_of_groups_names_the_way_for_several_columns(rows):
    groups = {"centre": rows["y"], "age": rows["y"]}
    for take in (cb.evaluate, cb.Report.from_predictions):
        with pytest.raises(OptionError, match=r"from_table .*by=\['centre', 'age'\]"):
            take(rows["y"], rows["a"], groups=groups)


def test_what_predictions_already_say_is_not_said_again(rows):
    preds = cb.Predictions.from_arrays(rows["y"], rows["a"])
    for options in ({"task": "confidence"}, {"scale": "logit"}, {"y_prob": rows["a"]}):
        name = next(iter(options))
        with pytest.raises(OptionError, match=f"remove {name}"):
            cb.evaluate(preds, **options)
    with pytest.raises(OptionError, match="y_prob is missing"):
        cb.evaluate(rows["y"])


def test_clusters_of_a_table_are_those_of_an_array(rows):
    rows["patient"] = [f"p{k // 3}" for k in range(len(rows["y"]))]
    preds = cb.Predictions.from_table(rows, y="y", p=["a", "b"], cluster="patient")
    models = {name: rows[name] for name in ("a", "b")}
    clusters = np.arange(len(rows["y"])) // 3
    for verb in (cb.evaluate, cb.compare):
        ours, same = verb(preds), verb(rows["y"], models, clusters=clusters)
        np.testing.assert_array_equal(ours.frame()["low"], same.frame()["low"])
        assert str(ours) != str(verb(rows["y"], models))


def test_invalid_rows_are_named_by_their_place_in_the_table(rows):
    rows["a"][217] = 1.5
    with pytest.raises(ProbabilityRangeError, match=r"'a'.*row 217 is 1\.5.*drop"):
        cb.Predictions.from_table(rows, y="y", p="a", by="region")
    with pytest.raises(ProbabilityRangeError, match=r"y_prob must.*row 217 is 1\.5"):
        cb.Predictions.from_arrays(rows["y"], rows["a"], groups=rows["region"])
    with pytest.raises(LengthMismatchError, match="groups has 299"):
        cb.Predictions.from_arrays(rows["y"], rows["b"], groups=rows["region"][1:])


def test_only_aggregates_are_added_and_saved(rows, tmp_path):
    preds = cb.Predictions.from_arrays(rows["y"], rows["a"])
    with pytest.raises(OptionError, match="can be added; call aggregate"):
        preds + preds
    with pytest.raises(OptionError, match="can be saved; call aggregate"):
        preds.save(tmp_path / "x.parquet")
    assert repr(preds) == "<Predictions: 300 rows, task binary>"
    assert not list(tmp_path.iterdir())


def test_both_columns_of_predict_proba_are_binary_everywhere():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    one, two = (cb.Predictions.from_arrays(y, given) for given in (p, np.c_[1 - p, p]))
    for verb in (
        lambda preds: cb.evaluate(preds).frame()["value"].tolist(),
        lambda preds: cb.evaluate(preds.aggregate()).frame()["value"].tolist(),
        lambda preds: cb.calibration_test(preds).pvalue,
        lambda preds: cb.diagnose(preds).codes,
        lambda preds: cb.ReliabilityDisplay.from_predictions(preds).error,
    ):
        assert verb(two) == verb(one)


def test_predictions_are_a_snapshot_of_a_table():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    rows = {
        "y": (rng.random(300) < p).astype(int),
        "p": p.copy(),
        "g": ["a", "b"] * 150,
    }
    preds = cb.Predictions.from_table(rows, y="y", p="p", by="g")
    before = cb.evaluate(preds, methods="es15").frame()["value"].tolist()
    rows["p"][:] = 0.5
    assert cb.evaluate(preds, methods="es15").frame()["value"].tolist() == before
    again = pickle.loads(pickle.dumps(preds))  # noqa: S301
    assert cb.evaluate(again, methods="es15").frame()["value"].tolist() == before


LONG = {
    "y": [0, 1] * 40,
    "a": [0.2, 0.7] * 40,
    "b": [0.3, 0.6] * 40,
    "m": ["x", "y"] * 40,
}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"p": ["a", "b"], "model": "m"}, "p must be one model; it names 2: 'a', 'b'"),
        ({"p": "a", "model": "m", "by": "m"}, "names the models already"),
        ({"p": "a", "by": ["m", "m"]}, "by names the column 'm' twice"),
        ({"p": ["a", "y"]}, "p must name predictions, but y names the column 'y' too"),
    ],
)
def test_columns_that_are_named_for_two_purposes_are_refused(options, words):
    with pytest.raises(cb.exceptions.OptionError, match=words):
        cb.evaluate(cb.Predictions.from_table(LONG, y="y", **options))


def test_clusters_are_not_lost_by_aggregating(rows):
    rows["patient"] = np.arange(len(rows["y"])) // 6
    preds = cb.Predictions.from_table(rows, y="y", p=["a", "b"], cluster="patient")
    found = preds.aggregate()
    assert repr(found.store.cells).startswith("<AggregatedCells: 300 rows in 50 clust")
    frames_agree(cb.evaluate(found).frame(), cb.evaluate(preds).frame())
    with pytest.raises(OptionError, match=r"in clusters by patient .* differs from"):
        cb.Predictions.from_table(rows, y="y", p=["a", "b"]).aggregate() + found


def test_aggregates_of_opposite_events_are_not_added(rows, tmp_path):
    y = np.where(rows["y"] == 1, "yes", "no")
    yes, no = (
        cb.Predictions.from_arrays(y, p, pos_label=label).aggregate()
        for p, label in ((rows["a"], "yes"), (1.0 - rows["a"], "no"))
    )
    with pytest.raises(OptionError, match=r"event 'no'.* differs from .*event 'yes'"):
        yes + no
    yes.save(tmp_path / "yes.parquet")
    again = cb.Predictions.load(tmp_path / "yes.parquet")
    assert (again + yes).n == 600
    display = cb.ReliabilityDisplay.from_predictions(again, method="es5")
    assert display.plot().get_ylabel() == "Observed rate of class yes"


def test_sum_adds_aggregates(rows):
    days = [cb.Predictions.from_arrays(rows["y"], rows["a"]).aggregate()] * 3
    assert sum(days).n == 900
    frames_agree(
        cb.evaluate(sum(days), methods="es5").frame(),
        cb.evaluate(days[0] + days[1] + days[2], methods="es5").frame(),
    )
    with pytest.raises(TypeError, match="unsupported operand"):
        days[0] + 1


def test_fields_that_functions_cannot_use_are_refused(rows):
    preds = cb.Predictions.from_table(rows, y="y", p="a", time="question")
    with pytest.raises(OptionError, match="no function uses time yet"):
        cb.evaluate(preds)
    with pytest.raises(OptionError, match="do not keep times yet"):
        preds.aggregate()
    with pytest.raises(OptionError, match="pass model too"):
        cb.Predictions.from_table(rows, y="y", p=["a", "b"], id="question")


def test_groups_without_weight_are_skipped_everywhere(rows):
    weight = np.where(rows["region"] == "north", 0, rows["w"])
    preds = cb.Predictions.from_arrays(
        rows["y"],
        {"a": rows["a"], "b": rows["b"]},
        sample_weight=weight,
        groups=rows["region"],
    )
    with pytest.warns(SmallSampleWarning, match="group=north all have weight 0"):
        comparison = cb.compare(preds, method="es5", n_resamples=50)
    assert [one.key for one in comparison.groups] == [{"group": "south"}]
    assert cb.evaluate(preds, methods="es5").frame()["group"].tolist() == ["south"] * 2
    assert len(cb.ReliabilityGrid.from_predictions(preds).displays) == 2
    assert preds.n == preds.aggregate().n == 200


def test_rows_of_weight_0_count_alike_in_all_engines(rows, tmp_path):
    table = {"y": rows["y"], "p": rows["a"].copy(), "w": np.arange(300) % 2}
    table["p"][:5] = np.nan
    pl.DataFrame(table).write_csv(tmp_path / "rows.csv")
    for engine in ("memory", "duckdb"):
        with pytest.warns(cb.exceptions.DroppedRowsWarning, match="5 of 300 rows"):
            preds = cb.Predictions.from_table(
                tmp_path / "rows.csv",
                y="y",
                p="p",
                weight="w",
                bad_rows="drop",
                engine=engine,
            )
        assert preds.n == 148


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_lists_in_a_column_are_class_probabilities(rows, kind, tmp_path):
    table = {"y": rows["y"], "p": [[1.0 - p, p] for p in rows["a"].tolist()]}
    frame = pl.DataFrame(table)
    frame.write_parquet(tmp_path / "rows.parquet")
    source = pd.DataFrame(table) if kind == "pandas" else frame
    expected = cb.evaluate(rows["y"], rows["a"], methods="es5").frame()["value"]
    preds = cb.Predictions.from_table(source, y="y", p="p")
    assert cb.evaluate(preds, methods="es5").frame()["value"] == expected
    found = cb.evaluate(source["y"], source["p"], methods="es5")
    assert found.frame()["value"] == expected
    for task in (None, "confidence"):
        with pytest.raises(OptionError, match=r"lists.* pass engine=\"memory\""):
            cb.Predictions.from_table(
                tmp_path / "rows.parquet", y="y", p="p", task=task, engine="duckdb"
            )


def test_files_are_named_once_and_by_their_rows(rows, tmp_path):
    good = pl.DataFrame({"y": rows["y"], "p": rows["a"]})
    bad = good.with_columns(p=pl.when(pl.int_range(300) == 7).then(2.5).otherwise("p"))
    good.write_csv(tmp_path / "a.csv")
    bad.write_csv(tmp_path / "b.csv")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(ProbabilityRangeError, match=r"row 7 of .*b\.csv is 2\.5") as e:
        cb.Predictions.from_table(files, y="y", p="p", engine="memory")
    assert e.value.place == (307,)
    with pytest.raises(SourceError, match=r"a\.csv is named twice"):
        cb.Predictions.from_table([files[0], files[0]], y="y", p="p")
    for source in (files[0], tmp_path / "a*.csv"):
        alone = cb.Predictions.from_table(source, y="y", p="p", model="filename")
        assert alone.models == ("a",)


def test_computed_columns_need_memory(rows, tmp_path):
    pl.DataFrame(rows).write_csv(tmp_path / "rows.csv")
    for columns in ({"y": "y==w"}, {"y": "y", "by": "filename"}):
        with pytest.raises(OptionError, match=r"in memory; pass engine=\"memory\""):
            cb.Predictions.from_table(
                tmp_path / "rows.csv", p="a", engine="duckdb", **columns
            )


@pytest.mark.parametrize("name", ["groups", "clusters", "sample_weight"])
def test_what_belongs_to_rows_is_a_vector(rows, name):
    wide = np.ones((300, 2))
    with pytest.raises(ShapeError, match=rf"{name} must be a vector of shape \(n,\)"):
        cb.Predictions.from_arrays(rows["y"], rows["a"], **{name: wide})


@pytest.mark.parametrize(
    "verb",
    [
        cb.evaluate,
        cb.calibration_test,
        cb.diagnose,
        cb.ReliabilityDisplay.from_predictions,
        cb.Report.from_predictions,
    ],
)
def test_functions_that_cannot_use_times_say_so(verb):
    rows = {"y": [0, 1] * 20, "p": [0.2, 0.7] * 20, "day": list(range(40))}
    preds = cb.Predictions.from_table(rows, y="y", p="p", time="day")
    with pytest.raises(OptionError, match="no function uses time yet; create"):
        verb(preds)
