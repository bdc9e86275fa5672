"""Isotonic calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.curve_fit import CurveFit
from calibrant.core.parameters import check_choice
from calibrant.maps.binned import BinnedMap
from calibrant.maps.piecewise import PiecewiseLinearMap, map_through
from calibrant.numerics.isotonic import IsotonicBlocks, isotonic_blocks, pooled_rates
from calibrant.numerics.sorted_sample import SortedSample, edges_between

if TYPE_CHECKING:
    from calibrant.calibrators.curve_fit import Resamples
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample

Evaluation: TypeAlias = Literal["interpolate", "step"]


@dataclass(frozen=True, kw_only=True)
class Isotonic:
    """Isotonic regression by pooling adjacent violators.

    The fit minimises the Brier score and the log-loss alike.

    Parameters
    ----------
    evaluation : {"interpolate", "step"}
        Between rows of different value the map is a straight line, as in
        scikit-learn, or it jumps halfway. Beyond the outer rows it is flat.

    References
    ----------
    B. Zadrozny, C. Elkan (2002). Transforming classifier scores into accurate
    multiclass probability estimates. KDD.
    """

    evaluation: Evaluation = "interpolate"

    def __post_init__(self) -> None:
        check_choice(self.evaluation, get_args(Evaluation), name="evaluation")

    def fit(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        rows = SortedSample.of_sample(sample)
        blocks = isotonic_blocks(rows)
        pieces = blocks.value.size
        if self.evaluation == "step":
            steps = _steps(rows.p, blocks)
            return CurveFit(steps, pieces, steps.edges, _refit)
        lines = _lines(rows.p, blocks)
        return CurveFit(lines, pieces, lines.knots, _refit)


def _refit(resamples: Resamples) -> FloatMatrix:
    pairs = zip(resamples.weight, resamples.label_sum, strict=True)
    return np.stack([_values(*pair) for pair in pairs])


def _values(weight: FloatVector, label_sum: FloatVector) -> FloatVector:
    """Return the fit at each point; points without weight follow the last before."""
    used = np.flatnonzero(weight > 0.0)
    value, starts = pooled_rates(label_sum[used], weight[used])
    block = np.searchsorted(used[starts], np.arange(weight.size), side="right") - 1
    return value[np.maximum(block, 0)]


def _lines(p: FloatVector, blocks: IsotonicBlocks) -> PiecewiseLinearMap:
    """Return the map that is straight between blocks."""
    several = p[blocks.last] > p[blocks.first]
    ends = np.stack([p[blocks.first], p[blocks.last]], axis=1)
    kept = np.stack([np.ones_like(several), several], axis=1)
    knots, heights = ends[kept], np.repeat(blocks.value, kept.sum(axis=1))
    return map_through(knots, heights)


def _steps(p: FloatVector, blocks: IsotonicBlocks) -> BinnedMap:
    """Return the map that jumps halfway between blocks."""
    inner = edges_between(p[blocks.last[:-1]], p[blocks.first[1:]])
    edges = np.concatenate([[0.0], inner, [1.0]])
    return BinnedMap(edges, blocks.value, np.zeros(blocks.value.size))
