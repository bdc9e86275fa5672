"""Continuous piecewise linear maps, in probability or logit scale, and their means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap
from calibrant.maps.sql import (
    by_piece,
    clipped_sql,
    expit_sql,
    of_probabilities,
    quoted,
    within_unit_interval,
)
from calibrant.maps.stored import check_not_too_steep, stored_knots, stored_numbers
from calibrant.numerics.links import logit
from calibrant.numerics.piecewise_problems import values_at

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, JsonObject, Space


@dataclass(frozen=True, eq=False)
class PiecewiseLinearMap(CalibrationMap):
    """Straight lines from knot to knot, continued beyond the last ones.

    Parameters
    ----------
    knots, heights : ndarray of shape (k + 1,)
        Where pieces meet, ascending, and the value there.
    scale : {"prob", "logit"}
        With "logit" knots and heights are logits: the map is
        ``expit(line(logit(p)))``. With "prob" its values are held within [0, 1].

    Examples
    --------
    >>> map_ = PiecewiseLinearMap(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.4, 1.0]))
    >>> map_(np.array([0.25, 0.5, 0.75]))
    array([0.25, 0.4 , 0.7 ])
    """

    kind: ClassVar[str] = "piecewise-linear"
    knots: FloatVector
    heights: FloatVector
    scale: Space = "prob"

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        if self.scale == "logit":
            value = expit(values_at(logit(p), self.knots, self.heights))
        else:
            value = np.clip(values_at(p, self.knots, self.heights), 0.0, 1.0)
        return np.asarray(value, dtype=np.float64)

    @property
    def bends(self) -> FloatVector:
        """Return the inner knots, as probabilities."""
        inner = self.knots[1:-1]
        return np.asarray(expit(inner) if self.scale == "logit" else inner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PiecewiseLinearMap):
            return False
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.scale, self.knots.tobytes(), self.heights.tobytes()))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "scale": self.scale,
            "knots": self.knots.tolist(),
            "heights": self.heights.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        knots = stored_knots(stored)
        heights = stored_numbers(stored, "heights", size=knots.size)
        scale = stored.get("scale")
        if scale not in ("prob", "logit"):
            raise MapFormatError(f"unknown scale {scale!r} of a piecewise linear map.")
        check_not_too_steep(knots, heights)
        return cls(knots, heights, scale)

    def to_sql(self, column: str) -> str:
        """Return a SQL expression for the calibrated probability of a column.

        Examples
        --------
        >>> line = PiecewiseLinearMap(np.array([0.0, 1.0]), np.array([0.25, 0.75]))
        >>> line.to_sql("score")
        'CASE WHEN "score" BETWEEN 0.0 AND 1.0 THEN LEAST(1.0, GREATEST(0.0,
        0.25 + 0.5 * ("score" - 0.0))) END'
        """
        name = quoted(column)
        if self.scale == "prob":
            return of_probabilities(name, within_unit_interval(self._lines(name)))
        held = clipped_sql(name)
        line = self._lines(f"LN({held} / (1.0 - {held}))")
        return of_probabilities(name, expit_sql(line))

    def _lines(self, x: str) -> str:
        slopes = (np.diff(self.heights) / np.diff(self.knots)).tolist()
        lines = [
            f"{height!r} + {slope!r} * ({x} - {knot!r})"
            for knot, height, slope in zip(
                self.knots.tolist(), self.heights.tolist(), slopes, strict=False
            )
        ]
        return by_piece(x, self.knots[1:-1], lines)


def map_through(p: FloatVector, values: FloatVector) -> PiecewiseLinearMap:
    """Return the map through points with ascending p, flat beyond the outer ones.

    Examples
    --------
    >>> map_through(np.array([0.2, 0.6]), np.array([0.3, 0.5])).heights
    array([0.3, 0.3, 0.5, 0.5])
    """
    if p[0] > 0.0:
        p, values = np.append(0.0, p), np.append(values[0], values)
    if p[-1] < 1.0:
        p, values = np.append(p, 1.0), np.append(values, values[-1])
    return PiecewiseLinearMap(p, values)
