"""Tables of the pseudo-real study, in the paper's layouts.

A table is a layout: which rows of the results make a line, which methods are columns
and what is measured. All methods of a table are compared on the draws that all of them
have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.experiments.pseudo_real import SEPARATOR
from calibrant.experiments.studies import (
    CALIBRATORS,
    EVALUATORS,
    PIECE_VARIANTS,
    variants,
)
from calibrant.experiments.tables import (
    KINDS,
    ResultTable,
    TableKind,
    cell_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from calibrant._typing import BoolVector, FloatMatrix, Frame

    Line = tuple[str, BoolVector]

PAPER_MODELS = frozenset({"resnet110", "densenet40", "wide32"})
PAPER_EVENTS = frozenset({"cars vs rest", "cats vs rest", "dogs vs rest", "confidence"})
ONE_VS_REST = "one-vs-rest"
TRUTHS = {
    "": "",
    "_flat": ", true map by 100 flat bins",
    "_slope": ", true map by 100 bins of slope 1",
    "_exact": ", true map by exact probabilities",
}
BIN_NUMBERS = ("ew10", "es10", "ew15", "es15", "ew20", "es20", "ew-cv", "es-cv")
MAP = KINDS["calmap"].title
ERROR = KINDS["ece"].title


@dataclass(frozen=True)
class Layout:
    """A table to be made.

    Attributes
    ----------
    name : str
        What it is called, in the results and among the printed tables.
    kind : TableKind
        What is measured.
    lines : callable
        Gives the lines as pairs of a label and a mask of result rows.
    methods : sequence of str
        Columns; those without results are left out.
    spread : bool
        Show the standard deviation over seeds, not the mean.
    calibrated : bool
        Whether it is of predictions that were calibrated before.
    """

    name: str
    kind: TableKind
    lines: Callable[[Frame], Iterator[Line]]
    methods: Sequence[str] = EVALUATORS
    spread: bool = False
    calibrated: bool = True


def parted(rows: Frame) -> Frame:
    """Return results with the columns model, event, calibrator and group."""
    parts = [text.split(SEPARATOR) for text in rows["shape"].tolist()]
    columns = {
        name: np.array([part[place] if place < len(part) else "" for part in parts])
        for place, name in enumerate(("model", "event", "calibrator"))
    }
    group = np.char.add(np.char.add(columns["model"], SEPARATOR), columns["event"])
    return {**rows, **columns, "group": group}


def _distinct(values: Any) -> list[Any]:
    return list(dict.fromkeys(values.tolist()))


def by_event(rows: Frame) -> Iterator[Line]:
    """Give a line for each event, over all models."""
    for event in _distinct(rows["event"]):
        yield event, rows["event"] == event


def by_model(rows: Frame) -> Iterator[Line]:
    """Give a line for each model."""
    for model in _distinct(rows["model"]):
        yield model, rows["model"] == model


def by_size(rows: Frame) -> Iterator[Line]:
    """Give a line for each sample size."""
    for n in sorted(_distinct(rows["n"])):
        yield str(n), rows["n"] == n


def by_calibrator(rows: Frame) -> Iterator[Line]:
    """Give a line for each calibrator that was applied before."""
    for calibrator in _distinct(rows["calibrator"]):
        yield calibrator, rows["calibrator"] == calibrator


def by_model_and_event(rows: Frame) -> Iterator[Line]:
    """Give a line for each model and event."""
    for model, of_model in by_model(rows):
        for event, of_event in by_event(rows):
            yield f"{model}, {event}", of_model & of_event


def by_model_and_size(rows: Frame) -> Iterator[Line]:
    """Give a line for each model and sample size."""
    for model, of_model in by_model(rows):
        for n, of_size in by_size(rows):
            yield f"{model}, {n}", of_model & of_size


def by_each(rows: Frame) -> Iterator[Line]:
    """Give a line for all rows, then by model, size and event."""
    yield "all", np.ones(rows["n"].size, dtype=bool)
    for lines in (by_model, by_size, by_event):
        yield from lines(rows)


def by_kind_of_event(rows: Frame) -> Iterator[Line]:
    """Give a line for all classes against the rest, and one for the top class."""
    confidence = rows["event"] == "confidence"
    for label, mask in ((ONE_VS_REST, ~confidence), ("confidence", confidence)):
        if mask.any():
            yield label, mask


def _map_kind(end: str, title: str) -> TableKind:
    return TableKind("calmap" + end, title, lambda rows: rows["map_error" + end])


def _error_kind(end: str, title: str) -> TableKind:
    def distance(rows: Frame) -> Any:
        return np.abs(rows["estimate"] - rows["true_error" + end])

    return TableKind("ece" + end, title, distance)


def _rank_kind(end: str, title: str) -> TableKind:
    return TableKind(
        "spearman" + end,
        title,
        None,
        scale=1.0,
        digits=3,
        best="most",
        truth="true_error" + end,
    )


def layouts() -> list[Layout]:
    """Return all tables of the pseudo-real study."""
    squared = TableKind(
        "calmap_sq",
        "Squared map error (c_hat - c*)^2 on unseen rows, in thousandths",
        lambda rows: rows["map_error_sq"],
    )
    found = [
        *_calibrator_layouts(),
        Layout("combo", KINDS["calmap"], by_each),
        Layout("ece_combo", KINDS["ece"], by_each),
        *_truth_layouts(),
        Layout("map", KINDS["calmap"], by_model_and_event),
        Layout("map_sq", squared, by_model_and_event),
        Layout("ece", KINDS["ece"], by_model_and_event),
        Layout("ece_sq", KINDS["ece_sq"], by_model_and_event),
        Layout("map_ndata", KINDS["calmap"], by_model_and_size),
        Layout("ece_ndata", KINDS["ece"], by_model_and_size),
        Layout("map_calfn", KINDS["calmap"], by_calibrator),
        Layout("ece_calfn", KINDS["ece"], by_calibrator),
        Layout("bias", KINDS["bias"], by_each),
        *_spread_layouts(),
    ]
    names = [variant.name for variant in variants()]
    pieces = ("pl3", "pl3-mse", "pl", "pl-mse", "pl-de", "pl-de2")
    tricks = [name for name in names if name not in PIECE_VARIANTS]
    for end, methods in (("ce_mse", pieces), ("es_ew", BIN_NUMBERS), ("trick", tricks)):
        found += [
            Layout(f"map_{end}", KINDS["calmap"], by_model_and_event, methods),
            Layout(f"ece_{end}", KINDS["ece"], by_model_and_event, methods),
        ]
    return found


def _calibrator_layouts() -> list[Layout]:
    title = f"Calibrators: {MAP[0].lower()}{MAP[1:]}"
    kind = TableKind("calmap", title, lambda rows: rows["map_error"])
    return [
        Layout("calibrators", kind, by_event, CALIBRATORS, calibrated=False),
        Layout(
            "calibrators_all", kind, by_model_and_event, CALIBRATORS, calibrated=False
        ),
    ]


def _truth_layouts() -> list[Layout]:
    ranks = KINDS["spearman"].title
    found = []
    for end, told in TRUTHS.items():
        found += [
            Layout(f"error{end}", _error_kind(end, ERROR + told), by_kind_of_event),
            Layout(f"ranking{end}", _rank_kind(end, ranks + told), by_kind_of_event),
        ]
        if end:
            kind = _map_kind(end, MAP + told)
            found.append(Layout(f"map{end}", kind, by_model_and_event))
    return found


def _spread_layouts() -> list[Layout]:
    told = "Standard deviation over seeds of the "
    return [
        Layout(
            f"{name}_std",
            TableKind(
                kind.name, told + kind.title[0].lower() + kind.title[1:], kind.column
            ),
            by_model_and_event,
            spread=True,
        )
        for name, kind in (("map", KINDS["calmap"]), ("ece", KINDS["ece"]))
    ]


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
    here = of_study & np.isin(rows["method"], list(layout.methods))
    draws = np.char.add(
        rows["n"].astype(str), np.char.add("/", rows["seed"].astype(str))
    )
    shared = None
    for method in _distinct(rows["method"][here]):
        mine = set(draws[here & (rows["method"] == method)].tolist())
        shared = mine if shared is None else shared & mine
    here &= np.isin(draws, list(shared or []))
    return {name: values[here] for name, values in rows.items()}


def _table(rows: Frame, layout: Layout) -> ResultTable | None:
    present = set(rows["method"].tolist())
    methods = [method for method in layout.methods if method in present]
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
    table = printed_study().get(name, {}) if papers else {}
    return np.array(
        [
            [table.get(label, {}).get(method, np.nan) for method in methods]
            for label in labels
        ],
        dtype=np.float64,
    )
