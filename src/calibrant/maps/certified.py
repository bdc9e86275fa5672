"""Maps with a certificate."""
# ruff: noqa: SLF001  (a certified map is its map)

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap
from calibrant.maps.certificate import Certificate
from calibrant.maps.multiclass import MulticlassMap

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, JsonObject, Scale
    from calibrant.maps.languages import Language


@dataclass(frozen=True, eq=False)
class CertifiedMap(CalibrationMap):
    """A map of one event with its certificate.

    Parameters
    ----------
    map : CalibrationMap
        The map.
    certificate : Certificate
        What it was found to bring.
    """

    kind: ClassVar[str] = "certified"
    map: CalibrationMap
    certificate: Certificate

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        return self.map.values(p)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return _stored(self)

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        return cls(*_parts(stored, CalibrationMap))

    @property
    def _degree(self) -> int | None:
        return self.map._degree

    def _joints(self) -> FloatVector:
        return self.map._joints()

    def _formula(self, language: Language, name: str) -> str | None:
        return self.map._formula(language, name)


@dataclass(frozen=True, eq=False)
class CertifiedClassMap(MulticlassMap):
    """A map of several classes with its certificate.

    Parameters
    ----------
    map : MulticlassMap
        The map.
    certificate : Certificate
        What it was found to bring.
    """

    kind: ClassVar[str] = "certified-classes"
    map: MulticlassMap
    certificate: Certificate

    @property
    def scale(self) -> Scale:  # type: ignore[override]
        """Return what predictions are."""
        return self.map.scale

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return self.map.n_classes

    def calibrated(self, scores: FloatMatrix) -> FloatMatrix:
        """Return calibrated probabilities."""
        return self.map.calibrated(scores)

    def _python_body(self, accuracy: float) -> str:
        return self.map._python_body(accuracy)

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        return _stored(self)

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        return cls(*_parts(stored, MulticlassMap))


def _stored(certified: CertifiedMap | CertifiedClassMap) -> dict[str, Any]:
    return {
        "kind": certified.kind,
        "map": certified.map.to_dict(),
        "certificate": certified.certificate.to_dict(),
    }


def _parts(stored: JsonObject, kind: type[Any]) -> tuple[Any, Certificate]:
    from calibrant.maps.stored import map_from_dict

    map_ = map_from_dict(stored.get("map"))  # type: ignore[arg-type]
    if not isinstance(map_, kind) or isinstance(map_, CertifiedMap | CertifiedClassMap):
        raise MapFormatError("field 'map' of a certified map must be a plain map.")
    return map_, Certificate.from_dict(stored.get("certificate") or {})
