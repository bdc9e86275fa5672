"""Temperature scaling: one number for all classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.calibrators.base import MulticlassFit
from calibrant.maps.softmax import TemperatureMap
from calibrant.numerics.class_probabilities import (
    inverse_temperature,
    logits_of,
    weight_shares,
)

if TYPE_CHECKING:
    from calibrant.core.class_sample import ClassSample


@dataclass(frozen=True, kw_only=True)
class Temperature:
    """softmax(logits / T) with the T of least log-loss (Guo et al. 2017)."""

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit the temperature."""
        inverse = inverse_temperature(
            logits_of(sample.scores, sample.scale),
            sample.column,
            weight_shares(sample.weight, sample.n),
        )
        return MulticlassFit(TemperatureMap(inverse, sample.n_classes, sample.scale))
