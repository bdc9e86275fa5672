"""Tables of results: means, ranks, uncertainty, and the values the paper printed.

A value is the mean over expected errors, sizes and seeds, or for rank correlations the
mean over sizes and seeds of a correlation over the expected errors. Labels depend only
on size and seed: five seeds and three sizes are 15 independent draws of labels, however
many rows the results have. So the standard error takes the mean over errors of one size
and seed as one observation, within each size.

As Markdown and LaTeX they have the layout of the paper: the rank is a subscript,
the best value of a row is bold, the last row has average ranks. Below each value are
its standard error and, for the paper's grid, the value that the paper printed and the
ratio of ours to it; with the oracle, the ratio to its value.
"""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby, product
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.core.parameters import check_choice
from calibrant.experiments.assessment import rank_correlation
from calibrant.experiments.synthetic import ORACLE
from calibrant.numerics.pooling import mean_and_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Frame
    from calibrant.experiments.runner import Design

    Line = tuple[str, BoolVector]
    Place = tuple[int, int]

AVERAGE = "average rank"


@dataclass(frozen=True)
class TableKind:
    """What a table shows."""

    name: str  # as in the paper's file names
    title: str
    column: str  # of the results
    truth: str = ""  # the column it is compared with; by default none
    statistic: str = "mean"  # or "distance", "bias" or "rank correlation" to the truth
    _: KW_ONLY
    scale: float = 1000.0  # values are shown in thousandths
    digits: int = 2
    best: str = "lowest"  # or "highest" or "nearest 0": which value ranks first
    signed: bool = False  # values may be negative, so that ratios are meaningless
    cluster: str = ""  # column of results whose values are independent, if not draws

    def row_values(self, rows: Frame) -> FloatVector:
        """Return one value per result row."""
        values: FloatVector = rows[self.column]
        if self.statistic == "distance":
            values = np.abs(values - rows[self.truth])
        if self.statistic == "bias":  # the estimate itself where the truth is unknown
            values = values - np.nan_to_num(rows[self.truth])
        return values


_KINDS = (
    TableKind(
        "calmap",
        "Map error |c_hat - c*| on unseen rows (CMEE), in thousandths",
        "map_error",
    ),
    TableKind(
        "ece",
        "Error of the estimated error, |ECE - CE|, in thousandths",
        *("estimate", "true_error", "distance"),
    ),
    TableKind(
        "ece_sq",
        "Error of the estimated squared error, |ECE^2 - CE^2|, in thousandths",
        *("estimate_sq", "true_error_sq", "distance"),
    ),
    TableKind(
        "spearman",
        "Spearman's rank correlation of estimated and true errors",
        *("estimate", "true_error", "rank correlation"),
        scale=1.0,
        digits=4,
        best="highest",
    ),
    TableKind(
        "bias",
        "Bias, mean of ECE - CE, in thousandths",
        *("estimate", "true_error", "bias"),
        best="nearest 0",
        signed=True,
    ),
    TableKind(
        "ceac",
        "Calibration error after calibration (CEAC), in thousandths",
        "error_after",
    ),
)
KINDS = {kind.name: kind for kind in _KINDS}
"""The four tables of the paper, and two more."""


@dataclass(frozen=True, eq=False)
class ResultTable:
    """A table of shapes (rows) by methods (columns)."""

    kind: TableKind
    shapes: tuple[str, ...]
    methods: tuple[str, ...]
    values: FloatMatrix  # means, scaled; NaN where a method failed in one of the cells
    errors: FloatMatrix  # standard errors over independent draws; NaN for one seed
    printed: FloatMatrix  # the paper's values; NaN where there are none
    draws: int  # independent draws of labels
    failures: int  # cells that failed
    study: str = ""  # which data or which table, where there are several

    @property
    def ranks(self) -> FloatMatrix:
        """Return ranks by shape, ties at their mean rank; the oracle is not ranked."""
        values = np.where(self._is_oracle, np.nan, self.values)
        return np.stack([ranks_of(row, self.kind.best) for row in values])

    @property
    def average_ranks(self) -> FloatVector:
        """Return the mean rank of each method."""
        return np.asarray(self.ranks.mean(axis=0))

    @property
    def ratios(self) -> FloatMatrix:
        """Return the values divided by the printed ones."""
        return self.values / self.printed

    @property
    def over_oracle(self) -> FloatMatrix:
        """Return the errors divided by the oracle's; NaN where that is 0 or missing."""
        ratios = np.full(self.values.shape, np.nan)
        if self._is_oracle.any() and self.kind.best == "lowest":
            oracle = self.values[:, self._is_oracle]
            compared = ~self._is_oracle & (oracle > 0.0)
            np.divide(self.values, oracle, out=ratios, where=compared)
        return ratios

    @property
    def _is_oracle(self) -> BoolVector:
        return np.array([method == ORACLE for method in self.methods])

    def frame(self) -> Frame:
        """Return one row per shape and method."""
        shapes, methods = len(self.shapes), len(self.methods)
        return {
            "table": np.full(shapes * methods, self.kind.name),
            "study": np.full(shapes * methods, self.study),
            "title": np.full(shapes * methods, self.kind.title),
            "shape": np.repeat(self.shapes, methods),
            "method": np.tile(self.methods, shapes),
            "value": self.values.ravel(),
            "standard_error": self.errors.ravel(),
            "rank": self.ranks.ravel(),
            "printed": self.printed.ravel(),
            "ratio": self.ratios.ravel(),
            "over_oracle": self.over_oracle.ravel(),
        }


def ranks_of(values: FloatVector, best: str) -> FloatVector:
    """Return ranks from 1, ties at their mean rank; NaN where there is no value."""
    from scipy.stats import rankdata

    keys = {"lowest": values, "highest": -values, "nearest 0": np.abs(values)}[best]
    return np.asarray(rankdata(keys, nan_policy="omit"), dtype=np.float64)


def result_table(
    rows: Frame, design: Design, name: str, *, printed: bool = False
) -> ResultTable:
    """Return one of `KINDS` of the results of a design; `printed`: with the paper's."""
    kind = KINDS[check_choice(name, KINDS, name="table")]
    shapes = dict.fromkeys(truth.shape for truth in design.truths)
    lines = [(shape, rows["shape"] == shape) for shape in shapes]
    papers = printed_table("synthetic", name) if printed else {}
    return build_table(kind, rows, lines, method_names(design, kind), papers)


def method_names(design: Design, kind: TableKind) -> list[str]:
    """Return the columns: kce, which estimates squared errors, is in one table only."""
    squares = kind.name == "ece_sq"
    return [c.name for c in design.contenders if squares or not c.squared]


def concatenate(frames: Iterable[Frame]) -> Frame:
    """Return several frames with the same columns as one."""
    frames = list(frames)
    return {name: np.concatenate([f[name] for f in frames]) for name in frames[0]}


def select(rows: Frame, mask: BoolVector) -> Frame:
    """Return some rows of a frame."""
    return {name: values[mask] for name, values in rows.items()}


def build_table(
    kind: TableKind,
    rows: Frame,
    lines: Sequence[Line],
    methods: Sequence[str],
    printed: Mapping[str, Mapping[str, float]],
) -> ResultTable:
    """Return a table with a line for each label and mask of result rows.

    `printed` has the paper's values by line and method.
    """
    values, errors, papers = np.full((3, len(lines), len(methods)), nan)
    for (i, (label, mask)), (j, name) in product(enumerate(lines), enumerate(methods)):
        cell = select(rows, mask & (rows["method"] == name))
        values[i, j], errors[i, j] = _value_and_error(cell, kind)
        papers[i, j] = printed.get(label, {}).get(name, nan)
    return ResultTable(
        kind,
        tuple(label for label, _ in lines),
        tuple(methods),
        values * kind.scale,
        errors * kind.scale,
        papers,
        draws=len(np.unique(rows[kind.cluster]) if kind.cluster else _draws(rows)[0]),
        failures=int(np.sum(rows["failure"] != "")),
    )


def _draws(rows: Frame) -> Any:
    """Return the distinct pairs of size and seed, and which of them each row has."""
    pairs = np.column_stack([rows["n"], rows["seed"]])
    return np.unique(pairs, axis=0, return_inverse=True)


def _value_and_error(rows: Frame, kind: TableKind) -> tuple[float, float]:
    """Return the mean and its standard error.

    Rank correlations are computed within each size, seed and, where there is such a
    column, ``group``.
    """
    values = kind.row_values(rows)
    if kind.cluster:
        return _clustered(values, rows[kind.cluster])
    draws, draw = _draws(rows)
    if kind.statistic == "rank correlation":
        masks = (draw == i for i in range(len(draws)))
        of_draw = np.array([_correlation(rows, mask, kind) for mask in masks])
    else:
        of_draw = np.bincount(draw, weights=values) / np.bincount(draw)
    return float(of_draw.mean()), _standard_error(of_draw, draws[:, 0])


def _clustered(values: FloatVector, clusters: Any) -> tuple[float, float]:
    """Return a mean and its standard error, where rows of one cluster depend."""
    if not values.size:
        return nan, nan
    mean, error = mean_and_error(values, np.ones(values.size), clusters)
    return mean, error if np.unique(clusters).size > 1 else nan


def _correlation(rows: Frame, drawn: BoolVector, kind: TableKind) -> float:
    """Return the mean over groups of the rank correlation of one draw.

    It is 0 where all estimates of a group are equal.
    """
    groups = rows.get("group", np.zeros(drawn.size))
    correlations = []
    for group in np.unique(groups[drawn]):
        mask = drawn & (groups == group)
        estimate, truth = rows[kind.column][mask], rows[kind.truth][mask]
        equal = estimate.size > 1 and (estimate == estimate[0]).all()
        correlations.append(0.0 if equal else rank_correlation(estimate, truth))
    return float(np.mean(correlations))


def _standard_error(of_draw: FloatVector, n: FloatVector) -> float:
    """Return the standard error of a mean over sizes of means over seeds."""
    sizes, counts = np.unique(n, return_counts=True)
    if counts.min() == 1:
        return nan
    variances = np.array([of_draw[n == size].var(ddof=1) for size in sizes])
    return float(np.sqrt(np.sum(variances / counts)) / sizes.size)


@cache
def printed_table(study: str, name: str) -> dict[str, dict[str, float]]:
    """Return a table as the paper printed it, by line and method; {} if it has none."""
    file = files("calibrant").joinpath("data", "paper_tables.json")
    tables = json.loads(file.read_text(encoding="utf-8"))[study]["tables"]
    return dict(tables.get(name, {}))


def caption(table: ResultTable) -> str:
    """Return what a table shows and how certain it is, in words."""
    study = f"{table.study}: " if table.study else ""
    below = ["the standard error"]
    if np.isfinite(table.printed).any():
        below += ["the value printed in the paper"]
        below += [] if table.kind.signed else ["(in brackets) the ratio of ours to it"]
    if np.isfinite(table.over_oracle).any():
        below += ["the ratio to the oracle, which is not ranked"]
    are = "are" if len(below) > 1 else "is"
    shown = " and ".join([", ".join(below[:-1]), below[-1]][len(below) == 1 :])
    failed = f"{table.failures} cell{'s' * (table.failures > 1)} failed"
    independent = (
        f"Independent draws of labels: {table.draws}, since labels depend only on size "
        f"and seed."
    )
    if table.kind.cluster:
        independent = (
            f"The standard error takes the {table.draws} data sets as independent, but "
            f"not the cells of one data set."
        )
    return (
        f"{study}{table.kind.title}. The subscript is the rank, and the best value is "
        f"bold; below {are} {shown}. {independent}"
    ) + (f" {failed}; see the column failure." if table.failures else "")


def format_number(value: float, digits: int) -> str:
    """Return a number, or a dash where there is none."""
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def _notes(table: ResultTable, at: Place) -> list[str]:
    """Return the lines below a value."""
    digits = table.kind.digits
    notes = []
    if np.isfinite(table.errors[at]):
        notes.append(f"± {table.errors[at]:.{digits}f}")
    if np.isfinite(table.printed[at]):
        ratio = "" if table.kind.signed else f" ({format_number(table.ratios[at], 3)})"
        notes.append(f"{table.printed[at]:.{digits}f}{ratio}")
    if np.isfinite(table.over_oracle[at]):
        notes.append(f"{table.over_oracle[at]:.2f} x")
    return notes if np.isfinite(table.values[at]) else []


class _Markup(NamedTuple):
    """How a language writes a ranked value, the best value, and a note below it."""

    ranked: str
    best: str
    note: str


MARKDOWN = _Markup("{}<sub>{}</sub>", "**{}**", "<br><sub>{}</sub>")
LATEX = _Markup("{}_{{{}}}", r"\mathbf{{{}}}", r"\\ \scriptstyle {}")


def _rows(table: ResultTable, markup: _Markup) -> list[list[str]]:
    """Return the text of all cells, the shape first, average ranks last."""
    ranks = table.ranks
    columns = range(len(table.methods))
    rows = [
        [shape, *(_cell(table, (i, j), ranks[i, j], markup) for j in columns)]
        for i, shape in enumerate(table.shapes)
    ]
    return [*rows, [AVERAGE, *(format_number(r, 1) for r in table.average_ranks)]]


def _cell(table: ResultTable, at: Place, rank: float, markup: _Markup) -> str:
    text = format_number(table.values[at], table.kind.digits)
    text = markup.ranked.format(text, int(rank)) if np.isfinite(rank) else text
    text = markup.best.format(text) if rank // 1 == 1 else text
    return text + "".join(markup.note.format(note) for note in _notes(table, at))


def as_markdown(table: ResultTable) -> str:
    """Return a table as GitHub shows it."""
    rule = ["---", *["---:"] * len(table.methods)]
    lines = [["", *table.methods], rule, *_rows(table, MARKDOWN)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{text}\n\n{caption(table)}\n"


def as_latex(table: ResultTable) -> str:
    r"""Return a table for a paper; it needs the package booktabs."""
    *body, average = _rows(table, LATEX)
    lines = [" & ".join([row[0], *map(_as_formula, row[1:])]) for row in body]
    text = caption(table).replace("c_hat", r"$\hat{c}$").replace("c*", "$c^*$")
    text = text.replace("^2", "$^2$").replace("|", r"$\vert$")
    head, foot = " & ".join(["", *table.methods]), " & ".join(average)
    parts = [
        r"\begin{table}",
        rf"\caption{{{text}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.methods)}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *(rf"{line} \\" for line in lines),
        r"\midrule",
        rf"{foot} \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(parts)


def _as_formula(cell: str) -> str:
    if r"\\" not in cell:
        return f"${cell}$"
    cell = cell.replace("±", r"\pm")
    return rf"$\begin{{array}}{{r}}{cell}\end{{array}}$"


def markdown_page(
    title: str, notes: Iterable[str], tables: Iterable[ResultTable]
) -> str:
    """Return tables in Markdown, with a heading wherever another study begins."""
    parts = [f"# {title}", *notes]
    for study, group in groupby(tables, key=lambda table: table.study):
        parts += [*([f"## {study}"] if study else []), *map(as_markdown, group)]
    return "\n\n".join(parts)


def latex_page(notes: Iterable[str], tables: Iterable[ResultTable]) -> str:
    """Return tables in LaTeX below comments."""
    return "\n".join([*(f"% {note}" for note in notes), *map(as_latex, tables)])
