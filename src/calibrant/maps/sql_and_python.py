"""Maps as SQL expressions, and as functions in plain Python without imports."""
# ruff: noqa: SLF001 (what maps tell this module only)

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError
from calibrant.maps.languages import DIALECTS, PYTHON
from calibrant.numerics.links import CLIP
from calibrant.numerics.short_formulas import (
    EXACT,
    FINEST,
    exact_pieces,
    fewest_pieces,
    followed_points,
    range_of_pieces,
    values_of_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.core.array_types import FloatVector, Scale
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.languages import Dialect, Language
    from calibrant.numerics.short_formulas import Piece

ACCURACY = 1e-6
LOOSEST, STRICTEST = 1e-2, 1e-10
"""Largest and smallest difference from the map that can be asked for."""
SHORT = 1000
"""Longest formula, in signs, that is not replaced by a table."""
ROOM = 2.0
"""Times the accuracy by which a table may be off between the points of its grid."""
DEGREES = (5, 7, 9)
"""Of polynomials in a table; which of them needs the least text depends on the map."""
LOW_DEGREES = (3,)
"""Where expressions within polynomials are long: SQLite reads few brackets."""

TAB = " " * 4

REACH = 37.0
"""Logarithms and logits of this size belong to 0 or 1 as maps treat them."""
MAX_NUMBER = 1e300

RANGES: dict[Scale, tuple[float | None, float]] = {
    "prob": (0.0, 1.0),
    "percent": (0.0, 100.0),
    "logprob": (None, 0.0),
    "logit": (-MAX_NUMBER, MAX_NUMBER),
}
"""Between which numbers a valid prediction on a scale lies."""

# From the number of binary digits, by Halley's steps: each triples correct digits.
LOGARITHM = """\
def logarithm(x):
    top, bottom = x.as_integer_ratio()
    y = 0.6931471805599453 * (top.bit_length() - bottom.bit_length())
    for _ in range(4):
        power = 2.718281828459045 ** y
        y += 2.0 * (x - power) / (x + power)
    return y
"""
SOFTMAX = """\
def softmax(x):
    top = max(x)
    raised = [2.718281828459045 ** (v - top) for v in x]
    total = sum(raised)
    return [v / total for v in raised]
"""
LOG_SOFTMAX = """\
def log_softmax(x):
    top = max(x)
    total = logarithm(sum(2.718281828459045 ** (v - top) for v in x))
    return [v - top - total for v in x]
"""
CENTRED = """\
def centred(x):
    mean = sum(x) / len(x)
    return [v - mean for v in x]
"""
HELPERS = {
    "centred": CENTRED,
    "log_softmax": LOG_SOFTMAX,
    "softmax": SOFTMAX,
    "logarithm": LOGARITHM,
}

PREDICTIONS: dict[Scale, tuple[str, str]] = {
    "prob": ("probabilities", "0.0 <= v <= 1.0"),
    "percent": ("percentages", "0.0 <= v <= 100.0"),
    "logprob": ("log-probabilities", "v <= 0.0"),
    "logit": ("logits", "-1e999 < v < 1e999"),
}
"""What predictions on a scale are, and what holds for each class."""
NOUNS: dict[Scale, str] = {
    "prob": "p",
    "percent": "the percentage p",
    "logprob": "the log-probability p",
    "logit": "the logit p",
}


class Table(NamedTuple):
    """Polynomials that a map consists of, or that follow it.

    Attributes
    ----------
    pieces : list of Piece
        The polynomials.
    ends : tuple of float, optional
        What values are clipped to, where polynomials leave it.
    error : float
        How far the table is off; 0 where it is the map itself.
    """

    pieces: list[Piece]
    ends: tuple[float, float] | None
    error: float = 0.0

    @property
    def note(self) -> str:
        """Return how accurate the table is, in words."""
        return f"within {self.error:.2g}" if self.error else ""

    def clipped(self, language: Language, value: str) -> str:
        """Return an expression of the table's value, clipped if necessary."""
        return (
            language.between(self.ends[0], value, self.ends[1]) if self.ends else value
        )


@dataclass(frozen=True)
class StretchedMap:
    """A map as a function of logarithms or logits that are moved into [0, 1].

    For dialects without exponentials.
    """

    map_: CalibrationMap
    scale: Scale
    _degree: ClassVar[None] = None

    @property
    def ends(self) -> tuple[float, float]:
        """Return the logarithms or logits that become 0 and 1."""
        return -REACH, REACH if self.scale == "logit" else 0.0

    def values(self, t: FloatVector) -> FloatVector:
        """Evaluate the map at moved logarithms or logits."""
        low, high = self.ends
        x = low + (high - low) * t
        return self.map_.values(expit(x) if self.scale == "logit" else np.exp(x))

    def _joints(self) -> FloatVector:
        p = self.map_._joints()
        p = p[(p > 0.0) & (p < 1.0)]
        low, high = self.ends
        x = logit(p) if self.scale == "logit" else np.log(p)
        return np.asarray((x - low) / (high - low))

    def _formula(self, language: Language, name: str) -> None:
        """Return none: there is no exponential to write it with."""

    def moved(self, language: Language, name: str) -> str:
        """Return the expression that the map is a function of."""
        low, high = self.ends  # few brackets: SQLite reads 100 within each other
        start, width = -low / (high - low), high - low
        return language.between(0.0, f"{start!r}+{name}/{width!r}", 1.0)


def sql_expression(
    map_: CalibrationMap, column: str, dialect: Dialect, accuracy: float, scale: Scale
) -> str:
    """Return the formula of a map, or else its table, as SQL."""
    language = DIALECTS[check_choice(dialect, DIALECTS, name="dialect")]
    quoted = language.quoted(column)
    name = language.name.format(quoted)
    if scale in ("logit", "logprob") and not language.exp:
        stretched = StretchedMap(map_, scale)
        name = stretched.moved(language, name)
        form = _form(stretched, language, name, accuracy)
    else:
        name = language.probability(name, scale)
        form = _form(map_, language, name, accuracy)
    note = ""
    if isinstance(form, Table):
        note = f"/* {form.note} */ " if form.note else ""
        form = form.clipped(language, language.piecewise(name, form.pieces, name))
    return f"CASE WHEN {language.lies(quoted, *RANGES[scale])} THEN {note}{form} END"


def python_function(
    map_: CalibrationMap, name: str, accuracy: float, scale: Scale
) -> str:
    """Return the formula of a map, or else its table, as a function in Python."""
    form = _form(map_, PYTHON, "p", accuracy)
    body, note = [f"return {form}"], ""
    if isinstance(form, Table):
        body = [*lines_of_pieces(form.pieces), f"return {form.clipped(PYTHON, 'c')}"]
        note = f", {form.note}" if form.note else ""
    what = NOUNS[scale]
    purpose = f"Return the calibrated probability of {what}{note}; None if invalid."
    guard = [
        f"if p is None or not {PYTHON.lies('p', *RANGES[scale])}:",
        f"{TAB}return None",
    ]
    if scale != "prob":
        guard.append(f"p = {PYTHON.probability('p', scale)}")
    return function(name, purpose, [*guard, *body])


def check_accuracy(accuracy: float) -> None:
    """Raise where tables cannot be that accurate, or would be of no use."""
    if accuracy != 0.0 and not STRICTEST <= accuracy <= LOOSEST:
        raise OptionError(
            f"accuracy must be a number from {STRICTEST:g} to {LOOSEST:g}, "
            f"or 0 for exact formulas; got {accuracy!r}."
        )


def _form(
    map_: CalibrationMap | StretchedMap,
    language: Language,
    name: str,
    accuracy: float,
) -> str | Table:
    """Return a short formula, or a table; a long formula where no table follows."""
    check_accuracy(accuracy)
    text = map_._formula(language, name) if language.ln else None
    if text is not None and (len(text) <= SHORT or not accuracy):
        return text
    table = _exact_table(map_, accuracy) or _shortest_table(map_, accuracy)
    return table if text is None or table.error <= accuracy else text


def _exact_table(map_: CalibrationMap | StretchedMap, accuracy: float) -> Table | None:
    """Return the polynomials that a map consists of, if it does."""
    if map_._degree is None:
        return None
    tolerance = min(accuracy, EXACT) or FINEST
    pieces = exact_pieces(map_.values, map_._degree, map_._joints(), tolerance)
    if pieces is None:
        return None
    low, high = range_of_pieces(pieces)
    return Table(pieces, None if 0.0 <= low <= high <= 1.0 else (0.0, 1.0))


def _shortest_table(map_: CalibrationMap | StretchedMap, accuracy: float) -> Table:
    """Return polynomials that follow a map, of the degree that needs the least text."""
    accuracy, joints = accuracy or STRICTEST, map_._joints()
    degrees = LOW_DEGREES if isinstance(map_, StretchedMap) else DEGREES
    tables = [fewest_pieces(map_.values, d, accuracy, joints) for d in degrees]
    pieces = min(tables, key=lambda pieces: sum(piece.signs for piece in pieces))
    points, values = followed_points(map_.values, joints)
    between = np.linspace(points[:-1], points[1:], 6, axis=1)[:, 1:-1].reshape(-1)
    off = np.abs(values_of_pieces(pieces, between) - map_.values(between)).max()
    error = accuracy if off <= ROOM * accuracy else float(off)
    # No table gives 0 or 1 where the map does not.
    low, high = np.clip([values.min(), values.max()], 0.0, 1.0).tolist()
    return Table(pieces, (low, high), error)


def function(name: str, purpose: str, body: Iterable[str]) -> str:
    """Return a function of p, with the functions that it calls inside.

    Examples
    --------
    >>> print(function("half", "Return half of p.", ["return p / 2"]), end="")
    def half(p):
        \"\"\"Return half of p.\"\"\"
        return p / 2
    """
    text = "\n".join(body) + "\n"
    # Functions within have helpers of their own.
    calls = "\n".join(line for line in text.splitlines() if line[:1] != " ")
    for helper, source in HELPERS.items():
        if re.search(rf"\b{helper}\(", calls):
            text, calls = source + text, calls + source
    return f"def {name}(p):\n" + indent(f'"""{purpose}"""\n{text}', TAB)


def function_of_classes(name: str, classes: int, scale: Scale, body: str) -> str:
    """Return a function of the predictions of all classes."""
    what, holds = PREDICTIONS[scale]
    purpose = f"Return calibrated probabilities of {classes} classes from their {what}."
    guard = f"if any(v is None or not {holds} for v in p):\n{TAB}return None"
    return function(name, purpose, [guard, body])


def probabilities_text(scale: Scale) -> str:
    """Return the expression of the classes' probabilities."""
    if scale in ("logit", "logprob"):
        return "softmax(p)"
    return "[v / total for total in [sum(p)] for v in p]"


def log_probabilities_text(scale: Scale, floor: float = CLIP) -> str:
    """Return the expression of their logarithms."""
    if scale == "logit":
        return "log_softmax(p)"
    return f"[logarithm(max(v, {floor!r})) for v in {probabilities_text(scale)}]"


def logits_text(scale: Scale) -> str:
    """Return the expression of the classes' logits, up to a constant."""
    return "p" if scale == "logit" else log_probabilities_text(scale)


def lines_of_pieces(pieces: list[Piece]) -> list[str]:
    r"""Return statements that set c to the value of the piece that p lies in.

    Examples
    --------
    >>> from calibrant.numerics.short_formulas import Piece
    >>> pieces = [Piece(0.5, 0.0, (0.1,)), Piece(1.0, 0.0, (0.2, 0.5))]
    >>> print("\n".join(lines_of_pieces(pieces)))
    if p < 0.5:
        c = 0.1
    else:
        c = 0.2+0.5*p
    """
    if len(pieces) == 1:
        return [f"c = {PYTHON.polynomial(pieces[0], 'p')}"]
    half = len(pieces) // 2
    below, above = lines_of_pieces(pieces[:half]), lines_of_pieces(pieces[half:])
    return [
        f"if p < {pieces[half - 1].end!r}:",
        *(TAB + line for line in below),
        "else:",
        *(TAB + line for line in above),
    ]
