"""Temperature scaling: one temperature for all classes, or one per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.base import ClassCalibrator, EventCalibrator
from calibrant.calibrators.fits import MulticlassFit
from calibrant.calibrators.logistic import beta_fit
from calibrant.maps.multiclass import OneVsRestMap
from calibrant.maps.parametric import BetaMap
from calibrant.maps.softmax import TemperatureMap
from calibrant.numerics.class_probabilities import (
    class_probabilities,
    inverse_temperature,
    logits_of,
    weight_shares,
)
from calibrant.numerics.links import logit_within, regression_ends
from calibrant.numerics.log_odds import fit_log_odds, parts, solve_temperature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.fits import CurveFit
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.maps.base import CalibrationMap


@dataclass(kw_only=True, eq=False, repr=False)
class Temperature(ClassCalibrator, EventCalibrator):
    """Temperature scaling: softmax(logits / T) with the T of least log-loss.

    For one event it is logistic regression on the logit without an intercept: the map
    passes through the point (1/2, 1/2). The slope 1 / T is not negative.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
    networks. ICML. doi:10.48550/arXiv.1706.04599
    """

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        return self.fit_each([sample])[0]

    def fit_each(self, samples: Sequence[BinarySample]) -> list[CurveFit]:
        """Estimate the calibration map of each of several samples."""
        fits = fit_log_odds(samples, solve_temperature, parts, may_be_flat=False)
        return [beta_fit(fit) for fit in fits]

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit the temperature."""
        logits = logits_of(sample.scores, sample.scale)
        share = weight_shares(sample.weight, sample.n)
        inverse = inverse_temperature(logits, sample.column, share)
        return MulticlassFit(TemperatureMap(inverse, sample.n_classes, sample.scale))


@dataclass(kw_only=True, eq=False, repr=False)
class OneTemperature(ClassCalibrator):
    """One temperature per class, fitted to that class against the rest.

    The calibrated probability of a class, before rows are divided by their sum, is
    ``expit(logit(p) / T)``.
    """

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit one temperature per class."""
        share = weight_shares(sample.weight, sample.n)
        prob = class_probabilities(sample.scores, sample.scale)
        maps: list[CalibrationMap] = []
        for j, p in enumerate(prob.T):
            ends = regression_ends(p, sample.total * share)
            both = np.column_stack([np.zeros(p.size), logit_within(p, ends)])
            b = inverse_temperature(both, (sample.column == j).astype(np.intp), share)
            maps.append(BetaMap(b, b, 0.0, ends))
        return MulticlassFit(OneVsRestMap(tuple(maps), sample.scale))
