"""Studies on predictions of models: the paper's pseudo-real and real ones.

The pseudo-real study asks two questions about the same predictions (paper, section
7.2). As the model predicts it, the probability of an event is far from calibrated:
which calibrator finds its map? After a calibrator it is nearly calibrated: which
evaluator finds the error that is left? Its layouts say which result rows form a line of
a table and which methods are columns; all methods of a table are compared on the draws
that all of them have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.exceptions import SourceError
from calibrant.experiments.assessment import THINNING, Contender
from calibrant.experiments.prediction_sets import CONFIDENCE
from calibrant.experiments.prediction_truths import (
    SEPARATOR,
    TOP_LABEL,
    ClassContender,
    PseudoRealTruth,
    RealTruth,
    divide_holdout,
    is_of_classes,
)
from calibrant.experiments.runner import Design
from calibrant.experiments.studies import (
    PAPER_SEEDS,
    PAPER_SIZES,
    QUICK_SEEDS,
    Study,
    with_paper_settings,
)
from calibrant.experiments.tables import (
    KINDS,
    ResultTable,
    TableKind,
    build_table,
    concatenate,
    printed_table,
    select,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from calibrant.core.array_types import Frame
    from calibrant.experiments.prediction_sets import Event, StoredPredictions
    from calibrant.experiments.tables import Line

CALIBRATORS = (
    "platt", "beta", "isotonic", "scaling-binning", "temperature", "one-temp", "vector",
    "dirichlet-l2", "dirichlet-odir", "matrix-odir", "spline-natural", "spline-cubic",
    "spline-parabolic", "kde", "es15", "es-cv", "es-sweep", "ew15", "ew-cv", "ew-sweep",
    "pl", "pl3", "smooth",
)  # fmt: skip
"""All calibrators except variants of pl, and the networks that need torch."""

NETWORKS = ("iop-oi", "iop-op", "iop-diag")
"""Order-preserving networks; one fit takes as long as a hundred others."""

BEST_CALIBRATORS = ("beta", "vector", "platt", "pl3", "scaling-binning", "isotonic")
"""The six after which evaluators are compared."""

EVALUATORS = (
    "es15", "es-sweep", "es-cv", "pl3", "pl", "platt", "beta", "isotonic",
    "spline-natural", "smooth", "es10", "es20", "es25", "es30", "ew10", "ew15", "ew20",
    "ew-cv", "kde", "kce",
)  # fmt: skip
"""Evaluators of the paper's pseudo-real tables, and smooth."""

PIECE_VARIANTS = ("pl-mse", "pl3-mse", "pl-de", "pl-de2")
TRICKS: dict[str, tuple[dict[str, Any], float]] = {
    f"{method} {end}": (settings, tolerance)
    for method, settings in (
        ("pl", {"ensemble": "folds"}),
        ("pl3", {"ensemble": "folds"}),
        ("pl-de", {"ensemble": "refit"}),
        ("es-cv", {"random_state": 1}),
    )
    for end, tolerance in (("best", 0.0), ("fewest", 1e-3))
}
"""Settings and tolerances. "best" takes the number of pieces with the lowest loss,
"fewest" the smallest number within 0.1 percent of it (the paper's trick)."""

PIECES = ("pl3", "pl3-mse", "pl", "pl-mse", "pl-de", "pl-de2")
BIN_NUMBERS = ("ew10", "es10", "ew15", "es15", "ew20", "es20", "ew-cv", "es-cv")
BESIDE_NETWORKS = ("temperature", "vector", "platt", "beta", "pl3", "smooth")
"""Methods that the slow networks are compared with, on their few samples."""

CALIBRATION_ROWS, QUICK_ROWS = 5000, 1000
CALIBRATION_SETS = 20
"""Samples that calibrators are fitted on; the paper has one, which leaves much to
chance."""

QUICK_CALIBRATORS = ("platt", "beta", "isotonic", "temperature", "vector", "smooth")
QUICK_EVALUATORS = ("es15", "es-sweep", "es-cv", "platt", "beta", "isotonic", "smooth")

REAL_CALIBRATORS = (
    "temperature", "vector", "matrix-odir", "dirichlet-l2", "dirichlet-odir",
)  # fmt: skip
REAL_EVALUATORS = (
    "es15", "es-sweep", "es-cv", "pl3", "pl", "pl-mse", "pl-de", "beta", "isotonic",
    "platt", "smooth",
)  # fmt: skip
"""Calibrators and evaluators of the paper's real study, and smooth."""

SUBSETS, QUICK_SUBSETS = {1000: 10, 3000: 3, 10_000: 1}, {1000: 2, 10_000: 1}
"""Rows and number of subsets of the test split in the real study."""

PAPER_MODELS = {"resnet110", "densenet40", "wide32"}
PAPER_EVENTS = {"cars vs rest", "cats vs rest", "dogs vs rest", CONFIDENCE}


def piece_variants() -> list[Contender]:
    """Return the fits that the supplementary tables compare."""
    variants = [Contender.of(name, every=THINNING) for name in PIECE_VARIANTS]
    for name, (settings, tolerance) in TRICKS.items():
        options = {"tolerance": tolerance, **settings}
        method = name.split()[0]
        variants.append(Contender.of(method, name=name, every=THINNING, **options))
    return variants


def has_torch() -> bool:
    """Return whether order-preserving networks can be fitted."""
    return find_spec("torch") is not None


def _calibrators(methods: Sequence[str]) -> list[Contender]:
    """Return calibrators of one event or of all classes by name."""
    return [
        (ClassContender if is_of_classes(name) else Contender).of(name, every=THINNING)
        for name in methods
    ]


def _evaluators(methods: Sequence[str]) -> list[Contender]:
    return [with_paper_settings(method, THINNING) for method in methods]


def pseudo_real_study(
    models: Sequence[StoredPredictions],
    events: Sequence[Event],
    *,
    quick: bool = False,
    seeds: int = PAPER_SEEDS,
    sizes: Sequence[int] = PAPER_SIZES,
    variants: int = 5,
) -> Study:
    """Return the study of calibrators and evaluators on models with a known map.

    Parameters
    ----------
    models : sequence of StoredPredictions
        Models with a very large hold-out.
    events : sequence of Event
        Classes against the rest, and the top class.
    quick : bool
        Few small samples, and the fastest methods.
    seeds : int
        Samples of each size that evaluators are fitted on.
    sizes : sequence of int
        Rows that evaluators are fitted on.
    variants : int
        Samples that variants of pl and pl3, and order-preserving networks, are fitted
        on; 0 omits them.

    Returns
    -------
    Study
        An error is raised where a hold-out is too small for it.
    """
    sets, rows = CALIBRATION_SETS, CALIBRATION_ROWS
    if quick:
        sets, rows = QUICK_SEEDS, QUICK_ROWS
        seeds, sizes, variants = min(seeds, QUICK_SEEDS), [QUICK_ROWS], 0
    raw = [PseudoRealTruth(*place) for place in product(models, events)]
    grid = product(models, events, BEST_CALIBRATORS)
    calibrated = [PseudoRealTruth(*place) for place in grid]

    def design(contenders: Sequence[Contender], count: int, *, first: bool) -> Design:
        whole = Design(
            contenders=contenders,
            truths=raw if first else calibrated,
            sizes=[rows] if first else sizes,
            seeds=range(count),
            truths_per_task=len(events) if first else 1,
        )
        return _check_holdouts(models, whole)

    calibrators = _calibrators(QUICK_CALIBRATORS if quick else CALIBRATORS)
    evaluators = _evaluators(QUICK_EVALUATORS if quick else EVALUATORS)
    designs = {
        "calibrators": design(calibrators, sets, first=True),
        "evaluators": design(evaluators, seeds, first=False),
    }
    if variants:
        slow = _calibrators(PIECE_VARIANTS + (NETWORKS if has_torch() else ()))
        fewer, fits = min(seeds, variants), piece_variants()
        designs["slow calibrators"] = design(slow, min(sets, variants), first=True)
        designs["slow evaluators"] = design(fits, fewer, first=False)
    without = variants and not has_torch()
    notes = ("Networks (iop-*) are omitted: torch is not installed.",) * bool(without)
    return Study("Pseudo-real experiments", designs, pseudo_real_tables, notes)


def _check_holdouts(models: Iterable[StoredPredictions], design: Design) -> Design:
    """Return the design, or raise where a hold-out is too small for its samples."""
    for model, n in product(models, design.sizes):
        divide_holdout(model.holdout().rows).sample(n, len(design.seeds) - 1)
    return design


def real_study(
    models: Sequence[StoredPredictions],
    known: Sequence[StoredPredictions] = (),
    *,
    quick: bool = False,
    seeds: int = PAPER_SEEDS,
) -> Study:
    """Return the study of how evaluators judge calibrated models on real data.

    Parameters
    ----------
    models : sequence of StoredPredictions
        Real predictions.
    known : sequence of StoredPredictions
        Models with a very large hold-out, whose biases centre those of real data.
    quick : bool
        Few subsets, and the fastest methods.
    seeds : int
        Samples of each size that are drawn from a hold-out.

    Returns
    -------
    Study
        One design per size of subsets, of which there are as many as all test splits
        can provide, and one for models with a hold-out.
    """
    evaluators = _evaluators(QUICK_EVALUATORS if quick else REAL_EVALUATORS)
    calibrators = REAL_CALIBRATORS[: 2 if quick else None]
    subsets = _feasible_subsets(models, QUICK_SUBSETS if quick else SUBSETS)
    grid = list(product([TOP_LABEL], calibrators))
    truths = [RealTruth(model, *place) for model, place in product(models, grid)]
    designs = {
        f"real, {n}": Design(
            contenders=evaluators, truths=truths, sizes=[n], seeds=range(count)
        )
        for n, count in subsets.items()
    }
    if known:
        design = Design(
            contenders=evaluators,
            truths=[PseudoRealTruth(m, *place) for m, place in product(known, grid)],
            sizes=[QUICK_ROWS] if quick else list(subsets),
            seeds=range(min(seeds, QUICK_SEEDS) if quick else seeds),
        )
        designs["pseudo-real"] = _check_holdouts(known, design)
    return Study("Real experiments", designs, real_tables)


def _feasible_subsets(
    models: Sequence[StoredPredictions], subsets: Mapping[int, int]
) -> dict[int, int]:
    """Return how many subsets of each size all test splits can provide."""
    rows = min(model.test().rows for model in models)
    counts = {n: min(k, rows // n) for n, k in subsets.items() if n <= rows}
    if not counts:
        raise SourceError(
            f"test splits must have at least {min(subsets)} rows; the smallest has "
            f"{rows}."
        )
    return counts


TRUTH_NOTES = {
    "": "",
    "_flat": ", true map by 100 flat bins",
    "_slope": ", true map by 100 bins of slope 1",
    "_exact": ", true map by exact probabilities",
}

PAPER_NAMES = {
    "calibrators": "cal-method-table",
    "combo": "chat_dist_c_combo", "ece_combo": "ECE_abs_combo",
    "error": "cifar5m-ECE-ranking", "ranking": "cifar5m-ECE-ranking",
    "map_ce_mse": "chat_dist_c_CE_MSE", "ece_ce_mse": "ECE_abs_CE_MSE",
    "map_es_ew": "chat_dist_c_es_ew", "ece_es_ew": "ECE_abs_es_ew",
    "map_trick": "chat_dist_c_trick", "ece_trick": "ECE_abs_trick",
}  # fmt: skip
"""The names of these tables in the paper."""

BY_EVENT, BY_EVENT_KIND = (("event",),), (("event_kind",),)
BY_MODEL_AND_EVENT = (("model", "event"),)
BY_EACH = ((), ("model",), ("n",), ("event",))
EVENT_KINDS = ("one-vs-rest", CONFIDENCE)


@dataclass(frozen=True)
class TableLayout:
    """A table to be built: one line per combination of values of some columns."""

    name: str
    kind: TableKind
    lines: tuple[tuple[str, ...], ...]  # columns of results
    methods: Sequence[str] = EVALUATORS  # those without results are omitted
    extra_methods: Sequence[str] = ()  # shown if fitted on all samples of the others
    printed: str = ""  # where its printed values are, if not under its name
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


def layouts() -> list[TableLayout]:
    """Return the layouts of all tables of the pseudo-real study."""
    map_, error = KINDS["calmap"], KINDS["ece"]
    title = f"Calibrators: {map_.title[0].lower()}{map_.title[1:]}"
    calibrators = partial(
        TableLayout, kind=replace(map_, title=title), calibrated=False
    )
    networks = calibrators(
        "calibrators_networks", lines=BY_EVENT, printed="calibrators"
    )
    of_variants = (("ce_mse", PIECES), ("es_ew", BIN_NUMBERS), ("trick", tuple(TRICKS)))
    return [
        calibrators("calibrators", lines=BY_EVENT, methods=CALIBRATORS),
        replace(networks, methods=(*NETWORKS, *BESIDE_NETWORKS)),
        TableLayout("combo", map_, BY_EACH, extra_methods=PIECE_VARIANTS),
        TableLayout("ece_combo", error, BY_EACH, extra_methods=PIECE_VARIANTS),
        *_true_map_layouts(),
        TableLayout("bias", KINDS["bias"], BY_EACH, extra_methods=PIECE_VARIANTS),
        *(
            TableLayout(f"{name}_{end}", kind, BY_MODEL_AND_EVENT, methods)
            for end, methods in of_variants
            for name, kind in (("map", map_), ("ece", error))
        ),
    ]


def _true_map_layouts() -> Iterator[TableLayout]:
    """Yield tables for each estimate of the true map."""
    for end, note in TRUTH_NOTES.items():
        for name, kind in (("error", KINDS["ece"]), ("ranking", KINDS["spearman"])):
            shown = replace(kind, name=kind.name + end, title=kind.title + note)
            shown = replace(shown, truth=f"true_error{end}")
            if name == "ranking":
                shown = replace(shown, digits=3, signed=True)
            lines, methods = BY_EVENT_KIND, PIECE_VARIANTS
            yield TableLayout(name + end, shown, lines, extra_methods=methods)


def pseudo_real_tables(results: Mapping[str, Frame]) -> list[ResultTable]:
    """Return all tables for which there are results.

    They have the paper's values if models and events have the same names as there.
    """
    rows = split_shape(concatenate(results.values()))
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


def layout_table(rows: Frame, layout: TableLayout) -> ResultTable | None:
    """Return the table of a layout, or None where there are no results for it."""
    rows = _comparable(rows, layout)
    methods = [name for name in layout.columns if name in rows["method"]]
    if not methods:
        return None
    lines = [line for columns in layout.lines for line in _lines(rows, columns)]
    of_paper = set(rows["model"].tolist()) == PAPER_MODELS
    of_paper &= set(rows["event"].tolist()) == PAPER_EVENTS
    name = layout.printed or layout.name
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


def _comparable(rows: Frame, layout: TableLayout) -> Frame:
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


def real_tables(results: Mapping[str, Frame]) -> list[ResultTable]:
    """Return biases by size, of real data up to a constant."""
    rows = split_shape(concatenate(results.values()))
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
    table = build_table(kind, rows, lines, methods, printed)
    return [replace(table, values=_centred(table))]


def _centred(table: ResultTable) -> Any:
    """Return values with the lines of real data shifted to the mean of known data."""
    means = dict(zip(table.shapes, table.values.mean(axis=1), strict=True))
    centre = [means.get(f"pseudo-{label}", 0.0) for label in means]
    shift = np.array(centre) - list(means.values())
    is_real = np.char.startswith(table.shapes, "real")
    return np.where(is_real, shift, 0.0)[:, np.newaxis] + table.values
