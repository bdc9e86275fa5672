"""Small samples side by side, so that many are worked on at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import BoolMatrix, FloatMatrix
    from calibrant.numerics.log_cells import WeightedPoints


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Samples side by side, a row each.

    Attributes
    ----------
    p, weight, label : ndarray of shape (samples, m)
        Distinct predictions in ascending order, and sums of weights and of weighted
        labels. What shorter samples lack has weight 0.
    """

    p: FloatMatrix
    weight: FloatMatrix
    label: FloatMatrix

    @classmethod
    def of(cls, cells: Sequence[WeightedPoints]) -> Self:
        """Put samples side by side.

        Examples
        --------
        >>> from calibrant.numerics.log_cells import WeightedPoints
        >>> one, two = np.ones(1), np.array([1.0, 3.0])
        >>> samples = [WeightedPoints(two, two, two), WeightedPoints(one, one, one)]
        >>> SideBySide.of(samples).weight
        array([[1., 3.],
               [1., 0.]])
        """
        sizes = np.array([one.p.size for one in cells])
        filled = np.arange(sizes.max()) < sizes[:, np.newaxis]
        return cls(
            _filled(filled, [one.p for one in cells], 0.5),
            _filled(filled, [one.weight for one in cells], 0.0),
            _filled(filled, [one.label for one in cells], 0.0),
        )


def _filled(
    filled: BoolMatrix, parts: Sequence[FloatMatrix], empty: float
) -> FloatMatrix:
    rows = np.full(filled.shape, empty)
    rows[filled] = np.concatenate(parts)
    return rows
