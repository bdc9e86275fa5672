"""Maps that are straight in the logarithms of p and 1 - p: Platt and beta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from scipy.special import expit

from calibrant.maps.base import CalibrationMap, stored_ends, stored_number
from calibrant.numerics.links import WHOLE, log_odds_parts

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, JsonObject
    from calibrant.maps.languages import Language


@dataclass(frozen=True, eq=False)
class BetaMap(CalibrationMap):
    """The map ``expit(a * log(p) - b * log(1 - p) + intercept)``.

    With a = b it is straight between logits, as Platt scaling is. With a and b not
    negative it does not fall.

    Parameters
    ----------
    a, b, intercept : float
        The coefficients.
    ends : tuple of float
        Predictions below the first or above the second count as these.

    Examples
    --------
    >>> identity = BetaMap(1.0, 1.0, 0.0)
    >>> identity(np.array([0.25, 0.5]))
    array([0.25, 0.5 ])
    """

    kind: ClassVar[str] = "beta"
    a: float
    b: float
    intercept: float
    ends: tuple[float, float] = WHOLE

    @property
    def temperature(self) -> float:
        """Return one over the slope between logits, for maps with a = b."""
        return 1.0 / self.a if self.a else np.inf

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        log_p, minus_log_q = log_odds_parts(p, self.ends)
        f = self.a * log_p + self.b * minus_log_q + self.intercept
        return np.asarray(expit(f), dtype=np.float64)

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        a, b, intercept = (stored_number(stored, f) for f in ("a", "b", "intercept"))
        return cls(a, b, intercept, stored_ends(stored))

    def _joints(self) -> FloatVector:
        """Return where the map bends."""
        return np.array(self.ends)

    def _formula(self, language: Language, name: str) -> str:
        """Return the map of a probability as a short formula."""
        low, high = self.ends
        p = language.between(low, name, high)
        numbers = (self.a, self.b, self.intercept, 1.0)
        a, b, intercept, one = map(language.number, numbers)
        ln = language.ln
        return language.expit(
            f"{a} * {ln}({p}) - {b} * {ln}({one} - {p}) + {intercept}"
        )
