"""Aggregates of parts add up to that of the whole, in any order, and on disk."""

import numpy as np

import calibrant as cb
from calibrant.exceptions import CalibrantError
from fuzz.tables import assert_same_frame, folder, table

METHODS = ("es3", "ew6", "es-sweep", "isotonic", "platt", "kce", "es-cv")


def case(rng):
    columns = table(rng, least=2)
    size = columns["y"].size
    settings = {
        "y": "y",
        "p": ["p", "q"],
        "engine": str(rng.choice(["memory", "duckdb"])),
    }
    if rng.random() < 0.5:
        settings["by"] = "g"
    if rng.random() < 0.3:
        settings["weight"] = "w"
    part = rng.integers(0, int(rng.integers(2, 5)), size)
    parts = [
        cb.Predictions.from_table(
            {k: v[part == i] for k, v in columns.items()}, **settings
        ).aggregate()
        for i in np.unique(part)
    ]
    whole = cb.Predictions.from_table(columns, **settings).aggregate()
    merged = parts[0]
    for other in parts[1:]:
        merged = merged + other if rng.random() < 0.5 else other + merged
    measures = {"methods": str(rng.choice(METHODS)), "n_resamples": 20}
    found = _numbers(whole, measures)
    _check(_numbers(merged, measures), found, "merged")
    with folder() as path:
        for number, one in enumerate(parts):
            one.save(path / f"{number}.parquet")
        files = list(path.glob("*.parquet"))
        _check(_numbers(cb.Predictions.load(*files), measures), found, "load")
        pattern = path / "*.parquet"
        _check(_numbers(cb.Predictions.load(pattern), measures), found, "pattern")
    if settings["engine"] == "memory":
        rows = cb.Predictions.from_table(columns, **settings)
        _check(_numbers(rows, measures), found, "rows")


def _numbers(preds, measures):
    try:
        return cb.evaluate(preds, **measures)
    except CalibrantError as error:
        return error


def _check(again, found, what):
    assert type(again) is type(found), what
    if not isinstance(found, CalibrantError):
        assert_same_frame(_ordered(again), _ordered(found), what, 1e-8)


def _ordered(found):
    """Return the result with groups in order: merged ones come as they appear."""
    frame = found.frame()
    keys = [
        np.asarray(frame[name]).astype(str) for name in ("g", "model") if name in frame
    ]
    order = np.lexsort(keys) if keys else slice(None)
    return {name: np.asarray(column)[order] for name, column in frame.items()}
