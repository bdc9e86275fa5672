"""Calibration by kernel density estimates of all predictions and of those of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.base import EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit
from calibrant.core.parameters import check_choice, check_positive
from calibrant.maps.piecewise import map_through
from calibrant.numerics.binning import size_edges, tabulate, width_edges
from calibrant.numerics.kernel_density import KernelRates, kernel_matrix
from calibrant.numerics.sorted_rows import tie_starts
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import Resamples

ValueSummary: TypeAlias = Literal["all", "events", "others"]

MAX_CELLS = 1024
"""With more rows than this, they are aggregated into at most as many cells, half of
which divide the rows and half the predictions equally."""
STRAIGHT = 2e-5
"""The map is a polygon that is nowhere farther from the estimate, checked halfway."""
MIN_BANDWIDTH = 1e-9
"""Below this bandwidth all predictions count as equal."""


@dataclass(kw_only=True, eq=False, repr=False)
class KernelDensity(EventCalibrator):
    """The share of events times their density, over the density of all predictions.

    Densities are estimated with a triweight kernel, predictions mirrored at 0 and 1.
    Where no prediction is near, the map is straight between those on either side.

    Parameters
    ----------
    bandwidth : float or "rule"
        Standard deviation of the kernel; or s (2n) ** -0.2, with s the standard
        deviation of the predictions.
    spread : {"all", "events", "others"}
        Of which predictions the rule takes the standard deviation: of all, of those
        of events as in Zhang et al., or of the others as in the paper's experiments.

    References
    ----------
    J. Zhang, B. Kailkhura, T. Y.-J. Han (2020). Mix-n-Match: ensemble and
    compositional methods for uncertainty calibration in deep learning. ICML.
    """

    fitted_by: ClassVar[str] = "none"
    bandwidth: float | Literal["rule"] = "rule"
    spread: ValueSummary = "all"

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.spread, get_args(ValueSummary), name="spread")
        if self.bandwidth != "rule":
            check_positive(self.bandwidth, name="bandwidth")

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = _points(sample)
        bandwidth = self.bandwidth_of(points)
        p, weight, label_sum = points.p, points.weight[0], points.label_sum[0]
        if bandwidth < MIN_BANDWIDTH:
            rate = label_sum.sum() / weight.sum()
            map_ = map_through(WHOLE_RANGE, np.full(2, rate))
        else:
            polygon = KernelRates(p, weight, label_sum, bandwidth).polygon(STRAIGHT)
            apart = tie_starts(polygon[0])
            map_ = map_through(polygon[0][apart], polygon[1][apart])
        return CurveFit(map_, 1, WHOLE_RANGE, self._refit)

    def _refit(self, resamples: Resamples) -> FloatMatrix:
        """Return the map of each resample, with the bandwidth of the sample."""
        p, bandwidth = resamples.p, self.bandwidth_of(resamples.sample)
        kernel = kernel_matrix(p, p, max(bandwidth, MIN_BANDWIDTH)).T
        weight, label_sum = resamples.weight @ kernel, resamples.label_sum @ kernel
        return WeightedPoints(p, weight, label_sum).rates()

    def bandwidth_of(self, points: WeightedPoints) -> float:
        """Return the standard deviation of the kernel for a sample."""
        if self.bandwidth != "rule":
            return float(self.bandwidth)
        weight, events = points.weight[0], points.label_sum[0]
        own = {"all": weight, "events": events, "others": weight - events}[self.spread]
        if own.sum() <= 0.0:  # no such rows
            own = weight
        mean = np.average(points.p, weights=own)
        variance = np.average((points.p - mean) ** 2, weights=own)
        return float(np.sqrt(variance) * (2.0 * weight.sum()) ** -0.2)


def _points(sample: BinarySample) -> WeightedPoints:
    """Return events and others apart, in order, aggregated into cells where many.

    Within a cell events lie a little higher than others, where the map rises.
    """
    edges = _edges(sample)
    weight = sample.weights
    parts = [weight * sample.y, weight * (1.0 - sample.y)]
    events, others = (tabulate(sample.p, sample.y, own, edges) for own in parts)
    p = np.concatenate([events.mean_prob, others.mean_prob])
    total = np.concatenate([events.weight, others.weight])
    label_sum = np.concatenate([events.weight, np.zeros(others.weight.size)])
    order = np.argsort(p, kind="stable")  # cells without rows have no mean, come last
    order = order[total[order] > 0.0]
    return WeightedPoints(p[order], total[order], label_sum[order]).as_batch()


def _edges(sample: BinarySample) -> FloatVector:
    if sample.n <= MAX_CELLS:  # a cell for each distinct prediction
        return np.unique(np.concatenate([[0.0], sample.p, [1.0, 2.0]]))
    half = MAX_CELLS // 2
    sizes = size_edges(sample.p, sample.weight, half)
    return np.unique(np.concatenate([sizes, width_edges(half)]))
