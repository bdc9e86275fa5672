"""How many bins: by cross-validation, or by the monotone sweep.

Everything comes from running sums over the sorted sample, so after the sort the cost
of trying a number of bins does not depend on the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.binning import split_ranks
from calibrant.numerics.cross_validation import ROUNDING

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
        Spacing,
        Tops,
    )
    from calibrant.numerics.sorted_sample import SortedSample

BLOCK = 32
"""How many bin counts the sweep tries at once."""


def inner_edges(
    sample: SortedSample, counts: IntVector, spacing: Spacing
) -> FloatMatrix:
    """Return the inner edges for each number of bins, one row a number.

    Rows are as long as the largest needs; what a smaller number does not use is
    infinite, which leaves empty bins behind that change nothing.
    """
    bins = counts[:, np.newaxis]
    cut = np.arange(1, int(counts.max()))[np.newaxis, :]
    if spacing == "width":
        edges = cut / bins
    else:
        edges = sample.at_rank(split_ranks(sample.total, bins, np.minimum(cut, bins)))
    return np.where(cut < bins, edges, np.inf)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Rows, and sums of weights, predictions and labels, per (number of bins, bin)."""

    rows: IntVector
    weight: FloatMatrix
    prob: FloatMatrix
    label: FloatMatrix

    @classmethod
    def of(cls, sample: SortedSample, edges: FloatMatrix) -> _Sums:
        below = np.empty((edges.shape[0], edges.shape[1] + 2), dtype=np.intp)
        below[:, 0], below[:, -1] = 0, sample.p.size
        below[:, 1:-1] = sample.rows_below(edges)
        return cls(
            np.diff(below),
            np.diff(sample.weight_below[below]),
            np.diff(sample.prob_below[below]),
            np.diff(sample.label_below[below]),
        )

    def __sub__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.rows - other.rows,
            self.weight - other.weight,
            self.prob - other.prob,
            self.label - other.label,
        )

    def over_weight(self, total: FloatMatrix) -> FloatMatrix:
        """Divide by the weight of each bin; 0 where a bin has no rows."""
        used = self.rows > 0
        return np.divide(total, self.weight, out=np.zeros_like(total), where=used)


def cross_validated_losses(
    sample: SortedSample,
    fold: IntVector,
    *,
    max_bins: int,
    spacing: Spacing,
    tops: Tops,
) -> FloatVector:
    """Return the cross-validated Brier score for 1 .. `max_bins` bins.

    Per fold, the map is fitted on the other folds (unclipped, as in the paper) and
    scored on this one; the result is the mean over folds of the mean loss.
    """
    counts = np.arange(1, max_bins + 1)
    losses = [
        _fold_losses(sample, fold == number, counts, spacing=spacing, tops=tops)
        for number in range(int(fold.max()) + 1)
    ]
    return np.asarray(np.mean(losses, axis=0), dtype=np.float64)


def _fold_losses(
    sample: SortedSample,
    held_out: BoolVector,
    counts: IntVector,
    *,
    spacing: Spacing,
    tops: Tops,
) -> FloatVector:
    test = sample.take(held_out)
    edges = inner_edges(sample.take(~held_out), counts, spacing)
    fitted = _Sums.of(sample, edges) - _Sums.of(test, edges)
    if tops == "slope-1":
        shift = fitted.over_weight(fitted.label - fitted.prob)
        return _loss_after_shift(test, _Sums.of(test, edges), shift)
    return _loss_of_levels(test, fitted, edges)


def _loss_after_shift(
    test: SortedSample, tested: _Sums, shift: FloatMatrix
) -> FloatVector:
    """Sum (p + shift - y)^2 per bin, without touching the rows again."""
    start = np.average((test.p - test.y) ** 2, weights=test.weight)
    change = 2.0 * shift * (tested.prob - tested.label) + shift**2 * tested.weight
    return np.asarray(start + change.sum(axis=1) / test.total, dtype=np.float64)


def _loss_of_levels(
    test: SortedSample, fitted: _Sums, edges: FloatMatrix
) -> FloatVector:
    """Sum (level - y)^2 per bin; where no row was fitted, the level is p itself."""
    level = fitted.over_weight(fitted.label)
    tested = _Sums.of(test, edges)
    squares = _Sums.of(_with_labels(test, test.y**2), edges).label
    loss = squares - 2.0 * level * tested.label + level**2 * tested.weight
    untouched = _Sums.of(_with_labels(test, (test.p - test.y) ** 2), edges).label
    loss = np.where(fitted.rows > 0, loss, untouched)
    return np.asarray(loss.sum(axis=1) / test.total, dtype=np.float64)


def _with_labels(sample: SortedSample, values: FloatVector) -> SortedSample:
    return type(sample)(sample.p, values, sample.weight)


def sweep(sample: SortedSample, *, max_bins: int, spacing: Spacing) -> int:
    """Return the largest number of bins before the shares of positives first fall.

    Bins are tried in the order 1, 2, ...; ties of neighbouring shares are allowed and
    empty bins passed over (Roelofs et al. 2022).

    References
    ----------
    R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating bias in
    calibration error estimation. AISTATS.
    """
    tried = 0
    while tried < max_bins:
        block = min(BLOCK, max_bins - tried)
        counts = np.arange(tried + 1, tried + block + 1)
        sums = _Sums.of(sample, inner_edges(sample, counts, spacing))
        # Sums of weights are rounded, those of counts are exact.
        rising = _shares_rise(sums, 0.0 if sample.weight is None else ROUNDING)
        if not rising.all():
            return tried + int(np.argmin(rising))
        tried += block
    return max_bins


def _shares_rise(sums: _Sums, slack: float) -> BoolVector:
    used = sums.rows > 0
    share = sums.over_weight(sums.label)
    # An empty bin repeats the share of the last bin that is not.
    column = np.where(used, np.arange(share.shape[1]), 0)
    last_used = np.maximum.accumulate(column, axis=1)
    filled = np.take_along_axis(share, last_used, axis=1)
    return np.asarray((np.diff(filled, axis=1) >= -slack).all(axis=1))
