"""The result of fitting a family of maps without bins, whatever the family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.maps.binned import BinnedMap
from calibrant.maps.venn_abers import VennAbersMap
from calibrant.numerics.folded_points import PointSums
from calibrant.numerics.scores import mean_gap
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.maps.base import CalibrationMap
    from calibrant.numerics.resampling import BootstrapCells

RESAMPLES_AT_ONCE = 128
WHOLE_RANGE = np.array([0.0, 1.0])
"""Edges of a map that nowhere bends or jumps."""


@dataclass(frozen=True, eq=False)
class Resamples(PointSums):
    """Resamples over the same points, and the sample that they were drawn from."""

    sample: PointSums


@dataclass(frozen=True, eq=False)
class CurveFit:
    """A fitted map without bins, or whose bins are not what is measured.

    Attributes
    ----------
    map : CalibrationMap
        The estimated calibration map.
    n_pieces : int
        Number of pieces, of each map where the map is a mean.
    edges : ndarray
        Where the map may jump or bend, from 0 to 1.
    refit : callable
        Returns the map of each resample at its points; choices that were made for
        the whole sample are kept.
    losses : ndarray or None
        Cross-validated losses from simple to complex, where complexity was chosen so.
    """

    map: CalibrationMap
    n_pieces: int
    edges: FloatVector
    refit: Callable[[Resamples], FloatMatrix]
    losses: FloatVector | None = None

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Tell that no bias is known."""
        return False

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha.

        Very many rows are compressed into fine cells first, within which a map that
        does not jump is nearly straight.
        """
        p, weight = sample.p, sample.weight
        if not isinstance(self.map, BinnedMap | VennAbersMap):
            cells = compress_on_log_grid(sample)
            p, weight = cells.p, cells.weight
        return mean_gap(self.map.values(p), p, weight, alpha)

    def resampled_errors(
        self,
        cells: BootstrapCells,
        weights: FloatMatrix,
        *,
        alpha: float,
        debias: bool,  # noqa: ARG002
    ) -> FloatVector:
        """Return the error for each row of cell weights, the family refitted."""
        _, cell = np.unique(cells.left, return_inverse=True)
        first = np.searchsorted(cell, np.arange(cell[-1] + 1))

        def sums(weight: FloatMatrix) -> tuple[FloatMatrix, FloatMatrix]:
            label_sum = np.add.reduceat(weight * cells.y, first, axis=-1)
            return np.add.reduceat(weight, first, axis=-1), label_sum

        p = np.add.reduceat(cells.weight * cells.p, first)
        p /= np.add.reduceat(cells.weight, first)
        sample = PointSums(p, *sums(cells.weight[np.newaxis]))
        errors = []
        for chunk in np.array_split(weights, -(-len(weights) // RESAMPLES_AT_ONCE)):
            resamples = Resamples(p, *sums(chunk), sample)
            gap = np.abs(self.refit(resamples) - p) ** alpha
            total = resamples.weight.sum(axis=1)
            errors.append((resamples.weight * gap).sum(axis=1) / total)
        return np.concatenate(errors)
