"""``calibrant reproduce pseudo-real`` and ``real``, run as users run them."""

import json

import numpy as np
import pytest

from calibrant.experiments import embedded, real, studies
from calibrant.experiments.prediction_files import find_predictions


@pytest.fixture
def reduced(monkeypatch, tmp_path):
    """Make quick studies quicker: few rows, few methods."""
    rows = {"train": 200, "cal": 400, "test": 1000, "holdout": 6000}
    monkeypatch.setattr(embedded, "QUICK_ROWS", rows)
    monkeypatch.setattr(studies, "QUICK_ROWS", 300)
    monkeypatch.setattr(studies, "QUICK_CALIBRATORS", ("platt", "temperature"))
    monkeypatch.setattr(studies, "QUICK_EVALUATORS", ("es15", "platt"))
    monkeypatch.setattr(real, "QUICK_EVALUATORS", ("es15", "platt"))
    monkeypatch.setattr(real, "QUICK_SUBSETS", {300: 3})
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_pseudo_real_goes_on_where_it_was(run, reduced):
    options = ["--quick", "--events", "3=threes,confidence", "--out", reduced / "out"]
    code, out, err = run("reproduce", "pseudo-real", *options)
    assert code == 0, err
    assert out == (reduced / "out" / "tables.md").read_text()
    assert "| threes vs rest | " in out
    assert "| network, confidence | " in out
    assert out.count("\n## combo, the paper's chat_dist_c_combo\n") == 1
    assert "true map by exact probabilities" in out
    assert "--quick --events 3=threes,confidence` on " in out
    again = run("reproduce", "pseudo-real", *options, "--format", "json")[1]
    rows = json.loads(again)["rows"]
    assert {row["method"] for row in rows} == {"platt", "temperature", "es15"}
    told = {(row["study"], row["shape"], row["method"]) for row in rows}
    assert len(told) == len(rows)  # one table is told from the other
    log = (reduced / "out" / "log.txt").read_text()
    assert log.count("32 cells, 32 of them done before") == 1
    assert log.count("192 cells, 192 of them done before") == 1

    (place,) = (reduced / "cache").iterdir()
    code, out, _ = run(
        "reproduce", "pseudo-real", *options, "--data", place, "--jobs", 2
    )
    assert code == 0
    assert f"--data {place.name} " in out
    log = (reduced / "out" / "log.txt").read_text()  # the same rows, the same keys
    assert log.count("192 cells, 192 of them done before") == 2


def test_real_writes_biases_and_the_figure(run, reduced):
    code, out, err = run("reproduce", "real", "--quick", "--out", reduced / "out")
    assert code == 0, err
    assert "| pseudo-real, 300 | " in out
    assert "| real, 300 | " in out
    assert (reduced / "out" / "ordering.png").stat().st_size > 1000

    (place,) = (reduced / "cache").iterdir()
    options = ["--quick", "--data", place, "--out", reduced / "other"]
    code, out, _ = run("reproduce", "real", *options)
    assert code == 0
    assert "pseudo-real, 300" not in out
    assert "is 0 in each row" in out


def test_what_cannot_be_read_is_told(run, reduced):
    code, _, err = run("reproduce", "pseudo-real", "--data", reduced / "none")
    assert code == 2
    assert "is no folder" in err
    code, _, err = run("reproduce", "pseudo-real", "--quick", "--sizes", "1000,many")
    assert code == 2
    assert "--sizes must be numbers with commas; got '1000,many'" in err
    few = reduced / "few"
    few.mkdir()
    arrays = {"probs_cal": np.full((9, 2), 0.5), "y_cal": np.zeros(9)}
    arrays |= {"probs_test": np.full((9, 2), 0.5), "y_test": np.zeros(9)}
    np.savez(few / "model.npz", **arrays)
    assert len(find_predictions(few)) == 1
    code, _, err = run("reproduce", "real", "--data", few, "--out", reduced / "o")
    assert code == 2
    assert "at least 1000 rows; the smallest has 9" in err
    code, _, err = run("reproduce", "real", "--data", few, "--sizes", "500")
    assert code == 2
    assert "500" in err
    assert "10000" in err
