"""Rows that cannot be used: left out as if they were not there, told, and not many."""

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.exceptions import DroppedRowsWarning

N = 400


@pytest.fixture
def frame():
    """Rows of which four cannot be used, each for a reason of its own."""
    rng = np.random.default_rng(5)
    p = rng.random(N)
    rows = {
        "p": p.tolist(),
        "y": (rng.random(N) < p).astype(int).tolist(),
        "w": np.ones(N).tolist(),
        "town": [["a", "b", None][i % 3] for i in range(N)],
        "year": [[2023, 2024, None][i % 3] for i in range(N)],
    }
    rows["p"][3], rows["p"][50], rows["y"][101], rows["w"][202] = None, 1.5, 7, -1.0
    return pl.DataFrame(rows)


BAD = (3, 50, 101, 202)


def good_rows(frame):
    return frame.filter(~pl.int_range(N).is_in(BAD))


def saved(frame, folder, kind):
    path = folder / f"rows.{kind}"
    {"csv": frame.write_csv, "parquet": frame.write_parquet}[kind](path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("by", ["town", "year", ["town", "year"]])
def test_groups_of_the_rows_that_are_left(frame, tmp_path, engine, kind, by):
    options = {"y": "y", "p": "p", "by": by, "methods": "ew5", "confidence": None}
    options |= {"sample_weight": "w"}
    wanted = cb.evaluate_table(good_rows(frame), **options).frame()
    path = saved(frame, tmp_path, kind)
    with pytest.warns(DroppedRowsWarning, match="4 of 400 rows"):
        found = cb.evaluate_table(path, engine=engine, bad_rows="drop", **options)
    assert found.frame().keys() == wanted.keys()
    for name, values in wanted.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found.frame()[name], values, atol=1e-12)
        else:
            assert found.frame()[name].tolist() == values.tolist()
