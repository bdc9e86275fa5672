"""``calibrant plot``, run as users run it."""

import numpy as np
import pytest

import calibrant as cb

BINARY, MULTI = str(cb.datasets.BINARY_FILE), str(cb.datasets.MULTICLASS_FILE)
START = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", START)
def test_figures_are_written_whole(run, tmp_path, suffix):
    out = tmp_path / f"diagram{suffix}"
    code, _, err = run(
        "plot", BINARY, "--y", "even", "--p", "forest,bayes", "--out", out
    )
    assert code == 0
    assert f"wrote {out}" in err
    assert out.read_bytes().startswith(START[suffix])
    assert [file.name for file in tmp_path.iterdir()] == [out.name]


def test_options_change_the_diagram(run, tmp_path):
    seen = set()
    for number, options in enumerate(
        [
            [],
            ["--method", "platt"],
            ["--method", "es15"],
            ["--method", "es15", "--raw"],
            ["--kind", "bars"],
            ["--axes", "logit"],
            ["--axes", "auto"],
            ["--style", "grey"],
            ["--width", "3.5"],
            ["--overlay"],
            ["--no-histogram"],
            ["--weight", "even"],
            ["--by", "even"],
        ]
    ):
        out = tmp_path / f"{number}.png"
        code, _, err = run(
            "plot", BINARY, "--y", "even", "--p", "forest", "--out", out, *options
        )
        assert code == 0, err
        seen.add(out.read_bytes())
    assert len(seen) == 12  # nothing is rare here: auto axes are those of probability


def test_the_top_label_of_several_classes(run, tmp_path):
    options = ["--y", "digit", "--p", "forest_*", "--task", "confidence"]
    code, _, err = run("plot", MULTI, *options, "--out", tmp_path / "a.png")
    assert code == 0, err


def test_classwise_draws_one_diagram_per_class(run, tmp_path):
    options = ["--y", "digit", "--p", "forest_*", "--task", "classwise"]
    out = tmp_path / "a.svg"
    code, _, err = run("plot", MULTI, *options, "--method", "es5", "--out", out)
    assert code == 0, err
    drawn = out.read_text(encoding="utf-8")
    assert all(f"class {digit}" in drawn for digit in range(10))


def test_many_groups_are_drawn_in_part_and_said(run, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.displays.grid.MAX_DIAGRAMS", 2)
    rows = "".join(f"{i % 2},0.{i % 9}5,{i % 5}\n" for i in range(200))
    (tmp_path / "t.csv").write_text("y,p,g\n" + rows)
    options = ["--y", "y", "--p", "p", "--by", "g", "--method", "es3"]
    out = tmp_path / "a.png"
    code, _, err = run("plot", tmp_path / "t.csv", *options, "--out", out)
    assert code == 0
    assert "only the first 2 diagrams are drawn, out of 5" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--p", "forest", "--out", "a.jpg"],
            "figures are written as .png, .svg, .pdf",
        ),
        (["--p", "forest", "--out", "no/where/a.png"], "does not exist"),
        (["--p", "forest", "--out", "a.png", "--method", "kce"], "only measures"),
        (["--p", "forest", "--out", "a.png", "--kind", "pie"], "'--kind'"),
        (["--p", "forest", "--out", "a.png", "--width", "1"], "2 to 40 inches"),
        (["--p", "forest", "--out", "a.png", "--style", "gray"], "mean 'grey'"),
        (["--p", "forrest", "--out", "a.png"], "did you mean 'forest'"),
    ],
)
def test_wrong_usage_is_exit_two_and_writes_nothing(
    run, tmp_path, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("plot", BINARY, "--y", "even", *options)
    assert code == 2
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_logits_in_columns_are_read_as_such(run, tmp_path):
    logits = np.linspace(-3, 3, 60)
    lines = [f"{i % 2},{value}" for i, value in enumerate(logits)]
    (tmp_path / "t.csv").write_text("\n".join(["y,p", *lines]))
    options = ["--y", "y", "--p", "p", "--method", "es3", "--out", tmp_path / "a.png"]
    assert run("plot", tmp_path / "t.csv", *options)[0] == 2
    assert run("plot", tmp_path / "t.csv", *options, "--scale", "logit")[0] == 0
