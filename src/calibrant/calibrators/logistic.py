"""Logistic regressions: Platt scaling, quadratic scaling and beta calibration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

import numpy as np

from calibrant.calibrators.base import EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit
from calibrant.core.parameters import check_choice, check_count, check_flag
from calibrant.maps.binned import BinnedMap
from calibrant.maps.parametric import BetaMap, QuadraticMap
from calibrant.numerics.log_odds import (
    LogOddsFit,
    Variant,
    average_scaling,
    fit_log_odds,
    parts,
    powers,
    solve_beta,
    solve_platt,
    solve_quadratic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.sample import BinarySample


def beta_fit(fit: LogOddsFit) -> CurveFit:
    """Return the map of a regression on the parts of log-odds."""
    map_ = BetaMap(*fit.coefficients, fit.ends)
    return CurveFit(map_, 1, WHOLE_RANGE, fit.refitted)


def quadratic_fit(fit: LogOddsFit) -> CurveFit:
    """Return the map of a regression on the logit and its square."""
    slope, curvature, intercept = fit.coefficients
    map_ = QuadraticMap(intercept, slope, curvature, fit.data, fit.ends)
    return CurveFit(map_, 1, WHOLE_RANGE, fit.refitted)


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
        solve = partial(solve_platt, smoothing=self.smoothing)
        flat = not self.smoothing
        (fit,) = fit_log_odds([sample], solve, parts, may_be_flat=flat)
        return beta_fit(fit)


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
        solve = partial(solve_beta, variant=self.variant)
        flat = self.variant != "ab"
        (fit,) = fit_log_odds([sample], solve, parts, may_be_flat=flat)
        return beta_fit(fit)


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
        return self.fit_each([sample])[0]

    def fit_each(self, samples: Sequence[BinarySample]) -> list[CurveFit]:
        """Estimate the calibration map of each of several samples."""
        fits = fit_log_odds(samples, solve_quadratic, powers)
        return [quadratic_fit(fit) for fit in fits]


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
        solve, flat = partial(solve_platt, smoothing=self.smoothing), not self.smoothing
        (scaling,) = fit_log_odds([sample], solve, parts, may_be_flat=flat)
        bins = max(min(self.bins, int(sample.total)), 1)
        averaged = average_scaling(sample, scaling, bins)
        levels = averaged.levels
        map_ = BinnedMap(averaged.edges, levels, np.zeros(levels.size))
        return CurveFit(map_, levels.size, averaged.parts, averaged.refitted)
