"""What every calibration map can do, and how its fields are read from JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from calibrant.core.arrays import as_array
from calibrant.core.probabilities import (
    check_probabilities,
    has_two_columns,
    probabilities_of_any_shape,
)
from calibrant.core.wording import CALIBRATOR_WORDING
from calibrant.exceptions import MapFormatError
from calibrant.maps.sql_and_python import ACCURACY, python_function, sql_expression
from calibrant.numerics.links import WHOLE

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike, FloatVector, JsonObject
    from calibrant.maps.languages import Dialect, Language


@dataclass(frozen=True, eq=False)
class StoredMap(ABC):
    """A frozen map, of one event or of all classes, that equals what it is stored as.

    Its fields are numbers, strings, arrays, other maps, or tuples of these.
    """

    kind: ClassVar[str]

    @abstractmethod
    def __call__(self, p: Any) -> Any:
        """Evaluate the map."""

    @abstractmethod
    def transform(self, p: ArrayLike) -> Any:
        """Return calibrated probabilities."""

    def to_dict(self) -> dict[str, Any]:
        """Return the map as plain numbers, ready for JSON."""
        plain = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"kind": self.kind, **plain}

    @classmethod
    @abstractmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""

    @abstractmethod
    def _python(self, name: str, accuracy: float) -> str:
        """Return the map as a function of that name in Python."""

    def to_python(self, *, accuracy: float = ACCURACY) -> str:
        """Return the source of a function ``calibrate(p)`` without imports.

        It takes one prediction, or the predictions of all classes of one row, and
        returns the same as `transform`, or None if predictions are missing or out of
        range. Maps with a closed form agree to 1e-9; others, such as those of `smooth`,
        become tables.

        Parameters
        ----------
        accuracy : float
            Maximum error of tables, from 1e-10 to 0.01.

        Returns
        -------
        str
            Source text.

        See Also
        --------
        to_sql : a binary map in a database.

        Examples
        --------
        >>> from calibrant.maps.binned import BinnedMap
        >>> flat = BinnedMap(np.array([0, 0.5, 1]), np.array([0.1, 0.8]), np.zeros(2))
        >>> namespace = {}
        >>> exec(flat.to_python(), namespace)
        >>> namespace["calibrate"](0.7)
        0.8
        """
        return self._python("calibrate", accuracy)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(_hashable(self.to_dict()))


def _plain(value: Any) -> Any:
    """Return a field of a map as JSON writes it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.to_dict() if isinstance(value, StoredMap) else value


def _hashable(value: Any) -> Any:
    """Return plain numbers with lists and dicts as tuples."""
    if isinstance(value, dict):
        return tuple((name, _hashable(part)) for name, part in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


class CalibrationMap(StoredMap):
    """An estimate of the true calibration map c*(p) = E[Y | p].

    Calling the map gives the estimate itself, which for some families (tops of bins
    with slope 1) may leave [0, 1] a little: only so does the mean distance to the
    diagonal equal the calibration error. `transform` and `to_sql` give calibrated
    probabilities, clipped to [0, 1].
    """

    @abstractmethod
    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""

    @property
    def _degree(self) -> int | None:
        """Return the degree of the map if it is a polynomial between its joints."""
        return None

    def _joints(self) -> FloatVector:
        """Return where the map bends or jumps."""
        return np.array([])

    def _formula(self, language: Language, name: str) -> str | None:  # noqa: ARG002
        """Return the map of a probability as a short formula, where there is one."""
        return None

    def __call__(self, p: ArrayLike) -> FloatVector:
        """Evaluate the map at predictions of any shape."""
        return self.values(probabilities_of_any_shape(p))

    def transform(self, p: ArrayLike) -> FloatVector:
        """Return calibrated probabilities, clipped to [0, 1].

        For two columns, the complement and the event, so are the results.
        """
        array = as_array(p, name=CALIBRATOR_WORDING.prob)
        values = self.values(check_probabilities(array, wording=CALIBRATOR_WORDING))
        event = np.clip(values, 0.0, 1.0)
        return np.stack([1.0 - event, event], 1) if has_two_columns(array) else event

    def to_sql(
        self, column: str, dialect: Dialect = "ansi", *, accuracy: float = ACCURACY
    ) -> str:
        """Return a SQL expression for the calibrated probability of a column.

        Maps with a short formula, and maps that consist of lines or parabolas, are
        written exactly, with numbers rounded to 1e-9. Others, such as those of
        `smooth`, become tables: a few polynomials, selected by nested CASE, that differ
        from the map by at most `accuracy`. So do maps with logarithms in SQLite, which
        may lack these functions.

        Parameters
        ----------
        column : str
            Name of the column of predictions; it is quoted. Snowflake stores names
            that were created without quotes in capitals, so pass these in capitals.
        dialect : str
            "ansi", "duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"
            or "mysql". "ansi" needs LEAST and GREATEST, of SQL:2023.
        accuracy : float
            Maximum error of tables, from 1e-10 to 0.01; 0 writes formulas, however long
            they are.

        Returns
        -------
        str
            An expression with the values of `transform`, and NULL where the column is
            NULL, NaN or outside [0, 1].

        See Also
        --------
        to_python : the map as a function.

        Examples
        --------
        >>> from calibrant.maps.binned import BinnedMap
        >>> flat = BinnedMap(np.array([0, 0.5, 1]), np.array([0.1, 0.8]), np.zeros(2))
        >>> print(flat.to_sql("score", "mysql"))
        CASE WHEN `score` BETWEEN 0 AND 1 THEN
        CASE WHEN `score`<0.5e0 THEN 0.1e0 ELSE 0.8e0 END END
        """
        return sql_expression(self, column, dialect, accuracy)

    def _python(self, name: str, accuracy: float) -> str:
        return python_function(self, name, accuracy)


def stored_numbers(
    stored: JsonObject, field: str, *, size: int | None = None
) -> FloatVector:
    """Return a field of a stored map as finite numbers."""
    values = stored.get(field)
    if not isinstance(values, list) or not all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in values
    ):
        raise MapFormatError(f"field {field!r} of a map must be a list of numbers.")
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:
        numbers = np.array([np.inf])
    if not np.isfinite(numbers).all():
        raise MapFormatError(f"field {field!r} of a map must contain finite numbers.")
    if size is not None and numbers.size != size:
        raise MapFormatError(
            f"field {field!r} of a map must contain {size} numbers; got {numbers.size}."
        )
    return numbers


def stored_number(stored: JsonObject, field: str) -> float:
    """Return a field of a stored map as one finite number."""
    value = stored.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MapFormatError(f"field {field!r} of a map must be a number.")
    return float(stored_numbers({field: [value]}, field)[0])


def stored_choice(stored: JsonObject, field: str, choices: tuple[Any, ...]) -> Any:
    """Return a field of a stored map that is one of a few words."""
    if stored.get(field) not in choices:
        raise MapFormatError(f"unknown {field} {stored.get(field)!r} of a map.")
    return stored[field]


def stored_line(
    stored: JsonObject, heights: str = "heights"
) -> tuple[FloatVector, FloatVector]:
    """Return the knots of a stored map and the heights of its lines there."""
    knots = stored_numbers(stored, "knots")
    if knots.size < 2 or (np.diff(knots) <= 0.0).any():  # noqa: PLR2004
        raise MapFormatError("a map must have at least two knots, in ascending order.")
    values = stored_numbers(stored, heights, size=knots.size)
    with np.errstate(over="ignore"):
        slopes = np.diff(values) / np.diff(knots)
    if not np.isfinite(slopes).all():
        raise MapFormatError("slopes between the knots of a map must be finite.")
    return knots, values


def stored_ends(stored: JsonObject, field: str = "ends") -> tuple[float, float]:
    """Return the least and the largest that predictions count as.

    Maps of earlier versions took predictions as they are.
    """
    if field not in stored:
        return WHOLE
    low, high = stored_numbers(stored, field, size=2).tolist()
    if not 0.0 < low <= high < 1.0:
        raise MapFormatError(
            f"field {field!r} of a map must be two ascending probabilities between 0 "
            "and 1."
        )
    return low, high


def stored_maps(stored: JsonObject, *, minimum: int = 1) -> list[Any]:
    """Return the maps that a stored map is made of, as they are stored."""
    maps = stored.get("maps")
    if not isinstance(maps, list) or len(maps) < minimum:
        many = "two or more maps" if minimum > 1 else "maps"
        raise MapFormatError(f"field 'maps' of a map must be a list of {many}.")
    return maps


def stored_kind(stored: Any) -> str:
    """Return the kind of a stored map, or nothing where it is not one."""
    kind = stored.get("kind") if isinstance(stored, dict) else None
    return kind if isinstance(kind, str) else ""
