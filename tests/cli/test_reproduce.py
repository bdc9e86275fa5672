"""``calibrant reproduce``, run as users run it."""

import csv
import io
import json

import numpy as np
import pytest

import calibrant as cb
from calibrant.experiments import design as designs
from calibrant.experiments import fresh


@pytest.fixture
def reduced(monkeypatch):
    """Make the quick grid quicker: two cheap methods, one truth, few unseen rows."""
    whole = designs.quick_design

    def reduced_design(seeds=2, *, as_printed=False):
        quick = whole(seeds, as_printed=as_printed)
        return designs.Design(
            contenders=[c for c in quick.contenders if c.name in ("es15", "platt")],
            truths=[designs.SyntheticTruth.of("square", 0.05, test_rows=5000)],
            sizes=quick.sizes,
            seeds=quick.seeds,
        )

    monkeypatch.setattr(designs, "quick_design", reduced_design)


@pytest.mark.usefixtures("reduced")
def test_quick_prints_and_writes_all_tables(run, tmp_path):
    code, out, err = run("reproduce", "synthetic", "--quick", "--out", tmp_path / "run")
    assert code == 0
    assert out == (tmp_path / "run" / "tables.md").read_text()
    assert "| square | " in out
    assert out.count("| average rank | ") == 6
    assert "Only 2 draws of labels are independent" in out
    assert "Made by `calibrant reproduce synthetic --quick` on " in out
    assert f"with calibrant {cb.__version__}, numpy {np.__version__}" in out
    assert "seconds of one core: es15 " in out
    for name in ("results.parquet", "times.parquet", "log.txt", "tables.tex"):
        assert (tmp_path / "run" / name).exists()
    assert "wrote" in err
    assert (tmp_path / "run" / "tables.html").read_text().startswith("<!doctype html>")


@pytest.mark.usefixtures("reduced")
def test_the_same_command_goes_on_where_it_was(run, tmp_path):
    options = ["reproduce", "synthetic", "--quick", "--out", tmp_path]
    first, second = (run(*options, "--format", "csv")[1] for _ in range(2))
    assert first == second
    assert "4 cells, 4 of them done before" in (tmp_path / "log.txt").read_text()
    run(*options, "--seeds", 3)
    assert "6 cells, 4 of them done before" in (tmp_path / "log.txt").read_text()


@pytest.mark.usefixtures("reduced")
def test_formats_hold_the_same_numbers(run, tmp_path):
    options = ["reproduce", "synthetic", "--quick", "--out", tmp_path, "--format"]
    rows = json.loads(run(*options, "json")[1])["rows"]
    lines = list(csv.DictReader(io.StringIO(run(*options, "csv")[1])))
    for line, row in zip(lines, rows, strict=True):  # a single error has no ranking
        assert line["value"] == str("nan" if row["value"] is None else row["value"])
    es15 = next(r for r in rows if (r["table"], r["method"]) == ("calmap", "es15"))
    assert f"${es15['value']:.2f}" in run(*options, "latex")[1].replace(
        r"$\begin{array}{r}", "$"
    )
    assert f"{es15['value']:.2f}<sub>" in run(*options, "html")[1]


@pytest.mark.usefixtures("reduced")
def test_other_methods_on_the_same_data(run, tmp_path):
    options = ["reproduce", "synthetic", "--quick", "--out", tmp_path]
    code, out, _ = run(*options, "--methods", "isotonic, ew5")
    assert code == 0
    assert "|  | isotonic | ew5 |" in out
    assert "--methods isotonic, ew5" in out
    code, _, err = run(*options, "--methods", "isotonic,platts")
    assert code == 2
    assert "did you mean 'platt'" in err


def test_the_fresh_study_has_an_overview_and_a_part_for_each(
    run, tmp_path, monkeypatch
):
    study = fresh.Study("small", "One shape", ("jump",), (0.05,), sizes=(200,))
    other = fresh.Study("large", "The same, larger", ("jump",), (0.05,), sizes=(300,))
    monkeypatch.setattr(fresh, "STUDIES", (study, other))
    monkeypatch.setattr(fresh, "TEST_ROWS", 2000)
    options = ["--seeds", 2, "--methods", "platt,beta", "--out", tmp_path]
    code, out, _ = run("reproduce", "fresh", *options)
    assert code == 0
    assert "Made by `calibrant reproduce fresh --seeds 2 --methods platt,beta`" in out
    assert "|  | platt | beta | oracle |" in out
    assert out.count("| jump | ") == 2 * 3
    assert "| small | " in out
    assert "The same, larger: Map error" in out
    rows = json.loads(run("reproduce", "fresh", *options, "--format", "json")[1])
    assert {row["study"] for row in rows["rows"]} == {"", study.title, other.title}


@pytest.mark.slow
def test_the_quick_grid_is_a_part_of_the_papers():
    quick, paper = designs.quick_design(), designs.paper_design()
    keys = {cell.key for cell in paper.cells()}
    assert {cell.key for cell in quick.cells()} <= keys
    assert quick.size == 360


def test_wrong_usage_is_one_line_and_exit_two(run, tmp_path):
    code, _, err = run(
        "reproduce", "synthetic", "--quick", "--out", tmp_path, "--jobs", 0
    )
    assert code == 2
    assert "jobs must not be 0" in err
    assert "Traceback" not in err


def test_figures_are_written(run, tmp_path, monkeypatch):
    from calibrant.experiments import figures

    kept = {name: figures.FIGURES[name] for name in ("base_shapes", "beta_map")}
    monkeypatch.setattr(figures, "FIGURES", kept)
    code, _, err = run("reproduce", "figures", "--out", tmp_path / "new" / "folder")
    assert code == 0
    assert err.count("wrote") == 2
    written = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert written == ["base_shapes.png", "beta_map.png"]
