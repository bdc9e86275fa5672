"""The tables of each study, with the paper's values beside ours.

In the pseudo-real study a layout says which result rows form a line, which methods are
columns and what is measured. All methods of a table are compared on the draws that all
of them have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.experiments.prediction_sets import CONFIDENCE
from calibrant.experiments.prediction_truths import SEPARATOR
from calibrant.experiments.result_tables import (
    KINDS,
    ResultTable,
    TableKind,
    build_table,
    concatenate,
    method_names,
    printed_table,
    result_table,
    select,
)
from calibrant.experiments.studies import (
    CALIBRATORS,
    EVALUATORS,
    FRESH_STUDIES,
    NETWORKS,
    PIECE_VARIANTS,
    REAL_EVALUATORS,
    piece_variants,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from calibrant.core.array_types import Frame
    from calibrant.experiments.design import Design
    from calibrant.experiments.result_tables import Line

FRESH_TABLES = ("calmap", "ece", "bias")

TRUTH_NOTES = {
    "": "",
    "_flat": ", true map by 100 flat bins",
    "_slope": ", true map by 100 bins of slope 1",
    "_exact": ", true map by exact probabilities",
}
PIECES = ("pl3", "pl3-mse", "pl", "pl-mse", "pl-de", "pl-de2")
BIN_NUMBERS = ("ew10", "es10", "ew15", "es15", "ew20", "es20", "ew-cv", "es-cv")
BESIDE_NETWORKS = ("temperature", "vector", "platt", "beta", "pl3", "smooth")
"""Methods that the slow networks are compared with, on their few samples."""

PAPER_MODELS = {"resnet110", "densenet40", "wide32"}
PAPER_EVENTS = {"cars vs rest", "cats vs rest", "dogs vs rest", CONFIDENCE}

PAPER_NAMES = {
    "calibrators": "cal-method-table", "calibrators_all": "cal_methods_all",
    "combo": "chat_dist_c_combo", "ece_combo": "ECE_abs_combo",
    "error": "cifar5m-ECE-ranking", "ranking": "cifar5m-ECE-ranking",
    "map": "chat_dist_c", "ece": "ECE_abs",
    "map_sq": "chat_dist_c_sq", "ece_sq": "ECE_sq",
    "map_ndata": "chat_dist_c_ndata", "ece_ndata": "ECE_abs_ndata",
    "map_calfn": "chat_dist_c_calfn", "ece_calfn": "ECE_abs_calfn",
    "map_std": "chat_dist_c_std", "ece_std": "ECE_abs_std",
    "map_ce_mse": "chat_dist_c_CE_MSE", "ece_ce_mse": "ECE_abs_CE_MSE",
    "map_es_ew": "chat_dist_c_es_ew", "ece_es_ew": "ECE_abs_es_ew",
    "map_trick": "chat_dist_c_trick", "ece_trick": "ECE_abs_trick",
}  # fmt: skip
"""The names of these tables in the paper."""

PRINTED_IN = {
    "calibrators_ce_mse": "calibrators_all",
    "calibrators_networks": "calibrators",
}
"""Tables whose printed values are in another table."""

BY_EVENT = (("event",),)
BY_EVENT_KIND = (("event_kind",),)
BY_CALIBRATOR = (("calibrator",),)
BY_MODEL_AND_EVENT = (("model", "event"),)
BY_MODEL_AND_SIZE = (("model", "n"),)
BY_EACH = ((), ("model",), ("n",), ("event",))

EVENT_KINDS = ("one-vs-rest", CONFIDENCE)


@dataclass(frozen=True)
class Layout:
    """A table to be built: one line per combination of values of some columns."""

    name: str  # also among the printed tables
    kind: TableKind
    lines: tuple[tuple[str, ...], ...]  # columns of results
    methods: Sequence[str] = EVALUATORS  # those without results are omitted
    extra_methods: Sequence[str] = ()  # shown if fitted on all samples of the others
    calibrated: bool = True  # about predictions that were calibrated first

    @property
    def title(self) -> str:
        """Return the name of the table, here and in the paper."""
        paper = PAPER_NAMES.get(self.name)
        return f"{self.name}, the paper's {paper}" if paper else self.name

    @property
    def columns(self) -> list[str]:
        """Return all methods in the order of columns."""
        return list(dict.fromkeys([*self.methods, *self.extra_methods]))


def layouts() -> list[Layout]:
    """Return the layouts of all tables of the pseudo-real study."""
    map_, error = KINDS["calmap"], KINDS["ece"]
    title = "Squared map error (c_hat - c*)^2 on unseen rows, in thousandths"
    squared = TableKind("calmap_sq", title, "map_error_sq")
    evaluators = [
        Layout("combo", map_, BY_EACH),
        Layout("ece_combo", error, BY_EACH),
        *_true_map_layouts(),
        Layout("map", map_, BY_MODEL_AND_EVENT),
        Layout("map_sq", squared, BY_MODEL_AND_EVENT),
        Layout("ece", error, BY_MODEL_AND_EVENT),
        Layout("ece_sq", KINDS["ece_sq"], BY_MODEL_AND_EVENT),
        Layout("map_ndata", map_, BY_MODEL_AND_SIZE),
        Layout("ece_ndata", error, BY_MODEL_AND_SIZE),
        Layout("map_calfn", map_, BY_CALIBRATOR),
        Layout("ece_calfn", error, BY_CALIBRATOR),
        Layout("bias", KINDS["bias"], BY_EACH),
        Layout("map_std", _spread(map_), BY_MODEL_AND_EVENT),
        Layout("ece_std", _spread(error), BY_MODEL_AND_EVENT),
    ]
    with_variants = [replace(x, extra_methods=PIECE_VARIANTS) for x in evaluators]
    return [*_calibrator_layouts(), *with_variants, *_variant_layouts()]


def _lower(title: str) -> str:
    return title[0].lower() + title[1:]


def _spread(kind: TableKind) -> TableKind:
    title = f"Standard deviation over seeds of the {_lower(kind.title)}"
    return replace(kind, title=title, spread=True)


def _calibrator_layouts() -> list[Layout]:
    title = f"Calibrators: {_lower(KINDS['calmap'].title)}"
    kind = replace(KINDS["calmap"], title=title)
    networks = (*NETWORKS, *BESIDE_NETWORKS)
    return [
        Layout(name, kind, lines, methods, calibrated=False)
        for name, lines, methods in (
            ("calibrators", BY_EVENT, CALIBRATORS),
            ("calibrators_all", BY_MODEL_AND_EVENT, CALIBRATORS),
            ("calibrators_ce_mse", BY_MODEL_AND_EVENT, PIECES),
            ("calibrators_networks", BY_EVENT, networks),
        )
    ]


def _true_map_layouts() -> Iterator[Layout]:
    """Yield tables for each estimate of the true map."""
    for end, note in TRUTH_NOTES.items():
        error, rank, map_ = (
            replace(KINDS[name], name=name + end, title=KINDS[name].title + note)
            for name in ("ece", "spearman", "calmap")
        )
        error = replace(error, truth=f"true_error{end}")
        rank = replace(rank, truth=f"true_error{end}", digits=3, signed=True)
        yield Layout(f"error{end}", error, BY_EVENT_KIND)
        yield Layout(f"ranking{end}", rank, BY_EVENT_KIND)
        if end:
            map_ = replace(map_, column=f"map_error{end}")
            yield Layout(f"map{end}", map_, BY_MODEL_AND_EVENT)


def _variant_layouts() -> Iterator[Layout]:
    names = [variant.name for variant in piece_variants()]
    tricks = [name for name in names if name not in PIECE_VARIANTS]
    for end, methods in (("ce_mse", PIECES), ("es_ew", BIN_NUMBERS), ("trick", tricks)):
        yield Layout(f"map_{end}", KINDS["calmap"], BY_MODEL_AND_EVENT, methods)
        yield Layout(f"ece_{end}", KINDS["ece"], BY_MODEL_AND_EVENT, methods)


def fresh_tables(
    results: Mapping[str, Frame], designs: Mapping[str, Design]
) -> list[ResultTable]:
    """Return tables of all fresh studies together, then those of each."""
    overall = [overall_table(results, designs, kind) for kind in FRESH_TABLES]
    each = [
        replace(
            result_table(results[name], designs[name], kind),
            study=FRESH_STUDIES[name].title,
        )
        for name, kind in product(designs, FRESH_TABLES)
    ]
    return overall + each


def overall_table(
    results: Mapping[str, Frame], designs: Mapping[str, Design], name: str
) -> ResultTable:
    """Return a table with one row per study, over all its truths.

    Methods are the same in all studies.
    """
    study = np.repeat(list(results), [rows["n"].size for rows in results.values()])
    lines = [(label, study == label) for label in results]
    methods = method_names(next(iter(designs.values())), KINDS[name])
    rows = concatenate(results.values())
    draws = min(len(design.sizes) * len(design.seeds) for design in designs.values())
    return replace(build_table(KINDS[name], rows, lines, methods, {}), draws=draws)


def pseudo_real_tables(rows: Frame) -> list[ResultTable]:
    """Return all tables for which a `PseudoRealStudy` has results.

    They have the paper's values if models and events have the same names as there.
    """
    rows = split_shape(rows)
    tables = [layout_table(rows, layout) for layout in layouts()]
    return [table for table in tables if table is not None]


def split_shape(rows: Frame) -> Frame:
    """Return results with columns for what the shape of the truth consists of."""
    parts = [text.split(SEPARATOR) for text in rows["shape"].tolist()]
    columns = {
        name: np.array([part[place] if place < len(part) else "" for part in parts])
        for place, name in enumerate(("model", "event", "calibrator"))
    }
    group = np.char.add(np.char.add(columns["model"], SEPARATOR), columns["event"])
    kind = np.where(columns["event"] == CONFIDENCE, CONFIDENCE, EVENT_KINDS[0])
    return {**rows, **columns, "group": group, "event_kind": kind}


def layout_table(rows: Frame, layout: Layout) -> ResultTable | None:
    """Return the table of a layout, or None where there are no results for it."""
    rows = _comparable(rows, layout)
    methods = [name for name in layout.columns if name in rows["method"]]
    if not methods:
        return None
    lines = [line for columns in layout.lines for line in _lines(rows, columns)]
    of_paper = set(rows["model"].tolist()) == PAPER_MODELS
    of_paper &= set(rows["event"].tolist()) == PAPER_EVENTS
    name = PRINTED_IN.get(layout.name, layout.name)
    printed = printed_table("predictions", name) if of_paper else {}
    table = build_table(layout.kind, rows, lines, methods, printed)
    filled = np.isfinite(table.values).any(axis=0)
    if not filled.any():
        return None
    return replace(
        table,
        study=layout.title,
        methods=tuple(np.array(table.methods)[filled].tolist()),
        values=table.values[:, filled],
        errors=table.errors[:, filled],
        printed=table.printed[:, filled],
    )


def _comparable(rows: Frame, layout: Layout) -> Frame:
    """Return the results of a layout's methods on draws that all of them have."""
    in_study = (rows["calibrator"] != "") == layout.calibrated
    rows = select(rows, in_study & np.isin(rows["method"], layout.columns))
    seeds = np.char.add("/", rows["seed"].astype(str))
    draws = np.char.add(rows["n"].astype(str), seeds)
    drawn = {
        method: set(draws[rows["method"] == method].tolist())
        for method in _distinct(rows["method"])
    }
    main = [drawn[method] for method in layout.methods if method in drawn]
    shared = set.intersection(*main) if main else set()
    complete = [method for method in drawn if shared <= drawn[method]]
    keep = np.isin(draws, list(shared)) & np.isin(rows["method"], complete)
    return select(rows, keep)


def _lines(rows: Frame, columns: tuple[str, ...]) -> Iterator[Line]:
    """Yield a label and a mask for each combination of values of some columns."""
    sort_keys: dict[str, Any] = {"n": int, "event_kind": EVENT_KINDS.index}
    values = [_distinct(rows[name], sort_keys.get(name)) for name in columns]
    for combination in product(*values):
        mask = np.ones(rows["n"].size, dtype=bool)
        for name, value in zip(columns, combination, strict=True):
            mask &= rows[name] == value
        yield ", ".join(map(str, combination)) or "all", mask


def _distinct(values: Any, sort_key: Any = None) -> list[Any]:
    """Return distinct values, sorted or in the order of their first appearance."""
    distinct = list(dict.fromkeys(values.tolist()))
    return sorted(distinct, key=sort_key) if sort_key else distinct


def bias_table(rows: Frame) -> ResultTable:
    """Return biases of a `RealStudy` by size, of real data up to a constant."""
    rows = split_shape(rows)
    is_real = np.isnan(rows["true_error"])
    lines = [
        (f"{label}, {n}", mask & (rows["n"] == n))
        for label, mask in (("pseudo-real", ~is_real), ("real", is_real))
        for n in np.unique(rows["n"][mask]).tolist()
    ]
    methods = [name for name in REAL_EVALUATORS if name in rows["method"]]
    of_paper = set(rows["model"][~is_real].tolist()) == PAPER_MODELS
    printed = printed_table("predictions", "real_biases") if of_paper else {}
    centre = "is 0"
    if not is_real.all():
        centre = "equals that of pseudo-real data of the same size"
    title = (
        f"{KINDS['bias'].title}. CE of real data is not known: a constant is "
        f"subtracted in each row such that the mean over methods {centre}. Ranked from "
        f"the largest bias"  # as in the paper
    )
    kind = replace(KINDS["bias"], name="real_biases", title=title, best="highest")
    raw = build_table(replace(kind, scale=1.0), rows, lines, methods, printed)
    values, errors = _centred(raw) * kind.scale, raw.errors * kind.scale
    return replace(raw, kind=kind, values=values, errors=errors)


def _centred(table: ResultTable) -> Any:
    """Return values with the lines of real data shifted to the mean of known data."""
    means = dict(zip(table.shapes, table.values.mean(axis=1), strict=True))
    centre = [means.get(f"pseudo-{label}", 0.0) for label in means]
    shift = np.array(centre) - list(means.values())
    is_real = np.char.startswith(table.shapes, "real")
    return np.where(is_real, shift, 0.0)[:, np.newaxis] + table.values


def calibrator_orders(rows: Frame) -> dict[str, dict[str, list[str]]]:
    """Return calibrators from the smallest estimated error to the largest.

    By model and then by method, on the largest subsets of real data.
    """
    rows = split_shape(rows)
    rows = select(rows, np.isnan(rows["true_error"]) & (rows["failure"] == ""))
    rows = select(rows, rows["n"] == rows["n"].max())
    orders: dict[str, dict[str, list[str]]] = {}
    for model, method in dict.fromkeys(zip(rows["model"], rows["method"], strict=True)):
        mine = select(rows, (rows["model"] == model) & (rows["method"] == method))
        names = np.unique(mine["calibrator"])
        means = [mine["estimate"][mine["calibrator"] == name].mean() for name in names]
        order = names[np.argsort(means, kind="stable")].tolist()
        orders.setdefault(str(model), {})[method] = order
    return orders
