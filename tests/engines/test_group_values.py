"""Values of groups come out as they went in, whatever their type."""

from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.exceptions import OptionError, SmallSampleWarning

LARGE = 2**53


def groups_of(source, **columns):
    found = cb.evaluate(
        cb.Predictions.from_table(source, y="y", p="p", by="g", **columns),
        methods="es2",
        confidence=None,
    ).frame()
    return found["g"].tolist(), found["n"].tolist()


@pytest.fixture
def columns():
    rng = np.random.default_rng(0)
    return {"y": rng.integers(0, 2, 400), "p": rng.random(400)}


@pytest.mark.filterwarnings(
    "ignore:.* no value of:calibrant.exceptions.CalibrantWarning"
)
def test_whole_numbers_stay_apart_where_some_are_missing(
    columns, local_engine, tmp_path
):
    frame = pl.DataFrame({**columns, "g": [LARGE, LARGE + 1, None, 5] * 100})
    frame.write_parquet(tmp_path / "rows.parquet")
    names, rows = groups_of(tmp_path / "rows.parquet", engine=local_engine)
    assert names == [None, 5, LARGE, LARGE + 1]
    assert rows == [100, 100, 100, 100]


def test_whole_numbers_beyond_64_bits(columns, tmp_path):
    frame = pl.DataFrame({**columns, "g": [str(2**63), str(2**63 + 1)] * 200})
    frame.write_csv(tmp_path / "rows.csv")
    _, rows = groups_of(tmp_path / "rows.csv", engine="memory")
    assert rows == [200, 200]


@pytest.mark.filterwarnings(
    "ignore:.* no value of:calibrant.exceptions.CalibrantWarning"
)
def test_decimals_stay_decimals(columns, local_engine, tmp_path):
    values = [Decimal("0.10"), Decimal("12345678901234567.89"), None, Decimal("2.00")]
    group = pl.Series(values * 100, dtype=pl.Decimal(20, 2))
    pl.DataFrame({**columns, "g": group}).write_parquet(tmp_path / "rows.parquet")
    names, rows = groups_of(tmp_path / "rows.parquet", engine=local_engine)
    assert set(names) == set(values)
    assert not any(isinstance(name, float) for name in names)
    assert rows == [100] * 4


def test_a_decimal_column_may_be_group_and_weight(columns, local_engine, tmp_path):
    group = pl.Series([Decimal("1.00"), Decimal("2.00")] * 200, dtype=pl.Decimal(5, 2))
    pl.DataFrame({**columns, "g": group}).write_parquet(tmp_path / "rows.parquet")
    names, rows = groups_of(tmp_path / "rows.parquet", engine=local_engine, weight="g")
    assert names == [1, 2]
    assert rows == [200, 200]


def test_lists_are_no_groups(columns, tmp_path):
    frame = pl.DataFrame({**columns, "g": [[1, 2]] * 400})
    frame.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(OptionError, match="simple values"):
        groups_of(tmp_path / "rows.parquet", engine="memory")


@pytest.mark.parametrize("cluster", [None, "c"])
def test_groups_without_weight_are_warned_of(cluster, engine, tmp_path):
    row = np.arange(90)
    rows = {"y": row % 2, "p": [0.4] * 90, "g": row % 3, "h": "x", "c": row // 5}
    rows["w"] = np.minimum(row % 3, 1.0)
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    options = {"y": "y", "p": "p", "weight": "w", "by": ["g", "h"], "cluster": cluster}
    options |= {"source": tmp_path / "rows.parquet", "engine": engine}
    with pytest.warns(SmallSampleWarning, match="rows of g=0, h=x all have weight 0"):
        found = cb.evaluate(
            cb.Predictions.from_table(**options), methods="ew2", confidence=None
        )
    assert found.frame()["g"].tolist() == [1, 2]
