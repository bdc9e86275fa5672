"""Venn-Abers calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.curve_fit import CurveFit
from calibrant.maps.venn_abers import VennAbersMap
from calibrant.numerics.isotonic import pooled_rates
from calibrant.numerics.venn_abers import venn_abers_limits
from calibrant.numerics.weighted_points import distinct_predictions

if TYPE_CHECKING:
    from calibrant.calibrators.curve_fit import Resamples
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample


@dataclass(frozen=True, kw_only=True)
class VennAbers:
    """Inductive Venn-Abers prediction: isotonic regression that includes the new row.

    The new row is added with label 0 and with label 1. The values of the two isotonic
    fits, p0 and p1, are the `intervals` of the map, whose value is p1 / (1 - p0 + p1),
    the probability that minimises the maximum regret in log-loss. So no probability is
    0 or 1, and maps fitted to few rows are shrunk towards 1/2.

    References
    ----------
    V. Vovk, I. Petej (2014). Venn-Abers predictors. UAI. doi:10.48550/arXiv.1211.0025

    V. Vovk, I. Petej, V. Fedorova (2015). Large-scale probabilistic predictors with and
    without guarantees of validity. NeurIPS. doi:10.48550/arXiv.1511.00213
    """

    def fit(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = distinct_predictions(sample)
        map_ = _map(points.p, points.weight, points.label_sum)
        # Within a block of the isotonic fit the map is level, or nearly so.
        _, starts = pooled_rates(points.label_sum, points.weight)
        edges = np.concatenate([[0.0], points.p[starts[1:]], [1.0]])
        return CurveFit(map_, starts.size, edges, _refit)


def _map(p: FloatVector, weight: FloatVector, label_sum: FloatVector) -> VennAbersMap:
    """Return the map of points that all have some weight."""
    return VennAbersMap.through(p, *venn_abers_limits(label_sum, weight))


def _refit(resamples: Resamples) -> FloatMatrix:
    p, values = resamples.p, []
    for weight, label_sum in zip(resamples.weight, resamples.label_sum, strict=True):
        used = weight > 0.0
        values.append(_map(p[used], weight[used], label_sum[used]).values(p))
    return np.stack(values)
