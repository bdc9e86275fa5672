"""Text files mean the same to every engine: what stands there counts."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import OptionError, SourceError, UnknownNameError

N = 60


def text_file(path, header, *columns):
    lines = [header, *(",".join(row) for row in zip(*columns, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def p():
    return [f"{value:.4f}" for value in np.linspace(0.01, 0.99, N)]


@pytest.fixture
def y():
    return ["0", "1", "1"] * (N // 3)


def found_groups(path, **columns):
    found = cb.evaluate(
        cb.Predictions.from_table(path, **columns),
        methods="ew2",
        confidence=None,
    )
    return found.frame()


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning")
@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["7", "007"], ["007", "7"]),
        (["1.10", "1.1"], ["1.1", "1.10"]),
        (["9", "10"], [9, 10]),
        (["true", "false"], ["false", "true"]),
        (["yes", "no"], ["no", "yes"]),
        (["2024-01-02", "2024-01-01"], ["2024-01-01", "2024-01-02"]),
        (["-1", ""], [None, -1]),
    ],
)
def test_groups_are_what_stands_in_the_file(
    local_engine, codes, expected, p, y, tmp_path
):
    path = text_file(tmp_path / "rows.csv", "p,y,code", p, y, codes * (N // 2))
    found = found_groups(path, engine=local_engine, y="y", p="p", by="code")
    assert sorted(found["code"].tolist(), key=str) == sorted(expected, key=str)
    assert found["n"].tolist() == [N // 2] * 2


def test_groups_of_codes_and_days(local_engine, p, y, tmp_path):
    codes = ["7", "007"] * (N // 2)
    days = ["2024-01-02", "2024-01-01"] * (N // 2)
    path = text_file(tmp_path / "rows.csv", "p,y,code,day", p, y, codes, days)
    found = (
        cb.Predictions.from_table(
            path, y="y", p="p", by=["code", "day"], engine=local_engine
        )
        .aggregate()
        .store.cells
    )
    assert sorted(found.groups) == [("007", "2024-01-01"), ("7", "2024-01-02")]


def test_numbers_and_text_of_several_days_are_merged_as_text(p, y, tmp_path):
    days = []
    for day, codes in enumerate((["7", "8"], ["7", "007"])):
        path = text_file(tmp_path / f"{day}.csv", "p,y,code", p, y, codes * (N // 2))
        days.append(
            cb.Predictions.from_table(path, y="y", p="p", by="code").aggregate()
        )
    merged = (days[0] + days[1]).store.cells
    assert sorted(merged.groups) == [("007",), ("7",), ("8",)]
    whole = (
        cb.Predictions.from_table(
            [tmp_path / "0.csv", tmp_path / "1.csv"], y="y", p="p", by="code"
        )
        .aggregate()
        .store.cells
    )
    assert sorted(whole.groups) == sorted(merged.groups)
    seven = whole.groups.index(("7",))
    assert whole.sample(seven, 0).n == N


@pytest.mark.parametrize(
    ("words", "pos_label"),
    [(("no", "yes"), "yes"), (("f", "t"), "t"), (("false", "true"), None)],
)
def test_labels_are_what_stands_in_the_file(
    local_engine, words, pos_label, p, y, tmp_path
):
    label = [words[int(value)] for value in y]
    path = text_file(tmp_path / "rows.csv", "p,y", p, label)
    found = (
        cb.Predictions.from_table(
            path, y="y", p="p", pos_label=pos_label, engine=local_engine
        )
        .aggregate()
        .store.cells
    )
    assert found.columns["event_rows"].sum() == 2 * N // 3


def test_blanks_in_the_header_belong_to_names(local_engine, p, y, tmp_path):
    path = text_file(tmp_path / "rows.csv", " p ,my label,P", p, y, p[::-1])
    found = cb.Predictions.from_table(
        path, y="my label", p=" p ", engine=local_engine
    ).aggregate()
    assert found.n == N
    with pytest.raises(UnknownNameError, match="'p'"):
        cb.Predictions.from_table(
            path, y="my label", p="p", engine=local_engine
        ).aggregate()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_names_that_differ_by_case_are_two_columns(local_engine, kind, p, y, tmp_path):
    path = text_file(tmp_path / "rows.csv", "p,P,y", p, p[::-1], y)
    if kind == "parquet":
        pl.read_csv(path).write_parquet(tmp_path / "rows.parquet")
    wanted = {"y": "y", "engine": local_engine}
    options = {"methods": "ew5", "confidence": None}
    for name, own in (("p", p), ("P", p[::-1])):
        found = cb.evaluate(
            cb.Predictions.from_table(tmp_path / f"rows.{kind}", p=name, **wanted),
            **options,
        )
        expected = cb.calibration_error(
            np.array(y, int), np.array(own, float), method="ew5"
        )
        assert_allclose(found.frame()["value"], expected, atol=1e-12)


def test_two_columns_of_one_name_are_refused(local_engine, p, y, tmp_path):
    path = text_file(tmp_path / "rows.csv", "p,y,p", p, y, p)
    with pytest.raises(SourceError, match="two columns 'p'; rename one"):
        cb.Predictions.from_table(path, y="y", p="p", engine=local_engine).aggregate()


def test_whole_numbers_may_become_others_far_down(local_engine, tmp_path):
    n = 30_000  # more than DuckDB looks at to guess types
    p = ["0", "1"] * (n // 2) + ["0.5"] * 10
    path = text_file(tmp_path / "rows.csv", "p,y", p, ["0", "1"] * (len(p) // 2))
    found = (
        cb.Predictions.from_table(path, y="y", p="p", engine=local_engine)
        .aggregate()
        .store.cells
    )
    assert found.columns["low"].tolist() == [0.0, 0.5, 1.0]


KEPT = [
    "score, y ,flag,version,day,code,q,note",
    '0.20,1,yes,1.10,2024-01-01,007,"a,b",',
    '0.4,0,no,1.1,2024-01-02,7, x ,"say ""hi"""',
    '.6,1,t,,2024-01-02,+8,"",1e5',
]


@pytest.fixture
def map_file(tmp_path):
    p = np.linspace(0.01, 0.99, 400)
    y = (np.random.default_rng(0).random(400) < p**2).astype(int)
    cb.save_map(cb.make_calibrator("beta").fit(p, y).map_, tmp_path / "map.json")
    return tmp_path / "map.json"


def apply(map_file, path, out, engine):
    from calibrant.cli.apply import apply as command

    command(map_file, [str(path)], "score", out, engine=engine)
    return out.read_text().splitlines()


def test_apply_keeps_other_columns_as_they_are(local_engine, map_file, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(KEPT) + "\n")
    found = apply(map_file, path, tmp_path / "new.csv", local_engine)
    assert [line.rpartition(",")[0] for line in found] == KEPT
    values = [float(line.rpartition(",")[2]) for line in found[1:]]
    assert_allclose(values, cb.load_map(map_file).transform([0.2, 0.4, 0.6]))


def test_names_that_differ_by_case_are_not_written_by_duckdb(map_file, p, tmp_path):
    path = text_file(tmp_path / "rows.csv", "score,SCORE", p, p)
    with pytest.raises(OptionError, match=r"differ only in case.*--engine memory"):
        apply(map_file, path, tmp_path / "new.csv", "duckdb")
    assert len(apply(map_file, path, tmp_path / "new.csv", "memory")) == N + 1


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_files_named_like_patterns_are_read(local_engine, suffix, p, y, tmp_path):
    frame = pl.DataFrame({"p": np.array(p, float), "y": np.array(y, int)})
    for name, part in (("a[1]*?", frame[:20]), ("a1xx", frame)):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "parquet":
            part.write_parquet(path)
        else:
            part.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    found = cb.Predictions.from_table(
        tmp_path / f"a[1]*?.{suffix}", y="y", p="p", engine=local_engine
    ).aggregate()
    assert found.n == 20


def test_cells_in_files_named_like_patterns_are_read(p, y, tmp_path):
    frame = pl.DataFrame({"p": np.array(p, float), "y": np.array(y, int)})
    path = tmp_path / "cells[1].parquet"
    cb.Predictions.from_table(frame, y="y", p="p").aggregate().save(path)
    assert cb.Predictions.load(path).n == N
    assert cb.evaluate(cb.Predictions.load(path), methods="ew5").frame()["n"] == [N]


def test_hashes_are_no_comments(tmp_path):
    lines = ["y,p,g", *[f"{i % 2},0.{i % 9 + 1},#b" for i in range(60)]]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    wanted = {"y": "y", "p": "p", "by": "g"}
    options = {"methods": "ew2", "confidence": None}
    found = cb.evaluate(
        cb.Predictions.from_table(tmp_path / "a.csv", engine="duckdb", **wanted),
        **options,
    )
    assert found.frame()["g"].tolist() == ["#b"]


@pytest.mark.parametrize(
    ("name", "content", "remedy"),
    [
        (
            "latin.csv",
            "y,p,name\xe9\n1,0.5,\xe9\n".encode("latin-1"),
            "Save the file as UTF-8",
        ),
        ("semi.csv", b"y;p\n1;0,5\n", "Separate fields by commas"),
        ("list.json", b"[1, 2]", "must be an array of objects"),
    ],
)
def test_files_that_cannot_be_read_say_what_to_do(tmp_path, name, content, remedy):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=remedy):
        cb.Predictions.from_table(tmp_path / name, y="y", p="p")


def test_semicolons_are_named(tmp_path):
    path = tmp_path / "semi.csv"
    path.write_text("y;p\n0;0,2\n1;0,7\n")
    with pytest.raises(SourceError, match="header is separated by semicolons"):
        cb.Predictions.from_table(str(path), y="y", p="p")


def test_a_map_is_not_taken_for_predictions(tmp_path):
    path = tmp_path / "map.json"
    cb.save_map(cb.adjust_prior(0.1), path)
    with pytest.raises(SourceError, match="is a calibration map; pass a file of pred"):
        cb.Predictions.from_table(str(path), y="y", p="p")
