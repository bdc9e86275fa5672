"""Predictions for the arena: of many layouts, divided into calibration and test rows.

A folder is searched with all its subfolders. An npz file contains one of these:

=========================================  ==========================================
``logits_val``, ``y_val``, ``_test`` ...   a model with its own splits, as in
                                           `prediction_sets`
``logits`` or ``probs``, and ``y``         all classes of one model
``p`` and ``y``                            one event
``conf``, ``y_true`` and ``y_pred``        the top class
``<model>_val``, ``<model>_test``,         one event, predicted by several models
``y_val`` and ``y_test``
=========================================  ==========================================

A Parquet file has columns ``p`` and ``y``; columns ``task``, ``project`` and
``horizon`` divide it into data sets, ``model``, ``prompt`` and ``shots`` into models.
Files without splits are divided at random into halves.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.files import load_polars
from calibrant.exceptions import SourceError
from calibrant.experiments.prediction_sets import NPZ, PARQUET, Split, StoredPredictions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import Scale

    Part = tuple[tuple[str, Any], ...]
    Halves = tuple[Split, Split]

DATA_COLUMNS = ("task", "project", "horizon")
MODEL_COLUMNS = ("model", "prompt", "shots")
MAX_CAL, MAX_TEST = 10_000, 20_000
MAX_MODELS = 12
"""At most so many models of one data set take part, chosen evenly."""

SHUFFLE_SEED = 0
OWN_SPLITS = tuple(f"{word}_{split}" for word in ("logits", "probs")
                   for split in ("cal", "val"))  # fmt: skip
EVENT_ARRAYS, TOP_ARRAYS = {"p", "y"}, {"conf", "y_true", "y_pred"}
LAYOUTS = (EVENT_ARRAYS, TOP_ARRAYS, {"logits", "y"}, {"probs", "y"})


@dataclass(frozen=True)
class ArenaSet:
    """The predictions of one model on one data set.

    Parameters
    ----------
    data, model : str
        Names; models of one data set count as dependent.
    path : str
        The file.
    part : tuple of (column, value)
        Which rows of a table, or ("model", name) for an npz file of several models.

    Examples
    --------
    >>> ArenaSet("adult", "forest", "tables/adult.npz", (("model", "forest"),)).model
    'forest'
    """

    data: str
    model: str
    path: str
    part: Part = ()

    def halves(self) -> Halves:
        """Return the rows that calibration rows are drawn from, and test rows."""
        return _halves(self)

    @property
    def facts(self) -> tuple[int, int, int, str]:
        """Return numbers of classes and of rows of both halves, and a hash of them."""
        return _facts(self)


def find_sets(folder: str | os.PathLike[str]) -> list[ArenaSet]:
    """Return all predictions below a folder, at most `MAX_MODELS` per data set."""
    root = Path(folder)
    files = sorted(path for end in (NPZ, PARQUET) for path in root.rglob(f"*{end}"))
    by_data: dict[str, list[ArenaSet]] = {}
    for path in files:
        for one in _in_table(path) if path.suffix == PARQUET else _in_arrays(path):
            by_data.setdefault(one.data, []).append(one)
    if not by_data:
        raise SourceError(
            f"{root} contains no predictions: neither npz nor Parquet files of a known "
            f"layout."
        )
    return [one for sets in by_data.values() for one in _some(sets)]


def _some(sets: list[ArenaSet]) -> list[ArenaSet]:
    """Return at most `MAX_MODELS`, evenly chosen."""
    places = np.linspace(0, len(sets) - 1, min(MAX_MODELS, len(sets))).round()
    return [sets[int(place)] for place in places]


def _in_arrays(path: Path) -> Iterator[ArenaSet]:
    """Yield the predictions in an npz file."""
    file = os.fspath(path)
    names = _array_names(path)
    if names.intersection(OWN_SPLITS) or any(names >= known for known in LAYOUTS):
        yield ArenaSet(path.parent.name, path.stem, file)
    elif names >= {"y_val", "y_test"}:
        ends = {name.removesuffix("_val") for name in names if name.endswith("_val")}
        for model in sorted(ends - {"y", "idx"}):
            yield ArenaSet(path.stem, model, file, (("model", model),))


def _array_names(path: Path) -> set[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except zipfile.BadZipFile as error:
        raise SourceError(f"{path} cannot be read as npz: {error}.") from None


def _in_table(path: Path) -> Iterator[ArenaSet]:
    """Yield the predictions in a Parquet file, one per combination of groups."""
    pl = load_polars("reading Parquet files")
    table = pl.scan_parquet(path)
    columns = table.collect_schema().names()
    if not EVENT_ARRAYS.issubset(columns):
        return
    groups = [name for name in (*DATA_COLUMNS, *MODEL_COLUMNS) if name in columns]
    if not groups:
        yield ArenaSet(path.parent.name, path.stem, os.fspath(path))
        return
    texts = table.select(pl.col(groups).cast(pl.String)).unique().sort(groups)
    for row in texts.collect().iter_rows(named=True):
        data = [path.stem, *(row[name] for name in DATA_COLUMNS if name in groups)]
        model = [row[name] for name in MODEL_COLUMNS if name in groups]
        names = (" ".join(data), " ".join(model) or "forecasts")
        yield ArenaSet(*names, os.fspath(path), tuple(row.items()))


@lru_cache(maxsize=8)
def _halves(one: ArenaSet) -> Halves:
    if one.path.endswith(PARQUET):
        return _divided(_read_table(one))
    names = _array_names(Path(one.path))
    if names.intersection(OWN_SPLITS):
        stored = StoredPredictions(one.path)
        return _sample(stored.calibration(), MAX_CAL), _sample(
            stored.holdout(), MAX_TEST
        )
    with np.load(one.path, allow_pickle=False) as arrays:
        if one.part:
            ((_, model),) = one.part
            cal, test = (
                _event(arrays[f"{model}_{split}"], arrays[f"y_{split}"])
                for split in ("val", "test")
            )
            return _sample(cal, MAX_CAL), _sample(test, MAX_TEST)
        return _divided(_read_arrays(arrays, names))


def _read_arrays(arrays: Any, names: set[str]) -> Split:
    """Return all rows of an npz file without splits."""
    if names >= EVENT_ARRAYS:
        return _event(arrays["p"], arrays["y"])
    if names >= TOP_ARRAYS:
        return _event(arrays["conf"], arrays["y_true"] == arrays["y_pred"])
    word: Any = "logits" if "logits" in names else "probs"
    scale: Scale = "logit" if word == "logits" else "prob"
    return Split(arrays[word], arrays["y"], scale)


def _read_table(one: ArenaSet) -> Split:
    pl = load_polars("reading Parquet files")
    rows = pl.scan_parquet(one.path)
    for name, value in one.part:
        rows = rows.filter(pl.col(name).cast(pl.String) == value)
    table = rows.select("p", "y").collect()
    return _event(table["p"].to_numpy(), table["y"].to_numpy())


def _event(p: Any, y: Any) -> Split:
    """Return one event as predictions of two classes."""
    p = np.asarray(p, dtype=np.float64)
    return Split(np.column_stack([1.0 - p, p]), np.asarray(y, np.intp), "prob")


def _divided(split: Split) -> Halves:
    order = np.random.default_rng(SHUFFLE_SEED).permutation(split.rows)
    halves = (_taken(split, half) for half in np.array_split(order, 2))
    cal, test = halves
    return _sample(cal, MAX_CAL), _sample(test, MAX_TEST)


def _sample(split: Split, count: int) -> Split:
    """Return at most so many rows, drawn at random."""
    if split.rows <= count:
        return split
    rows = np.random.default_rng(SHUFFLE_SEED).permutation(split.rows)[:count]
    return _taken(split, np.sort(rows))


def _taken(split: Split, rows: Any) -> Split:
    return Split(split.scores[rows], split.labels[rows], split.scale)


@cache
def _facts(one: ArenaSet) -> tuple[int, int, int, str]:
    cal, test = one.halves()
    return cal.classes, cal.rows, test.rows, cal.fingerprint + test.fingerprint
