"""Isotonic regression: the best map that never falls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant._typing import FloatVector
    from calibrant.numerics.sorted_sample import SortedSample


def isotonic_values(sample: SortedSample) -> FloatVector:
    """Return the fitted value of each row of a sorted sample.

    Rows with equal predictions get equal values. The fit minimises the Brier score
    and the log-loss alike, over all maps that do not fall.

    Examples
    --------
    >>> from calibrant.numerics.sorted_sample import SortedSample
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.0, 1.0, 0.0, 1.0])
    >>> isotonic_values(SortedSample.of(p, y))
    array([0. , 0.5, 0.5, 1. ])
    """
    from scipy.optimize import isotonic_regression

    is_first = np.append(True, np.diff(sample.p) > 0.0)
    first = np.flatnonzero(is_first)
    rows = np.append(first, sample.p.size)
    row_weight = np.ones(sample.p.size) if sample.weight is None else sample.weight
    weight = np.add.reduceat(row_weight, first)
    share = np.add.reduceat(row_weight * sample.y, first) / weight
    fitted = np.clip(isotonic_regression(share, weights=weight).x, 0.0, 1.0)
    return np.asarray(np.repeat(fitted, np.diff(rows)), dtype=np.float64)
