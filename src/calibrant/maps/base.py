"""What every calibration map can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

if TYPE_CHECKING:
    from calibrant._typing import ArrayLike, FloatVector, JsonObject


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


class CalibrationMap(Protocol):
    """An estimate of the true calibration map c*(p) = E[Y | p].

    Calling the map gives the estimate itself, which for some families (tops of bins
    with slope 1) may leave [0, 1] a little: only so does the mean distance to the
    diagonal equal the calibration error. `transform` and `to_sql` give calibrated
    probabilities, held within [0, 1]; `to_sql` gives NULL for what is no probability.
    """

    kind: ClassVar[str]

    def __call__(self, p: FloatVector) -> FloatVector:
        """Evaluate the map."""
        ...

    def transform(self, p: ArrayLike) -> FloatVector:
        """Return calibrated probabilities."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        ...

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        ...

    def to_sql(self, column: str) -> str:
        """Return a SQL expression for the calibrated probability of a column."""
        ...
