"""Tables of predictions in every container, and results that must be the same."""

import csv
import json
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.testing import assert_allclose

from fuzz import draws

QUICK = ("es3", "ew4", "es-sweep", "isotonic", "platt")


@contextmanager
def folder():
    """Give a folder that is gone afterwards."""
    with TemporaryDirectory(prefix="fuzz-") as path:
        yield Path(path)


def table(rng, least=4, most=200):
    """Draw columns: labels y, predictions p and q, groups g and count w."""
    p, y = draws.sample(rng, least, most)
    groups = rng.choice(["a", "b", "ä", "b b", "7", "-"], int(rng.integers(1, 4)))
    return {
        "y": y.astype(int),
        "p": p,
        "q": draws.predictions(rng, p.size),
        "g": rng.choice(groups, p.size),
        "w": rng.integers(1, 4, p.size),
    }


def write_csv(path, columns, separator=","):
    """Write columns with all their digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter=separator)
        rows.writerow(columns)
        values = [np.asarray(column).tolist() for column in columns.values()]
        rows.writerows(zip(*values, strict=True))
    return path


def write_jsonl(path, columns):
    values = [np.asarray(column).tolist() for column in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path, columns):
    pl.DataFrame({k: np.asarray(v).tolist() for k, v in columns.items()}).write_parquet(
        path
    )
    return path


def write_tsv(path, columns):
    return write_csv(path, columns, "\t")


WRITERS = {
    "csv": write_csv,
    "tsv": write_tsv,
    "parquet": write_parquet,
    "jsonl": write_jsonl,
}


def frames(columns):
    """Return the same table as every kind of data frame."""
    lists = {name: np.asarray(column).tolist() for name, column in columns.items()}
    return {
        "dict of arrays": columns,
        "dict of lists": lists,
        "pandas": pd.DataFrame(lists, index=np.arange(len(lists["y"]))[::-1]),
        "pandas of Arrow": pd.DataFrame(lists).convert_dtypes(dtype_backend="pyarrow"),
        "pandas of nullable": pd.DataFrame(lists).convert_dtypes(),
        "polars": pl.DataFrame(lists),
        "pyarrow": pa.table(lists),
    }


def assert_same_frame(again, found, what, digits=1e-9):
    """Compare two results column by column; text exactly, numbers nearly."""
    assert list(again) == list(found), what
    for name in found:
        one, other = np.asarray(found[name]), np.asarray(again[name])
        if one.dtype.kind == "f":
            assert_allclose(other, one, rtol=digits, atol=digits, err_msg=what)
        else:
            assert one.tolist() == other.tolist(), what
