"""Names of groups do not matter, as long as they keep their order."""

import numpy as np
import polars as pl

import calibrant as cb
from calibrant.exceptions import CalibrantError
from fuzz.tables import assert_same_frame, table

NAMES = ("", " ", "'", '"', "-- x", "*", "=1+1", "NULL", "a\nb", "nan", "None", "true")
NAMES += ("Ω", "ß", "日本", "\u202e", "(missing)", "model", "x" * 300, "\\", "%s", "{}")


def relabelled(rng, number):
    """Return other values for the groups 0, 1, ..., ascending."""
    kinds = (
        lambda: np.sort(rng.choice(10**6, number, replace=False)),
        lambda: np.sort(rng.choice(NAMES, number, replace=False)),
        lambda: np.sort(rng.normal(size=number)),
        lambda: np.datetime64("2024-01-01") + np.sort(rng.choice(99, number, False)),
    )
    return kinds[int(rng.integers(len(kinds)))]()


def case(rng):
    columns = table(rng, least=6)
    number = int(rng.integers(1, 5))
    group = rng.integers(0, number, columns["y"].size)
    methods = str(rng.choice(["ew2", "es-sweep", "isotonic", "platt"]))
    engine = str(rng.choice(["memory", "duckdb"]))
    values = relabelled(rng, number)
    found = _result(columns | {"g": group}, engine, methods)
    again = _result(columns | {"g": values[group]}, engine, methods)
    assert type(found) is type(again), (values, found, again)
    if isinstance(found, CalibrantError):
        return
    found, again = found.frame(), again.frame()
    expected = values[np.asarray(found.pop("g"))]
    assert [str(v) for v in again.pop("g")] == [str(v) for v in expected]
    assert_same_frame(again, found, str(values))


def _result(columns, engine, methods):
    try:
        preds = cb.Predictions.from_table(
            pl.DataFrame(columns), y="y", p="p", by="g", engine=engine
        )
        return cb.evaluate(preds, methods=methods, n_resamples=10)
    except CalibrantError as error:
        return error
