"""The paper's tables: means, ranks, uncertainty, and what the paper printed.

A value is the plain mean over expected errors, sizes and seeds, or for rank
correlations the mean over sizes and seeds of a correlation over the expected errors.
Labels depend on size and seed alone: five seeds and three sizes are 15 independent
draws of labels, however many rows the results have. So the standard error takes the
mean over errors of one size and seed as one observation, within each size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.options import check_choice
from calibrant.experiments.assessment import rank_correlation
from calibrant.experiments.design import ORACLE
from calibrant.experiments.table_kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant._typing import BoolVector, FloatMatrix, FloatVector, Frame
    from calibrant.experiments.design import Design
    from calibrant.experiments.table_kinds import TableKind


@dataclass(frozen=True, eq=False)
class ResultTable:
    """A table of shapes by methods.

    Attributes
    ----------
    kind : TableKind
        What it shows.
    shapes, methods : tuple of str
        Rows and columns.
    values : ndarray of shape (shapes, methods)
        Means, scaled; NaN where a method failed somewhere.
    errors : ndarray of shape (shapes, methods)
        Standard errors over independent draws of labels; NaN for a single seed.
    printed : ndarray of shape (shapes, methods)
        What the paper printed; NaN where it did not.
    draws : int
        Independent draws of labels.
    failures : int
        Cells that failed.
    study : str
        Which data or which table it is of, where there are several.
    """

    kind: TableKind
    shapes: tuple[str, ...]
    methods: tuple[str, ...]
    values: FloatMatrix
    errors: FloatMatrix
    printed: FloatMatrix
    draws: int
    failures: int
    study: str = ""

    @property
    def ranks(self) -> FloatMatrix:
        """Return the rank of each method by shape, ties at their mean rank.

        The oracle, which knows the shape, has none.
        """
        values = np.where(self._is_oracle, np.nan, self.values)
        return np.stack([ranks_of(row, self.kind.best) for row in values])

    @property
    def average_ranks(self) -> FloatVector:
        """Return the mean rank of each method."""
        return np.asarray(self.ranks.mean(axis=0))

    @property
    def ratios(self) -> FloatMatrix:
        """Return the values over the printed ones."""
        return self.values / self.printed

    @property
    def over_oracle(self) -> FloatMatrix:
        """Return the values over the oracle's; NaN without one, or where it is perfect.

        There are ratios of errors only: one of biases would say nothing.
        """
        found = np.full(self.values.shape, np.nan)
        if not self._is_oracle.any() or self.kind.best != "least":
            return found
        oracle = self.values[:, self._is_oracle]
        compared = ~self._is_oracle & (oracle > 0.0)
        np.divide(self.values, oracle, out=found, where=compared)
        return found

    @property
    def _is_oracle(self) -> BoolVector:
        return np.array([method == ORACLE for method in self.methods])

    def frame(self) -> Frame:
        """Return one row a shape and method."""
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
        What `run` gave.
    design : Design
        What was run.
    name : {"calmap", "ece", "ece_sq", "spearman", "bias", "ceac"}
        Which table. What the paper printed is there where the design is its grid.

    Returns
    -------
    ResultTable
        With means, standard errors, ranks and ratios.
    """
    kind = KINDS[check_choice(name, KINDS, name="table")]
    shapes = design.shapes
    methods = _methods(design, kind)
    table = _table(
        kind, {shape: _of(rows, "shape", shape) for shape in shapes}, methods
    )
    printed = table.printed
    if design.is_papers_grid:
        printed = printed_values(name, shapes, methods)
    return replace(table, printed=printed, draws=len(design.sizes) * len(design.seeds))


def overall_table(
    rows: Mapping[str, Frame], designs: Sequence[Design], name: str
) -> ResultTable:
    """Return a table with a row for each of several studies, over all its truths.

    Parameters
    ----------
    rows : dict of dict of ndarray
        What `run` gave for each study, by its name.
    designs : sequence of Design
        What was run, in the same order, with the same methods.
    name : str
        Which table, as in `result_table`.

    Returns
    -------
    ResultTable
        With the name of a study for a shape.
    """
    kind = KINDS[check_choice(name, KINDS, name="table")]
    table = _table(kind, rows, _methods(designs[0], kind))
    draws = min(len(design.sizes) * len(design.seeds) for design in designs)
    return replace(table, draws=draws)


def _methods(design: Design, kind: TableKind) -> list[str]:
    squares = kind.name == "ece_sq"
    return [c.name for c in design.contenders if squares or not c.squared]


def _table(
    kind: TableKind, rows: Mapping[str, Frame], methods: list[str]
) -> ResultTable:
    """Return a table with a line for each of some parts of the results."""
    cells = [
        [cell_value(_of(part, "method", method), kind) for method in methods]
        for part in rows.values()
    ]
    found = np.array(cells) * kind.scale
    failed = [text != "" for part in rows.values() for text in part["failure"]]
    return ResultTable(
        kind,
        tuple(rows),
        tuple(methods),
        found[..., 0],
        found[..., 1],
        np.full(found.shape[:2], np.nan),
        0,
        int(np.sum(failed)),
    )


def _of(rows: Frame, column: str, value: str) -> Frame:
    mask = rows[column] == value
    return {name: values[mask] for name, values in rows.items()}


def cell_value(rows: Frame, kind: TableKind) -> tuple[float, float]:
    """Return mean and standard error of one method.

    Rank correlations are taken within each size, seed and, where there is such a
    column, ``group``.
    """
    draws, draw = np.unique(
        np.column_stack([rows["n"], rows["seed"]]), axis=0, return_inverse=True
    )
    if kind.column is None:
        of_draw = np.array(
            [_correlation(rows, draw == i, kind) for i in range(len(draws))]
        )
    else:
        total = np.bincount(draw, weights=kind.column(rows))
        of_draw = total / np.bincount(draw)
    return float(of_draw.mean()), _standard_error(of_draw, draws[:, 0])


def _correlation(rows: Frame, drawn: BoolVector, kind: TableKind) -> float:
    """Return the mean over groups of the rank correlation of one draw."""
    groups = rows.get("group", np.zeros(drawn.size))
    found = [
        _order_found(rows["estimate"][here], rows[kind.truth][here])
        for here in (drawn & (groups == group) for group in np.unique(groups[drawn]))
    ]
    return float(np.mean(found))


def _order_found(estimate: FloatVector, truth: FloatVector) -> float:
    """Return the rank correlation; 0 for an estimate that is the same for all."""
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
def _printed() -> dict[str, Any]:
    text = files("calibrant.experiments").joinpath("printed_tables.json").read_text()
    content: dict[str, Any] = json.loads(text)["tables"]
    return content


def printed_values(
    name: str, shapes: Sequence[str], methods: Sequence[str]
) -> FloatMatrix:
    """Return what the paper printed; NaN where there is no such cell.

    Examples
    --------
    >>> printed_values("calmap", ["square"], ["platt", "kce"])
    array([[9.48,  nan]])
    """
    table = _printed().get(name, {})
    none = (np.nan, np.nan)
    return np.array(
        [
            [table.get(shape, {}).get(method, none)[0] for method in methods]
            for shape in shapes
        ]
    )
