"""Files whose columns have different types are read without loss."""

import numpy as np
import polars as pl

import calibrant as cb


def test_whole_numbers_in_the_first_file_do_not_round_the_others(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.6, 0.9, 1000)
    y = (rng.random(1000) < p).astype(int)
    pl.DataFrame({"p": [0, 1] * 50, "y": [0, 1] * 50}).write_parquet(
        tmp_path / "1.parquet"
    )
    pl.DataFrame({"p": p, "y": y}).write_parquet(tmp_path / "2.parquet")
    found = cb.evaluate(
        cb.Predictions.from_table(str(tmp_path / "*.parquet"), y="y", p="p"),
        methods="ew15",
        confidence=None,
    )
    whole = np.concatenate([np.array([0.0, 1.0] * 50), p])
    labels = np.concatenate([[0, 1] * 50, y])
    expected = cb.calibration_error(labels, whole, method="ew15")
    np.testing.assert_allclose(found.frame()["value"][0], expected, atol=1e-12)


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
