"""Binary families applied to k classes: one against the rest, or the top label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.base import MulticlassFit
from calibrant.core.sample import BinarySample
from calibrant.maps.beta import BetaMap
from calibrant.maps.multiclass import OneVsRestMap, TopLabelMap
from calibrant.numerics.class_probabilities import (
    class_probabilities,
    inverse_temperature,
    weight_shares,
)
from calibrant.numerics.links import logit_within, regression_ends

if TYPE_CHECKING:
    from calibrant.calibrators.base import Family
    from calibrant.core.sample import ClassSample
    from calibrant.maps.base import CalibrationMap


@dataclass(frozen=True)
class OneVsRestFamily:
    """Each class against the rest by a binary family, then divided by the sum."""

    binary: Family

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit one binary map per class."""
        prob = class_probabilities(sample.scores, sample.scale)
        maps = tuple(
            self.binary.fit(_event(sample, p, sample.column == j)).map
            for j, p in enumerate(prob.T)
        )
        return MulticlassFit(OneVsRestMap(maps, sample.scale))


@dataclass(frozen=True)
class TopLabelFamily:
    """Whether the top label is right, by a binary family on its probability."""

    binary: Family

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit the binary map of the top label."""
        prob = class_probabilities(sample.scores, sample.scale)
        top = prob.argmax(axis=1)
        confidence = prob[np.arange(top.size), top]
        map_ = self.binary.fit(_event(sample, confidence, top == sample.column)).map
        return MulticlassFit(TopLabelMap(map_, sample.n_classes, sample.scale))


def _event(sample: ClassSample, p: np.ndarray, y: np.ndarray) -> BinarySample:
    p = np.ascontiguousarray(p)
    return BinarySample(p, y.astype(np.float64), sample.weight)


@dataclass(frozen=True, kw_only=True)
class OneTemperature:
    """One temperature per class, fitted to that class against the rest.

    The calibrated probability of a class, before rows are divided by their sum, is
    ``expit(logit(p) / T)``.
    """

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit one temperature per class."""
        share = weight_shares(sample.weight, sample.n)
        prob = class_probabilities(sample.scores, sample.scale)
        maps: list[CalibrationMap] = []
        for j, p in enumerate(prob.T):
            ends = regression_ends(p, sample.n * share)
            both = np.column_stack([np.zeros(p.size), logit_within(p, ends)])
            b = inverse_temperature(both, (sample.column == j).astype(np.intp), share)
            maps.append(BetaMap(b, b, 0.0, ends))
        return MulticlassFit(OneVsRestMap(tuple(maps), sample.scale))
