"""Files where they are: patterns, broken files, full disks, killed processes."""

import os
import resource
import signal
import subprocess
import sys
import time

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.engines.files import find_files
from calibrant.engines.memory import MemoryTable
from calibrant.engines.opening import engine_of_files, open_source
from calibrant.engines.sql_tables import SqlTable
from calibrant.exceptions import (
    DroppedRowsWarning,
    MissingDependencyError,
    OptionError,
    SourceError,
)

WANTED = {"y": "y", "p": "p"}


ROWS_OF_G = pl.DataFrame(
    {"y": [0, 1] * 30, "p": [0.2, 0.7] * 30, "g": ["a", "b", "c"] * 20}
)


@pytest.fixture
def lake(rows, tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    for number, start in enumerate(range(0, 3000, 1000)):
        rows[start : start + 1000].write_parquet(folder / f"part-{number}.parquet")
    return folder


def test_a_pattern_a_folder_and_a_list_mean_the_same(rows, lake):
    expected = (
        cb.Predictions.from_table(rows, **WANTED)
        .aggregate()
        .store.cells.columns["near"]
    )
    files = sorted(lake.iterdir())
    for source in (f"{lake}/*.parquet", lake / "part-?.parquet", lake, files):
        assert isinstance(open_source(source), SqlTable)
        found = (
            cb.Predictions.from_table(source, **WANTED)
            .aggregate()
            .store.cells.columns["near"]
        )
        assert_allclose(found, expected, rtol=1e-12)


def test_folders_of_partitions_give_columns(rows, tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        part = rows.filter(pl.col("year") == year).drop("year")
        part.write_parquet(tmp_path / f"year={year}" / "rows.parquet")
    found = (
        cb.Predictions.from_table(f"{tmp_path}/*/*.parquet", by="year", **WANTED)
        .aggregate()
        .store.cells
    )
    assert found.groups == ((2023,), (2024,))


@pytest.fixture(params=["g", "G"])
def hidden(request, tmp_path):
    """A folder whose name gives a column that the files have, too."""
    for place, part in enumerate((ROWS_OF_G[:30], ROWS_OF_G[30:])):
        folder = tmp_path / "rows" / f"{request.param}=part{place}"
        folder.mkdir(parents=True)
        part.write_parquet(folder / "rows.parquet")
    return tmp_path / "rows"


def test_names_of_folders_hide_no_column(hidden, engine):
    options = {"y": "y", "p": "p", "by": "g", "engine": engine}
    cells = cb.Predictions.from_table(hidden, **options).aggregate().store.cells
    assert cells.groups == (("a",), ("b",), ("c",))


def test_names_of_folders_overwrite_no_column(hidden, local_engine, tmp_path):
    from calibrant.cli.apply import apply as command

    p, y = np.linspace(0.01, 0.99, 300), np.arange(300) % 3 > 0
    cb.save_map(cb.make_calibrator("platt").fit(p, y).map_, tmp_path / "map.json")
    out = tmp_path / "new.csv"
    command(tmp_path / "map.json", [str(hidden)], "p", out, engine=local_engine)
    assert pl.read_csv(out)["g"].to_list() == ROWS_OF_G["g"].to_list()


def test_engines_by_the_kind_of_source(row_file, rows):
    assert isinstance(open_source(row_file), MemoryTable)
    assert isinstance(open_source(rows), MemoryTable)
    assert isinstance(open_source(duckdb.read_parquet(str(row_file))), SqlTable)
    files = find_files(row_file)
    assert engine_of_files(files) == "memory"
    assert engine_of_files(files, max_size=1000) == "duckdb"


def test_relations_and_frames_through_duckdb(rows):
    expected = (
        cb.Predictions.from_table(rows, by="place", **WANTED)
        .aggregate()
        .store.cells.columns["near"]
    )
    relation = duckdb.sql("SELECT * FROM rows")
    for source in (relation, rows, rows.to_pandas(), rows.to_arrow()):
        found = (
            cb.Predictions.from_table(source, by="place", engine="duckdb", **WANTED)
            .aggregate()
            .store.cells
        )
        assert_allclose(found.columns["near"], expected, rtol=1e-12)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz"])
def test_text_files_are_read_in_place(suffix, rows, tmp_path):
    path = tmp_path / f"rows.{suffix}"
    few = rows.select("p", "y", "place")
    if suffix == "csv.gz":
        few.to_pandas().to_csv(path, index=False)
    else:
        few.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    found = (
        cb.Predictions.from_table(path, engine="duckdb", by="place", **WANTED)
        .aggregate()
        .store.cells
    )
    expected = (
        cb.Predictions.from_table(rows, by="place", **WANTED).aggregate().store.cells
    )
    assert found.groups == expected.groups
    assert_allclose(found.columns["near"], expected.columns["near"], rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "a[1].parquet",
        "x'; DROP TABLE y; --.parquet",
        "sp ace *.parquet",
        "ü$1?.parquet",
    ],
)
def test_odd_names_of_files_are_names(name, rows, tmp_path):
    rows[:500].write_parquet(tmp_path / name)
    rows[500:].write_parquet(tmp_path / "a1.parquet")  # what a pattern would match
    found = cb.Predictions.from_table(
        tmp_path / name, engine="duckdb", **WANTED
    ).aggregate()
    assert found.n == 500


def test_the_memory_engine_reads_files_together(lake):
    found, expected = (
        cb.evaluate(
            cb.Predictions.from_table(lake, engine=engine, **WANTED), methods="ew15"
        ).frame()
        for engine in ("memory", "duckdb")
    )
    assert found["n"].tolist() == expected["n"].tolist()
    assert_allclose(found["value"], expected["value"], atol=1e-12)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nothing/*.parquet", "no file matches"),
        ("nothing.parquet", "does not exist"),
        ("", "is a folder|contains no readable file"),
        ("rows.xlsx", "cannot be read; supported are CSV"),
    ],
)
def test_sources_that_are_not_there(source, words, tmp_path):
    (tmp_path / "rows.xlsx").write_text("x")
    (tmp_path / "empty").mkdir()
    place = tmp_path / (source or "empty")
    with pytest.raises(SourceError, match=words):
        cb.Predictions.from_table(place, **WANTED).aggregate()


@pytest.mark.parametrize(
    "source", ["http://localhost/a.csv", "s3://lake/*.parquet", "HTTPS://x/a.jsonl"]
)
def test_addresses_are_refused_and_nothing_is_fetched(engine, source, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", pytest.fail)
    with pytest.raises(SourceError, match=r"is a URL.*Download the file first"):
        cb.Predictions.from_table(source, engine=engine, **WANTED).aggregate()


def test_a_connection_of_our_own_installs_nothing(row_file):
    table = open_source(row_file, "duckdb")
    query = "SELECT current_setting('autoinstall_known_extensions') AS install"
    assert table.run(query)["install"].tolist() == [False]


@pytest.mark.parametrize("source", ["", ["", "rows.csv"]])
def test_an_empty_name_is_no_folder(local_engine, source, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows.select("p", "y").write_csv("rows.csv")
    with pytest.raises(SourceError, match="the file name is empty"):
        cb.Predictions.from_table(source, engine=local_engine, **WANTED).aggregate()


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_json_is_read_in_memory(suffix, rows, tmp_path):
    path = tmp_path / f"rows.{suffix}"
    few = rows.select("p", "y")
    (few.write_ndjson if suffix == "jsonl" else few.write_json)(path)
    with pytest.raises(OptionError, match=r'not by the duckdb engine.*engine="memory"'):
        cb.Predictions.from_table(path, engine="duckdb", **WANTED)
    several = cb.Predictions.from_table(f"{tmp_path}/*.{suffix}", **WANTED)
    assert not several.aggregated


def test_a_polars_frame_through_duckdb_without_pyarrow(rows, monkeypatch):
    """Unknown to Python here, so that neither DuckDB nor polars finds it."""
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match="needs pyarrow"):
        cb.Predictions.from_table(rows, engine="duckdb", **WANTED)


def test_formats_are_not_mixed(rows, tmp_path):
    rows.select("p", "y").write_csv(tmp_path / "a.csv")
    rows.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="mixes files of formats"):
        cb.Predictions.from_table(f"{tmp_path}/*", **WANTED).aggregate()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_truncated_file_is_an_error(engine, row_file, tmp_path):
    whole = row_file.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SourceError, match=r"cut\.parquet cannot be read"):
        cb.evaluate(
            cb.Predictions.from_table(tmp_path / "cut.parquet", engine=engine, **WANTED)
        )


def test_a_broken_page_is_an_error(row_file, tmp_path):
    damaged = bytearray(row_file.read_bytes())
    damaged[100:4000] = b"\xff" * 3900
    (tmp_path / "bad.parquet").write_bytes(damaged)
    with pytest.raises(SourceError, match=r"bad\.parquet cannot be read"):
        cb.Predictions.from_table(
            tmp_path / "bad.parquet", engine="duckdb", **WANTED
        ).aggregate()


@pytest.fixture(scope="module")
def long_csv(tmp_path_factory):
    """A file with one line that is no row, far beyond what is looked at first."""
    path = tmp_path_factory.mktemp("csv") / "long.csv"
    p = np.round(np.random.default_rng(0).random(300_000), 6)
    frame = pd.DataFrame({"p": p, "y": (p > 0.5).astype(int)})
    text = frame.to_csv(index=False).splitlines(keepends=True)
    text[250_001] = "0.5,1,surprise,more\n"
    path.write_text("".join(text))
    return path


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_bad_line_far_down_is_named(engine, long_csv):
    with pytest.raises(SourceError, match=r"long\.csv cannot be read.*250002"):
        cb.Predictions.from_table(long_csv, engine=engine, **WANTED).aggregate()


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_bad_line_is_dropped_and_counted_if_asked(engine, long_csv):
    with pytest.warns(DroppedRowsWarning, match="1 of 300,000 rows"):
        found = cb.Predictions.from_table(
            long_csv, engine=engine, bad_rows="drop", **WANTED
        ).aggregate()
    assert found.n == 299_999


def limit_files(size=20_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.fixture
def map_file(tmp_path):
    p = np.linspace(0.01, 0.99, 400)
    y = (np.random.default_rng(0).random(400) < p**2).astype(int)
    cb.save_map(cb.make_calibrator("beta").fit(p, y).map_, tmp_path / "map.json")
    return tmp_path / "map.json"


def uncovered():
    """Leave coverage out: it would write its own file, and fail as it should."""
    return {k: v for k, v in os.environ.items() if not k.startswith("COV")}


def test_a_full_disk_leaves_nothing_behind(map_file, lake, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    command = [sys.executable, "-m", "calibrant"]
    one = lake / "part-0.parquet"
    for arguments in (
        ["apply", map_file, lake, "--p", "p", "--out", out / "new.csv"],
        ["apply", map_file, one, "--p", "p", "--out", out / "new.csv"],
        ["apply", map_file, one, "--p", "p", "--out", out / "new.parquet"],
        ["aggregate", lake, "--y", "y", "--p", "p", "--out", out / "new.parquet"],
    ):
        found = subprocess.run(
            [*command, *map(str, arguments)],
            env=uncovered(),
            preexec_fn=limit_files,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 2, found.stderr
        told = f"{arguments[-1]} cannot be written: file too large. No partial file"
        assert told in found.stderr
        assert "Errno" not in found.stderr
        assert "Traceback" not in found.stderr
        assert not list(out.iterdir())


def test_a_killed_process_leaves_the_old_file(map_file, rows, tmp_path):
    pl.concat([rows] * 300).write_parquet(tmp_path / "many.parquet")
    out = tmp_path / "out.csv"
    out.write_text("old")
    command = ["apply", map_file, tmp_path / "many.parquet", "--p", "p", "--out", out]
    arguments = [*map(str, command), "--engine", "duckdb"]
    started = subprocess.Popen([sys.executable, "-m", "calibrant", *arguments])
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and not list(tmp_path.glob(".out-*")):
        time.sleep(0.005)
    os.kill(started.pid, signal.SIGKILL)
    assert started.wait() == -signal.SIGKILL
    assert out.read_text() == "old"
