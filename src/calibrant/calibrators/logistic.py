"""Platt scaling and beta calibration: logistic regression on logarithms of odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from calibrant.calibrators.curve import WHOLE_RANGE, CurveFit, Resamples
from calibrant.core.options import check_choice, check_flag
from calibrant.maps.beta import BetaMap
from calibrant.numerics.links import log_odds_parts, logit
from calibrant.numerics.logistic import LogisticFit, fit_logistic, fit_rising
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample

Variant: TypeAlias = Literal["abm", "ab", "am"]

CERTAIN = float(logit(np.array([1.0]))[0])
"""The logit of a map that is certain."""


@dataclass(frozen=True, eq=False)
class BetaMaps:
    """Coefficients of many maps ``expit(a log(p) - b log(1 - p) + intercept)``."""

    a: FloatVector
    b: FloatVector
    intercept: FloatVector

    def at(self, p: FloatVector) -> FloatMatrix:
        """Return each map at the predictions, shape (maps, predictions)."""
        parts = np.column_stack([*log_odds_parts(p), np.ones(p.size)])
        rows = np.column_stack([self.a, self.b, self.intercept])
        return np.asarray(expit(rows @ parts.T), dtype=np.float64)

    def one(self) -> BetaMap:
        """Return the only map of a batch of one."""
        return BetaMap(float(self.a[0]), float(self.b[0]), float(self.intercept[0]))


def _certain(points: Resamples) -> BetaMap | None:
    """Return the flat map of a sample whose labels are all equal, else nothing."""
    label, weight = points.label.sum(), points.weight.sum()
    if 0.0 < label < weight:
        return None
    return BetaMap(0.0, 0.0, CERTAIN if label else -CERTAIN)


def gathered_points(sample: BinarySample) -> Resamples:
    """Return a sample as one problem, gathered into cells where it is very large."""
    rows = compress_on_log_grid(sample)
    return Resamples(rows.p, rows.weight[np.newaxis], rows.label[np.newaxis])


@dataclass(frozen=True, kw_only=True)
class Platt:
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

    def __post_init__(self) -> None:
        check_flag(self.smoothing, name="smoothing")

    def fit(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = gathered_points(sample)
        certain = None if self.smoothing else _certain(points)
        map_ = self.solve(points).one() if certain is None else certain
        return CurveFit(map_, 1, WHOLE_RANGE, self)

    def refitted(
        self,
        fit: CurveFit,  # noqa: ARG002
        sample: Resamples,  # noqa: ARG002
        resamples: Resamples,
    ) -> FloatMatrix:
        """Return the map of each resample at the points."""
        return self.solve(resamples).at(resamples.p)

    def solve(self, points: Resamples) -> BetaMaps:
        """Fit every problem of a batch."""
        x = logit(points.p)[:, np.newaxis]
        fit = fit_logistic(x, points.weight, self._targets(points))
        return BetaMaps(fit.slopes[:, 0], fit.slopes[:, 0], fit.intercepts)

    def _targets(self, points: Resamples) -> FloatMatrix:
        if not self.smoothing:
            return points.label
        events = points.label.sum(axis=1, keepdims=True)
        others = points.weight.sum(axis=1, keepdims=True) - events
        high, low = (events + 1.0) / (events + 2.0), 1.0 / (others + 2.0)
        moved = points.label * high + (points.weight - points.label) * low
        return np.asarray(moved, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Beta:
    """Beta calibration: logistic regression on log(p) and -log(1 - p).

    The map is the odds of two beta densities, and includes the identity. Its
    coefficients a and b are not negative, so that it does not fall.

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

    def __post_init__(self) -> None:
        check_choice(self.variant, get_args(Variant), name="variant")

    def fit(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        points = gathered_points(sample)
        certain = None if self.variant == "ab" else _certain(points)
        map_ = self.solve(points).one() if certain is None else certain
        return CurveFit(map_, 1, WHOLE_RANGE, self)

    def refitted(
        self,
        fit: CurveFit,  # noqa: ARG002
        sample: Resamples,  # noqa: ARG002
        resamples: Resamples,
    ) -> FloatMatrix:
        """Return the map of each resample at the points."""
        return self.solve(resamples).at(resamples.p)

    def solve(self, points: Resamples) -> BetaMaps:
        """Fit every problem of a batch."""
        features = np.column_stack(log_odds_parts(points.p))
        if self.variant == "am":
            features = features.sum(axis=1, keepdims=True)
        elif self.variant == "ab":  # both features are 0 at p = 1/2
            features = features + np.log([2.0, 0.5])
        fit = fit_rising(
            features,
            points.weight,
            points.label,
            intercept=self.variant != "ab",
        )
        return self._maps(fit)

    def _maps(self, fit: LogisticFit) -> BetaMaps:
        a, b = fit.slopes[:, 0], fit.slopes[:, -1]
        moved = (a - b) * np.log(2.0) if self.variant == "ab" else 0.0
        return BetaMaps(a, b, fit.intercepts + moved)
