"""Maps that move logits by two smooth curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant._validation.probabilities import (
    check_probabilities,
    probabilities_of_any_shape,
)
from calibrant._validation.wording import CALIBRATORS
from calibrant.exceptions import MapFormatError
from calibrant.maps.sql import (
    by_piece,
    clipped_sql,
    expit_sql,
    of_probabilities,
    quoted,
)
from calibrant.maps.stored import stored_knots, stored_numbers
from calibrant.numerics.links import logit
from calibrant.numerics.natural_splines import cubic_pieces, curve_at

if TYPE_CHECKING:
    from calibrant._typing import ArrayLike, FloatVector, JsonObject

NEAREST = 1e-9
"""Predictions nearer to 0 or 1 count as this near. One that says 1 and fails would
otherwise ask for a leap of 36 logits, which no smooth curve makes."""


def held_logit(p: FloatVector) -> FloatVector:
    """Return logits of predictions as smooth maps take them.

    Examples
    --------
    >>> held_logit(np.array([0.5, 1.0])).round(2)
    array([ 0.  , 20.72])
    """
    return logit(p, NEAREST)


@dataclass(frozen=True, eq=False)
class Curve:
    """Cubics from knot to knot, straight beyond the last ones.

    Parameters
    ----------
    knots, heights, slopes : ndarray of shape (k,)
        Where cubics meet, ascending, and the value and the slope there.

    Examples
    --------
    >>> line = Curve(np.array([0.0, 1.0]), np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    >>> line(np.array([-1.0, 0.25, 4.0]))
    array([-1. ,  1.5,  9. ])
    """

    knots: FloatVector
    heights: FloatVector
    slopes: FloatVector

    def __call__(self, x: FloatVector) -> FloatVector:
        """Evaluate the curve."""
        return curve_at(x, self.knots, self.heights, self.slopes)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain numbers."""
        return {
            "knots": self.knots.tolist(),
            "heights": self.heights.tolist(),
            "slopes": self.slopes.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the curve from `to_dict`, or raise MapFormatError."""
        knots = stored_knots(stored)
        curve = cls(
            knots,
            stored_numbers(stored, "heights", size=knots.size),
            stored_numbers(stored, "slopes", size=knots.size),
        )
        with np.errstate(all="ignore"):
            pieces = cubic_pieces(curve.knots, curve.heights, curve.slopes)
        if not all(np.isfinite(powers).all() for powers in pieces):
            raise MapFormatError("knots of a curve are too near to each other.")
        return curve

    def to_sql(self, x: str) -> str:
        """Return a SQL expression for the curve at an expression."""
        straight = [
            f"{float(self.heights[end])!r} + {float(self.slopes[end])!r} * "
            f"({x} - {float(self.knots[end])!r})"
            for end in (0, -1)
        ]
        cubics = []
        pieces = cubic_pieces(self.knots, self.heights, self.slopes)
        for knot, *powers in zip(self.knots[:-1].tolist(), *pieces, strict=True):
            start, linear, square, cube = (float(power) for power in powers)
            along = f"({x} - {knot!r})"
            inner = f"({linear!r} + {along} * ({square!r} + {along} * {cube!r}))"
            cubics.append(f"{start!r} + {along} * {inner}")
        return by_piece(x, self.knots, [straight[0], *cubics, straight[1]])


@dataclass(frozen=True, eq=False)
class SmoothMap:
    """The map ``expit(logit(p) + by_logit(logit(p)) + by_prob(p))``.

    Parameters
    ----------
    by_logit, by_prob : Curve
        What is added to the logit of a prediction, as curves of its logit and of the
        prediction itself. Where both are 0 the map is the identity.

    Examples
    --------
    >>> none = Curve(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2))
    >>> odds_doubled = Curve(none.knots, np.full(2, np.log(2.0)), np.zeros(2))
    >>> SmoothMap(odds_doubled, none)(np.array([0.2, 0.5]))
    array([0.33333333, 0.66666667])
    """

    kind: ClassVar[str] = "smooth"
    by_logit: Curve
    by_prob: Curve

    def __call__(self, p: FloatVector) -> FloatVector:
        """Evaluate the map."""
        p = probabilities_of_any_shape(p)
        u = held_logit(p)
        return np.asarray(expit(u + self.by_logit(u) + self.by_prob(p)))

    def transform(self, p: ArrayLike) -> FloatVector:
        """Return calibrated probabilities."""
        return self(check_probabilities(p, wording=CALIBRATORS))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SmoothMap) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        curves = (self.by_logit, self.by_prob)
        return hash(tuple((c.knots.tobytes(), c.heights.tobytes()) for c in curves))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "by_logit": self.by_logit.to_dict(),
            "by_prob": self.by_prob.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        curves = [stored.get(field) for field in ("by_logit", "by_prob")]
        if not all(isinstance(curve, dict) for curve in curves):
            raise MapFormatError(
                "fields 'by_logit' and 'by_prob' of a smooth map must be curves: "
                "objects with knots, heights and slopes."
            )
        return cls(*(Curve.from_dict(curve) for curve in curves))  # type: ignore[arg-type]

    def to_sql(self, column: str) -> str:
        """Return a SQL expression for the calibrated probability of a column."""
        name = quoted(column)
        held = clipped_sql(name, NEAREST)
        u = f"LN({held} / (1.0 - {held}))"
        curves = f"({self.by_logit.to_sql(u)}) + ({self.by_prob.to_sql(name)})"
        return of_probabilities(name, expit_sql(f"{u} + {curves}"))
