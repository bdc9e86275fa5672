"""Few cells that are narrow both in rank and on the logit scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.links import logit
from calibrant.numerics.log_cells import (
    WeightedPoints,
    compress_on_log_grid,
    many_cells,
)

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.core.sample import BinarySample

CELLS = 512
"""With more distinct predictions than this, neighbours are gathered into cells."""


def compress_to_at_most(
    p: FloatVector, y: FloatVector, weight: FloatVector | None
) -> WeightedPoints:
    """Return the distinct predictions, or at most 512 cells of them, ascending.

    A cell holds at most 1/256 of the rows, but for ties, and spans at most 1/256 of the
    range of logits: so it is fine where predictions are dense, and at both ends.

    Examples
    --------
    >>> p, y = np.array([0.5, 0.2, 0.5]), np.array([1.0, 0.0, 0.0])
    >>> cells = compress_to_at_most(p, y, None)
    >>> cells.p, cells.weight, cells.label
    (array([0.2, 0.5]), array([1., 2.]), array([0., 1.]))
    """
    return _fewer(compress_on_log_grid(p, y, weight))


def few_cells(sample: BinarySample) -> WeightedPoints:
    """Return what `compress_to_at_most` makes of a sample, made once."""
    return sample.cached("few cells", lambda: _fewer(many_cells(sample)))


def _fewer(many: WeightedPoints) -> WeightedPoints:
    """Gather neighbours into few cells."""
    distinct = np.cumsum(np.diff(many.p, prepend=many.p[0]) > 0.0, dtype=np.intp)
    many = _merged(many, distinct)
    if many.p.size <= CELLS:
        return many
    u = logit(many.p)
    share = np.cumsum(many.weight) - 0.5 * many.weight
    even = 0.5 * share / many.weight.sum() + 0.5 * (u - u[0]) / (u[-1] - u[0])
    return _merged(many, np.minimum((CELLS * even).astype(np.intp), CELLS - 1))


def _merged(rows: WeightedPoints, cell: IntVector) -> WeightedPoints:
    """Return the sums over neighbours that share a cell."""
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    weight = np.add.reduceat(rows.weight, first)
    label = np.add.reduceat(rows.label, first)
    if first.size == rows.p.size:
        return rows
    inside = rows.p - np.repeat(rows.p[first], np.diff(first, append=rows.p.size))
    # Sums of distances, so that ties keep their value to the last digit.
    mean = rows.p[first] + np.add.reduceat(rows.weight * inside, first) / weight
    return WeightedPoints(mean, weight, label)
