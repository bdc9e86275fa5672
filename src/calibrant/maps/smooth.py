"""Maps that shift logits, by little more or less from one to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap
from calibrant.maps.sql import (
    by_piece,
    expit_sql,
    of_probabilities,
    quoted,
)
from calibrant.maps.stored import check_not_too_steep, stored_knots, stored_numbers
from calibrant.numerics.links import NEAREST, logit

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, JsonObject


def logit_within(p: FloatVector, ends: tuple[float, float]) -> FloatVector:
    """Return logits of predictions, those beyond the ends as at the ends.

    Examples
    --------
    >>> logit_within(np.array([0.0, 0.5, 1.0]), (0.1, 0.9)).round(2)
    array([-2.2,  0. ,  2.2])
    """
    return np.asarray(logit(np.clip(p, *ends)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SmoothMap(CalibrationMap):
    """The map ``expit(u + shift(u))`` of the logit u of a prediction.

    Between two knots the shift is a straight line, beyond the last ones it stays as it
    is there. So values between two knots lie between those at the knots, and beyond the
    data predictions are moved as the last ones of the data are.

    Parameters
    ----------
    knots, shifts : ndarray of shape (k,)
        Logits, ascending, and what is added to them there.
    ends : tuple of float
        Predictions below the first or above the second count as these.

    Examples
    --------
    >>> odds_doubled = SmoothMap(np.array([0.0, 1.0]), np.full(2, np.log(2.0)))
    >>> odds_doubled(np.array([0.2, 0.5]))
    array([0.33333333, 0.66666667])
    """

    kind: ClassVar[str] = "smooth"
    knots: FloatVector
    shifts: FloatVector
    ends: tuple[float, float] = (NEAREST, 1.0 - NEAREST)

    @classmethod
    def through(
        cls, knots: FloatVector, shifts: FloatVector, ends: tuple[float, float]
    ) -> Self:
        """Return the map with given shifts at one or more knots."""
        if knots.size == 1:
            knots, shifts = knots + np.array([0.0, 1.0]), np.repeat(shifts, 2)
        return cls(knots, shifts, ends)

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        u = logit_within(p, self.ends)
        return np.asarray(expit(u + np.interp(u, self.knots, self.shifts)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SmoothMap) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.knots.tobytes(), self.shifts.tobytes(), self.ends))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "knots": self.knots.tolist(),
            "shifts": self.shifts.tolist(),
            "ends": list(self.ends),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        knots = stored_knots(stored)
        shifts = stored_numbers(stored, "shifts", size=knots.size)
        low, high = stored_numbers(stored, "ends", size=2).tolist()
        if not 0.0 < low <= high < 1.0:
            raise MapFormatError(
                "field 'ends' of a smooth map must be two ascending probabilities "
                "between 0 and 1."
            )
        check_not_too_steep(knots, shifts)
        return cls(knots, shifts, (low, high))

    def to_sql(self, column: str) -> str:
        """Return a SQL expression for the calibrated probability of a column."""
        name = quoted(column)
        low, high = self.ends
        held = f"LEAST({high!r}, GREATEST({low!r}, {name}))"
        u = f"LN({held} / (1.0 - {held}))"
        return of_probabilities(name, expit_sql(f"{u} + ({self._shift_sql(u)})"))

    def _shift_sql(self, u: str) -> str:
        knots, shifts = self.knots.tolist(), self.shifts.tolist()
        slopes = (np.diff(self.shifts) / np.diff(self.knots)).tolist()
        lines = [
            f"{shift!r} + {slope!r} * ({u} - {knot!r})"
            for knot, shift, slope in zip(knots, shifts, slopes, strict=False)
        ]
        return by_piece(u, self.knots, [repr(shifts[0]), *lines, repr(shifts[-1])])
