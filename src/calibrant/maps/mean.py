"""Means of maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap
from calibrant.maps.parabolas import ParabolasMap
from calibrant.maps.piecewise import PiecewiseLinearMap
from calibrant.maps.stored import stored_numbers
from calibrant.numerics.cross_validation import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector, JsonObject

Part: TypeAlias = PiecewiseLinearMap | ParabolasMap
PART_KINDS: dict[str, type[Part]] = {
    PiecewiseLinearMap.kind: PiecewiseLinearMap,
    ParabolasMap.kind: ParabolasMap,
}


@dataclass(frozen=True, eq=False)
class MeanMap(CalibrationMap):
    """The mean of several maps, such as those of the folds of a cross-validation.

    Parameters
    ----------
    maps : tuple of PiecewiseLinearMap or ParabolasMap
        At least one.
    weights : tuple of float
        The weight of each; their sum is 1.
    """

    kind: ClassVar[str] = "mean"
    maps: tuple[Part, ...]
    weights: tuple[float, ...]

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        pairs = zip(self.weights, self.maps, strict=True)
        return np.asarray(sum(weight * map_.values(p) for weight, map_ in pairs))

    @property
    def bends(self) -> FloatVector:
        """Return the inner knots of all maps, as probabilities."""
        return np.concatenate([map_.bends for map_ in self.maps])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MeanMap):
            return False
        return (self.maps, self.weights) == (other.maps, other.weights)

    def __hash__(self) -> int:
        return hash((self.kind, self.maps, self.weights))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "weights": list(self.weights),
            "maps": [map_.to_dict() for map_ in self.maps],
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        maps = stored.get("maps")
        if not isinstance(maps, list) or not maps:
            raise MapFormatError("field 'maps' of a mean must be a list of maps.")
        weights = stored_numbers(stored, "weights", size=len(maps))
        if (weights < 0.0).any() or abs(weights.sum() - 1.0) > ROUNDING:
            raise MapFormatError("weights of a mean must be 0 or more and sum to 1.")
        return cls(tuple(_part(map_) for map_ in maps), tuple(weights.tolist()))

    def to_sql(self, column: str) -> str:
        """Return a SQL expression for the calibrated probability of a column."""
        pairs = zip(self.weights, self.maps, strict=True)
        return " + ".join(f"{w!r} * ({map_.to_sql(column)})" for w, map_ in pairs)


def _part(stored: object) -> Part:
    kind = stored.get("kind") if isinstance(stored, dict) else None
    if not isinstance(stored, dict) or str(kind) not in PART_KINDS:
        raise MapFormatError(
            f"field 'maps' of a mean must hold maps of kind {', '.join(PART_KINDS)}."
        )
    return PART_KINDS[str(kind)].from_dict(stored)


def mean_map(
    maps: Sequence[Part], weights: FloatVector | None = None
) -> Part | MeanMap:
    """Return the mean of maps, as one where it is one.

    The mean of lines between probabilities is piecewise linear again, with all their
    knots, unless some of them must be held within [0, 1].

    Examples
    --------
    >>> flat = PiecewiseLinearMap(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> bent = PiecewiseLinearMap(np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.5, 1.0]))
    >>> mean_map([flat, bent]).heights
    array([0.25, 0.5 , 0.75])
    """
    if len(maps) == 1:
        return maps[0]
    share = np.full(len(maps), 1.0) if weights is None else weights
    share = share / share.sum()
    if not all(_is_straight(map_) for map_ in maps):
        return MeanMap(tuple(maps), tuple(share.tolist()))
    knots = np.unique(np.concatenate([map_.knots for map_ in maps]))
    heights = share @ np.array([map_(knots) for map_ in maps])
    return PiecewiseLinearMap(knots, heights)


def _is_straight(map_: Part) -> bool:
    """Tell whether a map is straight between its knots over all of [0, 1]."""
    if not isinstance(map_, PiecewiseLinearMap) or map_.scale == "logit":
        return False
    whole = map_.knots[0] <= 0.0 and map_.knots[-1] >= 1.0
    return bool(whole and map_.heights.min() >= 0.0 and map_.heights.max() <= 1.0)
