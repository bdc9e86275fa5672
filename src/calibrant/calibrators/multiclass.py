"""What a multi-class family is, and what fitting one gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector
    from calibrant.core.class_sample import ClassSample
    from calibrant.maps.multiclass import MulticlassMap


@dataclass(frozen=True, eq=False)
class MulticlassFit:
    """A fitted multi-class family.

    Attributes
    ----------
    map : MulticlassMap
        The fitted map.
    losses : ndarray or None
        Cross-validated log-loss of each choice tried, where there was a choice.
    chosen : tuple of float or None
        The penalties that were chosen so.
    """

    map: MulticlassMap
    losses: FloatVector | None = None
    chosen: tuple[float, float] | None = None


class MulticlassFamily(Protocol):
    """Hyper-parameters of a family of multi-class maps."""

    def fit(self, sample: ClassSample) -> MulticlassFit:
        """Fit the map of a sample."""
        ...
