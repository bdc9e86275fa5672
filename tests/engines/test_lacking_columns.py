"""Files without a column that others have are told, not read as missing values."""

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.exceptions import SourceError


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, columns in (("a", ["y", "p", "g", "w"]), ("b", ["y", "p"])):
        values = {"y": rng.integers(0, 2, 50), "p": rng.random(50)}
        values |= {"g": np.arange(50) % 2, "w": np.ones(50)}
        pl.DataFrame(values).select(columns).write_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize("option", [{"by": "g"}, {"weight": "w"}])
@pytest.mark.parametrize("bad_rows", ["error", "drop"])
def test_a_file_that_lacks_a_column(folder, local_engine, option, bad_rows):
    options = {"y": "y", "p": "p", "engine": local_engine, "bad_rows": bad_rows}
    with pytest.raises(SourceError, match=r"b\.parquet has no column '[gw]'"):
        cb.Predictions.from_table(
            f"{folder}/*.parquet", **options, **option
        ).aggregate()


def test_columns_that_nobody_asked_for_may_be_lacking(folder, local_engine):
    found = cb.Predictions.from_table(
        f"{folder}/*.parquet", y="y", p="p", engine=local_engine
    ).aggregate()
    assert found.n == 100
