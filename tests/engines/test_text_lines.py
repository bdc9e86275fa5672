"""Lines of text files: what is a row is one in every engine."""

import gzip

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import DroppedRowsWarning, SourceError

N = 40
WANTED = {"y": "y", "p": "p"}
HEADER = "y,p,note"


def lines_of(note="x"):
    p = np.linspace(0.1, 0.9, N)
    return [HEADER, *(f"{i % 2},{value:.4f},{note}" for i, value in enumerate(p))]


def write(path, lines, end="\n"):
    text = end.join(lines)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, newline="")
    return path


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_file_that_was_cut_is_refused(local_engine, name, tmp_path):
    """Its last number may have lost digits."""
    path = write(tmp_path / name, [*lines_of(), "1,0.95"])
    with pytest.raises(SourceError, match=r"(?s)cannot be read.*\b42\b"):
        cb.Predictions.from_table(path, engine=local_engine, **WANTED).aggregate()


ODD = {
    "short": "1,0.9",
    "long": "1,0.9,x,7",
    "blanks": "  ",
    "much longer": "1,2,3,4,5",
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("note", ["x", ""])
def test_lines_that_are_no_rows_are_dropped_if_asked(
    local_engine, case, note, tmp_path
):
    lines = lines_of(note)
    path = write(tmp_path / "rows.csv", [*lines[:9], ODD[case], *lines[9:]])
    with pytest.raises(SourceError, match=r"(?s)cannot be read.*\b10\b"):
        cb.Predictions.from_table(path, engine=local_engine, **WANTED).aggregate()
    with pytest.warns(DroppedRowsWarning, match="1 of 41.*1 in lines that cannot"):
        found = (
            cb.Predictions.from_table(
                path, engine=local_engine, bad_rows="drop", **WANTED
            )
            .aggregate()
            .store.cells
        )
    assert (found.n, found.dropped) == (N, 1)


@pytest.mark.parametrize("note", ["x", "", '"a ""b"""', '"two\nlines"'])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_are_no_rows(local_engine, note, end, tmp_path):
    lines = lines_of(note)
    path = write(tmp_path / "rows.csv", [*lines[:9], "", *lines[9:], "", "", ""], end)
    found = cb.evaluate(
        cb.Predictions.from_table(path, engine=local_engine, **WANTED), methods="ew5"
    )
    assert found.frame()["n"].tolist() == [N]


def test_a_separator_at_the_end_of_a_line_adds_nothing(local_engine, tmp_path):
    lines = lines_of()
    path = write(tmp_path / "rows.csv", [*lines[:9], lines[9] + ",", *lines[10:]])
    assert (
        cb.Predictions.from_table(path, engine=local_engine, **WANTED).aggregate().n
        == N
    )


@pytest.mark.parametrize("line", [b"1,0.9\xe4,x", b"1,0.9\xe4,x,", b"1,0.9\xe4"])
def test_text_that_is_not_utf_8_is_refused(local_engine, line, tmp_path):
    lines = "\n".join(lines_of()).encode().split(b"\n")
    (tmp_path / "rows.csv").write_bytes(b"\n".join([*lines[:9], line, *lines[9:]]))
    with pytest.raises(SourceError, match=r"(?s)rows\.csv cannot be read.*\b10\b"):
        cb.Predictions.from_table(tmp_path / "rows.csv", engine=local_engine, **WANTED)


def test_lines_of_several_files_are_counted_together(local_engine, tmp_path):
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv", [*lines_of(), "1"])
    with pytest.warns(DroppedRowsWarning, match="2 of 82"):
        found = cb.Predictions.from_table(
            f"{tmp_path}/*.csv", engine=local_engine, bad_rows="drop", **WANTED
        ).aggregate()
    assert found.n == 2 * N


@pytest.mark.parametrize("damage", ["changed", "cut"])
def test_a_damaged_archive_is_told(local_engine, damage, tmp_path):
    path = write(tmp_path / "rows.csv.gz", lines_of())
    data = path.read_bytes()
    changed = {"changed": data[:15] + b"\xff" * 25 + data[40:], "cut": data[:-40]}
    path.write_bytes(changed[damage])
    with pytest.raises(SourceError, match=r"rows\.csv\.gz cannot be read"):
        cb.Predictions.from_table(path, engine=local_engine, **WANTED).aggregate()


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
@pytest.mark.parametrize("name", ["*", "c*", "a.b", "P", "a b"])
def test_odd_names_of_columns_are_names(local_engine, kind, name, tmp_path):
    import polars as pl

    p = np.linspace(0.1, 0.9, N)
    frame = pl.DataFrame({"y": np.arange(N) % 2, "p": p[::-1] / 2, name: p, "cx": p})
    path = tmp_path / f"rows.{kind}"
    writers = {"csv": frame.write_csv, "parquet": frame.write_parquet}
    if kind in writers:
        writers[kind](path)
    source = path if kind in writers else frame
    found = (
        cb.Predictions.from_table(source, y="y", p=name, engine=local_engine)
        .aggregate()
        .store.cells
    )
    np.testing.assert_allclose(found.columns["low"], p)
