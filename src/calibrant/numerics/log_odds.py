"""Fits of Platt, beta, temperature and quadratic maps: logistic regressions.

Their features are logits, the two parts of logits, or logits and their squares.
A map is ``expit(coefficients @ features(p))`` with two features and a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit

from calibrant.numerics.binning import bin_index, size_edges, tabulate
from calibrant.numerics.links import (
    log_odds_parts,
    logit,
    logit_within,
    regression_ends,
)
from calibrant.numerics.logistic import fit_logistic, fit_rising
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.logistic import LogisticFit
    from calibrant.numerics.resampling import Resamples
    from calibrant.numerics.weighted_points import WeightedPoints

Ends: TypeAlias = tuple[float, float]
Solve: TypeAlias = Callable[[Any, Ends], Any]
"""From a batch of problems, and ends, to their coefficients (problems, 3)."""
Features: TypeAlias = Callable[[Any, Ends], Any]
"""From predictions, and ends, to features (3, m), the last one constant."""
Variant: TypeAlias = Literal["abm", "ab", "am"]

CERTAIN = float(logit(np.array([1.0]))[0])
"""The logit of a map that is certain."""


@dataclass(frozen=True, eq=False)
class LogOddsFit:
    """A regression fitted to a sample.

    Attributes
    ----------
    solve, features : callable
        What was fitted.
    ends : tuple of float
        Predictions below the first or above the second count as these.
    data : tuple of float
        The smallest and the largest prediction of the sample, within the ends.
    coefficients : tuple of float
        Of both features, and the constant.
    """

    solve: Solve
    features: Features
    ends: Ends
    data: Ends
    coefficients: tuple[float, float, float]

    def values(self, p: FloatVector) -> FloatVector:
        """Return the map at predictions."""
        logits = np.array(self.coefficients) @ self.features(p, self.ends)
        return np.asarray(expit(logits), dtype=np.float64)

    def refitted(self, resamples: Resamples) -> FloatMatrix:
        """Return the map of each resample."""
        coefficients = self.solve(resamples, self.ends)
        logits = coefficients @ self.features(resamples.p, self.ends)
        return np.asarray(expit(logits), dtype=np.float64)


def fit_log_odds(
    samples: Sequence[BinarySample],
    solve: Solve,
    features: Features,
    *,
    may_be_flat: bool = True,
) -> list[LogOddsFit]:
    """Fit a regression to each sample; maps may be flat where all labels are equal."""
    each = (compress_on_log_grid(sample).as_batch() for sample in samples)
    return [_fit_points(points, solve, features, flat=may_be_flat) for points in each]


def _fit_points(
    points: WeightedPoints, solve: Solve, features: Features, *, flat: bool
) -> LogOddsFit:
    ends = regression_ends(points.p, points.weight[0])
    first, last = np.clip(points.p[[0, -1]], *ends).tolist()
    events, total = points.label_sum.sum(), points.weight.sum()
    if flat and not 0.0 < events < total:
        a, b, constant = 0.0, 0.0, CERTAIN if events else -CERTAIN
    else:
        a, b, constant = solve(points, ends)[0].tolist()
    return LogOddsFit(solve, features, ends, (first, last), (a, b, constant))


def parts(p: FloatVector, ends: Ends) -> FloatMatrix:
    """Return log(p), -log(1 - p) and 1 as features."""
    return np.stack([*log_odds_parts(p, ends), np.ones(p.size)])


def powers(p: FloatVector, ends: Ends) -> FloatMatrix:
    """Return the logit, its square and 1 as features."""
    u = logit_within(p, ends)
    return np.stack([u, u**2, np.ones(p.size)])


def solve_platt(
    points: WeightedPoints, ends: Ends, *, smoothing: bool = False
) -> FloatMatrix:
    """Fit slope and constant; `smoothing` moves labels off 0 and 1 as Platt did."""
    x, label_sum = logit_within(points.p, ends)[:, np.newaxis], points.label_sum
    if smoothing:
        events = label_sum.sum(axis=1, keepdims=True)
        others = points.weight.sum(axis=1, keepdims=True) - events
        high, low = (events + 1.0) / (events + 2.0), 1.0 / (others + 2.0)
        label_sum = label_sum * high + (points.weight - label_sum) * low
    return _same_slopes(fit_logistic(x, points.weight, label_sum))


def solve_temperature(points: WeightedPoints, ends: Ends) -> FloatMatrix:
    """Fit a slope that is not negative, without a constant."""
    x = logit_within(points.p, ends)[:, np.newaxis]
    fit = fit_rising(x, points.weight, points.label_sum, intercept=False)
    return _same_slopes(fit)


def _same_slopes(fit: LogisticFit) -> FloatMatrix:
    """Return the slope by the logit as that by both of its parts."""
    return np.column_stack([fit.slopes, fit.slopes, fit.intercepts])


def solve_beta(
    points: WeightedPoints, ends: Ends, *, variant: Variant = "abm"
) -> FloatMatrix:
    """Fit slopes by both parts, none negative; `Beta` describes the variants."""
    features = np.column_stack(log_odds_parts(points.p, ends))
    if variant == "am":
        features = features.sum(axis=1, keepdims=True)
    elif variant == "ab":  # both features are 0 at p = 1/2
        features = features + np.log([2.0, 0.5])
    free = variant != "ab"
    fit = fit_rising(features, points.weight, points.label_sum, intercept=free)
    a, b = fit.slopes[:, 0], fit.slopes[:, -1]
    moved = 0.0 if free else (a - b) * np.log(2.0)
    return np.column_stack([a, b, fit.intercepts + moved])


def solve_quadratic(points: WeightedPoints, ends: Ends) -> FloatMatrix:
    """Fit slope, curvature and constant."""
    u = logit_within(points.p, ends)
    features = np.column_stack([u, u**2])
    fit = fit_logistic(features, points.weight, points.label_sum)
    return np.column_stack([fit.slopes, fit.intercepts])


PARTS = 16
"""Bins of scaling-binning are resampled in so many parts: their flat tops cross the
diagonal, near which the distance to it would be lost in wide cells."""


@dataclass(frozen=True, eq=False)
class AveragedScaling:
    """Platt scaling averaged over bins of equal size.

    Attributes
    ----------
    edges, levels : ndarray
        Edges of the bins, and the mean in each.
    scaling : LogOddsFit
        What is averaged.
    """

    edges: FloatVector
    levels: FloatVector
    scaling: LogOddsFit

    @property
    def parts(self) -> FloatVector:
        """Return edges of parts of bins."""
        each = np.linspace(
            self.edges[:-1], self.edges[1:], PARTS, endpoint=False, axis=1
        )
        return np.append(each.ravel(), 1.0)

    def refitted(self, resamples: Resamples) -> FloatMatrix:
        """Return the map of each resample, over the same bins."""
        scaled = self.scaling.refitted(resamples)
        index = bin_index(resamples.p, self.edges)
        bins, run = np.unique(index, return_inverse=True)
        starts = np.searchsorted(index, bins)
        weight = np.add.reduceat(resamples.weight, starts, axis=1)
        total = np.add.reduceat(resamples.weight * scaled, starts, axis=1)
        level = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0.0)
        return np.asarray(level[:, run])


def average_scaling(
    sample: BinarySample, scaling: LogOddsFit, bins: int
) -> AveragedScaling:
    """Average a fitted regression over bins with equal numbers of rows.

    Scaling keeps the order of predictions, or turns it round: bins of equal size of
    the scaled values are bins of the predictions.
    """
    edges = size_edges(sample.p, sample.weight, bins)
    scaled = scaling.values(sample.p)
    table = tabulate(sample.p, scaled, sample.weight, edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    levels = np.where(table.weight > 0.0, table.mean_label, scaling.values(middle))
    return AveragedScaling(edges, levels, scaling)
