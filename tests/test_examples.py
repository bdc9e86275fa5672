"""Examples run, and documents quote them as they are."""

import os
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "own_calibrator.py"


def test_an_own_calibrator_stands_beside_others(capsys):
    runpy.run_path(os.fspath(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[:3]] == ["smooth", "platt", "OddsShift"]


def test_the_shift_of_odds_is_the_one_that_was_made():
    odds_shift = runpy.run_path(os.fspath(EXAMPLE))["OddsShift"]
    rng = np.random.default_rng(0)
    true = rng.uniform(0.05, 0.95, 200_000)
    odds = true / (1.0 - true) / 2.0
    p, y = odds / (1.0 + odds), rng.random(true.size) < true
    fitted = odds_shift().fit(p, y)
    assert fitted.shift == pytest.approx(np.log(2.0), abs=0.03)
    found = cb.calibration_error(y, p, method=odds_shift())
    assert found == pytest.approx(np.abs(true - p).mean(), abs=0.005)


def test_contributing_quotes_the_example():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    quoted = re.search(r"```python\n(class OddsShift.*?)```", text, re.DOTALL)
    assert quoted is not None
    assert quoted.group(1) in EXAMPLE.read_text(encoding="utf-8")


def test_the_hero_figure_shows_a_repair_that_helps(tmp_path, monkeypatch, capsys):
    script = os.fspath(ROOT / "examples" / "hero_figure.py")
    monkeypatch.setattr("sys.argv", [script, os.fspath(tmp_path)])
    made = runpy.run_path(script, run_name="__main__")
    assert (tmp_path / "hero.png").read_bytes().startswith(b"\x89PNG")
    before, after = made["before_and_after"]().displays
    assert after.statistics.high < before.statistics.low
    assert f"wrote {tmp_path / 'hero.png'}" in capsys.readouterr().out
