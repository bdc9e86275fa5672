"""Tables of the arena: methods by the number of calibration rows, and by kind.

The win rate is CalArena's (arXiv:2605.30188): in each cell the share of the other
methods whose test log-loss is strictly higher, averaged over cells. A method that
failed leaves predictions as they are, and wins against none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.experiments.arena import NONE
from calibrant.experiments.prediction_truths import SEPARATOR
from calibrant.experiments.result_tables import ResultTable, TableKind, build_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant.core.array_types import Frame, IntVector
    from calibrant.experiments.runner import Store

ROUNDING = 1e-9
"""Differences of log-losses up to this are rounding: neither a win nor harm."""

_KINDS = (
    TableKind(
        "excess",
        "Test log-loss minus that of the best method of each cell, in thousandths",
        "excess",
    ),
    TableKind(
        "wins",
        "Win rate: share of the other methods with a higher test log-loss",
        "win",
        scale=1.0,
        digits=3,
        best="highest",
    ),
    TableKind(
        "harm",
        "Cells in which the test log-loss is higher than without calibration by more "
        "than one standard error of the paired difference, in percent",
        "harmed",
        scale=100.0,
        digits=1,
    ),
    TableKind(
        "difference",
        "Change of the test log-loss by calibration, in thousandths",
        "difference",
        signed=True,
    ),
    TableKind("brier", "Brier score of the test rows, in thousandths", "brier"),
    TableKind(
        "smooth",
        "Calibration error of the test rows by smooth (of the top class, if there are "
        "several), in thousandths",
        "smooth_error",
    ),
    TableKind(
        "es15",
        "The same by 15 bins of equal size, in thousandths",
        "es15_error",
    ),
    TableKind(
        "accuracy",
        "Accuracy on the test rows, in percent",
        "accuracy",
        scale=100.0,
        best="highest",
    ),
    TableKind(
        "time",
        "CPU time of fitting and of calibrating the test rows, in milliseconds",
        "fit_seconds",
        digits=1,
    ),
)
ARENA_TABLES = tuple(replace(kind, cluster="data") for kind in _KINDS)


def add_times(rows: Frame, store: Store) -> Frame:
    """Return results with the CPU seconds of each fit."""
    seconds = store.seconds(rows["key"].tolist(), "fit_seconds")
    return {**rows, "fit_seconds": np.array(list(seconds.values()))}


def compare_in_cells(rows: Frame) -> Frame:
    """Return results with columns that compare methods in each cell.

    ``data`` is the data set; ``excess``, ``win`` and ``harmed`` are as in the tables;
    a failed method has the measures of ``none``.
    """
    cell, row_of, base = _cells(rows)
    failed = rows["failure"] != ""
    filled = {
        name: np.where(failed, column[base], column)
        if column.dtype == float
        else column
        for name, column in rows.items()
    }
    ours, noise = filled["log_loss"], filled["difference_error"]
    losses = ours[row_of][cell]  # of all methods in the same cell
    beaten = losses > np.where(failed, np.inf, ours)[:, np.newaxis] + ROUNDING
    return {
        **filled,
        "data": np.array([text.split(SEPARATOR)[0] for text in rows["shape"]]),
        "excess": ours - losses.min(axis=1),
        "win": beaten.sum(axis=1) / max(losses.shape[1] - 1, 1),
        "harmed": (filled["difference"] > noise + ROUNDING).astype(float),
    }


def _cells(rows: Frame) -> tuple[IntVector, Any, IntVector]:
    """Return the cell of each row, the rows of each cell, and each row's ``none``."""
    keys = list(zip(rows["shape"], rows["n"], rows["seed"], strict=True))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    cell = np.array([places[key] for key in keys])
    methods, method = np.unique(rows["method"], return_inverse=True)
    row_of = np.empty((len(places), methods.size), dtype=np.intp)
    row_of[cell, method] = np.arange(cell.size)
    return cell, row_of, row_of[cell, methods.tolist().index(NONE)]


def arena_tables(results: Mapping[str, Frame]) -> list[ResultTable]:
    """Return all tables of each kind, methods in order of their mean excess."""
    return [table for kind, rows in results.items() for table in _of_kind(kind, rows)]


def _of_kind(kind: str, rows: Frame) -> list[ResultTable]:
    rows = compare_in_cells(rows)
    methods = _by_excess(rows)
    lines = [(f"{n} rows", rows["n"] == n) for n in np.unique(rows["n"]).tolist()]
    cells = rows["n"].size // len(methods)
    study = f"{kind.capitalize()}, {cells} cells of {_count(rows)} models"
    tables = (build_table(table, rows, lines, methods, {}) for table in ARENA_TABLES)
    return [replace(table, study=study) for table in tables]


def _by_excess(rows: Frame) -> list[str]:
    names = np.unique(rows["method"]).tolist()
    means = {name: rows["excess"][rows["method"] == name].mean() for name in names}
    return sorted(means, key=lambda name: float(means[name]))


def _count(rows: Frame) -> Any:
    """Return the number of models on data sets, however many events they have."""
    return len({text.rsplit(SEPARATOR, 1)[0] for text in rows["shape"].tolist()})
