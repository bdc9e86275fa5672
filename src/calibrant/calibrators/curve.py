"""What fitting a family of maps without bins gives, whatever the family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from calibrant.maps.binned import BinnedMap
from calibrant.numerics.scores import mean_gap
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.maps.base import CalibrationMap
    from calibrant.numerics.resampling import BootstrapCells

RESAMPLES_AT_ONCE = 128
WHOLE_RANGE = np.array([0.0, 1.0])
"""Edges of a map that nowhere bends or jumps."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """Resamples over the same points.

    Attributes
    ----------
    p : ndarray of shape (m,)
        Mean prediction of each point, ascending.
    weight, label : ndarray of shape (resamples, m)
        Sum of weights and of weighted labels.
    """

    p: FloatVector
    weight: FloatMatrix
    label: FloatMatrix


class CurveFamily(Protocol):
    """A family whose resamples can be fitted together."""

    def refitted(
        self, fit: CurveFit, sample: Resamples, resamples: Resamples
    ) -> FloatMatrix:
        """Return the map of each resample at the points.

        `sample` holds the sample itself over the same points, as one resample.
        """
        ...


@dataclass(frozen=True, eq=False)
class CurveFit:
    """A fitted map without bins, or whose bins are not what is measured.

    Attributes
    ----------
    map : CalibrationMap
        The estimated calibration map.
    pieces : int
        Number of pieces, of each map where the map is a mean.
    edges : ndarray
        Where the map may jump or bend, from 0 to 1.
    family : CurveFamily
        What was fitted.
    losses : ndarray or None
        Cross-validated losses from simple to complex, where complexity was chosen so.
    weights : ndarray or None
        Weights of 1, 2, .. pieces, where refits are to be the mean that the map is.
    """

    map: CalibrationMap
    pieces: int
    edges: FloatVector
    family: CurveFamily
    losses: FloatVector | None = None
    weights: FloatVector | None = None

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Tell that no bias is known."""
        return False

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha.

        Very many rows are gathered into fine cells first, within which a map that
        does not jump is as good as straight.
        """
        p, weight = sample.p, sample.weight
        if not isinstance(self.map, BinnedMap):
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
        """Return the error for each row of cell weights, the family fitted anew."""
        _, cell = np.unique(cells.left, return_inverse=True)
        first = np.searchsorted(cell, np.arange(cell[-1] + 1))

        def over_points(p: FloatVector, weight: FloatMatrix) -> Resamples:
            label = np.add.reduceat(weight * cells.y, first, axis=-1)
            return Resamples(p, np.add.reduceat(weight, first, axis=-1), label)

        own = cells.weight[np.newaxis]
        p = np.add.reduceat(cells.weight * cells.p, first)
        p /= np.add.reduceat(cells.weight, first)
        sample = over_points(p, own)
        found = []
        for chunk in np.array_split(weights, -(-len(weights) // RESAMPLES_AT_ONCE)):
            resamples = over_points(p, chunk)
            values = self.family.refitted(self, sample, resamples)
            gap = np.abs(values - p) ** alpha
            total = resamples.weight.sum(axis=1)
            found.append((resamples.weight * gap).sum(axis=1) / total)
        return np.concatenate(found)
