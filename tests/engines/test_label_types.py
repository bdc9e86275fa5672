"""Labels of every type: which rows are invalid does not depend on how they are read."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import calibrant as cb
from calibrant.exceptions import (
    DroppedRowsWarning,
    InputError,
    LabelError,
    MissingValueError,
    SourceError,
    WeightError,
)

N = 50
TIMES = map(dt.datetime.fromisoformat, ("2024-01-01", "2024-02-03"))
LABELS = {
    "dates": ("DATE", dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
    "times": ("TIMESTAMP", *TIMES),
    "decimals": ("DECIMAL(9, 1)", Decimal("0.1"), Decimal("0.3")),
    "identifiers": ("UUID", UUID(int=1), UUID(int=2)),
    "hours": ("TIME", dt.time(1, 2), dt.time(3, 4)),
}


def relation(columns):
    """Return rows whose columns are expressions of their number, i."""
    return duckdb.sql(f"FROM range({N}) r(i)").project(columns)


@pytest.fixture(params=LABELS)
def labelled(request):
    """Return two labels, and rows that have them; one row has a negative weight."""
    kind, first, second = LABELS[request.param]
    label = f"CAST(IF(i % 2 = 0, '{first}', '{second}') AS {kind})"
    columns = f"{label} AS y, 0.4 AS a, 0.6 AS b, IF(i = 0, -1, 1) AS w"
    return [first, second], relation(columns)


def test_rows_with_a_known_class_have_no_invalid_label(labelled):
    labels, rows = labelled
    options = {"y": "y", "p": {"m": ["a", "b"]}, "task": "confidence", "labels": labels}
    with pytest.raises(WeightError, match=f"1 of {N} rows"):
        cb.Predictions.from_table(rows, weight="w", **options).aggregate()
    assert cb.Predictions.from_table(rows, **options).aggregate().n == N
    options["labels"] = [labels[0], "other"]
    with pytest.raises(LabelError, match=f"only the classes.*25 of {N} rows"):
        cb.Predictions.from_table(rows, **options).aggregate()


def test_dates_are_listed_as_dates():
    rows = relation("DATE '2024-01-01' + (i % 3)::INT AS y, 0.4 AS p")
    options = {"y": "y", "p": "p", "pos_label": dt.date(2024, 1, 2)}
    with pytest.raises(LabelError, match=r"it contains datetime.date\(2024, 1, 1\)"):
        cb.Predictions.from_table(rows, **options).aggregate()


@pytest.fixture
def bytes_labels(tmp_path):
    """Return a file whose labels are bytes; one row has a negative weight."""
    label = "IF(i % 4 = 0, '\\x00a'::BLOB, 'b'::BLOB) AS y"
    relation(f"{label}, 0.4 AS p, IF(i = 0, -1, 1) AS w").to_parquet(
        str(tmp_path / "rows.parquet")
    )
    return tmp_path / "rows.parquet"


def test_labels_may_be_bytes(bytes_labels, engine):
    options = {"y": "y", "p": "p", "pos_label": b"\0a", "engine": engine}
    preds = cb.Predictions.from_table(bytes_labels, **options).aggregate()
    assert preds.store.cells.columns["event_rows"].sum() == 13
    with pytest.raises(WeightError, match=f"1 of {N} rows"):
        cb.Predictions.from_table(bytes_labels, weight="w", **options).aggregate()


def test_groups_may_be_named_by_bytes(bytes_labels, local_engine):
    options = {"y": "w", "p": "p", "pos_label": 1, "by": "y", "engine": local_engine}
    cells = cb.Predictions.from_table(bytes_labels, **options).aggregate().store.cells
    assert cells.groups == ((b"\0a",), (b"b",))


@pytest.fixture
def few_labels(tmp_path):
    """Return a file with labels of several types."""
    day, text = "DATE '2024-01-01' + (i % 2)::INT AS day", "(i % 2)::VARCHAR AS text"
    numbers = "i % 2 AS whole, (i % 2)::DOUBLE AS number, 0.4 AS p"
    path = str(tmp_path / "rows.parquet")
    relation(f"{day}, {text}, {numbers}").to_parquet(path)
    return path


@pytest.mark.parametrize("column", ["day", "text", "whole", "number"])
@pytest.mark.parametrize("event", ["q", float("nan"), float("inf"), b"1", 0.5])
def test_an_event_that_no_label_can_be(few_labels, engine, column, event):
    options = {"y": column, "p": "p", "pos_label": event, "engine": engine}
    with pytest.raises(LabelError, match="must contain two values, one of them"):
        cb.evaluate(cb.Predictions.from_table(few_labels, **options))


def test_nan_is_no_label(engine, tmp_path):
    relation("IF(i < 3, 'nan'::DOUBLE, i % 2) AS y, 0.4 AS p").to_parquet(
        str(tmp_path / "rows.parquet")
    )
    options = {"y": "y", "p": "p", "pos_label": 1, "engine": engine}
    table = str(tmp_path / "rows.parquet")
    with pytest.raises(MissingValueError, match="column 'y'"):
        cb.evaluate(cb.Predictions.from_table(table, **options))
    with pytest.warns(DroppedRowsWarning, match="3 without a label in column 'y'"):
        preds = cb.Predictions.from_table(table, bad_rows="drop", **options)
    assert preds.n == N - 3


@pytest.mark.parametrize("options", [{"pos_label": "u"}, {}])
def test_labels_with_fields_are_refused(local_engine, options):
    rows = relation("{'a': i % 2} AS y, 0.4 AS p")
    options = {"y": "y", "p": "p", "engine": local_engine} | options
    with pytest.raises(InputError, match=r"column 'y' must contain simple values.*own"):
        cb.Predictions.from_table(rows, **options).aggregate()


def test_remedies_about_labels_are_sentences(run, tmp_path):
    path = tmp_path / "rows.parquet"
    relation("IF(i = 0, 2, i % 2) AS y, 0.4 AS p").to_parquet(str(path))
    options = ("--y", "y", "--p", "p", "--engine", "duckdb")
    code, _, err = run("evaluate", path, *options)
    assert code == 2
    words = " ".join(err.split())
    assert "State by --pos-label which one is the event. For several classes" in words


def test_the_reason_why_a_data_frame_cannot_be_read():
    half = pa.table({"y": [0, 1], "p": pa.array(np.full(2, 0.5, np.float16))})
    with pytest.raises(SourceError, match=r"Unsupported.*Arrow.*engine=.memory"):
        cb.Predictions.from_table(half, y="y", p="p", engine="duckdb").aggregate()
