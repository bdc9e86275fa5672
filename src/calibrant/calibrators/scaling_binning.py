"""Scaling-binning: Platt scaling, then the mean of the scaled values in each bin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.curve import CurveFit
from calibrant.calibrators.logistic import Platt
from calibrant.core.options import check_count, check_flag
from calibrant.maps.binned import BinnedMap
from calibrant.numerics.binning import bin_index, size_edges, tabulate

if TYPE_CHECKING:
    from calibrant.calibrators.curve import Resamples
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample

PARTS = 16
"""Bins are resampled in so many parts: their flat tops cross the diagonal, near which
the distance to it would be lost in wide cells."""


@dataclass(frozen=True, kw_only=True)
class ScalingBinning:
    """Platt scaling whose values are averaged over bins with equally many rows.

    A flat map with few values can be checked from the labels, bin by bin, which a
    curve cannot; and its values are less noisy than shares of positives.

    Parameters
    ----------
    bins : int
        Number of bins; with fewer rows than this, as many as there are rows.
    smoothing : bool
        As in Platt scaling.

    References
    ----------
    A. Kumar, P. Liang, T. Ma (2019). Verified uncertainty calibration. NeurIPS.
    """

    bins: int = 15
    smoothing: bool = False

    def __post_init__(self) -> None:
        check_count(self.bins, name="bins")
        check_flag(self.smoothing, name="smoothing")

    def fit(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        scaled = Platt(smoothing=self.smoothing).fit(sample).map
        bins = max(min(self.bins, int(sample.total)), 1)
        # Scaling keeps the order of predictions, or turns it round: bins of equal
        # size of the scaled values are bins of the predictions.
        edges = size_edges(sample.p, sample.weight, bins)
        table = tabulate(sample.p, scaled(sample.p), sample.weight, edges)
        middle = 0.5 * (edges[1:] + edges[:-1])
        level = np.where(table.weight > 0.0, table.mean_label, scaled(middle))
        map_ = BinnedMap(edges, level, np.zeros(level.size))
        return CurveFit(map_, level.size, _parted(edges), self)

    def refitted(
        self,
        fit: CurveFit,
        sample: Resamples,  # noqa: ARG002
        resamples: Resamples,
    ) -> FloatMatrix:
        """Return the map of each resample, over the same bins, at the points."""
        maps = Platt(smoothing=self.smoothing).solve(resamples)
        scaled = maps.at(resamples.p)
        index = bin_index(resamples.p, fit.edges[::PARTS])
        bins, run = np.unique(index, return_inverse=True)
        starts = np.searchsorted(index, bins)
        weight = np.add.reduceat(resamples.weight, starts, axis=1)
        total = np.add.reduceat(resamples.weight * scaled, starts, axis=1)
        level = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0.0)
        return np.asarray(level[:, run])


def _parted(edges: FloatVector) -> FloatVector:
    """Part each bin into equally wide parts."""
    parts = np.linspace(edges[:-1], edges[1:], PARTS, endpoint=False, axis=1)
    return np.append(parts.ravel(), 1.0)
