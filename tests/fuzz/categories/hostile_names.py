"""Columns may be called anything: quotes, stars, formulas, SQL, nothing at all."""

import numpy as np
import polars as pl

import calibrant as cb
from calibrant.exceptions import CalibrantError
from fuzz.tables import WRITERS, assert_same_frame, folder, table

NAMES = (" ", "*", "?", '"', "'", '"";', "'; DROP TABLE rows; --", "a,b", "a=b", "a.b")
NAMES += ("a\nb", "a\r\nb", "a\tb", "=1+1", "@x", "+1", "Ω", "ä", "a\u0308", "\u202e")
NAMES += (
    "日本",
    "💥",
    "\ufeffp",
    "x" * 3000,
    "\\",
    "%s",
    "{}",
    "$1",
    "?1",
    "[a]",
    "c*",
)
NAMES += ("p", "P", "select", "file_row_number", "filename", "rowid", "index", "model")
NAMES += (
    "method",
    "value",
    "low",
    "n",
    "task",
    "by_model",
    "y_duplicated_0",
    "column0",
)
NAMES += ("calibrant_rows", "_p", "null", "NaN", "true", "0", "-1", "1e5", " p ", "#p")


def case(rng):
    columns = table(rng, least=6)
    roles = ("y", "p", "g", "w", "q")
    drawn = rng.choice(len(NAMES), len(roles), replace=False)
    names = {role: NAMES[i] for role, i in zip(roles, drawn, strict=True)}
    renamed = {names[role]: columns[role] for role in roles}
    found = _evaluated(columns, {role: role for role in roles}, "memory")
    kind = str(rng.choice([*WRITERS, "polars", "dict"]))
    with folder() as path:
        source = _source(path, kind, renamed)
        for engine in ("memory", "duckdb"):
            if kind in ("dict", "jsonl") and engine == "duckdb":
                continue
            again = _evaluated(source, names, engine)
            told = f"{kind}, {engine}, {names}: {again}"
            if isinstance(again, CalibrantError) and _hard_to_write(kind, renamed):
                continue
            assert type(again) is type(found), told
            if not isinstance(found, CalibrantError):
                _check(again.frame(), found.frame(), names["g"], told)


def _hard_to_write(kind, names):
    """Tell whether a header holds quotes or line ends, or begins with a mark.

    A byte-order mark at the beginning of a text file is no part of the first name.
    """
    of_text = kind in {"csv", "tsv"}
    marked = next(iter(names)).startswith("\ufeff")
    return of_text and (marked or any(set(name) & set('"\n\r') for name in names))


def _source(path, kind, columns):
    if kind == "dict":
        return columns
    if kind == "polars":
        return pl.DataFrame(columns)
    return WRITERS[kind](path / f"rows.{kind}", columns)


def _evaluated(source, names, engine):
    try:
        return cb.evaluate(
            cb.Predictions.from_table(
                source,
                y=names["y"],
                p=names["p"],
                by=names["g"],
                weight=names["w"],
                engine=engine,
            ),
            methods=["ew1", "isotonic"],
            confidence=None,
        )
    except CalibrantError as error:
        return error


def _check(again, found, group, told):
    """Only the name of the groups may differ, and that of numbers from text."""
    assert list(again)[1:] == list(found)[1:], told
    assert next(iter(again)) in {group, f"by_{group}"}, told
    groups = [
        np.asarray(next(iter(frame.values()))).astype(str) for frame in (again, found)
    ]
    assert groups[0].tolist() == groups[1].tolist(), told
    numbers = [dict(list(frame.items())[1:]) for frame in (again, found)]
    assert_same_frame(*numbers, told)
