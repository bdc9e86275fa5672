"""Bootstrap: resampled counts, and intervals from resampled errors.

Rows are aggregated into cells first: a cell has the rows of one label whose predictions
lie in one short interval. How often a resample draws from each cell is multinomial, so
a thousand resamples cost the same for a thousand rows or a billion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calibrant.exceptions import LabelError
from calibrant.numerics.binning import bin_index, width_edges
from calibrant.numerics.cross_validation import ROUNDING

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

CELLS = 128
"""Cells of equal width. The variance within one, at most (1/128)^2 / 4, is far below
the variance p (1 - p) of a label, so that nothing is lost by taking its mean."""
GROUPS = 512
"""How many groups of rows are resampled where several events share the rows."""
MAX_COPIES = 2**22
"""How many copies of weighted rows are kept apart where several events share rows."""
MAX_DRAW = 2**53
"""Draws are whole numbers; beyond this many rows there is no noise left to show."""

IntervalKind: TypeAlias = Literal["basic", "percentile"]


@dataclass(frozen=True, eq=False)
class BootstrapCells:
    """Rows aggregated by prediction and label.

    Attributes
    ----------
    left : ndarray of shape (m,)
        Left end of the cell's interval; ascending.
    p, y, weight : ndarray of shape (m,)
        Mean prediction, label and total weight of each cell that has any.
    row_cell : ndarray of shape (n,)
        The cell of each row.
    """

    left: FloatVector
    p: FloatVector
    y: FloatVector
    weight: FloatVector
    row_cell: IntVector


def bootstrap_cells(
    p: FloatVector, y: FloatVector, weight: FloatVector | None, edges: FloatVector
) -> BootstrapCells:
    """Aggregate rows into cells of equal width that also end at the given edges.

    Labels must be 0 or 1: a share of both has no cell of its own.
    """
    shares = np.flatnonzero((y != 0.0) & (y != 1.0))
    if shares.size:
        raise LabelError(
            f"labels must be 0 or 1 to be resampled; row {shares[0]} holds "
            f"{y[shares[0]]:g}. Make two weighted rows of it, one per label."
        )
    inner = np.unique(np.concatenate([edges[1:-1], width_edges(CELLS)[1:-1]]))
    fine = np.concatenate([[0.0], inner, [1.0]])
    code = 2 * bin_index(p, fine) + y.astype(np.intp)
    size = 2 * (fine.size - 1)
    total = np.bincount(code, weights=weight, minlength=size).astype(np.float64)
    weighted_p = p if weight is None else weight * p
    prob = np.bincount(code, weights=weighted_p, minlength=size)
    used = np.flatnonzero(total)
    position = np.zeros(size, dtype=np.intp)
    position[used] = np.arange(used.size)
    return BootstrapCells(
        left=fine[used // 2],
        p=prob[used] / total[used],
        y=(used % 2).astype(np.float64),
        weight=total[used],
        row_cell=position[code],
    )


def multinomial_weights(
    cells: BootstrapCells, replicates: int, rng: np.random.Generator
) -> FloatMatrix:
    """Return the weight of each cell in each resample, shape (replicates, m)."""
    total = cells.weight.sum()
    draws = int(min(max(round(total), 1), MAX_DRAW))
    counts = rng.multinomial(draws, cells.weight / total, size=replicates)
    return np.asarray(counts, dtype=np.float64)


def calibrated_weights(
    cells: BootstrapCells, replicates: int, rng: np.random.Generator
) -> tuple[BootstrapCells, FloatMatrix]:
    """Return cells and their weights in resamples of perfectly calibrated labels.

    Predictions stay as they are; each label is drawn again with the predicted
    probability. Errors of these resamples are pure noise.
    """
    left, interval_of = np.unique(cells.left, return_inverse=True)
    total = np.bincount(interval_of, weights=cells.weight)
    p = np.bincount(interval_of, weights=cells.weight * cells.p) / total
    draws = np.clip(np.round(total), 1, MAX_DRAW).astype(np.int64)
    share = rng.binomial(draws, np.clip(p, 0.0, 1.0), (replicates, p.size)) / draws
    weights = np.stack([(1.0 - share) * total, share * total], axis=2)
    both = BootstrapCells(
        left=np.repeat(left, 2),
        p=np.repeat(p, 2),
        y=np.tile([0.0, 1.0], p.size),
        weight=np.repeat(total, 2),
        row_cell=cells.row_cell,
    )
    return both, weights.reshape(replicates, -1)


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Rows in random groups, and how often each resample draws each group.

    With no more than `GROUPS` rows every row is a group of its own: the ordinary
    bootstrap. Several events on the same rows use the same draws, so that their errors
    stay correlated. A row of weight 2 counts as two rows, which may come into
    different groups.

    Attributes
    ----------
    group : ndarray of shape (m,)
        The group of each row, or of each copy of a row.
    counts : ndarray of shape (replicates, groups)
        How often each resample draws each group.
    row, weight : ndarray of shape (m,) or None
        The row and the weight of each copy; None where rows have no weights.
    """

    group: IntVector
    counts: FloatMatrix
    row: IntVector | None = None
    weight: FloatVector | None = None

    @classmethod
    def draw(
        cls,
        n: int,
        replicates: int,
        rng: np.random.Generator,
        weight: FloatVector | None = None,
        clusters: IntVector | None = None,
    ) -> RowGroups:
        """Put `n` rows, or whole clusters, into groups and resample the groups."""
        if clusters is not None:
            return cls._of_clusters(clusters, replicates, rng, weight)
        row = share = None
        if weight is not None:
            at_a_time = max(weight.sum() / MAX_COPIES, 1.0)
            copies = np.ceil(weight / at_a_time - ROUNDING).astype(np.intp)
            row = np.repeat(np.arange(n), copies)
            share = (weight / copies)[row]
            n = row.size
        groups = min(n, GROUPS)
        group = rng.permutation(np.arange(n) % groups)
        counts = rng.multinomial(groups, np.full(groups, 1.0 / groups), replicates)
        return cls(group, counts.astype(np.float64), row, share)

    @classmethod
    def _of_clusters(
        cls,
        clusters: IntVector,
        replicates: int,
        rng: np.random.Generator,
        weight: FloatVector | None,
    ) -> RowGroups:
        _, cluster = np.unique(clusters, return_inverse=True)
        alone = cls.draw(int(cluster.max()) + 1, replicates, rng)
        row = None if weight is None else np.arange(cluster.size)
        return cls(alone.group[cluster], alone.counts, row, weight)

    def weights(self, cells: BootstrapCells) -> FloatMatrix:
        """Return the weight of each cell in each resample of the groups."""
        groups, size = self.counts.shape[1], cells.weight.size
        cell = cells.row_cell if self.row is None else cells.row_cell[self.row]
        code = self.group * size + cell
        share = np.bincount(code, weights=self.weight, minlength=groups * size)
        return np.asarray(self.counts @ share.reshape(groups, size), dtype=np.float64)


def widen_to(value: float, low: float, high: float) -> tuple[float, float]:
    """Return the interval widened to include the value, and cut to [0, 1].

    Examples
    --------
    >>> widen_to(0.2, 0.3, 1.2)
    (0.2, 1.0)
    """
    low, high = min(low, value), max(high, value)
    return max(float(low), 0.0), min(float(high), 1.0)


def interval(
    value: float,
    replicates: FloatVector,
    *,
    truth: float,
    noise: FloatVector,
    confidence: float,
    kind: IntervalKind,
    squared: bool = False,
) -> tuple[float, float]:
    """Return a bootstrap interval for an error, within [0, 1].

    "percentile" takes the quantiles of the replicates. "basic" assumes that the
    estimate lies as far from the unknown error as replicates lie from `truth`, the
    plain error of the sample that they were drawn from: so the bias that resampling
    adds is removed. Its lower end is 0 unless the estimate exceeds the errors that the
    same predictions have by chance if they are perfectly calibrated (`noise`). Both
    include the estimate. Replicates that do not scatter, or only beyond the possible
    errors, give no information about uncertainty: then both ends are NaN.

    If the error is a squared norm, the norm itself scatters evenly, so its interval is
    computed and squared. Near 0 there is nothing left to reflect, so the upper end is
    at least that of the percentiles.
    """
    if squared:
        low, high = interval(
            float(_root(value)),
            _root(replicates),
            truth=float(_root(truth)),
            noise=_root(noise),
            confidence=confidence,
            kind=kind,
        )
        widest = float(np.quantile(replicates, 0.5 * (1.0 + confidence)))
        return widen_to(value, low**2, max(high**2, widest))
    tail = 0.5 * (1.0 - confidence)
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    scattered = high - low > ROUNDING
    if kind == "basic":
        centre = value + truth
        low, high = centre - high, centre - low
        if value <= np.quantile(noise, 1.0 - tail) + ROUNDING:
            low = 0.0
    low, high = widen_to(value, low, high)
    return (low, high) if scattered and high - low > ROUNDING else (np.nan, np.nan)


def _root(values: FloatVector | float) -> FloatVector:
    return np.sqrt(np.maximum(values, 0.0))
