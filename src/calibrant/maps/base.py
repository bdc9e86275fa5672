"""What every calibration map can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from calibrant.core.arrays import as_array
from calibrant.core.probabilities import (
    check_probabilities,
    has_two_columns,
    probabilities_of_any_shape,
)
from calibrant.core.wording import CALIBRATORS

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike, FloatVector, JsonObject


class StoredMap(Protocol):
    """What all maps share, those of one event and those of all classes."""

    kind: ClassVar[str]

    def __call__(self, p: Any) -> Any:
        """Evaluate the map."""
        ...

    def transform(self, p: ArrayLike) -> Any:
        """Return calibrated probabilities."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        ...

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        ...


class CalibrationMap(ABC):
    """An estimate of the true calibration map c*(p) = E[Y | p].

    Calling the map gives the estimate itself, which for some families (tops of bins
    with slope 1) may leave [0, 1] a little: only so does the mean distance to the
    diagonal equal the calibration error. `transform` and `to_sql` give calibrated
    probabilities, held within [0, 1]; `to_sql` gives NULL for what is no probability.
    """

    kind: ClassVar[str]

    @abstractmethod
    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""

    @classmethod
    @abstractmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""

    @abstractmethod
    def to_sql(self, column: str) -> str:
        """Return a SQL expression for the calibrated probability of a column."""

    def __call__(self, p: ArrayLike) -> FloatVector:
        """Evaluate the map at predictions of any shape."""
        return self.values(probabilities_of_any_shape(p))

    def transform(self, p: ArrayLike) -> FloatVector:
        """Return calibrated probabilities, clipped to [0, 1].

        For two columns, those of the complement and of the event, so are the results.
        """
        array = as_array(p, name=CALIBRATORS.prob)
        values = self.values(check_probabilities(array, wording=CALIBRATORS))
        event = np.clip(values, 0.0, 1.0)
        return np.stack([1.0 - event, event], 1) if has_two_columns(array) else event
