"""How many bins: by cross-validation, or by the monotone sweep.

Everything comes from running sums over the sorted sample, so after the sort the cost
of trying a number of bins does not depend on the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.sample import BinarySample
from calibrant.numerics.binning import split_ranks
from calibrant.numerics.cross_validation import ROUNDING
from calibrant.numerics.sorted_rows import at_rank, running_sums

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntVector,
        Spacing,
        Tops,
    )

BLOCK = 32
"""How many bin counts the sweep tries at once."""


def inner_edges(
    sample: BinarySample, counts: IntVector, spacing: Spacing
) -> FloatMatrix:
    """Return the inner edges for each number of bins, one row per number.

    Rows are as long as the largest needs; unused edges of a smaller number are
    infinite, which adds empty bins that change nothing.
    """
    bins = counts[:, np.newaxis]
    cut = np.arange(1, int(counts.max()))[np.newaxis, :]
    if spacing == "width":
        edges = cut / bins
    else:
        ranks = split_ranks(sample.total, bins, np.minimum(cut, bins))
        edges = at_rank(sample, ranks)
    return np.where(cut < bins, edges, np.inf)


def _bin_sums(sample: BinarySample, edges: FloatMatrix) -> FloatMatrix:
    """Return rows, weights, predictions and labels per (number of bins, bin)."""
    below = np.zeros((edges.shape[0], edges.shape[1] + 2), dtype=np.intp)
    below[:, 1:-1], below[:, -1] = np.searchsorted(sample.p, edges), sample.p.size
    sums = np.stack([below, *(each[below] for each in running_sums(sample))])
    return np.asarray(np.diff(sums, axis=-1))


def _per_weight(total: FloatMatrix, sums: FloatMatrix) -> FloatMatrix:
    """Divide by the weight of each bin; 0 where a bin has no rows."""
    rows, weight, *_ = sums
    return np.asarray(
        np.divide(total, weight, out=np.zeros_like(total), where=rows > 0.0)
    )


def cross_validated_losses(
    sample: BinarySample,
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
    losses = []
    for number in range(int(fold.max()) + 1):
        test = sample.take(fold == number)
        edges = inner_edges(sample.take(fold != number), counts, spacing)
        tested = _bin_sums(test, edges)
        fitted = _bin_sums(sample, edges) - tested
        if tops == "slope-1":
            losses.append(_loss_of_shifts(test, tested, fitted))
        else:
            losses.append(_loss_of_levels(test, tested, fitted, edges))
    return np.asarray(np.mean(losses, axis=0), dtype=np.float64)


def _loss_of_shifts(
    test: BinarySample, tested: FloatMatrix, fitted: FloatMatrix
) -> FloatVector:
    """Return the mean of (p + shift - y)^2, without another pass over the rows."""
    _, weight, prob, label = tested
    shift = _per_weight(fitted[3] - fitted[2], fitted)
    start = np.average((test.p - test.y) ** 2, weights=test.weight)
    change = 2.0 * shift * (prob - label) + shift**2 * weight
    return np.asarray(start + change.sum(axis=1) / test.total, dtype=np.float64)


def _loss_of_levels(
    test: BinarySample, tested: FloatMatrix, fitted: FloatMatrix, edges: FloatMatrix
) -> FloatVector:
    """Return the mean of (level - y)^2; where no row was fitted, the level is p."""

    def sums(values: FloatVector) -> FloatMatrix:
        rows = BinarySample(test.p, values, test.weight)
        return np.asarray(_bin_sums(rows, edges)[3])

    _, weight, _, label = tested
    level = _per_weight(fitted[3], fitted)
    loss = sums(test.y**2) - 2.0 * level * label + level**2 * weight
    loss = np.where(fitted[0] > 0.0, loss, sums((test.p - test.y) ** 2))
    return np.asarray(loss.sum(axis=1) / test.total, dtype=np.float64)


def sweep(sample: BinarySample, *, max_bins: int, spacing: Spacing) -> int:
    """Return the largest number of bins before the observed rates first fall.

    Bins are tried in the order 1, 2, ...; ties of neighbouring rates are allowed and
    empty bins are skipped (Roelofs et al. 2022).

    References
    ----------
    R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022). Mitigating bias in
    calibration error estimation. AISTATS.
    """
    # Sums of weights are rounded, those of counts are exact.
    slack = 0.0 if sample.weight is None else ROUNDING
    for first in range(1, max_bins + 1, BLOCK):
        counts = np.arange(first, min(first + BLOCK, max_bins + 1))
        sums = _bin_sums(sample, inner_edges(sample, counts, spacing))
        rate = _per_weight(sums[3], sums)
        # An empty bin repeats the rate of the last bin that is not.
        column = np.where(sums[0] > 0.0, np.arange(rate.shape[1]), 0)
        last_used = np.maximum.accumulate(column, axis=1)
        filled = np.take_along_axis(rate, last_used, axis=1)
        rising = (np.diff(filled, axis=1) >= -slack).all(axis=1)
        if not rising.all():
            return first - 1 + int(np.argmin(rising))
    return max_bins
