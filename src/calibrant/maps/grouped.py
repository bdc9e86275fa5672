"""Maps that differ by group of rows, with a common map for all other groups."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

import numpy as np

from calibrant.core.arrays import as_array, check_same_length
from calibrant.core.labels import is_missing
from calibrant.core.parameters import check_choice
from calibrant.core.probabilities import check_probabilities, has_two_columns
from calibrant.core.wording import CALIBRATOR_WORDING
from calibrant.exceptions import Argument, OptionError
from calibrant.maps.base import (
    CalibrationMap,
    StoredMap,
    check_events,
    require,
    stored_scale,
)
from calibrant.maps.certificate import Certificate
from calibrant.maps.dialects import DIALECTS
from calibrant.maps.sql_and_python import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import ArrayLike, FloatVector, IntVector, Scale
    from calibrant.maps.dialects import Dialect

DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,14})\.[0-9]{1,15}")
"""Numbers with a point, as files write them."""
Key: TypeAlias = tuple[str | None, ...]
"""The value of each column of groups, as text; None where it is missing."""


def group_keys(columns: Sequence[NDArray[Any]]) -> list[Key]:
    """Return the group of each row, by the values of one or more columns.

    Values are compared as text, so that groups are the same in every file format:
    numbers as Python writes them, but codes, such as 007, as they are.

    Examples
    --------
    >>> group_keys([np.array([7.0, np.nan]), np.array(["a", "b"])])
    [('7', 'a'), (None, 'b')]
    >>> group_keys([np.array(["7", "7.0", "7.50", "007", "true"])])
    [('7',), ('7',), ('7.5',), ('007',), ('True',)]
    """
    return list(zip(*(_texts(column) for column in columns), strict=True))


def _texts(column: NDArray[Any]) -> list[str | None]:
    values = column.tolist()
    text = {value: _text(value) for value in set(values)}
    return [text[value] if value in text else _text(value) for value in values]


def _text(value: Any) -> str | None:
    if is_missing(value):
        return None
    text = str(value)
    if text in ("true", "false"):  # as files of text, and databases, write them
        return text.capitalize()
    number = float(text) if isinstance(value, float) or DECIMAL.fullmatch(text) else 0.5
    if number.is_integer():
        return str(int(number))
    return str(number) if DECIMAL.fullmatch(text) else text


def group_key(values: Iterable[Any]) -> Key:
    """Return one group by the values of its columns."""
    return tuple(_text(value) for value in values)


def keys_of_groups(groups: ArrayLike) -> list[Key]:
    """Return the group of each row of a vector, or of a table with several columns."""
    array = as_array(groups, name="groups")
    return group_keys([array] if array.ndim == 1 else list(array.T))


def _stored_texts(values: Any, field: str, kind: Any = str) -> tuple[Any, ...]:
    texts = isinstance(values, list) and all(isinstance(v, kind) for v in values)
    require(texts, f"field {field!r} of a map must contain lists of text.")
    return tuple(values)


def _stored_keys(keys: Any, field: str) -> tuple[Key, ...]:
    require(isinstance(keys, list), f"field {field!r} of a map must be a list of keys.")
    return tuple(_stored_texts(key, field, str | None) for key in keys)


@dataclass(frozen=True, eq=False)
class GroupedMap(StoredMap):
    """A map for each group of rows, and a common map for rows of other groups.

    Parameters
    ----------
    common : CalibrationMap
        The map of all other groups.
    by : tuple of str
        Names of the columns that define groups.
    keys : tuple of tuple
        The values of these columns for each group, as text; None if missing.
    maps : tuple of CalibrationMap
        The map of each group.
    certificate : Certificate
        What was tried, and what the maps gain.
    fitted_scale : {"prob", "logit", "percent", "logprob"}
        What the predictions were that the maps were fitted to, as `to_sql` takes them.
        Calling the map and `transform` take probabilities.

    Examples
    --------
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.random(2000), np.repeat(["north", "south"], 1000)
    >>> y = rng.random(2000) < np.where(site == "north", p**2, p**0.5)
    >>> map_ = cb.make_calibrator().fit(p, y, groups=site).map_
    >>> map_.transform([0.5, 0.5, 0.5], ["north", "south", "west"]).round(1)
    array([0.2, 0.7, 0.5])
    """

    kind: ClassVar[str] = "grouped"
    common: CalibrationMap
    by: tuple[str, ...] = field(metadata={"read": _stored_texts})
    keys: tuple[Key, ...] = field(metadata={"read": _stored_keys})
    maps: tuple[CalibrationMap, ...]
    certificate: Certificate = field(metadata={"read": Certificate.from_dict})
    fitted_scale: Scale = field(
        default="prob", kw_only=True, repr=False, metadata={"read": stored_scale}
    )

    @property
    def _takes(self) -> Scale:
        return self.fitted_scale

    @cached_property
    def _number(self) -> dict[Key, int]:
        return {key: number for number, key in enumerate(self.keys)}

    def numbers(self, keys: Sequence[Key]) -> IntVector:
        """Return the number of the group of each row; -1 where it has no map."""
        return np.array([self._number.get(key, -1) for key in keys], dtype=np.intp)

    def values(self, p: FloatVector, numbers: IntVector) -> FloatVector:
        """Evaluate the maps at predictions that have been checked."""
        values = np.empty_like(p)
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order]) > 0) + 1
        for rows in np.split(order, starts) if p.size else ():
            values[rows] = self._map(int(numbers[rows[0]])).values(p[rows])
        return values

    def _map(self, number: int) -> CalibrationMap:
        return self.common if number < 0 else self.maps[number]

    def of_group(self, *values: Any) -> CalibrationMap:
        """Return the map of a group, by the values of its columns.

        Parameters
        ----------
        *values : object
            The value of each column.

        Returns
        -------
        CalibrationMap
            Its map, or the common map if the group has none.
        """
        map_ = self._map(self._number.get(group_key(values), -1))
        if self.fitted_scale == map_.fitted_scale:
            return map_
        return replace(map_, fitted_scale=self.fitted_scale)

    def __call__(self, p: ArrayLike, groups: ArrayLike | None = None) -> FloatVector:
        """Evaluate the map of each row's group."""
        p = check_probabilities(p, wording=CALIBRATOR_WORDING)
        return self.values(p, self._numbers_of(p, groups))

    def transform(self, p: ArrayLike, groups: ArrayLike | None = None) -> FloatVector:
        """Return calibrated probabilities.

        Parameters
        ----------
        p : array-like of shape (n,) or (n, 2)
            Predictions.
        groups : array-like of shape (n,) or (n, columns)
            The group of each row. Rows of groups without a map get the common map.

        Returns
        -------
        ndarray of shape (n,) or (n, 2)
            Calibrated probabilities.
        """
        array = as_array(p, name=CALIBRATOR_WORDING.prob)
        event = self(array, groups)
        return np.stack([1.0 - event, event], 1) if has_two_columns(array) else event

    def _numbers_of(self, p: FloatVector, groups: ArrayLike | None) -> IntVector:
        named = ", ".join(map(repr, self.by))
        if groups is None:
            raise OptionError(
                f"this map depends on {named}; also pass ", Argument("groups"), "."
            )
        keys = keys_of_groups(groups)
        check_same_length(p=p, groups=np.array(keys, dtype=object))
        if keys and len(keys[0]) != len(self.by):
            raise OptionError(
                Argument("groups"),
                f" must have {len(self.by)} columns ({named}); got {len(keys[0])}.",
            )
        return self.numbers(keys)

    def _check_fields(self) -> None:
        check_events(self.common, *self.maps)
        fit = self.maps and len(self.keys) == len(self.maps)
        require(fit, "a map of groups must have maps, and one key per map.")
        same = all(len(key) == len(self.by) for key in self.keys)
        require(same, "keys of groups must have one value per column of 'by'.")

    def to_sql(
        self,
        column: str,
        dialect: Dialect = "ansi",
        *,
        by: str | Sequence[str] | None = None,
        accuracy: float = ACCURACY,
        scale: Scale | None = None,
    ) -> str:
        """Return a SQL expression that chooses the map by the columns of groups.

        Parameters
        ----------
        column : str
            Name of the column of predictions; it is quoted.
        dialect : str
            As for maps of one event.
        by : str or sequence of str, optional
            Names of the columns of groups in the database, in the order in which the
            map was fitted; by default, the names that it was fitted with.
        accuracy : float
            Maximum error of tables, which replace long formulas.
        scale : {"prob", "logit", "percent", "logprob"}, optional
            What the column contains, if not what the maps were fitted to.

        Returns
        -------
        str
            A CASE over the groups.
        """
        language = DIALECTS[check_choice(dialect, DIALECTS, name="dialect")]
        to_sql = partial(
            CalibrationMap.to_sql,
            column=column,
            dialect=dialect,
            accuracy=accuracy,
            scale=self._scale_of(scale),
        )
        names = self._columns(by)
        cases = []
        for key, map_ in zip(self.keys, self.maps, strict=True):
            pairs = zip(names, key, strict=True)
            holds = " AND ".join(language.equals(name, value) for name, value in pairs)
            cases.append(f"WHEN {holds} THEN\n{to_sql(map_)}")
        return "\n".join(["CASE", *cases, f"ELSE\n{to_sql(self.common)}", "END"])

    def _columns(self, by: str | Sequence[str] | None) -> tuple[str, ...]:
        """Return what the columns of groups are called in a database."""
        names = self.by if by is None else (by,) if isinstance(by, str) else tuple(by)
        if len(names) != len(self.by):
            raise OptionError(
                Argument("by"),
                f" must name one column for each of {', '.join(map(repr, self.by))}; "
                f"got {len(names)}.",
            )
        return names

    def _python(self, name: str, accuracy: float, scale: Scale) -> NoReturn:  # noqa: ARG002
        raise OptionError(
            "maps of groups cannot be written as Python; write the map of one group, "
            "map_.of_group(...).to_python(), or use SQL."
        )
