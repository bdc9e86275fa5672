"""Several files are one table with the columns of all, by their names."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import SourceError

N = 60
P = [f"{value:.4f}" for value in np.linspace(0.01, 0.99, N)]
LABELS = {"numbers": ("0", "1"), "truth": ("False", "True")}


def write_files(folder, labels=("0", "1")):
    """Write one file with an extra column in the middle, and one without."""
    y = [labels[i % 3 > 0] for i in range(N)]
    wide = ["p,note,y", *(f"{p},n{i},{y[i]}" for i, p in enumerate(P))]
    plain = ["y,p", *(f"{y[i]},{p}" for i, p in enumerate(P))]
    (folder / "wide.csv").write_text("\n".join(wide) + "\n")
    (folder / "plain.csv").write_text("\n".join(plain) + "\n")


@pytest.mark.parametrize("order", [("wide", "plain"), ("plain", "wide")])
@pytest.mark.parametrize("labels", LABELS)
def test_columns_are_found_by_name(local_engine, order, labels, tmp_path):
    write_files(tmp_path, LABELS[labels])
    paths = [tmp_path / f"{name}.csv" for name in order]
    found = (
        cb.Predictions.from_table(paths, y="y", p="p", engine=local_engine)
        .aggregate()
        .store.cells
    )
    assert found.columns["event_rows"].sum() == 2 * (2 * N // 3)
    assert_allclose(np.unique(found.columns["low"]), [float(p) for p in P])
    assert (found.columns["rows"] == 2).all()


def test_a_column_that_is_asked_for_must_be_in_every_file(local_engine, tmp_path):
    write_files(tmp_path)
    with pytest.raises(SourceError, match=r"plain\.csv has no column 'note', which"):
        cb.Predictions.from_table(
            f"{tmp_path}/*.csv", y="y", p="p", by="note", engine=local_engine
        ).aggregate()


def test_several_parquet_files_may_have_other_columns(local_engine, tmp_path):
    write_files(tmp_path)
    for name in ("wide", "plain"):
        frame = pl.read_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
    pattern = f"{tmp_path}/*.parquet"
    assert (
        cb.Predictions.from_table(pattern, y="y", p="p", engine=local_engine)
        .aggregate()
        .n
        == 2 * N
    )
    with pytest.raises(SourceError, match=r"plain\.parquet has no column 'note'"):
        cb.Predictions.from_table(
            pattern, y="y", p="p", by="note", engine=local_engine
        ).aggregate()


def test_a_field_of_a_column_is_no_column(tmp_path):
    frame = pl.DataFrame({"y": [0, 1], "p": [0.2, 0.7], "deep": [{"g": 1}, {"g": 2}]})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.with_columns(g=pl.lit(1)).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet has no column 'g'"):
        cb.Predictions.from_table(
            f"{tmp_path}/*.parquet", y="y", p="p", by="g", engine="duckdb"
        ).aggregate()


@pytest.mark.parametrize("rows", [60, 30_000])
@pytest.mark.parametrize("header", ["p,y,z", "z,y,p"])
def test_a_second_header_with_more_columns_is_refused(
    local_engine, header, rows, tmp_path
):
    """Rows above or below it must not vanish."""
    half = [f"0.{i % 9 + 1},{i % 2}" for i in range(rows // 2)]
    lines = ["p,y", *half, header, *(f"{line},7" for line in half)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(SourceError, match=str(rows // 2 + 2)):
        cb.Predictions.from_table(
            tmp_path / "rows.csv", y="y", p="p", engine=local_engine
        ).aggregate()


def test_empty_lines_above_the_header_do_not_count(local_engine, tmp_path):
    (tmp_path / "rows.csv").write_text("\n\np,y\n0.25,1\n0.5,0\n")
    found = cb.Predictions.from_table(
        tmp_path / "rows.csv", y="y", p="p", engine=local_engine
    ).aggregate()
    assert found.n == 2


def test_rows_of_several_files_stay_in_order(tmp_path):
    """Whatever columns each has: what was not there is empty."""
    from calibrant.cli.apply import apply as command

    p = np.linspace(0.01, 0.99, 300)
    y = (np.random.default_rng(0).random(300) < p).astype(int)
    cb.save_map(cb.make_calibrator("platt").fit(p, y).map_, tmp_path / "map.json")
    folder = tmp_path / "rows"
    folder.mkdir()
    for place, header in enumerate(("p,a", "b,p", "p,a")):
        cells = ["0.5", f"v{place}"] if header.startswith("p") else [f"v{place}", "0.5"]
        (folder / f"{place}.csv").write_text(f"{header}\n{','.join(cells)}\n")
    command(tmp_path / "map.json", [str(folder)], "p", tmp_path / "new.csv")
    new = pl.read_csv(tmp_path / "new.csv")
    assert new["a"].to_list() == ["v0", None, "v2"]
    assert new["b"].to_list() == [None, "v1", None]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, columns in (("a", ["y", "p", "g", "w"]), ("b", ["y", "p"])):
        values = {"y": rng.integers(0, 2, 50), "p": rng.random(50)}
        values |= {"g": np.arange(50) % 2, "w": np.ones(50)}
        pl.DataFrame(values).select(columns).write_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize("option", [{"by": "g"}, {"weight": "w"}])
@pytest.mark.parametrize("bad_rows", ["error", "drop"])
def test_a_file_that_lacks_a_column(folder, local_engine, option, bad_rows):
    options = {"y": "y", "p": "p", "engine": local_engine, "bad_rows": bad_rows}
    with pytest.raises(SourceError, match=r"b\.parquet has no column '[gw]'"):
        cb.Predictions.from_table(
            f"{folder}/*.parquet", **options, **option
        ).aggregate()


def test_columns_that_nobody_asked_for_may_be_lacking(folder, local_engine):
    found = cb.Predictions.from_table(
        f"{folder}/*.parquet", y="y", p="p", engine=local_engine
    ).aggregate()
    assert found.n == 100


def test_whole_numbers_in_the_first_file_do_not_round_the_others(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.6, 0.9, 1000)
    y = (rng.random(1000) < p).astype(int)
    pl.DataFrame({"p": [0, 1] * 50, "y": [0, 1] * 50}).write_parquet(
        tmp_path / "1.parquet"
    )
    pl.DataFrame({"p": p, "y": y}).write_parquet(tmp_path / "2.parquet")
    found = cb.evaluate(
        cb.Predictions.from_table(str(tmp_path / "*.parquet"), y="y", p="p"),
        methods="ew15",
        confidence=None,
    )
    whole = np.concatenate([np.array([0.0, 1.0] * 50), p])
    labels = np.concatenate([[0, 1] * 50, y])
    expected = cb.calibration_error(labels, whole, method="ew15")
    np.testing.assert_allclose(found.frame()["value"][0], expected, atol=1e-12)


@pytest.mark.parametrize("other", [["y", "p", "P"], ["y", "p"]])
def test_names_that_differ_by_case_are_told_apart(other, local_engine, tmp_path):
    rows = pl.DataFrame({"y": [0, 1] * 20, "P": [0.9] * 40, "p": [0.25] * 40})
    for name, columns in (("a", ["y", "P", "p"]), ("b", other)):
        rows.select(columns).write_parquet(tmp_path / f"{name}.parquet")
    table = f"{tmp_path}/*.parquet"
    options = {"y": "y", "p": "p", "engine": local_engine}
    if local_engine == "duckdb":
        with pytest.raises(SourceError, match=r"'P' and 'p' differ only in case"):
            cb.Predictions.from_table(table, **options).aggregate()
        table = tmp_path / "a.parquet"
    cells = cb.Predictions.from_table(table, **options).aggregate().store.cells
    assert set(cells.columns["low"]) == {0.25}
