import gzip

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from calibrant.engines.memory import open_table
from calibrant.exceptions import SourceError, UnknownNameError

FRAME = pl.DataFrame({"p": [0.25, 0.5], "y": ["a", "b"]})


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.csv", FRAME.write_csv),
        ("t.tsv", lambda path: FRAME.write_csv(path, separator="\t")),
        ("t.parquet", FRAME.write_parquet),
        ("t.jsonl", FRAME.write_ndjson),
        ("t.ndjson", FRAME.write_ndjson),
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
    table = open_table(tmp_path / name)
    assert table.names == ("p", "y")
    assert_allclose(table.column("p"), [0.25, 0.5])
    assert table.column("y").tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"p,y\n", "has no rows"),
        ("t.csv", b"p,y\n1,2\n1,2,3\n", "as many fields as the first"),
        ("t.parquet", b"PAR1 but not really", "cannot be read"),
        ("t.jsonl", b"{not json", "cannot be read"),
        ("t.npz", b"not a zip", "cannot be read"),
        ("t.xlsx", b"PK", "files that end in '.xlsx' cannot be read; known are CSV"),
        ("t", b"p,y", "cannot be read"),
    ],
)
def test_bad_files_end_in_a_clear_error(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=words):
        open_table(tmp_path / name)


def test_missing_file_and_folder_are_significantly_different(tmp_path):
    with pytest.raises(SourceError, match="does not exist"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(SourceError, match="is a folder"):
        open_table(tmp_path)


def test_pickled_arrays_are_never_loaded(tmp_path):
    np.savez(tmp_path / "t.npz", p=np.array([object()], dtype=object))
    with pytest.raises(SourceError, match="array 'p'"):
        open_table(tmp_path / "t.npz").column("p")


def test_a_thing_that_is_no_table_is_named():
    with pytest.raises(SourceError, match="got int"):
        open_table(5)


def test_unknown_columns_list_at_most_a_dozen():
    table = open_table({f"c{i}": np.zeros(1) for i in range(50)})
    with pytest.raises(UnknownNameError, match="and 38 more"):
        table.column("zzz")
