"""Names that hold signs which nobody sees, or that mean something elsewhere."""

import csv
import io
import json

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.core.wording import visible

TURNED = "\u202eabc\u2066"
ESCAPE = "\x1b[31mred\x07"
HALF = "half \udc80"


@pytest.mark.parametrize("name", [TURNED, ESCAPE, HALF, "line\nend", "\u2028"])
def test_hidden_signs_are_written_out(name):
    shown = visible(name)
    assert shown.isprintable()
    assert shown.encode("ascii")
    assert shown == name.encode("unicode_escape").decode()


@pytest.mark.parametrize("name", ["Größe", "模型", "नमस्ते", "👩‍🔬", "می‌خواهم", "a b"])
def test_what_can_be_seen_stays(name):
    assert visible(name) == name


@pytest.fixture
def rows():
    p = np.linspace(0.01, 0.99, 120)
    return p, (p > 0.5).astype(int)


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "\r=1"]


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_marked_as_text_in_csv(run, tmp_path, rows, name):
    p, y = rows
    path = tmp_path / "rows.parquet"
    groups = np.where(np.arange(p.size) % 2, name, "-1.5")
    pl.DataFrame({"m": p, "y": y, name: groups, "-2": groups}).write_parquet(path)
    columns = ("--y", "y", "--p", "m", "--by", f'"{name}",-2', "--methods", "ew5")
    code, out, err = run("evaluate", path, *columns, "--format", "csv")
    if name.strip() != name:  # such a column cannot be named on the command line
        assert code == 2
        by = ("--by", "-2", "--methods", "ew5", "--format", "csv")
        code, out, err = run("evaluate", path, "--y", "y", "--p", "m", *by)
    assert code == 0, err
    found = list(csv.DictReader(io.StringIO(out, newline="")))
    assert {row["-2"] for row in found} == {"-1.5", f"'{name}"}
    if name.strip() == name:
        assert {row[f"'{name}"] for row in found} == {"-1.5", f"'{name}"}
    cells = {cell for row in found for pair in row.items() for cell in pair}
    risky = {cell for cell in cells if cell[:1] in set("=+-@\t\r")}
    assert all(float(cell) for cell in risky)


@pytest.mark.parametrize("name", [TURNED, ESCAPE])
def test_columns_and_groups_on_the_terminal(run, tmp_path, rows, name):
    p, y = rows
    path = tmp_path / "rows.parquet"
    frame = pl.DataFrame({name: p, "q": p, "y": y, "group": [name] * p.size})
    frame.write_parquet(path)
    columns = ("--y", "y", "--p", f'"{name}",q', "--by", "group")
    for output in ("table", "markdown"):
        code, out, err = run(
            "evaluate", path, *columns, "--methods", "ew5", "--format", output
        )
        assert code == 0, err
        assert not set("\u202e\u2066\x1b\x07") & set(out)
        assert visible(name) in out
    code, out, err = run(
        "report", path, *columns, "--methods", "ew5", "--out", tmp_path / "p.html"
    )
    assert code == 0, err
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert not set("\u202e\u2066\x1b\x07") & set(out + page)
    assert json.loads((tmp_path / "p.json").read_text())["models"][0]["name"] == name


def test_half_a_surrogate_pair_is_no_crash(rows, tmp_path):
    p, y = rows
    report = cb.Report.from_predictions(
        y, {HALF: p}, groups=[HALF] * 120, methods="ew5"
    )
    report.save(tmp_path / "page.html")
    assert "half \\udc80" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert b"half \\udc80" in str(report).encode()
    report.to_markdown().encode()


@pytest.mark.parametrize("name", ["cost $x_{", "$\\frac{1}$", HALF, ESCAPE])
def test_names_are_no_mathematics(rows, tmp_path, name):
    p, y = rows
    display = cb.ReliabilityDisplay.from_predictions(y, p, method="ew5", name=name)
    figure = display.plot().figure
    figure.savefig(tmp_path / "name.svg")
    found = cb.compare(y, {name: p, "other": p**2}, method="ew5")
    cb.ComparisonDisplay(found).plot().figure.savefig(tmp_path / "pairs.svg")
    assert visible(name) in display.plot().get_title().replace("\\$", "$")
