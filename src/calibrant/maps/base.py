"""What every calibration map can do, and how its fields are read from JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np

from calibrant.core.array_types import Scale, Space
from calibrant.core.arrays import as_array
from calibrant.core.parameters import check_choice
from calibrant.core.probabilities import (
    check_probabilities,
    has_two_columns,
    probabilities_of_any_shape,
)
from calibrant.core.wording import CALIBRATOR_WORDING
from calibrant.exceptions import MapFormatError
from calibrant.maps.sql_and_python import ACCURACY, python_function, sql_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from dataclasses import Field

    from calibrant.core.array_types import (
        ArrayLike,
        FloatMatrix,
        FloatVector,
        IntVector,
        JsonObject,
    )
    from calibrant.maps.dialects import Dialect, Language


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
        return {"kind": self.kind, **plain_fields(self)}

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError."""
        map_ = cls(**{field.name: _read(stored, field) for field in fields(cls)})
        map_._check_fields()
        return map_

    def _check_fields(self) -> None:  # noqa: B027
        """Raise MapFormatError if fields that were read do not fit each other."""

    def _check_sizes(self, size: int, *names: str) -> None:
        for name in names:
            found = getattr(self, name).size
            require(
                found == size,
                f"field {name!r} of a map must contain {size} numbers; got {found}.",
            )

    def _check_positive(self, *names: str) -> None:
        for name in names:
            above = getattr(self, name) > 0.0
            require(above, f"field {name!r} of a map must be above 0.")

    @abstractmethod
    def _python(self, name: str, accuracy: float, scale: Scale) -> str:
        """Return the map as a function of that name in Python."""

    @property
    @abstractmethod
    def _takes(self) -> Scale:
        """Return the scale of predictions that the map was fitted to."""

    def to_python(
        self, *, accuracy: float = ACCURACY, scale: Scale | None = None
    ) -> str:
        """Return the source of a function ``calibrate(p)`` without imports.

        It takes one prediction, or the predictions of all classes of one row, on the
        scale that the map was fitted to, and returns the calibrated probability, or
        None if predictions are missing or out of range. Maps with a closed form agree
        with `transform` to 1e-9; others, such as those of `smooth`, become tables.

        Parameters
        ----------
        accuracy : float
            Maximum error of tables, from 1e-10 to 0.01.
        scale : {"prob", "logit", "percent", "logprob"}, optional
            What p will be, if not what the map was fitted to. Maps of several classes
            take only the scale that they were fitted to.

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
        return self._python("calibrate", accuracy, self._scale_of(scale))

    def _scale_of(self, scale: Scale | None) -> Scale:
        """Return the scale that is asked for, or else that of the fit."""
        if scale is None:
            return self._takes
        checked: Scale = check_choice(scale, get_args(Scale), name="scale")
        return checked

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(_hashable(self.to_dict()))


def plain_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON writes them, but for usual scales."""
    plain = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if plain.get(FITTED_SCALE) == "prob":
        del plain[FITTED_SCALE]
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, StoredMap):
        return value.to_dict()
    if is_dataclass(value):
        return plain_fields(value)
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _hashable(value: Any) -> Any:
    """Return plain numbers with lists and dicts as tuples."""
    if isinstance(value, dict):
        return tuple((name, _hashable(part)) for name, part in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


FITTED_SCALE = "fitted_scale"
"""A field that is left out of JSON where it is "prob"."""


def stored_scale(scale: Any, field: str) -> Scale:
    """Return the scale that a stored map was fitted to, "prob" where none is kept."""
    stored: Scale = stored_choice(scale or "prob", field, get_args(Scale))
    return stored


@dataclass(frozen=True, eq=False)
class CalibrationMap(StoredMap):
    """An estimate of the true calibration map c*(p) = E[Y | p].

    Calling the map gives the estimate itself, which for some families (tops of bins
    with slope 1) may leave [0, 1] a little: only so does the mean distance to the
    diagonal equal the calibration error. `transform` and `to_sql` give calibrated
    probabilities, clipped to [0, 1].

    Parameters
    ----------
    fitted_scale : {"prob", "logit", "percent", "logprob"}
        What the predictions were that the map was fitted to. Calling the map and
        `transform` take probabilities, whatever it is; `to_sql` and `to_python` take
        predictions on this scale.
    """

    fitted_scale: Scale = field(
        default="prob", kw_only=True, repr=False, metadata={"read": stored_scale}
    )

    @property
    def _takes(self) -> Scale:
        return self.fitted_scale

    @abstractmethod
    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""

    @classmethod
    def _values_of_each(
        cls, maps: Sequence[Self], p: FloatVector, which: IntVector
    ) -> FloatVector:
        """Evaluate map ``which[i]`` at ``p[i]``."""
        values = np.empty_like(p)
        for number, map_ in enumerate(maps):
            rows = which == number
            values[rows] = map_.values(p[rows])
        return values

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
        self,
        column: str,
        dialect: Dialect = "ansi",
        *,
        accuracy: float = ACCURACY,
        scale: Scale | None = None,
    ) -> str:
        """Return a SQL expression for the calibrated probability of a column.

        Maps with a short formula, and maps that consist of lines or parabolas, are
        written exactly, with numbers rounded to 1e-9. Others, such as those of
        `smooth`, become tables: a few polynomials, selected by CASE, that differ
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
        scale : {"prob", "logit", "percent", "logprob"}, optional
            What the column contains, if not what the map was fitted to.

        Returns
        -------
        str
            An expression of the calibrated probability, and NULL where the column is
            NULL, NaN or outside the range of its scale, such as [0, 1]. In SQLite,
            text that is a number counts as that number, and other text gives NULL.

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
        return sql_expression(self, column, dialect, accuracy, self._scale_of(scale))

    def _python(self, name: str, accuracy: float, scale: Scale) -> str:
        return python_function(self, name, accuracy, scale)


def values_of_each(
    maps: Sequence[CalibrationMap], p: FloatVector, which: IntVector
) -> FloatVector:
    """Evaluate map ``which[i]`` at ``p[i]``: maps of folds, all of one kind."""
    return type(maps[0])._values_of_each(maps, p, which)  # noqa: SLF001


MAX_CLASSES = 100_000
"""More classes than this are taken for damage in a stored map."""


def require(holds: Any, message: str) -> None:
    """Raise MapFormatError unless something holds of a stored map."""
    if not holds:
        raise MapFormatError(message)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def stored_numbers(values: Any, field: str) -> FloatVector:
    """Return a field of a stored map as finite numbers."""
    are_numbers = isinstance(values, list) and all(map(_is_number, values))
    require(are_numbers, f"field {field!r} of a map must be a list of numbers.")
    try:
        numbers = np.array(values, dtype=np.float64)
    except OverflowError:
        numbers = np.array([np.inf])
    finite = np.isfinite(numbers).all()
    require(finite, f"field {field!r} of a map must contain finite numbers.")
    return numbers


def stored_matrix(rows: Any, field: str) -> FloatMatrix:
    """Return a field of a stored map as a vector, or as rows of the same length."""
    if not (isinstance(rows, list) and rows and isinstance(rows[0], list)):
        return stored_numbers(rows, field)
    numbers = [stored_numbers(row, field) for row in rows]
    same = len({row.size for row in numbers}) == 1
    require(same, f"rows of field {field!r} of a map must have the same length.")
    return np.stack(numbers)


def _stored_number(value: Any, field: str) -> float:
    require(_is_number(value), f"field {field!r} of a map must be a number.")
    return float(stored_numbers([value], field)[0])


def _stored_classes(number: Any, field: str) -> int:
    many = isinstance(number, int) and 2 <= number <= MAX_CLASSES  # noqa: PLR2004
    require(many, f"field {field!r} of a map must be a whole number from 2.")
    return int(number)


def stored_choice(value: Any, field: str, choices: tuple[Any, ...]) -> Any:
    """Return a field of a stored map that is one of a few words."""
    require(value in choices, f"unknown {field} {value!r} of a map.")
    return value


def _stored_flag(flag: Any, field: str) -> bool:
    require(isinstance(flag, bool), f"field {field!r} of a map must be true or false.")
    return bool(flag)


def _stored_ends(values: Any, field: str) -> tuple[float, float]:
    ends = stored_numbers(values, field)
    ascend = ends.size == 2 and 0.0 < ends[0] <= ends[1] < 1.0  # noqa: PLR2004
    rule = "two ascending probabilities between 0 and 1"
    require(ascend, f"field {field!r} of a map must be {rule}.")
    return float(ends[0]), float(ends[1])


def stored_maps(maps: Any, field: str) -> tuple[Any, ...]:
    """Return the maps that a stored map is made of."""
    require(isinstance(maps, list), f"field {field!r} of a map must be a list of maps.")
    return tuple(_stored_map(map_, field) for map_ in maps)


def _stored_map(map_: Any, field: str) -> StoredMap:  # noqa: ARG001
    from calibrant.maps.stored import map_from_dict

    return map_from_dict(map_)


READERS: dict[str, Callable[[Any, str], Any]] = {
    "float": _stored_number,
    "int": _stored_classes,
    "bool": _stored_flag,
    "FloatVector": stored_numbers,
    "FloatMatrix": stored_matrix,
    "tuple[float, float]": _stored_ends,
    "Space": partial(stored_choice, choices=get_args(Space)),
    "Scale": partial(stored_choice, choices=get_args(Scale)),
    "CalibrationMap": _stored_map,
    "MulticlassMap": _stored_map,
    "tuple[CalibrationMap, ...]": stored_maps,
    "tuple[MulticlassMap, ...]": stored_maps,
}
"""How a field is read, by its annotation, unless its metadata have a reader."""


def _read(stored: JsonObject, field: Field[Any]) -> Any:
    reader = field.metadata.get("read") or READERS[str(field.type)]
    return reader(stored.get(field.name), field.name)


def check_line(knots: FloatVector, heights: FloatVector) -> None:
    """Raise MapFormatError unless lines from knot to knot can be drawn."""
    require(
        knots.size > 1 and (np.diff(knots) > 0.0).all(),
        "a map must have at least two knots, in ascending order.",
    )
    with np.errstate(over="ignore"):
        slopes = np.diff(heights) / np.diff(knots)
    finite = np.isfinite(slopes).all()
    require(finite, "slopes between the knots of a map must be finite.")


def check_events(*maps: StoredMap) -> None:
    """Raise MapFormatError unless all maps are maps of one event."""
    for map_ in maps:
        require(
            isinstance(map_, CalibrationMap),
            f"this map must consist of maps of one event; got kind {map_.kind!r}.",
        )
