"""The same numbers from lists, arrays, data frames and files."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz.tables import QUICK, WRITERS, assert_same_frame, folder, frames, table

VECTORS = {
    "list": np.ndarray.tolist,
    "tuple": lambda v: tuple(v.tolist()),
    "column": lambda v: v[:, np.newaxis],
    "view": lambda v: np.repeat(v, 2)[::2],
    "objects": lambda v: v.astype(object),
    "other byte order": lambda v: v.astype(v.dtype.newbyteorder()),
    "pandas": lambda v: pd.Series(v, index=np.arange(v.size)[::-1]),
    "pandas nullable": lambda v: pd.Series(v).convert_dtypes(),
    "polars": pl.Series,
    "pyarrow": pa.array,
    "chunks": lambda v: pa.chunked_array([v[:1], v[1:]]),
    "masked": lambda v: np.ma.MaskedArray(v, mask=False),
}


def case(rng):
    columns = table(rng)
    settings = {"methods": str(rng.choice(QUICK)), "n_resamples": 20}
    try:
        found = cb.evaluate(columns["y"], columns["p"], **settings).frame()
    except TooFewRowsError:
        return
    for kind in rng.choice(list(VECTORS), 3, replace=False):
        y, p, w = (VECTORS[kind](columns[name]) for name in "ypw")
        assert_same_frame(cb.evaluate(y, p, **settings).frame(), found, kind, 0.0)
        one = cb.calibration_error(y, p, method="ew2", sample_weight=w)
        assert one == cb.calibration_error(
            columns["y"], columns["p"], method="ew2", sample_weight=columns["w"]
        )
    found = _evaluated(columns)
    for kind, frame in frames(columns).items():
        assert_same_frame(_evaluated(frame), found, kind)
    with folder() as path:
        for kind, write in WRITERS.items():
            file = write(path / f"rows.{kind}", columns)
            again = _evaluated(file)
            if kind in {"csv", "tsv"} and set(columns["g"]) == {"7"}:
                again["g"] = again["g"].astype(str)  # numbers alone are numbers
            assert_same_frame(again, found, kind)


def _evaluated(source):
    preds = cb.Predictions.from_table(
        source, y="y", p=["p", "q"], by="g", engine="memory"
    )
    return cb.evaluate(preds, methods=["ew1", "isotonic"], n_resamples=20).frame()
