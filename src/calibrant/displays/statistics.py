"""The numbers in the corner of a diagram."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.recalibration_line import LogitPoints, RecalibrationLine
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from calibrant.core.array_types import Frame
    from calibrant.core.sample import BinarySample
    from calibrant.measures.estimate import Estimate

MINUS = "\N{MINUS SIGN}"
MIN_DECIMALS, MAX_DECIMALS = 3, 7


@dataclass(frozen=True)
class Statistics:
    """How many rows and events a diagram shows, and how well calibrated they are."""

    n: float  # sums of weights where rows have weights
    events: float
    error: float  # as `evaluate` gives it
    low: float  # ends of its interval; NaN where there is none
    high: float
    slope: float  # as in `summary`; NaN where events and non-events do not overlap
    intercept: float
    confidence: float  # level of the interval
    clusters: int | None = None  # None where rows do not belong together

    @classmethod
    def of(
        cls, sample: BinarySample, estimate: Estimate, confidence: float
    ) -> Statistics:
        """Return the numbers of a sample whose error has been estimated."""
        slope, intercept = recalibration_line(sample)
        codes = sample.clusters
        return cls(
            clusters=None if codes is None else np.unique(codes).size,
            n=sample.total,
            events=sample.total * sample.mean(sample.y),
            error=estimate.value,
            low=estimate.low,
            high=estimate.high,
            slope=slope,
            intercept=intercept,
            confidence=confidence,
        )

    def frame(self) -> Frame:
        """Return the numbers as columns of one row."""
        known = {
            name: value for name, value in asdict(self).items() if value is not None
        }
        return {name: np.array([value]) for name, value in known.items()}

    @property
    def decimals(self) -> int:
        """Return how many decimals the error and its interval need."""
        largest = max(self.error, 0.0 if math.isnan(self.high) else self.high)
        size = -math.floor(math.log10(largest)) + 1 if largest > 0.0 else 0
        return min(max(size, MIN_DECIMALS), MAX_DECIMALS)

    def error_text(self, decimals: int = 0) -> str:
        """Return the error with its interval, with at least so many decimals."""
        places = max(self.decimals, decimals)
        text = f"{self.error:.{places}f}"
        if math.isnan(self.low):
            return text
        return f"{text} [{self.low:.{places}f}, {self.high:.{places}f}]"

    def lines(self, decimals: int = 0) -> list[str]:
        """Return what the corner of a diagram says, line by line.

        The error has at least so many decimals.
        """
        n = f"n = {self.n:,.0f}"
        if self.clusters is not None:
            n += f" in {self.clusters:,} clusters"
        texts = [
            f"{n}, {self.events:,.0f} {counted(self.events)}",
            f"error {self.error_text(decimals)}",
        ]
        if math.isfinite(self.slope):
            slope, intercept = (_signed(v) for v in (self.slope, self.intercept))
            texts.append(f"slope {slope}, intercept {intercept}")
        return [*texts, f"{100 * self.confidence:g} % intervals"]


def counted(events: float) -> str:
    """Return "event" or "events"."""
    return "event" if round(events) == 1 else "events"


def recalibration_line(sample: BinarySample) -> tuple[float, float]:
    """Return slope and intercept of labels on logits; NaN where there is no line."""
    points = LogitPoints.of(compress_on_log_grid(sample))
    if not points.has_line:
        return math.nan, math.nan
    intercept, slope = RecalibrationLine.of(points).coefficients.tolist()
    return slope, intercept


def _signed(value: float) -> str:
    """Return a number with two decimals and a true minus sign."""
    return f"{value:z.2f}".replace("-", MINUS)
