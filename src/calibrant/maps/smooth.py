"""The map of `smooth` and `auto`: a shift of logits, linear between knots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant.maps.base import CalibrationMap, check_line
from calibrant.maps.dialects import lines_between
from calibrant.numerics.links import NEAREST, logit_within
from calibrant.numerics.short_formulas import Piece
from calibrant.numerics.supported_shifts import (
    line_of,
    needed_knots,
    repairing_shifts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector, IntVector
    from calibrant.maps.dialects import Language


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
        return cls(*line_of(knots, shifts), ends)

    def repairing(self, p: FloatVector, weight: FloatVector) -> Self:
        """Return the nearest map that does not fall and that rows support.

        Parameters
        ----------
        p, weight : ndarray of shape (m,)
            Predictions that the map was fitted to, ascending, and their weights.
        """
        u = logit_within(p, self.ends)
        shifts = repairing_shifts(self.knots, self.shifts, u, weight)
        return replace(self, shifts=shifts)

    def thinned(self, tolerance: float) -> Self:
        """Return the map with fewer knots, up to a difference of logits."""
        kept = needed_knots(self.knots, self.shifts, tolerance)
        return replace(self, knots=self.knots[kept], shifts=self.shifts[kept])

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        u = logit_within(p, self.ends)
        return np.asarray(expit(u + np.interp(u, self.knots, self.shifts)))

    @classmethod
    def _values_of_each(
        cls, maps: Sequence[Self], p: FloatVector, which: IntVector
    ) -> FloatVector:
        """Evaluate map ``which[i]`` at ``p[i]``."""
        low, high = np.array([map_.ends for map_ in maps])[which].T
        u = logit_within(p, (low, high))
        shifts = np.empty_like(u)
        for number, map_ in enumerate(maps):
            rows = which == number
            shifts[rows] = np.interp(u[rows], map_.knots, map_.shifts)
        return np.asarray(expit(u + shifts))

    def _check_fields(self) -> None:
        self._check_sizes(self.knots.size, "shifts")
        check_line(self.knots, self.shifts)

    def _formula(self, language: Language, name: str) -> str:
        u = language.logit(name, *self.ends)
        first = Piece(float(expit(self.knots[0])), 0.0, (float(self.shifts[0]),))
        last = Piece(1.0, 0.0, (float(self.shifts[-1]),))
        lines = lines_between(self.knots, self.shifts)
        shift = language.piecewise(name, [first, *lines, last], u)
        return language.expit(f"{u} + ({shift})")

    def _joints(self) -> FloatVector:
        return np.concatenate([expit(self.knots), self.ends])
