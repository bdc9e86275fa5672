"""What the real study shows: biases up to a constant, and orders of models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.drawing import new_figure
from calibrant.experiments.studies import REAL_EVALUATORS
from calibrant.experiments.study_layouts import parted
from calibrant.experiments.study_tables import PAPER_MODELS, printed_study
from calibrant.experiments.table_kinds import KINDS, THOUSANDTHS, TableKind
from calibrant.experiments.tables import ResultTable, cell_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant._typing import BoolVector, FloatVector, Frame

ESTIMATE = TableKind("estimate", "Estimated error", lambda rows: rows["estimate"])
KNOWN, REAL = "pseudo-real", "real"
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
PANEL_WIDTH, LINE_HEIGHT, PANEL_COLUMNS, LEGEND_COLUMNS = 3.4, 0.24, 3, 3


def _bias_kind(*, centred: bool) -> TableKind:
    """Return the table of biases; the largest bias ranks first, as in the paper."""
    told = "that of pseudo-real data of the same size" if centred else "0 in each row"
    return TableKind(
        "real_biases",
        f"Bias, mean of ECE - CE, in thousandths. CE of real data is not known: a "
        f"constant a row is taken off, so that the mean over methods is {told}. Ranked "
        f"from the largest bias",
        None,
        best="most",
        signed=True,
    )


def bias_table(rows: Frame) -> ResultTable:
    """Return biases by size: of pseudo-real data, and of real data up to a constant.

    Parameters
    ----------
    rows : dict of ndarray
        Results of all designs of a `RealStudy`, put together.

    Returns
    -------
    ResultTable
        With the paper's table beside it where the models are the paper's.
    """
    rows = parted(rows)
    is_real = np.isnan(rows["true_error"])
    present = set(rows["method"].tolist())
    methods = [name for name in REAL_EVALUATORS if name in present]
    known = {
        n: _means(rows, ~is_real & (rows["n"] == n), methods, KINDS["bias"])
        for n in sorted(set(rows["n"][~is_real].tolist()))
    }
    real = {
        n: _means(rows, is_real & (rows["n"] == n), methods, ESTIMATE)
        for n in sorted(set(rows["n"][is_real].tolist()))
    }
    for n, found in real.items():
        centre = known[n][:, 0].mean() if n in known else 0.0
        found[:, 0] += centre - found[:, 0].mean()
    labels = [f"{KNOWN}, {n}" for n in known] + [f"{REAL}, {n}" for n in real]
    cells = np.array([*known.values(), *real.values()]) * THOUSANDTHS
    papers = set(rows["model"][~is_real].tolist()) == PAPER_MODELS
    printed = printed_study()["real_biases"] if papers else {}
    return ResultTable(
        _bias_kind(centred=bool(known)),
        tuple(labels),
        tuple(methods),
        cells[..., 0],
        cells[..., 1],
        np.array(
            [[printed.get(x, {}).get(m, np.nan) for m in methods] for x in labels]
        ),
        len(set(zip(rows["n"].tolist(), rows["seed"].tolist(), strict=True))),
        int(np.sum(rows["failure"] != "")),
    )


def _means(
    rows: Frame, here: BoolVector, methods: list[str], kind: TableKind
) -> FloatVector:
    found = []
    for method in methods:
        mask = here & (rows["method"] == method)
        found.append(cell_value({k: v[mask] for k, v in rows.items()}, kind))
    return np.array(found)


def orders(rows: Frame) -> dict[str, dict[str, list[str]]]:
    """Return calibrators from the least estimated error to the largest.

    By model and then by method, on the largest subsets of real data.
    """
    rows = parted(rows)
    here = np.isnan(rows["true_error"]) & (rows["failure"] == "")
    here &= rows["n"] == rows["n"][here].max()
    found: dict[str, dict[str, list[str]]] = {}
    for model in dict.fromkeys(rows["model"][here].tolist()):
        of_model = here & (rows["model"] == model)
        found[model] = {}
        for method in dict.fromkeys(rows["method"][of_model].tolist()):
            mine = of_model & (rows["method"] == method)
            names = np.unique(rows["calibrator"][mine])
            means = [
                rows["estimate"][mine & (rows["calibrator"] == name)].mean()
                for name in names
            ]
            found[model][method] = names[np.argsort(means, kind="stable")].tolist()
    return found


def ordering_figure(rows: Frame) -> Figure:
    """Draw how each evaluator orders the calibrators of each model.

    A panel a model, a line an evaluator; calibrators from the least estimated error
    on the left to the largest on the right, one colour each.
    """
    found = orders(rows)
    methods = {name for order in found.values() for name in order}
    down = -(-len(found) // PANEL_COLUMNS)
    across = min(len(found), PANEL_COLUMNS)
    height = LINE_HEIGHT * len(methods) + 1.0
    figure = new_figure(PANEL_WIDTH * across, height * down + 0.8)
    names = sorted(
        {name for order in found.values() for line in order.values() for name in line}
    )
    colours = {n: COLOURS[i % len(COLOURS)] for i, n in enumerate(names)}
    for place, (model, order) in enumerate(found.items(), start=1):
        _draw_orders(figure.add_subplot(down, across, place), model, order, colours)
    handles = [_patch(colours[name], name) for name in names]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=LEGEND_COLUMNS, frameon=False
    )
    return figure


def _draw_orders(
    ax: Axes, model: str, order: dict[str, list[str]], colours: dict[str, str]
) -> None:
    for line, names in enumerate(order.values()):
        ax.barh(
            [line] * len(names),
            [0.94] * len(names),
            left=np.arange(len(names)) + 0.03,
            height=0.8,
            color=[colours[name] for name in names],
        )
    ax.set_yticks(range(len(order)), list(order))
    ax.set_xticks([])
    ax.invert_yaxis()
    ax.set_title(model, fontsize="medium")
    ax.set_xlabel("least to largest error", fontsize="small")
    for side in ax.spines.values():
        side.set_visible(False)


def _patch(colour: str, name: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=name)
