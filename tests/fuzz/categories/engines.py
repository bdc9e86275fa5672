"""DuckDB gives what the rows in memory give."""

import numpy as np

import calibrant as cb
from calibrant.exceptions import CalibrantError
from fuzz import draws
from fuzz.tables import WRITERS, assert_same_frame, folder, frames, table

METHODS = ("es3", "ew7", "es-sweep", "ew-sweep", "isotonic", "platt", "beta", "smooth")
METHODS += ("es-cv", "pl", "kce", "kde", "scaling-binning")


def case(rng):
    columns = table(rng, least=1)
    k = int(rng.integers(2, 5))
    prob, kind = draws.class_rows(rng, columns["y"].size, k)
    columns |= {f"c{j}": prob[:, j] for j in range(k)} | {"kind": kind}
    settings = {"y": "y", "p": ["p", "q"][: int(rng.integers(1, 3))]}
    if rng.random() < 0.3:
        task = rng.choice(["confidence", "classwise", "0"])
        settings = {"y": "kind", "p": "c*", "task": 0 if task == "0" else str(task)}
    if rng.random() < 0.5:
        settings["by"] = "g"
    if rng.random() < 0.3:
        settings["weight"] = "w"
    measures = {"methods": str(rng.choice(METHODS)), "n_resamples": 20}
    # Classes of cells are resampled apart, so that intervals differ.
    measures["confidence"] = None if "task" in settings else 0.9
    with folder() as path:
        source = _source(rng, path, columns)
        found, again = (
            _result(source, {**settings, "engine": engine}, measures)
            for engine in ("memory", "duckdb")
        )
    told = f"{settings}, {measures}, {source}"
    assert type(found) is type(again), f"{told}: {found!r}, {again!r}"
    if not isinstance(found, CalibrantError):
        assert_same_frame(again.frame(), found.frame(), told, 1e-7)
        assert_same_frame(again.scores(), found.scores(), told, 1e-7)


def _source(rng, path, columns):
    files = [kind for kind in WRITERS if kind != "jsonl"]  # read in memory alone
    kind = str(rng.choice([*files, "pandas", "polars", "pyarrow"]))
    if kind not in WRITERS:
        return frames(columns)[kind]
    if rng.random() < 0.3:  # several files
        middle = int(rng.integers(1, max(columns["y"].size, 2)))
        rows = {"a": slice(None, middle), "b": slice(middle, None)}
        for name, part in rows.items():
            some = {key: np.asarray(value)[part] for key, value in columns.items()}
            if some["y"].size:
                WRITERS[kind](path / f"{name}.{kind}", some)
        return str(path / f"*.{kind}")
    return WRITERS[kind](path / f"rows.{kind}", columns)


def _result(source, settings, measures):
    try:
        return cb.evaluate(cb.Predictions.from_table(source, **settings), **measures)
    except CalibrantError as error:
        return error
