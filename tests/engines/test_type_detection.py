"""Columns of files without types are read as they are, whatever their first rows hold.

DuckDB alone would look at the first 20,480 rows of a file.
"""

import gzip
import json
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import InputError, LabelError, OptionError

N = 25_000
FORMATS = ["csv", "tsv", "jsonl", "csv.gz"]


def write_rows(path, rows):
    """Write a list of dicts as text; values are what `json` or `str` makes of them."""
    if ".jsonl" in path.name:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        separator = "\t" if ".tsv" in path.name else ","
        lines = [list(rows[0]), *(row.values() for row in rows)]
        text = "".join(separator.join(map(str, line)) + "\n" for line in lines)
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def late_rows(**last):
    """Return whole numbers, and a last row that differs."""
    rows = [{"y": i % 2, "p": (i // 2) % 2, "w": 1, "g": i % 3} for i in range(N)]
    return [*rows, rows[-1] | last]


@pytest.fixture(
    params=[
        (engine, kind)
        for kind in FORMATS
        for engine in ("memory", "duckdb")
        if (engine, kind) != ("duckdb", "jsonl")  # JSON is read in memory alone
    ],
    ids="-".join,
)
def reader(request):
    """Return an engine, and a format that it reads."""
    return request.param


@pytest.fixture
def late_engine(reader):
    return reader[0]


@pytest.fixture
def late_file(reader, tmp_path):
    """Return what writes such a file in some format."""
    return lambda **last: write_rows(tmp_path / f"rows.{reader[1]}", late_rows(**last))


def test_a_late_prediction_keeps_its_digits(late_engine, late_file):
    found = (
        cb.Predictions.from_table(late_file(p=0.3), y="y", p="p", engine=late_engine)
        .aggregate()
        .store.cells
    )
    assert found.columns["low"].tolist() == [0.0, 0.3, 1.0]
    assert found.columns["rows"][1] == 1


def test_a_late_weight_keeps_its_digits(late_engine, late_file):
    path = late_file(w=0.25)
    found = (
        cb.Predictions.from_table(path, y="y", p="p", weight="w", engine=late_engine)
        .aggregate()
        .store.cells
    )
    assert found.columns["weight"].sum() == N + 0.25


def test_a_late_label_that_is_none_is_refused(late_engine, late_file):
    with pytest.raises(LabelError, match=r"binary labels, 0 and 1.*0\.6"):
        cb.Predictions.from_table(
            late_file(y=0.6), y="y", p="p", engine=late_engine
        ).aggregate()


@pytest.mark.parametrize("column", ["p", "w"])
def test_late_text_is_no_number(late_engine, column, late_file):
    with pytest.raises(InputError, match=f"column '{column}' must contain numbers"):
        cb.Predictions.from_table(
            late_file(**{column: "none"}), y="y", p="p", weight="w", engine=late_engine
        ).aggregate()


def test_late_text_among_labels_is_listed(late_engine, late_file):
    with pytest.raises(LabelError, match=r"'maybe'"):
        cb.Predictions.from_table(
            late_file(y="maybe"), y="y", p="p", engine=late_engine
        ).aggregate()


def test_late_text_among_groups_makes_all_of_them_text(late_engine, late_file):
    found = (
        cb.Predictions.from_table(
            late_file(g="other"), y="y", p="p", by="g", engine=late_engine
        )
        .aggregate()
        .store.cells
    )
    assert found.groups == (("0",), ("1",), ("2",), ("other",))


def test_late_text_makes_all_labels_text(late_engine, late_file):
    """So that one of them is the event, as text and not as a number."""
    path = late_file(y="2b")
    wanted = {"y": "y", "p": "p", "engine": late_engine}
    options = {"methods": "ew2"}
    found = cb.evaluate(
        cb.Predictions.from_table(path, task="1", **wanted), confidence=None, **options
    )
    assert found.frame()["n"].tolist() == [N + 1]
    with pytest.raises(LabelError):
        cb.evaluate(cb.Predictions.from_table(path, pos_label=1, **wanted), **options)


@pytest.mark.parametrize(
    ("local_engine", "blank"), [("memory", 0), ("duckdb", 0), ("duckdb", 2000)]
)
def test_large_whole_numbers_are_different_labels(local_engine, blank, tmp_path):
    """As doubles they would be equal."""
    labels = [""] * blank + ["100000000000000001", "100000000000000002"] * 5000
    path = write_rows(tmp_path / "rows.csv", [{"y": y, "p": 0.5} for y in labels])
    options = {"y": "y", "p": "p", "pos_label": 100000000000000002}
    options |= {"bad_rows": "drop", "engine": local_engine}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.exceptions.DroppedRowsWarning)
        cells = cb.Predictions.from_table(path, **options).aggregate().store.cells
    assert (cells.n, cells.columns["event_rows"].sum()) == (10_000, 5000)


def test_late_fractions_among_labels_are_not_rounded(late_engine, late_file):
    options = {"y": "y", "p": "p", "pos_label": 1, "engine": late_engine}
    with pytest.raises(LabelError, match=r"it contains 0\.0, 0\.9, 1"):
        cb.Predictions.from_table(late_file(y=0.9), **options).aggregate()


@pytest.mark.parametrize("words", [("False", "True"), ("false", "true")])
def test_truth_values_after_many_missing_ones(local_engine, words, tmp_path):
    """Missing labels are dropped, and tell nothing about the others."""
    lines = ["y,p", *[",0.5"] * 2000, *(f"{words[i % 4 == 0]},0.5" for i in range(N))]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    with pytest.warns(cb.exceptions.DroppedRowsWarning, match="2,000 of 27,000"):
        found = (
            cb.Predictions.from_table(
                tmp_path / "rows.csv",
                y="y",
                p="p",
                engine=local_engine,
                bad_rows="drop",
            )
            .aggregate()
            .store.cells
        )
    assert found.columns["event_rows"].sum() == N // 4


def test_truth_values_and_numbers_are_no_labels(local_engine, tmp_path):
    lines = ["y,p", *["True,0.5", "False,0.5"] * N, "1,0.5"]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(LabelError, match="binary labels, 0 and 1"):
        cb.Predictions.from_table(
            tmp_path / "rows.csv", y="y", p="p", engine=local_engine
        ).aggregate()


def test_blanks_around_numbers_do_not_count(local_engine, tmp_path):
    lines = ["y,p", " 1,0.25 ", "0 ,\t0.5", '" 1"," 0.75"']
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    found = (
        cb.Predictions.from_table(
            tmp_path / "rows.csv", y="y", p="p", engine=local_engine
        )
        .aggregate()
        .store.cells
    )
    assert found.columns["low"].tolist() == [0.25, 0.5, 0.75]
    assert found.columns["event_rows"].sum() == 2


@pytest.mark.parametrize("text", ["1_0", "0x1", "1 0", "one", "½", "0,5"])
def test_what_is_no_number_is_none_in_any_engine(local_engine, text, tmp_path):
    (tmp_path / "rows.tsv").write_text(f"y\tp\n0\t0.5\n1\t{text}\n")
    with pytest.raises(InputError, match="column 'p' must contain numbers"):
        cb.Predictions.from_table(
            tmp_path / "rows.tsv", y="y", p="p", engine=local_engine
        ).aggregate()


@pytest.mark.parametrize(
    ("local_engine", "kind"),
    [("memory", "csv"), ("duckdb", "csv"), ("memory", "jsonl")],
)
def test_files_of_other_types_are_read_together(local_engine, kind, tmp_path):
    first = [{"y": i % 2, "p": i % 2, "g": "007"} for i in range(60)]
    second = [{"y": i % 2, "p": 0.25, "g": "x"} for i in range(60)]
    for place, rows in enumerate((first, second)):
        write_rows(tmp_path / f"{place}.{kind}", rows)
    found = (
        cb.Predictions.from_table(
            [tmp_path / f"{place}.{kind}" for place in (0, 1)],
            y="y",
            p="p",
            by="g",
            engine=local_engine,
        )
        .aggregate()
        .store.cells
    )
    assert found.groups == (("007",), ("x",))
    assert sorted(set(found.columns["low"])) == [0.0, 0.25, 1.0]


@pytest.fixture
def map_file(tmp_path):
    p = np.linspace(0.01, 0.99, 400)
    y = (np.random.default_rng(0).random(400) < p**2).astype(int)
    cb.save_map(cb.make_calibrator("beta").fit(p, y).map_, tmp_path / "map.json")
    return tmp_path / "map.json"


def apply(map_file, path, out, engine):
    from calibrant.cli.apply import apply as command

    command(map_file, [str(path)], "p", out, engine=engine)
    return out


CARRIED = {
    "whole then not": ([1] * N, 1.75, pl.Float64),
    "whole": ([1] * N, 2, pl.Int64),
    "numbers then text": ([1.5] * N, "x", pl.String),
    "truth": (["true"] * N, "false", pl.Boolean),
    "codes": (["7"] * N, "007", pl.String),
    "long numbers": (["7"] * N, "12345678901234567890123", pl.String),
    "days": (["2024-01-01"] * N, "2024-01-02", pl.String),
}


@pytest.mark.parametrize("case", CARRIED)
def test_apply_gives_other_columns_a_type_that_holds_all(
    local_engine, case, map_file, tmp_path
):
    first, last, kind = CARRIED[case]
    rows = [{"p": 0, "x": x} for x in first] + [{"p": 0.529, "x": last}]
    path = write_rows(tmp_path / "rows.csv", rows)
    new = pl.read_parquet(apply(map_file, path, tmp_path / "new.parquet", local_engine))
    assert new["x"].dtype == kind
    expected = pl.Series([*first, last], dtype=kind, strict=False)
    if kind == pl.String:
        expected = pl.Series([*map(str, first), str(last)])
    if kind == pl.Boolean:
        expected = pl.Series([True] * N + [False])
    assert new["x"].equals(expected)
    assert new["p"].to_list()[-2:] == [0.0, 0.529]
    map_ = cb.load_map(map_file)
    assert_allclose(new["p_calibrated"].to_list()[-1], map_.transform([0.529])[0])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_apply_to_json_lines(suffix, map_file, tmp_path):
    rows = [{"p": 0, "n": 1, "day": "2024-01-01"}] * N
    rows = [*rows, {"p": 0.529, "n": 1.75, "day": "2024-01-02"}]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    out = apply(map_file, path, tmp_path / f"new.{suffix}", "auto")
    read = pl.read_parquet if suffix == "parquet" else pl.read_csv
    new = read(out, **({} if suffix == "parquet" else {"infer_schema_length": None}))
    assert new.columns == ["p", "n", "day", "p_calibrated"]
    assert new.select("p", "n", "day").rows()[-1] == (0.529, 1.75, "2024-01-02")
    assert new["n"].to_list()[0] == 1


def test_apply_keeps_lists_and_objects_of_json_lines(map_file, tmp_path):
    rows = [{"p": 0.5, "deep": {"a": [1, 2]}}, {"p": 0.25, "deep": {"a": [3]}}]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    found = pl.read_parquet(apply(map_file, path, tmp_path / "new.parquet", "auto"))
    assert found["deep"].to_list() == [row["deep"] for row in rows]
    with pytest.raises(OptionError, match="read in memory, not by the duckdb engine"):
        apply(map_file, path, tmp_path / "new.parquet", "duckdb")


def test_json_lines_with_many_columns_are_columns(tmp_path):
    rng = np.random.default_rng(3)
    prob = rng.dirichlet(np.ones(300), 40)
    rows = [
        {"y": int(k), **{f"c_{j}": v for j, v in enumerate(row)}}
        for k, row in zip(rng.integers(0, 300, 40), prob.tolist(), strict=True)
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    found = (
        cb.Predictions.from_table(path, y="y", p="c_*", task="confidence")
        .aggregate()
        .store.cells
    )
    assert_allclose(np.sort(found.columns["low"]), np.sort(prob.max(axis=1)))


def test_columns_that_come_late_match_patterns(tmp_path):
    """A model without values in the first rows is missing values, not a model."""
    rows = [{"y": i % 2, "m_a": 0.5} for i in range(N)]
    path = write_rows(tmp_path / "rows.jsonl", [*rows, rows[0] | {"m_b": 0.5}])
    with pytest.raises(cb.exceptions.MissingValueError, match="'m_b'"):
        cb.Predictions.from_table(path, y="y", p="m_*").aggregate()
