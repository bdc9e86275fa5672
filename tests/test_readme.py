"""Commands in README and docs run as they stand there; Python blocks are doctests."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/command_line.md")
TEXT = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
FENCED = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
BLOCKS = [block for language, block in FENCED if not language]
SHOWN = [block for block in BLOCKS if block.startswith("$ calibrant")]
LISTED = [
    line.partition(" #")[0].strip()
    for block in BLOCKS
    for line in block.splitlines()
    if line.startswith("calibrant ")
]
LONG = ("reproduce",)
"""What runs for minutes, and has tests of its own."""


@pytest.mark.parametrize("block", SHOWN)
def test_a_command_prints_what_stands_below_it(block, run, monkeypatch):
    monkeypatch.chdir(ROOT)
    command, _, output = block.partition("\n")
    code, printed, _ = run(*shlex.split(command)[2:])
    assert code == 0
    assert _without_blank_lines(printed) == _without_blank_lines(output)


def _without_blank_lines(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files with the names and columns that the README's commands speak of."""
    rng = np.random.default_rng(0)
    n = 400
    p, y = rng.random(n), rng.random(n)
    label = (y < p).astype(int)
    classes = rng.dirichlet(np.ones(3), n)
    codes = (classes.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    names = np.array(["cat", "dog", "owl"])
    preds = pl.DataFrame(
        {"label": label, "score": p, "a": p, "b": 1 - p, "model_a": p, "model_b": p**2}
        | {"region": rng.choice(["north", "south"], n)}
        | {"country": rng.choice(["ee", "fi"], n)}
        | {"truth": names[codes], "answer": names[classes.argmax(axis=1)]}
        | {"confidence": classes.max(axis=1)}
        | {"class": names[codes], "right_a": label, "right_b": 1 - label}
        | {f"rf_{name}": classes[:, i] for i, name in enumerate(names)}
        | {f"nb_{name}": classes[:, i - 1] for i, name in enumerate(names)}
    )
    preds.write_csv(tmp_path / "preds.csv")
    preds.write_csv(tmp_path / "held_out.csv")
    for name in ("preds", "new"):
        preds.write_parquet(tmp_path / f"{name}.parquet")
    preds.write_csv(tmp_path / "answers.csv")
    (tmp_path / "runs").mkdir()
    for name in ("first", "second"):
        preds.write_csv(tmp_path / "runs" / f"{name}.csv")
    (tmp_path / "lake").mkdir()
    preds.write_parquet(tmp_path / "lake" / "part.parquet")
    long = {"correct": label, "confidence": np.round(100 * p)}
    long |= {"model": ["x", "y"] * (n // 2), "question": np.arange(n) // 2}
    pl.DataFrame(long).write_ndjson(tmp_path / "llm.jsonl")
    np.savez(tmp_path / "logits.npz", y=codes, logits=np.log(classes))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_listed_command_runs(folder, run):
    assert len(LISTED) > 20
    for line in LISTED:
        arguments = shlex.split(line)[1:]
        if arguments[0] in LONG:
            arguments = [*arguments[:2], "--help"]
        code, _, err = run(*arguments)
        # Random predictions may well be above a threshold.
        expected = {0, 1} if "--fail-above" in line else {0}
        assert code in expected, f"{line}: {err}"
    assert (folder / "report.html").exists()
