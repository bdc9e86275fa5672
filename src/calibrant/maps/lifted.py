"""Binary maps lifted to k classes: each class against the rest, or the top label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from calibrant.core.class_rows import row_sums
from calibrant.exceptions import MapFormatError
from calibrant.maps.multiclass import MulticlassMap, stored_classes, stored_scale
from calibrant.numerics.class_probabilities import class_probabilities

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, JsonObject, Scale
    from calibrant.maps.base import CalibrationMap


@dataclass(frozen=True, eq=False)
class OneVsRestMap(MulticlassMap):
    """A binary map for each class against the rest; rows are divided by their sum.

    A row whose classes all get probability 0 stays as it was.

    Parameters
    ----------
    maps : tuple of CalibrationMap
        One a class.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions hold.
    """

    kind: ClassVar[str] = "one-vs-rest"
    maps: tuple[CalibrationMap, ...]
    scale: Scale = "prob"

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return len(self.maps)

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        prob = class_probabilities(scores, self.scale)
        columns = [
            map_.transform(column)
            for map_, column in zip(self.maps, prob.T, strict=True)
        ]
        lifted = np.column_stack(columns)
        total = row_sums(lifted)
        return np.where(total > 0.0, lifted / np.where(total > 0.0, total, 1.0), prob)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        maps = [map_.to_dict() for map_ in self.maps]
        return {"kind": self.kind, "scale": self.scale, "maps": maps}

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        maps = stored.get("maps")
        if not isinstance(maps, list) or len(maps) < 2:  # noqa: PLR2004
            raise MapFormatError("field 'maps' must be a list of two or more maps.")
        return cls(tuple(map(_binary_map, maps)), stored_scale(stored))


@dataclass(frozen=True, eq=False)
class TopLabelMap(MulticlassMap):
    """A binary map of the top label's probability; the others share what is left.

    The others keep their proportions; where they all have probability 0, they share
    equally.

    Parameters
    ----------
    map : CalibrationMap
        From the probability of the top label to that of its being right.
    classes : int
        Number of classes.
    scale : {"prob", "logit", "percent", "logprob"}
        What predictions hold.
    """

    kind: ClassVar[str] = "top-label"
    map: CalibrationMap
    classes: int
    scale: Scale = "prob"

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.classes

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        prob = class_probabilities(scores, self.scale)
        rows, top = np.arange(len(prob)), prob.argmax(axis=1)
        confidence = self.map.transform(prob[rows, top])
        others = prob.copy()
        others[rows, top] = 0.0
        rest = others.sum(axis=1, keepdims=True)
        alone = rest[:, 0] < np.finfo(np.float64).tiny
        others[alone] = 1.0
        others[rows[alone], top[alone]] = 0.0
        rest[alone] = self.classes - 1.0
        others *= (1.0 - confidence[:, np.newaxis]) / rest
        others[rows, top] = confidence
        return others

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {
            "kind": self.kind,
            "scale": self.scale,
            "classes": self.classes,
            "map": self.map.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        return cls(
            _binary_map(stored.get("map")), stored_classes(stored), stored_scale(stored)
        )


def _binary_map(stored: Any) -> CalibrationMap:
    from calibrant.maps.kinds import BINARY_MAPS

    kinds = {map_class.kind: map_class for map_class in BINARY_MAPS}
    kind = stored.get("kind") if isinstance(stored, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        raise MapFormatError(
            f"a lifted map must hold maps of one event; got one of kind {kind!r}."
        )
    return kinds[kind].from_dict(stored)  # type: ignore[return-value]
