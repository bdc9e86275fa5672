"""Tables of results: means, ranks, uncertainty, and the values the paper printed.

A value is the mean over expected errors, sizes and seeds, or for rank correlations the
mean over sizes and seeds of a correlation over the expected errors. Labels depend only
on size and seed: five seeds and three sizes are 15 independent draws of labels, however
many rows the results have. So the standard error takes the mean over errors of one size
and seed as one observation, within each size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.options import check_choice
from calibrant.experiments.assessment import rank_correlation
from calibrant.experiments.contenders import ORACLE
from calibrant.experiments.synthetic_studies import is_paper_grid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Frame
    from calibrant.experiments.design import Design

    Line = tuple[str, BoolVector]
    Column = Callable[[Frame], FloatVector]


@dataclass(frozen=True)
class TableKind:
    """What a table shows; `column` turns result rows into one value per row."""

    name: str  # as in the paper's file names
    title: str
    column: Column | None  # None for rank correlations
    scale: float = 1000.0  # values are shown in thousandths
    digits: int = 2
    best: str = "least"  # or "most" or "nearest 0": which value ranks first
    truth: str = "true_error"  # the column that estimates are ranked against
    signed: bool = False  # values may be negative, so that ratios are meaningless
    spread: bool = False  # the standard deviation over seeds instead of the mean


def column(name: str) -> Column:
    """Return a function from result rows to one of their columns."""
    return lambda rows: rows[name]


def distance(estimate: str, truth: str) -> Column:
    """Return a function from result rows to distances between two columns."""
    return lambda rows: np.abs(rows[estimate] - rows[truth])


def bias(rows: Frame) -> FloatVector:
    """Return estimated less true errors; the estimates where the truth is unknown."""
    return np.asarray(rows["estimate"] - np.nan_to_num(rows["true_error"]))


KINDS = {
    kind.name: kind
    for kind in (
        TableKind(
            "calmap",
            "Map error |c_hat - c*| on unseen rows (CMEE), in thousandths",
            column("map_error"),
        ),
        TableKind(
            "ece",
            "Error of the error, |ECE - CE|, in thousandths",
            distance("estimate", "true_error"),
        ),
        TableKind(
            "ece_sq",
            "Error of the squared error, |ECE^2 - CE^2|, in thousandths",
            distance("estimate_sq", "true_error_sq"),
        ),
        TableKind(
            "spearman",
            "Spearman's rank correlation of estimated and true errors",
            None,
            scale=1.0,
            digits=4,
            best="most",
        ),
        TableKind(
            "bias",
            "Bias, mean of ECE - CE, in thousandths",
            bias,
            best="nearest 0",
            signed=True,
        ),
        TableKind(
            "ceac",
            "Calibration error after calibration (CEAC), in thousandths",
            column("error_after"),
        ),
    )
}
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
        if self._is_oracle.any() and self.kind.best == "least":
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
    """Return ranks from 1, ties at their mean rank; NaN where there is no value.

    Examples
    --------
    >>> ranks_of(np.array([3.0, 1.0, 3.0, np.nan]), "least")
    array([2.5, 1. , 2.5, nan])
    """
    from scipy.stats import rankdata

    keys = {"least": values, "most": -values, "nearest 0": np.abs(values)}[best]
    return np.asarray(rankdata(keys, nan_policy="omit"), dtype=np.float64)


def result_table(rows: Frame, design: Design, name: str) -> ResultTable:
    """Return a table of the results of a design.

    Parameters
    ----------
    rows : dict of ndarray
        The result of `run`.
    design : Design
        What was run; the table has the paper's values if this is the paper's grid.
    name : {"calmap", "ece", "ece_sq", "spearman", "bias", "ceac"}
        Which table.

    Returns
    -------
    ResultTable
        With means, standard errors, ranks and ratios.
    """
    kind = KINDS[check_choice(name, KINDS, name="table")]
    shapes = dict.fromkeys(truth.shape for truth in design.truths)
    lines = [(shape, rows["shape"] == shape) for shape in shapes]
    printed = printed_table("synthetic", name) if is_paper_grid(design) else {}
    return build_table(kind, rows, lines, _methods(design, kind), printed)


def overall_table(
    rows: Mapping[str, Frame], designs: Mapping[str, Design], name: str
) -> ResultTable:
    """Return a table with one row per study, over all its truths.

    `rows` has the result of `run` by study, `designs` what was run, with the same
    methods in all studies.
    """
    kind = KINDS[check_choice(name, KINDS, name="table")]
    study = np.repeat(list(rows), [frame["n"].size for frame in rows.values()])
    lines = [(label, study == label) for label in rows]
    together = concatenate(rows.values())
    methods = _methods(next(iter(designs.values())), kind)
    table = build_table(kind, together, lines, methods, {})
    draws = min(len(design.sizes) * len(design.seeds) for design in designs.values())
    return replace(table, draws=draws)


def _methods(design: Design, kind: TableKind) -> list[str]:
    squares = kind.name == "ece_sq"
    return [c.name for c in design.contenders if squares or not c.squared]


def concatenate(frames: Iterable[Frame]) -> Frame:
    """Return several frames with the same columns as one."""
    frames = list(frames)
    return {name: np.concatenate([f[name] for f in frames]) for name in frames[0]}


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
    cells = [
        [
            _value_and_error(select(rows, mask & (rows["method"] == m)), kind)
            for m in methods
        ]
        for _, mask in lines
    ]
    values, errors = np.moveaxis(np.array(cells) * kind.scale, -1, 0)
    papers = [
        [printed.get(label, {}).get(method, np.nan) for method in methods]
        for label, _ in lines
    ]
    return ResultTable(
        kind,
        tuple(label for label, _ in lines),
        tuple(methods),
        values,
        errors,
        np.array(papers),
        draws=len(_draws(rows)[0]),
        failures=int(np.sum(rows["failure"] != "")),
    )


def select(rows: Frame, mask: BoolVector) -> Frame:
    """Return some rows of a frame."""
    return {name: values[mask] for name, values in rows.items()}


def _draws(rows: Frame) -> Any:
    """Return the distinct pairs of size and seed, and which of them each row has."""
    pairs = np.column_stack([rows["n"], rows["seed"]])
    return np.unique(pairs, axis=0, return_inverse=True)


def _value_and_error(rows: Frame, kind: TableKind) -> tuple[float, float]:
    """Return the mean and its standard error, or the deviation over seeds.

    Rank correlations are computed within each size, seed and, where there is such a
    column, ``group``.
    """
    if kind.spread:
        return _deviation_over_seeds(rows, kind), float("nan")
    draws, draw = _draws(rows)
    if kind.column is None:
        of_draw = np.array(
            [_correlation(rows, draw == i, kind) for i in range(len(draws))]
        )
    else:
        of_draw = np.bincount(draw, weights=kind.column(rows)) / np.bincount(draw)
    return float(of_draw.mean()), _standard_error(of_draw, draws[:, 0])


def _deviation_over_seeds(rows: Frame, kind: TableKind) -> float:
    column: Any = kind.column
    values, seeds = column(rows), rows["seed"]
    means = [values[seeds == seed].mean() for seed in np.unique(seeds)]
    return float(np.std(means, ddof=1)) if len(means) > 1 else float("nan")


def _correlation(rows: Frame, drawn: BoolVector, kind: TableKind) -> float:
    """Return the mean over groups of the rank correlation of one draw."""
    groups = rows.get("group", np.zeros(drawn.size))
    masks = (drawn & (groups == group) for group in np.unique(groups[drawn]))
    pairs = ((rows["estimate"][mask], rows[kind.truth][mask]) for mask in masks)
    return float(np.mean([_rank_agreement(*pair) for pair in pairs]))


def _rank_agreement(estimate: FloatVector, truth: FloatVector) -> float:
    """Return the rank correlation; 0 where all estimates are equal."""
    if estimate.size > 1 and (estimate == estimate[0]).all():
        return 0.0
    return rank_correlation(estimate, truth)


def _standard_error(of_draw: FloatVector, n: FloatVector) -> float:
    """Return the standard error of a mean over sizes of means over seeds."""
    sizes, counts = np.unique(n, return_counts=True)
    if counts.min() == 1:
        return float("nan")
    parts = [
        of_draw[n == size].var(ddof=1) / count
        for size, count in zip(sizes, counts, strict=True)
    ]
    return float(np.sqrt(np.sum(parts)) / sizes.size)


@cache
def printed_table(study: str, name: str) -> dict[str, dict[str, float]]:
    """Return a table as the paper printed it, by line and method; {} if it has none."""
    file = files("calibrant.experiments").joinpath(f"printed_{study}.json")
    tables = json.loads(file.read_text(encoding="utf-8"))["tables"]
    return dict(tables.get(name, {}))
