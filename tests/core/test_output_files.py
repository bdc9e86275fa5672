"""Nothing is overwritten that the same kind of command did not write."""

import os

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.exceptions import OptionError

BINARY = str(cb.datasets.BINARY_FILE)
COLUMNS = ("--y", "even", "--p", "forest")
FOREIGN = b'{"learner": {"version": [2, 1]}}'

COMMANDS = {
    "map": ("calibrate", BINARY, *COLUMNS, "--method", "platt"),
    "page": ("report", BINARY, *COLUMNS, "--methods", "es5"),
    "data": ("report", BINARY, *COLUMNS, "--methods", "es5", "--format", "json"),
    "text": ("report", BINARY, *COLUMNS, "--methods", "es5", "--format", "markdown"),
    "aggregates": ("aggregate", BINARY, *COLUMNS),
    "rows": ("apply", "a-map.json", BINARY, "--p", "forest"),
    "figure": ("plot", BINARY, *COLUMNS, "--method", "es5"),
}
ENDINGS = {"map": ".json", "page": ".html", "data": ".json", "text": ".md"}
ENDINGS |= {"aggregates": ".parquet", "rows": ".parquet", "figure": ".png"}


@pytest.fixture
def write(run, tmp_path, monkeypatch):
    """Run the command that writes one kind of file, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    p, y = cb.datasets.load_binary("forest")
    cb.save_map(cb.make_calibrator("platt").fit(p, y).map_, "a-map.json")

    def call(kind, out=None, source=BINARY):
        command = [source if part == BINARY else part for part in COMMANDS[kind]]
        return run(*command, *(() if out is None else ("--out", out)))

    return call


def is_refused(found, path, content):
    code, out, err = found
    assert code == 2
    assert out == ""
    assert f"{path} would be overwritten" in err
    assert err.count("\n") == 1
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", ["map", FOREIGN, b"not JSON at all"])
def test_data_beside_a_page_overwrite_nothing_else(write, tmp_path, content):
    beside = tmp_path / "model.json"
    if content == "map":
        assert write("map", beside)[0] == 0
        content = beside.read_bytes()
    beside.write_bytes(content)
    # Before any work is done: the file of predictions, which is none, is not read.
    source = tmp_path / "preds.csv"
    source.write_bytes(b"\x00")
    found = write("page", tmp_path / "model.html", source=source)
    is_refused(found, beside, content)
    assert "beside model.html" in found[2]
    assert not (tmp_path / "model.html").exists()


def test_a_report_replaces_a_report(write, tmp_path):
    out, beside = tmp_path / "page.html", tmp_path / "page.json"
    assert write("page", out)[0] == 0
    first = beside.read_bytes()
    beside.write_bytes(first.replace(b'"seed": 0', b'"seed": 7'))
    assert write("page", out)[0] == 0
    assert b'"seed": 7' not in beside.read_bytes()
    beside.write_bytes(b"")
    assert write("page", out)[0] == 0
    assert beside.read_bytes().startswith(b'{\n "format": "calibrant-report"')


def test_python_keeps_to_the_same_rule(tmp_path):
    p, y = cb.datasets.load_binary("forest")
    map_ = cb.make_calibrator("platt").fit(p, y).map_
    report = cb.Report.from_predictions(y, p, methods="es5")
    cells = cb.Predictions.from_table({"y": y, "p": p}, y="y", p="p").aggregate()
    cb.save_map(map_, tmp_path / "model.json")
    with pytest.raises(OptionError, match=r"model\.json would be overwritten"):
        report.save(tmp_path / "model.html")
    assert not (tmp_path / "model.html").exists()
    with pytest.raises(OptionError, match="but is a calibration map"):
        report.save(tmp_path / "model.json")
    assert cb.load_map(tmp_path / "model.json") == map_
    report.save(tmp_path / "page.html")
    with pytest.raises(OptionError, match="but is the data of a report"):
        cb.save_map(map_, tmp_path / "page.json")
    (tmp_path / "page.parquet").write_bytes((tmp_path / "page.json").read_bytes())
    with pytest.raises(OptionError, match="but is the data of a report"):
        cells.save(tmp_path / "page.parquet")


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("there", COMMANDS)
def test_a_file_of_another_kind_is_not_replaced(write, tmp_path, there, kind):
    """What is there has the name that is wanted, whatever wrote it."""
    first, out = tmp_path / f"first{ENDINGS[there]}", tmp_path / f"out{ENDINGS[kind]}"
    assert write(there, first)[0] == 0
    content = first.read_bytes()
    out.write_bytes(content)
    found = write(kind, out)
    # Rows of predictions bear no mark: they are the user's, which anybody may write.
    if there in {kind, "rows"}:
        assert found[0] == 0
    else:
        is_refused(found, out, content)


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_file_that_the_user_names_is_replaced(write, tmp_path, kind):
    out = tmp_path / f"out{ENDINGS[kind]}"
    out.write_bytes(FOREIGN)
    code, _, err = write(kind, out)
    assert code == 0, err
    assert out.read_bytes() != FOREIGN


@pytest.mark.parametrize("form", ["html", "json", "markdown"])
def test_a_name_that_belongs_to_something_else_is_refused(run, tmp_path, form):
    """With --format any ending will do, but not that of another file there."""
    out = tmp_path / "predictions.csv"
    out.write_bytes(b"y,p\n1,0.5\n")
    command = (*COMMANDS["page"], "--format", form, "--out", out)
    is_refused(run(*command), out, b"y,p\n1,0.5\n")
    out.unlink()
    assert run(*command)[0] == 0
    assert run(*command)[0] == 0  # the report that it has just written


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (COMMANDS["page"], "report.html"),
        (COMMANDS["page"], "report.json"),
        (("demo",), "calibrant-demo.png"),
    ],
)
def test_names_that_nobody_gave_overwrite_nothing(
    run, tmp_path, monkeypatch, command, name
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(FOREIGN)
    code, _, err = run(*command)
    assert code == 2
    assert f"{name} would be overwritten" in err
    assert (tmp_path / name).read_bytes() == FOREIGN
    (tmp_path / name).unlink()
    assert run(*command)[0] == 0
    assert run(*command)[0] == 0


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_figures_of_all_formats_are_recognised(write, tmp_path, suffix):
    from calibrant.core.output_files import FIGURE, kind_of

    assert write("figure", tmp_path / f"a{suffix}")[0] == 0
    assert kind_of(tmp_path / f"a{suffix}") is FIGURE


STUDY = ("reproduce", "synthetic", "--quick", "--seeds", "1", "--methods", "platt")


@pytest.mark.parametrize(
    "name",
    [
        *("results.parquet", "times.parquet", "log.txt", "version.json"),
        *("tables.md", "tables.parquet"),
    ],
)
def test_a_study_takes_no_folder_that_holds_other_results(run, tmp_path, name):
    (tmp_path / name).write_bytes(FOREIGN)
    code, _, err = run(*STUDY, "--out", tmp_path)
    assert code == 2
    assert f"{tmp_path / name} already exists" in err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == FOREIGN


def test_a_study_takes_its_own_folder_again(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert run(*STUDY, "--out", tmp_path)[0] == 0
    assert run(*STUDY, "--out", tmp_path)[0] == 0
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_figures_of_the_paper_overwrite_no_other(run, tmp_path):
    from calibrant.experiments.figures import FIGURES

    last = tmp_path / f"{list(FIGURES)[-1]}.png"
    last.write_bytes(FOREIGN)
    code, _, err = run("reproduce", "figures", "--out", tmp_path)
    assert code == 2
    assert f"{last} would be overwritten" in err
    assert list(tmp_path.iterdir()) == [last]


@pytest.mark.usefixtures("write")
def test_what_is_read_is_not_written(run, tmp_path):
    source, link = tmp_path / "rows.parquet", tmp_path / "link.parquet"
    pl.read_csv(BINARY).write_parquet(source)
    link.symlink_to(source)
    content = source.read_bytes()
    map_file = tmp_path / "map.jsonl"
    map_file.write_bytes((tmp_path / "a-map.json").read_bytes())
    for command in (
        ("aggregate", source, *COLUMNS, "--out", link),
        ("apply", "a-map.json", source, "--p", "forest", "--out", link),
        ("report", source, *COLUMNS, "--out", link, "--format", "html"),
    ):
        code, _, err = run(*command)
        assert code == 2
        assert "--out must not be one of the input files" in err
    code, _, err = run("apply", map_file, source, "--p", "forest", "--out", map_file)
    assert code == 2
    assert map_file.read_bytes() == (tmp_path / "a-map.json").read_bytes()
    assert source.read_bytes() == content


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_name_that_cannot_be_written_is_told_first(write, tmp_path, kind):
    out = tmp_path / f"{'n' * 300}{ENDINGS[kind]}"
    code, _, err = write(kind, out, source="no-such-file.csv")
    assert code == 2
    assert err == f"error: {out} cannot be written: file name too long.\n"


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_long_name_can_be_written(write, tmp_path, kind):
    out = tmp_path / f"{'n' * (250 - len(ENDINGS[kind]))}{ENDINGS[kind]}"
    assert write(kind, out)[0] == 0
    assert out.stat().st_size > 0


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_folder_that_takes_no_files_is_told(run, tmp_path, engine):
    """There is one in Linux that even the superuser cannot write to."""
    if not os.path.isdir("/proc/self"):  # noqa: PTH112
        pytest.skip("needs /proc")
    p, y = cb.datasets.load_binary("forest")
    saved = tmp_path / "map.json"
    cb.save_map(cb.make_calibrator("platt").fit(p, y).map_, saved)
    wanted = ("--p", "forest", "--out", "/proc/self/out.csv", "--engine", engine)
    code, _, err = run("apply", saved, BINARY, *wanted)
    assert code == 2
    assert "/proc/self/out.csv cannot be written: " in err
    assert "cannot be read" not in err


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs permissions of files")
@pytest.mark.parametrize("protected", ["folder", "file"])
def test_what_is_protected_is_told_and_stays(tmp_path, monkeypatch, protected):
    out = tmp_path / "map.json"
    out.write_bytes(FOREIGN)
    (out if protected == "file" else tmp_path).chmod(0o555)
    if os.geteuid() == 0:  # to whom nothing is protected
        unchanged = os.access
        shut = {out if protected == "file" else tmp_path}
        monkeypatch.setattr(
            os, "access", lambda path, mode: path not in shut and unchanged(path, mode)
        )
    p, y = np.array([0.2, 0.7] * 20), np.array([0, 1] * 20)
    map_ = cb.make_calibrator("platt").fit(p, y).map_
    with pytest.raises(OSError, match=r"map\.json cannot be written: permission"):
        cb.save_map(map_, out)
    assert out.read_bytes() == FOREIGN
    tmp_path.chmod(0o755)


@pytest.mark.usefixtures("write")
def test_arrays_beside_predictions_overwrite_no_other_kind(run, tmp_path):
    p, _ = cb.datasets.load_binary("forest")
    np.savez(tmp_path / "rows.npz", forest=p, temperature=np.float64(1.5))
    out = tmp_path / "out.npz"
    command = ("apply", "a-map.json", "rows.npz", "--p", "forest", "--out", out)
    assert run(*command)[0] == 0
    assert run(*command)[0] == 0
    content = (tmp_path / "a-map.json").read_bytes()
    out.write_bytes(content)
    is_refused(run(*command), out, content)
