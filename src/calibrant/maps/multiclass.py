"""What every multi-class map can do, and the mean of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np

from calibrant.core.array_types import Scale
from calibrant.core.arrays import as_array
from calibrant.core.probabilities import check_class_scores
from calibrant.core.wording import CLASS_CALIBRATORS
from calibrant.exceptions import MapFormatError, ShapeError
from calibrant.maps.stored import stored_numbers

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike, FloatMatrix, JsonObject


MAX_CLASSES = 100_000
"""More classes than this are taken for damage in a stored map."""


class MulticlassMap(ABC):
    """From predictions of k classes to calibrated probabilities of the same.

    Calling the map and `transform` are the same: rows of the result sum to 1.
    """

    kind: ClassVar[str]
    scale: Scale

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Return the number of classes."""

    @abstractmethod
    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities of validated predictions."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""

    @classmethod
    @abstractmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""

    def __call__(self, p: ArrayLike) -> FloatMatrix:
        """Return calibrated probabilities of shape (n, k)."""
        array = as_array(p, name=CLASS_CALIBRATORS.prob)
        if array.ndim == 2 and array.shape[1] != self.n_classes:  # noqa: PLR2004
            raise ShapeError(
                f"P must have the {self.n_classes} columns that the map was fitted "
                f"on; it has {array.shape[1]}."
            )
        return self.calibrated(
            check_class_scores(array, scale=self.scale, wording=CLASS_CALIBRATORS)
        )

    def transform(self, p: ArrayLike) -> FloatMatrix:
        """Return calibrated probabilities of shape (n, k)."""
        return self(p)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MulticlassMap) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.scale, self.n_classes))


def stored_scale(stored: JsonObject) -> Scale:
    """Return the scale of a stored map's predictions."""
    scale = stored.get("scale")
    for known in get_args(Scale):
        if scale == known:
            return known  # type: ignore[no-any-return]
    raise MapFormatError(f"unknown scale {scale!r} of a map.")


def stored_positive(stored: JsonObject, field: str) -> float:
    """Return a field of a stored map that is one number above 0."""
    number = float(stored_numbers({field: [stored.get(field)]}, field)[0])
    if number <= 0.0:
        raise MapFormatError(f"field {field!r} of a map must be above 0.")
    return number


def stored_classes(stored: JsonObject) -> int:
    """Return the number of classes of a stored map."""
    classes = stored.get("classes")
    if isinstance(classes, int) and 2 <= classes <= MAX_CLASSES:  # noqa: PLR2004
        return classes
    raise MapFormatError("field 'classes' of a map must be a whole number from 2.")


@dataclass(frozen=True, eq=False)
class MulticlassMeanMap(MulticlassMap):
    """The mean of several maps, such as those of the folds of a cross-validation.

    Parameters
    ----------
    maps : tuple of MulticlassMap
        At least one, all of the same number of classes and scale.
    """

    kind: ClassVar[str] = "multi-class-mean"
    maps: tuple[MulticlassMap, ...]

    @property
    def scale(self) -> Scale:  # type: ignore[override]
        """Return what predictions hold."""
        return self.maps[0].scale

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.maps[0].n_classes

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return the mean of the calibrated probabilities."""
        return np.asarray(sum(m.calibrated(scores) for m in self.maps) / len(self.maps))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return {"kind": self.kind, "maps": [map_.to_dict() for map_ in self.maps]}

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        from calibrant.maps.stored import map_from_dict

        maps = stored.get("maps")
        if not isinstance(maps, list) or not maps:
            raise MapFormatError("field 'maps' of a mean must be a list of maps.")
        if any(isinstance(m, dict) and m.get("kind") == cls.kind for m in maps):
            raise MapFormatError("field 'maps' of a mean must not hold means.")
        found = tuple(map_from_dict(map_) for map_ in maps)
        shapes = {(m.n_classes, m.scale) for m in found if isinstance(m, MulticlassMap)}
        if len(shapes) != 1 or not all(isinstance(m, MulticlassMap) for m in found):
            raise MapFormatError("maps of a mean must have the same classes and scale.")
        return cls(found)  # type: ignore[arg-type]


def multiclass_mean(maps: tuple[MulticlassMap, ...]) -> MulticlassMap:
    """Return the mean of maps, which of one is that one."""
    return maps[0] if len(maps) == 1 else MulticlassMeanMap(maps)
