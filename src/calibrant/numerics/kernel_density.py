"""Kernel estimates of the observed rate near a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from calibrant.numerics.binning import size_edges, tabulate, width_edges
from calibrant.numerics.sorted_rows import tie_starts
from calibrant.numerics.weighted_points import WeightedPoints

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import Resamples

BandwidthRows: TypeAlias = Literal["all", "events", "others"]
"""Of which rows the predictions determine the bandwidth."""

MAX_CELLS = 1024
"""With more rows than this, they are aggregated into at most as many cells, half of
which divide the rows and half the predictions equally."""
MIN_BANDWIDTH = 1e-9
"""Below this bandwidth all predictions count as equal."""
STRAIGHT = 2e-5
"""The map is a polygon that is nowhere farther from the estimate, checked halfway."""
MAX_ROUNDS = 14
"""How often its intervals are halved."""
REACH = 3.0
"""Half the width of a triweight kernel with standard deviation 1."""
AT_ONCE = 2**20
"""Most pairs of points whose kernel is computed at once."""


def kernel_matrix(at: FloatVector, p: FloatVector, bandwidth: float) -> FloatMatrix:
    """Return the triweight kernel of each pair, points being mirrored at an end.

    The part of a kernel beyond 0 or 1 would be lost; so each point has a mirror image,
    beyond 0 if it is below 1/2, else beyond 1.

    Examples
    --------
    >>> kernel_matrix(np.array([0.0, 0.5]), np.array([0.0]), 0.2)
    array([[2.       ],
           [0.0570559]])
    """
    image = np.where(p < 0.5, -p, 2.0 - p)  # noqa: PLR2004
    reach = REACH * bandwidth
    kernel = np.zeros((at.size, p.size))
    for centre in (p, image):
        near = 1.0 - ((at[:, np.newaxis] - centre) / reach) ** 2
        np.maximum(near, 0.0, out=near)
        kernel += near**3
    return kernel


@dataclass(frozen=True, eq=False)
class KernelRates:
    """Kernel estimate of the observed rate, from the points of one sample."""

    points: WeightedPoints
    bandwidth: float

    def __call__(self, at: FloatVector) -> FloatVector:
        """Return the observed rate near each place, NaN where no point is near."""
        p, weight, label_sum = self.points.p, self.points.weight, self.points.label_sum
        rows = max(AT_ONCE // p.size, 1)
        rate = np.full(at.size, np.nan)
        for start in range(0, at.size, rows):
            some = slice(start, start + rows)
            kernel = kernel_matrix(at[some], p, self.bandwidth)
            density, events = kernel @ weight, kernel @ label_sum
            np.divide(events, density, out=rate[some], where=density > 0.0)
        return np.asarray(np.clip(rate, 0.0, 1.0))

    def polygon(self) -> tuple[FloatVector, FloatVector]:
        """Return places and rates between which the estimate is nearly straight.

        Intervals are halved until the estimate in their middle is close to the
        straight line, or they are far shorter than the kernel.
        """
        p = self.points.p
        spread = p[np.linspace(0, p.size - 1, 129).astype(np.intp)]
        at = np.unique(np.concatenate([np.linspace(0.0, 1.0, 65), spread]))
        rate = self(at)
        left = np.arange(at.size - 1)
        for _ in range(MAX_ROUNDS):
            width = at[left + 1] - at[left]
            middle = at[left] + 0.5 * width
            between = self(middle)
            straight = 0.5 * (rate[left] + rate[left + 1])
            ends_here = np.isnan(rate[left]) != np.isnan(rate[left + 1])
            curved = (np.abs(between - straight) > STRAIGHT) | ends_here
            split = curved & (width > 1e-4 * self.bandwidth)
            if not split.any():
                break
            left = left[split]
            at = np.insert(at, left + 1, middle[split])
            rate = np.insert(rate, left + 1, between[split])
            left = left + np.arange(left.size)
            left = np.sort(np.concatenate([left, left + 1]))
        known = np.flatnonzero(np.isfinite(rate))
        apart = known[tie_starts(at[known])]
        return at[apart], rate[apart]


@dataclass(frozen=True)
class Bandwidth:
    """The standard deviation of the kernel, or how it follows from a sample."""

    value: float | Literal["rule"]
    spread: BandwidthRows

    def of(self, points: WeightedPoints) -> float:
        """Return the standard deviation of the kernel for a sample."""
        if self.value != "rule":
            return float(self.value)
        weight, events = points.weight[0], points.label_sum[0]
        own = {"all": weight, "events": events, "others": weight - events}[self.spread]
        if own.sum() <= 0.0:  # no such rows
            own = weight
        mean = np.average(points.p, weights=own)
        variance = np.average((points.p - mean) ** 2, weights=own)
        return float(np.sqrt(variance) * (2.0 * weight.sum()) ** -0.2)

    def refitted(self, resamples: Resamples) -> FloatMatrix:
        """Return the map of each resample, with the bandwidth of the sample."""
        p, bandwidth = resamples.p, max(self.of(resamples.sample), MIN_BANDWIDTH)
        kernel = kernel_matrix(p, p, bandwidth).T
        weight, label_sum = resamples.weight @ kernel, resamples.label_sum @ kernel
        return WeightedPoints(p, weight, label_sum).rate


def fit_density(
    sample: BinarySample, bandwidth: Bandwidth
) -> tuple[FloatVector, FloatVector]:
    """Return places and rates between which the map is straight."""
    points = _points(sample)
    width = bandwidth.of(points.as_batch())
    if width < MIN_BANDWIDTH:
        return width_edges(1), np.full(2, points.label_sum.sum() / points.weight.sum())
    return KernelRates(points, width).polygon()


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
    return WeightedPoints(p[order], total[order], label_sum[order])


def _edges(sample: BinarySample) -> FloatVector:
    if sample.n <= MAX_CELLS:  # a cell for each distinct prediction
        return np.unique(np.concatenate([[0.0], sample.p, [1.0, 2.0]]))
    half = MAX_CELLS // 2
    sizes = size_edges(sample.p, sample.weight, half)
    return np.unique(np.concatenate([sizes, width_edges(half)]))
