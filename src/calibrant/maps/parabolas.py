"""Maps of parabolas that meet at knots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap
from calibrant.maps.sql import (
    by_piece,
    of_probabilities,
    quoted,
    within_unit_interval,
)
from calibrant.maps.stored import check_not_too_steep, stored_knots, stored_numbers

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, JsonObject


@dataclass(frozen=True, eq=False)
class ParabolasMap(CalibrationMap):
    """Parabolas from knot to knot, level beyond the last ones.

    Parameters
    ----------
    knots, heights : ndarray of shape (k + 1,)
        Where parabolas meet, ascending, and the value there.
    middles : ndarray of shape (k,)
        The value midway between knots.

    Examples
    --------
    >>> bow = ParabolasMap(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.25]))
    >>> bow(np.array([0.1, 0.5, 0.9]))
    array([0.01, 0.25, 0.81])
    """

    kind: ClassVar[str] = "parabolas"
    knots: FloatVector
    heights: FloatVector
    middles: FloatVector

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        x = np.clip(p, self.knots[0], self.knots[-1])
        piece = np.searchsorted(self.knots[1:-1], x, side="right")
        start, linear, square = (c[piece] for c in self._coefficients())
        along = x - self.knots[piece]
        return np.clip(start + along * (linear + along * square), 0.0, 1.0)

    def _coefficients(self) -> tuple[FloatVector, FloatVector, FloatVector]:
        """Return the powers 0, 1 and 2 of the distance from the left knot."""
        width = np.diff(self.knots)
        left, right = self.heights[:-1], self.heights[1:]
        linear = (4.0 * self.middles - 3.0 * left - right) / width
        return left, linear, 2.0 * (left + right - 2.0 * self.middles) / width**2

    @property
    def bends(self) -> FloatVector:
        """Return the inner knots."""
        return self.knots[1:-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParabolasMap) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        parts = (self.knots, self.heights, self.middles)
        return hash(tuple(part.tobytes() for part in parts))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "knots": self.knots.tolist(),
            "heights": self.heights.tolist(),
            "middles": self.middles.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        knots = stored_knots(stored)
        heights = stored_numbers(stored, "heights", size=knots.size)
        middles = stored_numbers(stored, "middles", size=knots.size - 1)
        check_not_too_steep(knots, heights)
        found = cls(knots, heights, middles)
        if not np.isfinite(found._coefficients()).all():
            raise MapFormatError("parabolas of a map must be finite.")
        return found

    def to_sql(self, column: str) -> str:
        """Return a SQL expression for the calibrated probability of a column."""
        low, high = float(self.knots[0]), float(self.knots[-1])
        name = quoted(column)
        x = f"LEAST({high!r}, GREATEST({low!r}, {name}))"
        parts = (self.knots[:-1], *self._coefficients())
        curves = []
        for knot, start, linear, square in zip(*parts, strict=True):
            along = f"({x} - {float(knot)!r})"
            rise = f"({float(linear)!r} + {along} * {float(square)!r})"
            curves.append(f"{float(start)!r} + {along} * {rise}")
        curve = by_piece(x, self.bends, curves)
        return of_probabilities(name, within_unit_interval(curve))
