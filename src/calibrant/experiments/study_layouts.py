"""The layouts of the paper's pseudo-real tables.

A layout says which rows of the results make a line, which methods are columns and what
is measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.experiments.pseudo_real import SEPARATOR
from calibrant.experiments.studies import (
    CALIBRATORS,
    EVALUATORS,
    NETWORKS,
    PIECE_VARIANTS,
    variants,
)
from calibrant.experiments.table_kinds import KINDS, TableKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from calibrant._typing import BoolVector, Frame

    Line = tuple[str, BoolVector]

ONE_VS_REST = "one-vs-rest"
TRUTHS = {
    "": "",
    "_flat": ", true map by 100 flat bins",
    "_slope": ", true map by 100 bins of slope 1",
    "_exact": ", true map by exact probabilities",
}
PIECES = ("pl3", "pl3-mse", "pl", "pl-mse", "pl-de", "pl-de2")
BIN_NUMBERS = ("ew10", "es10", "ew15", "es15", "ew20", "es20", "ew-cv", "es-cv")
BESIDE_NETWORKS = ("temperature", "vector", "platt", "beta", "pl3", "smooth")
"""What the slow networks are compared with, on their few samples."""

MAP = KINDS["calmap"].title
ERROR = KINDS["ece"].title


PAPER_NAMES = {
    "calibrators": "cal-method-table",
    "calibrators_all": "cal_methods_all",
    "combo": "chat_dist_c_combo",
    "ece_combo": "ECE_abs_combo",
    "error": "cifar5m-ECE-ranking",
    "ranking": "cifar5m-ECE-ranking",
    "map": "chat_dist_c",
    "map_sq": "chat_dist_c_sq",
    "ece": "ECE_abs",
    "ece_sq": "ECE_sq",
    "map_ndata": "chat_dist_c_ndata",
    "ece_ndata": "ECE_abs_ndata",
    "map_calfn": "chat_dist_c_calfn",
    "ece_calfn": "ECE_abs_calfn",
    "map_std": "chat_dist_c_std",
    "ece_std": "ECE_abs_std",
    "map_ce_mse": "chat_dist_c_CE_MSE",
    "ece_ce_mse": "ECE_abs_CE_MSE",
    "map_es_ew": "chat_dist_c_es_ew",
    "ece_es_ew": "ECE_abs_es_ew",
    "map_trick": "chat_dist_c_trick",
    "ece_trick": "ECE_abs_trick",
}
"""What the paper calls its tables."""


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
    besides : sequence of str
        Further columns, if they were fitted on all samples that the others were.
    spread : bool
        Show the standard deviation over seeds, not the mean.
    calibrated : bool
        Whether it is of predictions that were calibrated before.
    """

    name: str
    kind: TableKind
    lines: Callable[[Frame], Iterator[Line]]
    methods: Sequence[str] = EVALUATORS
    besides: Sequence[str] = ()
    spread: bool = False
    calibrated: bool = True

    @property
    def title(self) -> str:
        """Return the name of the table, and what the paper calls it."""
        paper = PAPER_NAMES.get(self.name)
        return f"{self.name}, the paper's {paper}" if paper else self.name


def parted(rows: Frame) -> Frame:
    """Return results with the columns model, event, calibrator and group."""
    parts = [text.split(SEPARATOR) for text in rows["shape"].tolist()]
    columns = {
        name: np.array([part[place] if place < len(part) else "" for part in parts])
        for place, name in enumerate(("model", "event", "calibrator"))
    }
    group = np.char.add(np.char.add(columns["model"], SEPARATOR), columns["event"])
    return {**rows, **columns, "group": group}


def distinct(values: Any) -> list[Any]:
    """Return distinct values in the order of their first appearance."""
    return list(dict.fromkeys(values.tolist()))


def by_event(rows: Frame) -> Iterator[Line]:
    """Give a line for each event, over all models."""
    for event in distinct(rows["event"]):
        yield event, rows["event"] == event


def by_model(rows: Frame) -> Iterator[Line]:
    """Give a line for each model."""
    for model in distinct(rows["model"]):
        yield model, rows["model"] == model


def by_size(rows: Frame) -> Iterator[Line]:
    """Give a line for each sample size."""
    for n in sorted(distinct(rows["n"])):
        yield str(n), rows["n"] == n


def by_calibrator(rows: Frame) -> Iterator[Line]:
    """Give a line for each calibrator that was applied before."""
    for calibrator in distinct(rows["calibrator"]):
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
        signed=True,
    )


def layouts() -> list[Layout]:
    """Return all tables of the pseudo-real study."""
    squared = TableKind(
        "calmap_sq",
        "Squared map error (c_hat - c*)^2 on unseen rows, in thousandths",
        lambda rows: rows["map_error_sq"],
    )
    evaluators = [
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
    found = [*_calibrator_layouts(), *map(_with_variants, evaluators)]
    names = [variant.name for variant in variants()]
    tricks = [name for name in names if name not in PIECE_VARIANTS]
    for end, methods in (("ce_mse", PIECES), ("es_ew", BIN_NUMBERS), ("trick", tricks)):
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
        Layout(
            "calibrators_ce_mse", kind, by_model_and_event, PIECES, calibrated=False
        ),
        Layout(
            "calibrators_networks",
            kind,
            by_event,
            (*NETWORKS, *BESIDE_NETWORKS),
            calibrated=False,
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


def _with_variants(layout: Layout) -> Layout:
    """Return a table of evaluators with variants of pl and pl3 as columns too."""
    return replace(layout, besides=PIECE_VARIANTS)


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
