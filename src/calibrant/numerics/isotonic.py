"""Isotonic regression, of one sample or of many small ones at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.sorted_rows import tie_starts
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import BoolVector, FloatVector, IntVector
    from calibrant.core.sample import BinarySample


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
    weight = sample.weights
    label = weight * sample.y
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
        ends = np.flatnonzero(np.diff(self.owner[first])) + 1
        columns = (
            self.p[first],
            np.add.reduceat(self.weight, first),
            np.add.reduceat(self.weight * self.y, first),
        )
        parts = zip(*(np.split(column, ends) for column in columns), strict=True)
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
