"""Tables of the pseudo-real study, with the paper's beside them.

All methods of a table are compared on the draws that all of them have.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.experiments.study_layouts import distinct, layouts, parted
from calibrant.experiments.tables import ResultTable, cell_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import FloatMatrix, Frame
    from calibrant.experiments.study_layouts import Layout
    from calibrant.experiments.table_kinds import TableKind

PAPER_MODELS = frozenset({"resnet110", "densenet40", "wide32"})
PAPER_EVENTS = frozenset({"cars vs rest", "cats vs rest", "dogs vs rest", "confidence"})
PRINTED_IN = {
    "calibrators_ce_mse": "calibrators_all",
    "calibrators_networks": "calibrators",
}
"""Tables that take their printed values from another one."""


def study_tables(rows: Frame) -> list[ResultTable]:
    """Return all tables that results allow.

    Parameters
    ----------
    rows : dict of ndarray
        Results of all designs of a `PseudoRealStudy`, put together.

    Returns
    -------
    list of ResultTable
        Tables without results are left out; what the paper printed is there where
        models and events are called as in the paper.
    """
    rows = parted(rows)
    tables = [_table(_common(rows, layout), layout) for layout in layouts()]
    return [table for table in tables if table is not None]


def _common(rows: Frame, layout: Layout) -> Frame:
    """Return the results of a layout's methods on draws that all of them have."""
    of_study = (rows["calibrator"] != "") == layout.calibrated
    here = of_study & np.isin(rows["method"], columns_of(layout))
    draws = np.char.add(
        rows["n"].astype(str), np.char.add("/", rows["seed"].astype(str))
    )
    mine = {
        method: set(draws[here & (rows["method"] == method)].tolist())
        for method in distinct(rows["method"][here])
    }
    usual = [drawn for method, drawn in mine.items() if method in layout.methods]
    shared = set.intersection(*usual) if usual else set()
    whole = [method for method, drawn in mine.items() if shared <= drawn]
    here &= np.isin(draws, list(shared)) & np.isin(rows["method"], whole)
    return {name: values[here] for name, values in rows.items()}


def columns_of(layout: Layout) -> list[str]:
    """Return the methods of a layout in the order of columns."""
    more = [method for method in layout.besides if method not in layout.methods]
    return [*layout.methods, *more]


def _table(rows: Frame, layout: Layout) -> ResultTable | None:
    present = set(rows["method"].tolist())
    methods = [method for method in columns_of(layout) if method in present]
    kind = layout.kind
    cells: list[list[tuple[float, float]]] = []
    labels = []
    for label, mask in layout.lines(rows):
        line = []
        for method in methods:
            here = mask & (rows["method"] == method)
            few = {name: values[here] for name, values in rows.items()}
            line.append(_spread(few, kind) if layout.spread else cell_value(few, kind))
        labels.append(label)
        cells.append(line)
    if not cells or not methods:
        return None
    found = np.array(cells) * kind.scale
    filled = np.flatnonzero(np.isfinite(found[..., 0]).any(axis=0)).tolist()
    if not filled:
        return None
    methods = [methods[place] for place in filled]
    found = found[:, filled]
    draws = len(set(zip(rows["n"].tolist(), rows["seed"].tolist(), strict=True)))
    return ResultTable(
        kind,
        tuple(labels),
        tuple(methods),
        found[..., 0],
        found[..., 1],
        _printed_matrix(layout.name, rows, labels, methods),
        draws,
        int(np.sum(rows["failure"] != "")),
        study=layout.title,
    )


def _spread(rows: Frame, kind: TableKind) -> tuple[float, float]:
    """Return the standard deviation over seeds of the mean over everything else."""
    if kind.column is None:  # pragma: no cover (no such layout)
        return float("nan"), float("nan")
    values = kind.column(rows)
    means = [values[rows["seed"] == seed].mean() for seed in np.unique(rows["seed"])]
    spread = float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")
    return spread, float("nan")


@cache
def printed_study() -> dict[str, dict[str, dict[str, float]]]:
    """Return the paper's tables: by name, line and method."""
    text = files("calibrant.experiments").joinpath("printed_pseudo_real.json")
    content: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
    tables: dict[str, dict[str, dict[str, float]]] = content["tables"]
    return tables


def _printed_matrix(
    name: str, rows: Frame, labels: Sequence[str], methods: Sequence[str]
) -> FloatMatrix:
    papers = (
        set(rows["model"].tolist()) == PAPER_MODELS
        and set(rows["event"].tolist()) == PAPER_EVENTS
    )
    name = PRINTED_IN.get(name, name)
    table = printed_study().get(name, {}) if papers else {}
    return np.array(
        [
            [table.get(label, {}).get(method, np.nan) for method in methods]
            for label in labels
        ],
        dtype=np.float64,
    )
