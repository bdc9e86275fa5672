"""Aggregated predictions and patterns on the command line."""

import json

import numpy as np
import polars as pl
import pytest

import calibrant as cb

N = 600


@pytest.fixture
def lake(tmp_path):
    rng = np.random.default_rng(5)
    p = rng.random(N)
    frame = pl.DataFrame(
        {
            "score": p,
            "label": (rng.random(N) < p**2).astype(int),
            "day": np.arange(N) % 2,
        }
    )
    (tmp_path / "lake").mkdir()
    for day in (0, 1):
        part = frame.filter(pl.col("day") == day)
        part.write_parquet(tmp_path / "lake" / f"{day}.parquet")
    return tmp_path / "lake"


def values(run, *arguments):
    code, out, err = run(
        "evaluate", *arguments, "--methods", "ew15", "--format", "json"
    )
    assert code == 0, err
    return [row["value"] for row in json.loads(out)["rows"]]


COLUMNS = ("--y", "label", "--p", "score")


def test_days_aggregated_apart_give_the_whole(run, lake, tmp_path):
    for day in (0, 1):
        out = tmp_path / f"cells-{day}.parquet"
        code, told, err = run(
            "aggregate", lake / f"{day}.parquet", *COLUMNS, "--out", out
        )
        assert code == 0, err
        assert "300 rows in" in told
    whole = values(run, f"{lake}/*.parquet", *COLUMNS)
    assert values(run, tmp_path / "cells-*.parquet") == pytest.approx(whole, abs=1e-12)
    both = [tmp_path / f"cells-{day}.parquet" for day in (0, 1)]
    assert values(run, *both) == pytest.approx(whole, abs=1e-12)


def test_files_that_are_read_are_not_written_over(run, lake):
    source = lake / "0.parquet"
    before = source.read_bytes()
    code, _, err = run("aggregate", source, *COLUMNS, "--out", source)
    assert code == 2
    assert "--out must not be one of the input files" in err
    assert source.read_bytes() == before


def test_groups_of_cells_are_rows_of_the_result(run, lake, tmp_path):
    out = tmp_path / "cells.parquet"
    assert run("aggregate", lake, *COLUMNS, "--by", "day", "--out", out)[0] == 0
    assert len(values(run, out)) == 2
    assert len(values(run, out, "--by", "")) == 1  # all rows
    expected = values(run, lake, *COLUMNS, "--by", "day")
    assert values(run, out) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_engines_by_name(run, engine, lake):
    found = values(run, lake / "0.parquet", *COLUMNS, "--engine", engine)
    frame = pl.read_parquet(lake / "0.parquet")
    expected = cb.calibration_error(frame["label"], frame["score"], method="ew15")
    assert found == pytest.approx([expected], abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--y", "label"], "remove --y."),
        (["--p", "score"], "remove --p."),
        (["--weight", "count"], "remove --weight."),
        (["--scale", "logit"], "remove --scale."),
        (["--engine", "duckdb"], "remove --engine."),
        (["--bad-rows", "drop"], "remove --bad-rows."),
        (["--per-class"], "--task classwise"),
    ],
)
def test_options_that_cells_cannot_take(run, arguments, words, lake, tmp_path):
    out = tmp_path / "cells.parquet"
    run("aggregate", lake, *COLUMNS, "--out", out)
    code, _, err = run("evaluate", out, *arguments)
    assert code == 2
    assert words in err


def test_columns_must_be_named_for_rows(run, lake):
    code, _, err = run("evaluate", lake)
    assert code == 2
    assert "--y must name the column of labels" in err


def test_bad_rows_are_told_with_the_option_to_drop_them(run, lake, tmp_path):
    frame = pl.read_parquet(lake / "0.parquet")
    bad = frame.with_columns(
        score=pl.when(pl.int_range(pl.len()) == 7).then(3.0).otherwise("score")
    )
    bad.write_parquet(lake / "0.parquet")
    code, _, err = run("evaluate", lake, *COLUMNS)
    assert code == 2
    assert "1 of 600 rows" in err
    assert "--bad-rows drop" in err
    out = tmp_path / "cells.parquet"
    code, told, err = run(
        "aggregate", lake, *COLUMNS, "--bad-rows", "drop", "--out", out
    )
    assert code == 0
    assert "599 rows in" in told
    assert "1 of 600 rows were invalid" in err


@pytest.fixture
def map_file(tmp_path):
    rng = np.random.default_rng(8)
    p = rng.random(900)
    fitted = cb.make_calibrator("pl3").fit(p, (rng.random(900) < p**2).astype(int))
    cb.save_map(fitted.map_, tmp_path / "map.json")
    return tmp_path / "map.json"


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv"])
def test_maps_are_applied_inside_the_engine(run, suffix, lake, map_file, tmp_path):
    out = tmp_path / f"new.{suffix}"
    code, told, err = run("apply", map_file, f"{lake}/*", "--p", "score", "--out", out)
    assert code == 0, err
    assert "600 rows, new score_calibrated" in told
    separator = "\t" if suffix == "tsv" else ","
    new = (
        pl.read_parquet(out)
        if suffix == "parquet"
        else pl.read_csv(out, separator=separator)
    )
    assert new.columns == ["score", "label", "day", "score_calibrated"]
    rows = pl.concat([pl.read_parquet(lake / f"{day}.parquet") for day in (0, 1)])
    assert new["score"].to_list() == pytest.approx(rows["score"].to_list(), rel=1e-15)
    expected = cb.load_map(map_file).transform(rows["score"].to_numpy())
    assert new["score_calibrated"].to_list() == pytest.approx(list(expected), abs=1e-12)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_what_is_no_probability_is_not_calibrated(run, engine, map_file, tmp_path):
    pl.DataFrame({"score": [0.5, 1.5]}).write_parquet(tmp_path / "bad.parquet")
    out = tmp_path / "new.parquet"
    command = ["apply", map_file, tmp_path / "bad.parquet", "--p", "score"]
    code, _, err = run(*command, "--out", out, "--engine", engine)
    assert code == 2
    assert "must contain probabilities in [0, 1]" in err
    assert "1.5" in err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--p", "nothing", "--out", "new.parquet"], "unknown column"),
        (["--p", "score,label", "--out", "new.parquet"], "one column"),
        (
            [
                "--p",
                "score",
                "--scale",
                "logit",
                "--out",
                "new.parquet",
                "--engine",
                "duckdb",
            ],
            "--scale logit is applied in memory; pass --engine memory",
        ),
        (["--p", "score", "--out", "new.jsonl"], "can only write"),
        (["--p", "score", "--out", "new.parquet", "--suffix", ""], "already"),
        (["--p", "score", "--out", "new.parquet", "--engine", "x"], "--engine"),
    ],
)
def test_wrong_ways_to_apply(run, arguments, words, lake, map_file, monkeypatch):
    monkeypatch.chdir(lake.parent)
    code, _, err = run("apply", map_file, lake, *arguments)
    assert code == 2
    assert words in err
    assert not list(lake.parent.glob("new*"))


def test_maps_of_several_classes_are_applied_in_memory(run, lake, tmp_path):
    prob, digit = cb.datasets.load_multiclass("forest")
    fitted = cb.make_calibrator("temperature").fit(prob, digit)
    cb.save_map(fitted.map_, tmp_path / "classes.json")
    arguments = ["--p", "score", "--out", tmp_path / "new.parquet"]
    apply = ("apply", tmp_path / "classes.json", lake, *arguments)
    code, _, err = run(*apply, "--engine", "duckdb")
    assert code == 2
    assert "multi-class maps are applied in memory; pass --engine memory" in err
    code, _, err = run(*apply)
    assert code == 2
    assert "needs the columns of all 10 classes in --p; got 1" in err


def test_several_files_are_calibrated_in_memory_too(run, lake, map_file, tmp_path):
    found = {}
    for engine in ("memory", "duckdb"):
        out = tmp_path / f"{engine}.parquet"
        options = ("--p", "score", "--out", out, "--engine", engine)
        code, _, err = run("apply", map_file, lake, *options)
        assert code == 0, err
        found[engine] = pl.read_parquet(out)
    assert found["memory"]["filename"].unique(maintain_order=True).to_list() == [
        "0",
        "1",
    ]
    for name, values in found["duckdb"].to_dict(as_series=False).items():
        assert found["memory"][name].to_list() == pytest.approx(values, abs=1e-12)


def test_the_file_that_is_read_is_not_written(run, lake, map_file):
    out = lake / "0.parquet"
    code, _, err = run("apply", map_file, lake, "--p", "score", "--out", out)
    assert code == 2
    assert "one of the input files" in err
