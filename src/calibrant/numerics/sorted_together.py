"""Many small samples, sorted together, so that they are gone through in few steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.log_cells import WeightedPoints
from calibrant.numerics.ties import tie_starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import BoolVector, FloatVector, IntVector
    from calibrant.core.sample import BinarySample


@dataclass(frozen=True, eq=False)
class SortedTogether:
    """Rows of several samples, by sample, then by prediction.

    Attributes
    ----------
    p, y, weight : ndarray of shape (n,)
        Predictions, labels and weights.
    owner : ndarray of shape (n,)
        Number of the sample, from 0.
    """

    p: FloatVector
    y: FloatVector
    weight: FloatVector
    owner: IntVector

    @classmethod
    def of(cls, samples: Sequence[BinarySample]) -> SortedTogether:
        """Sort the rows of samples; ties by label and weight.

        Examples
        --------
        >>> from calibrant.core.sample import BinarySample
        >>> one = BinarySample(np.array([0.5, 0.2]), np.array([1.0, 0.0]))
        >>> SortedTogether.of([one, one]).p
        array([0.2, 0.5, 0.2, 0.5])
        """
        owner = np.repeat(np.arange(len(samples)), [s.p.size for s in samples])
        p = np.concatenate([s.p for s in samples])
        y = np.concatenate([s.y for s in samples])
        weight = np.concatenate(
            [np.ones(s.p.size) if s.weight is None else s.weight for s in samples]
        )
        order = np.lexsort((weight, y, p, owner))
        return cls(p[order], y[order], weight[order], owner[order])

    def sums(self, values: FloatVector) -> FloatVector:
        """Return the weighted sum of values over the rows of each sample."""
        sums = np.bincount(self.owner, weights=self.weight * values)
        return np.asarray(sums, dtype=np.float64)

    def means(self, values: FloatVector) -> FloatVector:
        """Return the weighted mean of values over the rows of each sample."""
        return np.asarray(self.sums(values) / self._totals)

    @cached_property
    def _totals(self) -> FloatVector:
        return self.sums(np.ones(self.p.size))

    @cached_property
    def cells(self) -> list[WeightedPoints]:
        """Return the distinct predictions of each sample."""
        new = self._first_of_samples | (np.diff(self.p, prepend=0.0) > 0.0)
        first = np.flatnonzero(new)
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

        first = tie_starts(self.p, self._first_of_samples)
        weight = np.add.reduceat(self.weight, first)
        label = np.add.reduceat(self.weight * self.y, first)
        # A step from sample to sample that no share of positives can fill.
        apart = 2.0 * self.owner[first]
        found = isotonic_regression(label / weight + apart, weights=weight)
        starts = found.blocks[:-1]
        value = np.add.reduceat(label, starts) / np.add.reduceat(weight, starts)
        rows = np.diff(np.append(first[starts], self.p.size))
        return np.repeat(np.clip(value, 0.0, 1.0), rows)

    @property
    def _first_of_samples(self) -> BoolVector:
        return np.asarray(np.diff(self.owner, prepend=-1) != 0)
