"""Isotonic regression, of the rows alone or with the new row (Venn-Abers)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.base import BRIER, EventCalibrator
from calibrant.calibrators.fits import CurveFit
from calibrant.core.parameters import check_choice
from calibrant.maps.binned import BinnedMap, VennAbersMap
from calibrant.maps.piecewise import PiecewiseLinearMap, map_through
from calibrant.numerics.isotonic import (
    IsotonicBlocks,
    fit_venn_abers,
    isotonic_blocks,
    refit_isotonic,
    venn_abers_limits,
)
from calibrant.numerics.sorted_rows import edges_between, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import Resamples

Evaluation: TypeAlias = Literal["interpolate", "step"]


@dataclass(kw_only=True, eq=False, repr=False)
class Isotonic(EventCalibrator):
    """Isotonic regression by pooling adjacent violators.

    The fit minimises both the Brier score and the log-loss.

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

    fitted_by: ClassVar[str] = BRIER
    evaluation: Evaluation = "interpolate"

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.evaluation, get_args(Evaluation), name="evaluation")

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        rows = sorted_rows(sample)
        blocks = isotonic_blocks(rows)
        pieces = blocks.value.size
        if self.evaluation == "step":
            steps = _steps(rows.p, blocks)
            return CurveFit(steps, pieces, steps.edges, refit_isotonic)
        lines = _lines(rows.p, blocks)
        return CurveFit(lines, pieces, lines.knots, refit_isotonic)


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


@dataclass(kw_only=True, eq=False, repr=False)
class VennAbers(EventCalibrator):
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

    fitted_by: ClassVar[str] = BRIER

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        return self.fit_each([sample])[0]

    def fit_each(self, samples: Sequence[BinarySample]) -> list[CurveFit]:
        """Estimate the calibration map of each of several samples."""
        fits = [fit_venn_abers(sample) for sample in samples]
        return [
            CurveFit(
                VennAbersMap.through(fit.p, fit.low, fit.high),
                fit.edges.size - 1,
                fit.edges,
                _refit_with_new_row,
            )
            for fit in fits
        ]


def _refit_with_new_row(resamples: Resamples) -> FloatMatrix:
    p, values = resamples.p, []
    for weight, label_sum in zip(resamples.weight, resamples.label_sum, strict=True):
        used = weight > 0.0
        limits = venn_abers_limits(label_sum[used], weight[used])
        values.append(VennAbersMap.through(p[used], *limits).values(p))
    return np.stack(values)
