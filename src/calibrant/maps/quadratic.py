"""Maps that are a parabola between logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant.maps.base import CalibrationMap, stored_ends, stored_number
from calibrant.numerics.links import WHOLE, logit_within
from calibrant.numerics.polynomial_pieces import Piece

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, JsonObject
    from calibrant.maps.languages import Language


@dataclass(frozen=True, eq=False)
class QuadraticMap(CalibrationMap):
    """The map ``expit(intercept + slope * u + curvature * u**2)`` of the logit u.

    Beyond the data a parabola would soon change direction. There the logit is shifted
    by as much as at the outermost prediction of the data.

    Parameters
    ----------
    intercept, slope, curvature : float
        The coefficients.
    data : tuple of float
        Smallest and largest prediction of the data.
    ends : tuple of float
        Predictions below the first or above the second count as these.

    Examples
    --------
    >>> identity = QuadraticMap(0.0, 1.0, 0.0, (0.2, 0.9))
    >>> identity(np.array([0.1, 0.5]))
    array([0.1, 0.5])
    """

    kind: ClassVar[str] = "quadratic"
    intercept: float
    slope: float
    curvature: float
    data: tuple[float, float]
    ends: tuple[float, float] = WHOLE

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        u, inside = (logit_within(p, limits) for limits in (self.ends, self.data))
        f = self.intercept + inside * (self.slope + self.curvature * inside)
        return np.asarray(expit(f + (u - inside)), dtype=np.float64)

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        intercept, slope, curvature = (
            stored_number(stored, name) for name in ("intercept", "slope", "curvature")
        )
        data, ends = stored_ends(stored, "data"), stored_ends(stored)
        return cls(intercept, slope, curvature, data, ends)

    def _joints(self) -> FloatVector:
        """Return where the map bends."""
        return np.array([*self.ends, *self.data])

    def _formula(self, language: Language, name: str) -> str:
        """Return the map of a probability as a formula."""
        u, inside = (language.logit(name, *e) for e in (self.ends, self.data))
        parabola = Piece(1.0, 0.0, (self.intercept, self.slope, self.curvature))
        return language.expit(
            f"{language.polynomial(parabola, inside)} + {u} - {inside}"
        )
