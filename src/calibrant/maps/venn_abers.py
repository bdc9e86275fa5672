"""The map of inductive Venn-Abers prediction: two step functions and their mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from calibrant.core.probabilities import probabilities_of_any_shape
from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap, stored_numbers

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike, FloatVector, JsonObject


@dataclass(frozen=True, eq=False)
class VennAbersMap(CalibrationMap):
    """The map ``p1 / (1 - p0 + p1)``; p0 and p1 are the ends of an interval.

    Parameters
    ----------
    starts, lower : ndarray of shape (m,) and (m + 1,)
        p0 is ``lower[i]`` from ``starts[i - 1]`` on, and ``lower[0]`` below all starts.
    ends, upper : ndarray of shape (k,) and (k + 1,)
        p1 is ``upper[i]`` up to and including ``ends[i]``, and ``upper[k]`` above all
        ends.

    Examples
    --------
    >>> half = np.array([0.5])
    >>> map_ = VennAbersMap(half, np.array([0.0, 0.6]), half, np.array([0.8, 1.0]))
    >>> map_.intervals([0.5, 0.9])
    (array([0.6, 0.6]), array([0.8, 1. ]))
    >>> map_([0.5, 0.9]).round(3)
    array([0.667, 0.714])
    """

    kind: ClassVar[str] = "venn-abers"
    starts: FloatVector
    lower: FloatVector
    ends: FloatVector
    upper: FloatVector

    @classmethod
    def through(cls, p: FloatVector, low: FloatVector, high: FloatVector) -> Self:
        """Return the map with p0 and p1 given at distinct ascending predictions."""
        rises = np.diff(low, prepend=0.0) > 0.0
        ends = np.diff(high, append=1.0) > 0.0
        lower, upper = np.append(0.0, low[rises]), np.append(high[ends], 1.0)
        return cls(p[rises], lower, p[ends], upper)

    def intervals(self, p: ArrayLike) -> tuple[FloatVector, FloatVector]:
        """Return the two Venn-Abers probabilities of each prediction, p0 <= p1.

        If a new row is exchangeable with the rows of the fit, one of the two, the one
        that its label selects, is perfectly calibrated.

        Parameters
        ----------
        p : array-like
            Predicted probabilities.

        Returns
        -------
        low, high : ndarray
            p0 and p1, in the shape of `p`.
        """
        return self._limits(probabilities_of_any_shape(p))

    def _limits(self, p: FloatVector) -> tuple[FloatVector, FloatVector]:
        low = self.lower[np.searchsorted(self.starts, p, side="right")]
        return low, self.upper[np.searchsorted(self.ends, p, side="left")]

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        low, high = self._limits(p)
        return np.asarray(high / (1.0 - low + high))

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        starts, ends = (stored_numbers(stored, name) for name in ("starts", "ends"))
        lower = stored_numbers(stored, "lower", size=starts.size + 1)
        upper = stored_numbers(stored, "upper", size=ends.size + 1)
        if any((np.diff(steps) < 0.0).any() for steps in (starts, lower, ends, upper)):
            raise MapFormatError("steps of a Venn-Abers map must not decrease.")
        if not 0.0 <= lower[0] <= lower[-1] < 1.0 or not 0.0 < upper[0] <= 1.0:
            raise MapFormatError("steps of a Venn-Abers map must be probabilities.")
        return cls(starts, lower, ends, upper)

    @property
    def _degree(self) -> int:
        """Return the degree of steps."""
        return 0

    def _joints(self) -> FloatVector:
        """Return where the map jumps."""
        after = np.nextafter(self.ends, 2.0)  # p1 still holds at its end
        return np.append(self.starts, after)
