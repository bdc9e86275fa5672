"""Logistic regressions: Platt scaling, quadratic scaling and beta calibration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from calibrant.calibrators.base import EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit
from calibrant.core.parameters import check_choice, check_count, check_flag
from calibrant.maps.binned import BinnedMap
from calibrant.maps.parametric import BetaMap, QuadraticMap
from calibrant.numerics.binning import bin_index, size_edges, tabulate
from calibrant.numerics.links import (
    log_odds_parts,
    logit,
    logit_within,
    regression_ends,
)
from calibrant.numerics.logistic import fit_logistic, fit_rising
from calibrant.numerics.weighted_points import WeightedPoints, compress_on_log_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import Resamples

    Solve: TypeAlias = Callable[[WeightedPoints, tuple[float, float]], "BetaMaps"]

Variant: TypeAlias = Literal["abm", "ab", "am"]

CERTAIN = float(logit(np.array([1.0]))[0])
"""The logit of a map that is certain."""
PARTS = 16
"""Bins of scaling-binning are resampled in so many parts: their flat tops cross the
diagonal, near which the distance to it would be lost in wide cells."""


@dataclass(frozen=True, eq=False)
class BetaMaps:
    """Coefficients of many maps ``expit(a log(p) - b log(1 - p) + intercept)``."""

    a: FloatVector
    b: FloatVector
    intercept: FloatVector
    ends: tuple[float, float]

    def at(self, p: FloatVector) -> FloatMatrix:
        """Return each map at the predictions, shape (maps, predictions)."""
        parts = np.column_stack([*log_odds_parts(p, self.ends), np.ones(p.size)])
        rows = np.column_stack([self.a, self.b, self.intercept])
        return np.asarray(expit(rows @ parts.T), dtype=np.float64)

    def one(self) -> BetaMap:
        """Return the only map of a batch of one."""
        a, b, intercept = self.a[0], self.b[0], self.intercept[0]
        return BetaMap(float(a), float(b), float(intercept), self.ends)


def _flat_if_certain(points: WeightedPoints) -> BetaMap | None:
    """Return the flat map of a sample whose labels are all equal, else nothing."""
    events, weight = points.label_sum.sum(), points.weight.sum()
    if 0.0 < events < weight:
        return None
    return BetaMap(0.0, 0.0, CERTAIN if events else -CERTAIN)


def fit_log_odds(sample: BinarySample, solve: Solve, *, may_be_flat: bool) -> CurveFit:
    """Fit a regression on log(p) and log(1 - p)."""
    points = compress_on_log_grid(sample).as_batch()
    certain = _flat_if_certain(points) if may_be_flat else None
    ends = regression_ends(points.p, points.weight[0])
    map_ = solve(points, ends).one() if certain is None else certain
    return CurveFit(map_, 1, WHOLE_RANGE, partial(_refit, solve=solve, ends=ends))


def _refit(
    resamples: Resamples, *, solve: Solve, ends: tuple[float, float]
) -> FloatMatrix:
    return solve(resamples, ends).at(resamples.p)


@dataclass(kw_only=True, eq=False, repr=False)
class Platt(EventCalibrator):
    """Platt scaling: logistic regression on the logit of the prediction.

    Parameters
    ----------
    smoothing : bool
        Whether labels 1 and 0 are moved to (m + 1) / (m + 2) and 1 / (k + 2), with m
        events among m + k rows, as Platt did against overfitting and as the paper and
        scikit-learn do.

    References
    ----------
    J. Platt (1999). Probabilistic outputs for support vector machines and comparisons
    to regularized likelihood methods.
    """

    smoothing: bool = False

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_flag(self.smoothing, name="smoothing")

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        return fit_log_odds(sample, self.solve, may_be_flat=not self.smoothing)

    def solve(self, points: WeightedPoints, ends: tuple[float, float]) -> BetaMaps:
        """Fit every problem of a batch, predictions within the ends."""
        x = logit_within(points.p, ends)[:, np.newaxis]
        fit = fit_logistic(x, points.weight, self._targets(points))
        slope = fit.slopes[:, 0]
        return BetaMaps(slope, slope, fit.intercepts, ends)

    def _targets(self, points: WeightedPoints) -> FloatMatrix:
        weight, label_sum = points.weight, points.label_sum
        if not self.smoothing:
            return label_sum
        events = label_sum.sum(axis=1, keepdims=True)
        others = weight.sum(axis=1, keepdims=True) - events
        high, low = (events + 1.0) / (events + 2.0), 1.0 / (others + 2.0)
        return np.asarray(label_sum * high + (weight - label_sum) * low)


@dataclass(kw_only=True, eq=False, repr=False)
class Beta(EventCalibrator):
    """Beta calibration: logistic regression on log(p) and -log(1 - p).

    The map is the odds of two beta densities, and includes the identity. Its
    coefficients a and b are not negative, so it does not decrease.

    Parameters
    ----------
    variant : {"abm", "ab", "am"}
        "abm" fits a, b and the intercept; "ab" has the map pass through the point
        (1/2, 1/2); "am" has a = b, which is Platt scaling with a slope that is not
        negative.

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach (2017). Beta calibration: a well-founded and
    easily implemented improvement on logistic calibration for binary classifiers.
    AISTATS.
    """

    variant: Variant = "abm"

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.variant, get_args(Variant), name="variant")

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        return fit_log_odds(sample, self.solve, may_be_flat=self.variant != "ab")

    def solve(self, points: WeightedPoints, ends: tuple[float, float]) -> BetaMaps:
        """Fit every problem of a batch, predictions within the ends."""
        features = np.column_stack(log_odds_parts(points.p, ends))
        if self.variant == "am":
            features = features.sum(axis=1, keepdims=True)
        elif self.variant == "ab":  # both features are 0 at p = 1/2
            features = features + np.log([2.0, 0.5])
        free = self.variant != "ab"
        fit = fit_rising(features, points.weight, points.label_sum, intercept=free)
        a, b = fit.slopes[:, 0], fit.slopes[:, -1]
        moved = 0.0 if free else (a - b) * np.log(2.0)
        return BetaMaps(a, b, fit.intercepts + moved, ends)


@dataclass(kw_only=True, eq=False, repr=False)
class Quadratic(EventCalibrator):
    """Quadratic scaling: logistic regression on the logit and its square.

    The map may decrease. Predictions of exactly 0 and 1 are treated as rounded; beyond
    the data, logits are shifted by as much as at the outermost prediction.

    References
    ----------
    E. Berta, D. Holzmüller, M. I. Jordan, F. Bach (2025). Structured matrix scaling
    for multi-class calibration. doi:10.48550/arXiv.2511.03685
    """

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = compress_on_log_grid(sample).as_batch()
        ends = regression_ends(points.p, points.weight[0])
        first, last = np.clip(points.p[[0, -1]], *ends).tolist()
        flat = _flat_if_certain(points)
        c, a, b = self.solve(points, ends)[0].tolist()
        if flat is not None:
            c, a, b = flat.intercept, 0.0, 0.0
        map_ = QuadraticMap(c, a, b, (first, last), ends)
        return CurveFit(map_, 1, WHOLE_RANGE, partial(self._refit, ends=ends))

    def _refit(self, resamples: Resamples, *, ends: tuple[float, float]) -> FloatMatrix:
        u = logit_within(resamples.p, ends)
        powers = np.stack([np.ones_like(u), u, u**2])
        return np.asarray(expit(self.solve(resamples, ends) @ powers))

    def solve(self, points: WeightedPoints, ends: tuple[float, float]) -> FloatMatrix:
        """Return intercept, slope and curvature of every problem of a batch."""
        u = logit_within(points.p, ends)
        features = np.column_stack([u, u**2])
        fit = fit_logistic(features, points.weight, points.label_sum)
        return np.column_stack([fit.intercepts, fit.slopes])


@dataclass(kw_only=True, eq=False, repr=False)
class ScalingBinning(EventCalibrator):
    """Platt scaling whose values are averaged over equal-size bins.

    A flat map with few values can be checked from the labels, bin by bin, which a
    curve cannot; and its values are less noisy than observed rates.

    Parameters
    ----------
    bins : int
        Number of bins; with fewer rows than this, as many as there are rows.
    smoothing : bool
        Whether labels are moved a little from 0 and 1 first, as Platt did.

    References
    ----------
    A. Kumar, P. Liang, T. Ma (2019). Verified uncertainty calibration. NeurIPS.
    """

    bins: int = 15
    smoothing: bool = False

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_count(self.bins, name="bins")
        check_flag(self.smoothing, name="smoothing")

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        scaled = Platt(smoothing=self.smoothing).fit_event(sample).map
        bins = max(min(self.bins, int(sample.total)), 1)
        # Scaling keeps the order of predictions, or turns it round: bins of equal
        # size of the scaled values are bins of the predictions.
        edges = size_edges(sample.p, sample.weight, bins)
        table = tabulate(sample.p, scaled(sample.p), sample.weight, edges)
        middle = 0.5 * (edges[1:] + edges[:-1])
        level = np.where(table.weight > 0.0, table.mean_label, scaled(middle))
        map_ = BinnedMap(edges, level, np.zeros(level.size))
        parts = np.linspace(edges[:-1], edges[1:], PARTS, endpoint=False, axis=1)
        ends = regression_ends(sample.p, sample.weights)
        refit = partial(self._refit, edges=edges, ends=ends)
        return CurveFit(map_, level.size, np.append(parts.ravel(), 1.0), refit)

    def _refit(
        self, resamples: Resamples, *, edges: FloatVector, ends: tuple[float, float]
    ) -> FloatMatrix:
        """Return the map of each resample, over the same bins."""
        maps = Platt(smoothing=self.smoothing).solve(resamples, ends)
        scaled = maps.at(resamples.p)
        index = bin_index(resamples.p, edges)
        bins, run = np.unique(index, return_inverse=True)
        starts = np.searchsorted(index, bins)
        weight = np.add.reduceat(resamples.weight, starts, axis=1)
        total = np.add.reduceat(resamples.weight * scaled, starts, axis=1)
        level = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0.0)
        return np.asarray(level[:, run])
