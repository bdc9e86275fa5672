import gzip

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.engines.opening import open_source
from calibrant.exceptions import (
    InputError,
    OptionError,
    SourceError,
    UnknownNameError,
)

FRAME = pl.DataFrame({"p": [0.25, 0.5], "y": ["a", "b"]})


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", FRAME.write_csv),
        ("t.tsv", lambda path: FRAME.write_csv(path, separator="\t")),
        ("t.parquet", FRAME.write_parquet),
        ("t.jsonl", FRAME.write_ndjson),
        ("t.ndjson", FRAME.write_ndjson),
        ("t.json", FRAME.write_json),
        (
            "t.npz",
            lambda path: np.savez(
                path, p=FRAME["p"], y=FRAME["y"].to_numpy().astype(str)
            ),
        ),
        (
            "t.csv.gz",
            lambda path: path.write_bytes(gzip.compress(FRAME.write_csv().encode())),
        ),
    ],
)
def test_every_format_is_read(tmp_path, name, write):
    write(tmp_path / name)
    table = open_source(tmp_path / name, "memory")
    assert table.names == ("p", "y")
    assert_allclose(table.column("p"), [0.25, 0.5])
    assert table.column("y").tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"p,y\n", "has no rows"),
        ("t.csv", b"p,y\n1,2\n1,2,3\n", "the same number of fields"),
        ("t.parquet", b"PAR1 but not really", "cannot be read"),
        ("t.jsonl", b"{not json", "cannot be read"),
        ("t.json", b"[{", "cannot be read"),
        ("t.json", b'{"p": 1}', "must be an array of JSON objects"),
        ("t.npz", b"not a zip", "cannot be read"),
        (
            "t.xlsx",
            b"PK",
            "files that end in '.xlsx' cannot be read; supported are CSV",
        ),
        ("t", b"p,y", "cannot be read"),
    ],
)
def test_bad_files_end_in_a_clear_error(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=words):
        open_source(tmp_path / name, "memory")


def test_missing_file_and_folder_are_significantly_different(tmp_path):
    with pytest.raises(SourceError, match="does not exist"):
        open_source(tmp_path / "none.csv", "memory")
    with pytest.raises(SourceError, match="contains no readable file"):
        open_source(tmp_path, "memory")


def test_pickled_arrays_are_never_loaded(tmp_path):
    np.savez(tmp_path / "t.npz", p=np.array([object()], dtype=object))
    with pytest.raises(SourceError, match="array 'p'"):
        open_source(tmp_path / "t.npz", "memory").column("p")


def test_a_thing_that_is_no_table_is_named():
    with pytest.raises(SourceError, match="got int"):
        open_source(5, "memory")


def test_unknown_columns_list_at_most_a_dozen():
    table = open_source({f"c{i}": np.zeros(1) for i in range(50)}, "memory")
    with pytest.raises(UnknownNameError, match="and 38 more"):
        table.column("zzz")


def test_npy_files_are_arrays_called_like_the_files(tmp_path):
    logits, y = np.array([[1.0, 2.0], [3.0, 0.5]]), np.array([1, 0])
    np.save(tmp_path / "logits.npy", logits)
    np.save(tmp_path / "y.npy", y)
    source = [tmp_path / "logits.npy", str(tmp_path / "y.npy")]
    table = open_source(source)
    assert table.names == ("logits", "y")
    assert_allclose(table.column("logits[1]"), [2.0, 0.5])
    options = {"y": "y", "p": "logits", "task": "confidence", "scale": "logit"}
    assert cb.Predictions.from_table(source, **options).n == 2
    with pytest.raises(OptionError, match="read in memory, not by the duckdb engine"):
        open_source(source, "duckdb")
    with pytest.raises(SourceError, match="named twice"):
        open_source([source[1], source[1]], "memory")


@pytest.mark.parametrize("kind", [pl.List(pl.Float32), pl.Array(pl.Float64, 2)])
@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "json"])
def test_a_column_of_lists_is_a_matrix(kind, suffix, tmp_path):
    lists = pl.Series([[0.25, 0.75], [0.5, 0.5]], dtype=kind)
    frame = pl.DataFrame({"y": [1, 0], "p": lists})
    writers = {"parquet": "write_parquet", "jsonl": "write_ndjson"}
    getattr(frame, writers.get(suffix, "write_json"))(tmp_path / f"t.{suffix}")
    for source in (frame, tmp_path / f"t.{suffix}"):
        table = open_source(source, "memory")
        assert table.width("p") == 2
        assert_allclose(table.column("p[1]"), [0.75, 0.5])
        preds = cb.Predictions.from_table(source, y="y", p="p", task="confidence")
        assert preds.n == 2


def test_lists_of_different_lengths_are_no_matrix():
    frame = pl.DataFrame({"y": [1, 0], "p": [[0.25, 0.75], [0.5]]})
    with pytest.raises(InputError):
        cb.Predictions.from_table(frame, y="y", p="p", task="confidence")
