"""Binary maps as SQL expressions and as Python functions."""
# ruff: noqa: SLF001 (what maps tell this module only)

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError
from calibrant.maps.languages import DIALECTS, PYTHON
from calibrant.maps.python_source import PROBABILITY_GUARD, function, lines_of_pieces
from calibrant.numerics.polynomial_pieces import (
    EXACT,
    FINEST,
    exact_pieces,
    fewest_pieces,
    grid,
    range_of_pieces,
)

if TYPE_CHECKING:
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.languages import Dialect, Language
    from calibrant.numerics.polynomial_pieces import Piece

ACCURACY = 1e-6
LEAST_ACCURACY, MOST_ACCURACY = 1e-2, 1e-10
SHORT = 1000
"""Longest formula, in signs, that is not replaced by a table."""
DEGREES = (5, 7, 9)
"""Of polynomials in a table; which of them needs the least text depends on the map."""


class Table(NamedTuple):
    """Polynomials that a map consists of, or that follow it.

    Attributes
    ----------
    pieces : list of Piece
        The polynomials.
    ends : tuple of float, optional
        What values are clipped to, where polynomials leave it.
    note : str
        How accurate the table is, or nothing where it is the map itself.
    """

    pieces: list[Piece]
    ends: tuple[float, float] | None
    note: str = ""

    def clipped(self, language: Language, value: str) -> str:
        """Return an expression of the table's value, clipped if necessary."""
        return (
            language.between(self.ends[0], value, self.ends[1]) if self.ends else value
        )


def sql_expression(
    map_: CalibrationMap, column: str, dialect: Dialect, accuracy: float
) -> str:
    """Return the formula of a map, or else its table, as SQL."""
    language = DIALECTS[check_choice(dialect, DIALECTS, name="dialect")]
    quoted = language.quoted(column)
    name = language.name.format(quoted)
    text, note = _formula(map_, language, name, accuracy), ""
    if text is None:
        table = table_of(map_, accuracy)
        text = table.clipped(language, language.piecewise(name, table.pieces, name))
        note = f"/* {table.note} */ " if table.note else ""
    return f"CASE WHEN {quoted} BETWEEN 0 AND 1 THEN {note}{text} END"


def python_function(map_: CalibrationMap, name: str, accuracy: float) -> str:
    """Return the formula of a map, or else its table, as a function in Python."""
    text, note = _formula(map_, PYTHON, "p", accuracy), ""
    body = [f"return {text}"]
    if text is None:
        table = table_of(map_, accuracy)
        note = f", {table.note}" if table.note else ""
        body = [*lines_of_pieces(table.pieces), f"return {table.clipped(PYTHON, 'c')}"]
    purpose = f"Return the calibrated probability of p{note}; None if p is not one."
    return function(name, purpose, [*PROBABILITY_GUARD, *body])


def check_accuracy(accuracy: float) -> None:
    """Raise where tables cannot be that accurate, or would be of no use."""
    if accuracy != 0.0 and not MOST_ACCURACY <= accuracy <= LEAST_ACCURACY:
        raise OptionError(
            f"accuracy must be a number from {MOST_ACCURACY:g} to {LEAST_ACCURACY:g}, "
            f"or 0 for exact formulas; got {accuracy!r}."
        )


def _formula(
    map_: CalibrationMap, language: Language, name: str, accuracy: float
) -> str | None:
    """Return the formula of a map, unless a table is wanted or necessary."""
    check_accuracy(accuracy)
    text = map_._formula(language, name) if language.ln else None
    return text if text is None or len(text) <= SHORT or not accuracy else None


def table_of(map_: CalibrationMap, accuracy: float) -> Table:
    """Return the polynomials of a map if it has any, else those of the least text."""
    joints = map_._joints()
    if map_._degree is not None:
        tolerance = min(accuracy, EXACT) or FINEST
        exact = exact_pieces(map_.values, map_._degree, joints, tolerance)
        if exact is not None:
            low, high = range_of_pieces(exact)
            return Table(exact, None if 0.0 <= low <= high <= 1.0 else (0.0, 1.0))
    if not accuracy:
        raise OptionError(
            f"accuracy must be above 0 for maps of kind {map_.kind!r} in this dialect, "
            "which has no formula for them."
        )
    tables = [fewest_pieces(map_.values, d, accuracy, joints) for d in DEGREES]
    shortest = min(tables, key=lambda pieces: sum(piece.signs for piece in pieces))
    # No table gives 0 or 1 where the map does not.
    values = map_.transform(grid(joints))
    ends = float(values.min()), float(values.max())
    return Table(shortest, ends, f"within {accuracy:g}")
