"""Isotonic regression: the best map that never falls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.ties import tie_starts

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.numerics.sorted_sample import SortedSample


@dataclass(frozen=True, eq=False)
class IsotonicBlocks:
    """The steps of an isotonic fit.

    Attributes
    ----------
    first, last : ndarray of shape (k,)
        First and last row of each block, rows being in order of their prediction.
    value : ndarray of shape (k,)
        The share of positives of each block, ascending, within [0, 1].
    """

    first: IntVector
    last: IntVector
    value: FloatVector


def isotonic_blocks(sample: SortedSample) -> IsotonicBlocks:
    """Pool rows of a sorted sample until the shares of positives do not fall.

    Examples
    --------
    >>> from calibrant.numerics.sorted_sample import SortedSample
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.0, 1.0, 0.0, 1.0])
    >>> isotonic_blocks(SortedSample.of(p, y)).value
    array([0. , 0.5, 1. ])
    """
    first, weight, label = _falling_runs(sample)
    value, starts = pooled_shares(label, weight)
    first = first[starts]
    last = np.append(first[1:], sample.p.size) - 1
    return IsotonicBlocks(first, last, value)


def isotonic_values(sample: SortedSample) -> FloatVector:
    """Return the fitted value of each row of a sorted sample.

    Rows whose predictions tie get equal values. The fit minimises the Brier score
    and the log-loss alike, over all maps that do not fall.

    Examples
    --------
    >>> from calibrant.numerics.sorted_sample import SortedSample
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.0, 1.0, 0.0, 1.0])
    >>> isotonic_values(SortedSample.of(p, y))
    array([0. , 0.5, 0.5, 1. ])
    """
    blocks = isotonic_blocks(sample)
    return np.repeat(blocks.value, blocks.last - blocks.first + 1)


def pooled_shares(
    label: FloatVector, weight: FloatVector
) -> tuple[FloatVector, IntVector]:
    """Return the value of each block of an isotonic fit, and where it starts."""
    from scipy.optimize import isotonic_regression

    found = isotonic_regression(label / weight, weights=weight)
    starts = found.blocks[:-1]
    return np.clip(found.x[starts], 0.0, 1.0), starts


def _falling_runs(
    sample: SortedSample,
) -> tuple[IntVector, FloatVector, FloatVector]:
    """Return first rows, weights and labels of runs that are pooled for certain.

    Rows with the same prediction are, and then those whose shares do not rise.
    """
    first = tie_starts(sample.p)
    rows = sample.p.size
    if first.size == rows:
        weight = np.ones(rows) if sample.weight is None else sample.weight
        label, share = weight * sample.y, sample.y
    else:
        weight, label = _sums(sample, first)
        share = label / weight
    runs = np.flatnonzero(np.append(True, share[1:] > share[:-1]))
    return first[runs], np.add.reduceat(weight, runs), np.add.reduceat(label, runs)


def _sums(sample: SortedSample, first: IntVector) -> tuple[FloatVector, FloatVector]:
    if sample.weight is None:
        weight = np.diff(np.append(first, sample.p.size)).astype(np.float64)
        return weight, np.add.reduceat(sample.y, first)
    label = np.add.reduceat(sample.weight * sample.y, first)
    return np.add.reduceat(sample.weight, first), label
