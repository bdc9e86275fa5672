"""Isotonic regression, of one sample, of many small ones, or with one more row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant.numerics.sorted_rows import tie_starts
from calibrant.numerics.weighted_points import WeightedPoints, distinct_predictions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import Resamples


@dataclass(frozen=True, eq=False)
class IsotonicBlocks:
    """First and last row of each step of an isotonic fit, and its observed rate."""

    first: IntVector
    last: IntVector
    value: FloatVector


def isotonic_blocks(sample: BinarySample) -> IsotonicBlocks:
    """Pool rows of a sorted sample until the observed rates do not fall.

    Examples
    --------
    >>> from calibrant.core.sample import BinarySample
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.0, 1.0, 0.0, 1.0])
    >>> isotonic_blocks(BinarySample(p, y)).value
    array([0. , 0.5, 1. ])
    """
    first, rows = tie_starts(sample.p), sample.p.size
    weight, label = sample.weight, sample.y
    if weight is None:
        weight = np.ones(rows)
    else:
        label = weight * label
    if first.size < rows:
        weight, label = np.add.reduceat(weight, first), np.add.reduceat(label, first)
    value, starts = pooled_rates(label, weight)
    first = first[starts]
    return IsotonicBlocks(first, np.append(first[1:], rows) - 1, value)


def isotonic_values(sample: BinarySample) -> FloatVector:
    """Return the fitted value of each row of a sorted sample.

    Rows whose predictions tie get equal values. Among all maps that do not fall, the
    fit minimises both the Brier score and the log-loss.
    """
    blocks = isotonic_blocks(sample)
    return np.repeat(blocks.value, blocks.last - blocks.first + 1)


def pooled_rates(
    label: FloatVector, weight: FloatVector
) -> tuple[FloatVector, IntVector]:
    """Return the value of each block of an isotonic fit, and where it starts."""
    from scipy.optimize import isotonic_regression

    rate = label / weight
    # Rows whose rates do not rise are pooled in any case; this leaves fewer to pool.
    runs = np.flatnonzero(np.append(True, rate[1:] > rate[:-1]))
    label, weight = np.add.reduceat(label, runs), np.add.reduceat(weight, runs)
    fit = isotonic_regression(label / weight, weights=weight)
    starts = fit.blocks[:-1]
    return np.clip(fit.x[starts], 0.0, 1.0), runs[starts]


def refit_isotonic(resamples: Resamples) -> FloatMatrix:
    """Return the fit of each resample at all points."""
    pairs = zip(resamples.weight, resamples.label_sum, strict=True)
    return np.stack([_fitted_values(*pair) for pair in pairs])


def _fitted_values(weight: FloatVector, label_sum: FloatVector) -> FloatVector:
    """Return the fit at each point; points without weight follow the last before."""
    used = np.flatnonzero(weight > 0.0)
    value, starts = pooled_rates(label_sum[used], weight[used])
    block = np.searchsorted(used[starts], np.arange(weight.size), side="right") - 1
    return value[np.maximum(block, 0)]


class VennAbersFit(NamedTuple):
    """Limits p0 and p1 at distinct predictions, and the edges of isotonic blocks."""

    p: FloatVector
    low: FloatVector
    high: FloatVector
    edges: FloatVector


def fit_venn_abers(sample: BinarySample) -> VennAbersFit:
    """Return the limits of inductive Venn-Abers prediction for a sample.

    Within a block of the isotonic fit they are level, or nearly so.
    """
    points = distinct_predictions(sample)
    low, high = venn_abers_limits(points.label_sum, points.weight)
    _, starts = pooled_rates(points.label_sum, points.weight)
    edges = np.concatenate([[0.0], points.p[starts[1:]], [1.0]])
    return VennAbersFit(points.p, low, high, edges)


def venn_abers_limits(
    label_sum: FloatVector, weight: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Return the probabilities p0 and p1 of inductive Venn-Abers prediction.

    A new prediction joins the sample once with label 0 and once with label 1; p0 <= p1
    are the values there of the two isotonic fits. Given are the sums of weighted labels
    and of weights at distinct predictions, ascending. Between two of them, p0 is that
    of the lower one and p1 that of the upper one; p0 is 0 below all of them, p1 is 1
    above all of them.

    References
    ----------
    V. Vovk, I. Petej, V. Fedorova (2015). Large-scale probabilistic predictors with and
    without guarantees of validity. NeurIPS. doi:10.48550/arXiv.1511.00213

    Examples
    --------
    >>> low, high = venn_abers_limits(np.array([0.0, 2.0]), np.array([3.0, 2.0]))
    >>> low.round(2), high.round(2)
    (array([0.  , 0.67]), array([0.25, 1.  ]))
    """
    others = weight - label_sum  # p0 is p1, seen from the other end
    return 1.0 - _upper(others[::-1], weight[::-1])[::-1], _upper(label_sum, weight)


def _upper(label_sum: FloatVector, weight: FloatVector) -> FloatVector:
    """Return p1 at each prediction, without a fit for each.

    With running sums W of the weights and S of the labels before point i, and blocks
    [.., e) of the isotonic fit to the sample itself,

        p1 at point i = max over j <= i of  min over block ends e > j of
                        (S_e - S_j + 1) / (W_e - W_j + 1),

    because a label of 1 raises the fit from its own block on only, and whole blocks
    join or do not. The inner minimum is the slope of the tangent from
    (W_j - 1, S_j - 1) to the convex chain of block ends, found by bisection.
    """
    value, starts = pooled_rates(label_sum, weight)
    labels, rows = (np.append(0.0, np.cumsum(sums)) for sums in (label_sum, weight))
    ends = np.append(starts[1:], weight.size)

    def slopes(point: IntVector, block: IntVector) -> FloatVector:
        end = ends[block]
        rise, run = labels[end] - labels[point], rows[end] - rows[point]
        return np.asarray((rise + 1.0) / (run + 1.0))

    point = np.arange(weight.size)
    block = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
    tangent, following = slopes(point, block), np.append(value[1:], np.inf)
    point = np.flatnonzero(following[block] < tangent)  # the next block joins
    first, last = block[point] + 1, np.full(point.size, ends.size - 1)
    for _ in range(int(ends.size).bit_length()):
        middle = (first + last) // 2
        joins = following[middle] < slopes(point, middle)
        first, last = np.where(joins, middle + 1, first), np.where(joins, last, middle)
    tangent[point] = slopes(point, first)
    return np.maximum.accumulate(tangent)


@dataclass(frozen=True, eq=False)
class SortedSamples:
    """Rows of several samples, by sample (`owner`, from 0), then by prediction."""

    p: FloatVector
    y: FloatVector
    weight: FloatVector
    owner: IntVector

    @classmethod
    def of(cls, samples: Sequence[BinarySample]) -> SortedSamples:
        """Sort the rows of samples; ties by label and weight."""
        owner = np.repeat(np.arange(len(samples)), [s.p.size for s in samples])
        p = np.concatenate([s.p for s in samples])
        y = np.concatenate([s.y for s in samples])
        weight = np.concatenate([s.weights for s in samples])
        order = np.lexsort((weight, y, p, owner))
        return cls(p[order], y[order], weight[order], owner[order])

    def means(self, values: FloatVector) -> FloatVector:
        """Return the weighted mean of values over the rows of each sample."""
        total = np.bincount(self.owner, weights=self.weight)
        return np.asarray(np.bincount(self.owner, self.weight * values) / total)

    @cached_property
    def _is_first(self) -> BoolVector:
        """Return whether a row is the first of its sample."""
        return np.asarray(np.diff(self.owner, prepend=-1) != 0)

    @cached_property
    def cells(self) -> list[WeightedPoints]:
        """Return the distinct predictions of each sample."""
        first = np.flatnonzero(self._is_first | (np.diff(self.p, prepend=0.0) > 0.0))
        boundaries = np.flatnonzero(np.diff(self.owner[first])) + 1
        columns = (
            self.p[first],
            np.add.reduceat(self.weight, first),
            np.add.reduceat(self.weight * self.y, first),
        )
        parts = zip(*(np.split(column, boundaries) for column in columns), strict=True)
        return [WeightedPoints(*part) for part in parts]

    @cached_property
    def isotonic(self) -> FloatVector:
        """Return the value of each row in the isotonic fit of its sample."""
        from scipy.optimize import isotonic_regression

        first = tie_starts(self.p, self._is_first)
        weight = np.add.reduceat(self.weight, first)
        label = np.add.reduceat(self.weight * self.y, first)
        # A step from sample to sample that is larger than any difference of rates.
        apart = 2.0 * self.owner[first]
        starts = isotonic_regression(label / weight + apart, weights=weight).blocks[:-1]
        value = np.add.reduceat(label, starts) / np.add.reduceat(weight, starts)
        rows = np.diff(np.append(first[starts], self.p.size))
        return np.repeat(np.clip(value, 0.0, 1.0), rows)
