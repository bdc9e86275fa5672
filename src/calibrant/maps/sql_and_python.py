"""Maps as SQL expressions, and as functions in plain Python without imports."""
# ruff: noqa: SLF001 (what maps tell this module only)

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logit

from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError
from calibrant.maps.dialects import DIALECTS, PYTHON
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
    from collections.abc import Callable, Iterable

    from calibrant.core.array_types import FloatVector, Scale
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.dialects import Dialect, Language
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
FARTHEST = 800.0
"""Logarithms and logits beyond it all have the same probability, 0 or 1."""
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

TO_PROBABILITY: dict[Scale, Callable[[FloatVector], FloatVector]] = {
    "logit": expit,
    "logprob": np.exp,
}
"""Scales whose probabilities differ in the last digit between languages."""

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
    value_range : tuple of float, optional
        What values are clipped to, where polynomials leave it.
    error : float
        How far the table is off; 0 where it is the map itself.
    """

    pieces: list[Piece]
    value_range: tuple[float, float] | None
    error: float = 0.0

    def with_ends(self, change: Callable[[FloatVector], FloatVector]) -> Table:
        """Return the table with other ends of its pieces."""
        ends = change(np.array([piece.end for piece in self.pieces])).tolist()
        pairs = zip(self.pieces, ends, strict=True)
        return self._replace(pieces=[piece._replace(end=end) for piece, end in pairs])

    def on_scale(self, scale: Scale) -> Table:
        """Return the table with ends among logits or logarithms.

        Between some neighbouring probabilities there is no logit.
        """
        table = self.with_ends(lambda p: least_with_probability(p, scale))
        *others, last = table.pieces
        starts = [-np.inf, *(piece.end for piece in others)]
        kept = [
            piece
            for piece, start in zip(others, starts, strict=False)
            if piece.end > start
        ]
        return self._replace(pieces=[*kept, last])

    @property
    def note(self) -> str:
        """Return how accurate the table is, in words."""
        return f"within {self.error:.2g}" if self.error else ""

    def clipped(self, language: Language, value: str) -> str:
        """Return an expression of the table's value, clipped if necessary."""
        if self.value_range is None:
            return value
        low, high = self.value_range
        return language.between(low, value, high)


def least_with_probability(p: FloatVector, scale: Scale) -> FloatVector:
    """Return the smallest logits or logarithms whose probabilities are at least p.

    So the same predictions lie below a jump of a map as after a conversion to
    probabilities, whose last digit depends on the software that converts them.

    Examples
    --------
    >>> least_with_probability(np.array([0.2, 0.9]), "logprob").round(3)
    array([-1.609, -0.105])
    """
    low = np.full(p.shape, -FARTHEST)
    high = -low if scale == "logit" else 0.0 * low
    while True:
        middle = 0.5 * (low + high)
        if ((middle == low) | (middle == high)).all():
            return high
        reached = TO_PROBABILITY[scale](middle) >= p
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)


@dataclass(frozen=True)
class StretchedMap:
    """A map as a function of logarithms or logits that are moved into [0, 1].

    For dialects without exponentials.
    """

    map_: CalibrationMap
    scale: Scale
    _degree: ClassVar[None] = None

    @property
    def input_range(self) -> tuple[float, float]:
        """Return the logarithms or logits that become 0 and 1."""
        return -REACH, REACH if self.scale == "logit" else 0.0

    def values(self, t: FloatVector) -> FloatVector:
        """Evaluate the map at moved logarithms or logits."""
        return self.map_.values(self.probabilities(t))

    def probabilities(self, t: FloatVector) -> FloatVector:
        """Return the probabilities of moved logarithms or logits.

        Rounding carries none of them across a joint of the map, which may be a jump.
        """
        low, high = self.input_range
        p = TO_PROBABILITY[self.scale](low + (high - low) * t)
        joints, moved = self._moved_joints
        place = np.searchsorted(moved, t, side="right")
        starts = np.append(0.0, joints)[place]
        stops = np.append(np.nextafter(joints, 0.0), 1.0)[place]
        at_joint = np.append(-np.inf, moved)[place] == t
        return np.where(at_joint, starts, np.clip(p, starts, stops))

    @cached_property
    def _moved_joints(self) -> tuple[FloatVector, FloatVector]:
        """Return the joints of the map, and different numbers that they move to."""
        p = np.unique(self.map_._joints())
        p = p[(p > 0.0) & (p < 1.0)]
        low, high = self.input_range
        moved = ((logit(p) if self.scale == "logit" else np.log(p)) - low) / (
            high - low
        )
        for place in range(1, moved.size):  # a map may have a value of its own at one p
            moved[place] = max(moved[place], np.nextafter(moved[place - 1], np.inf))
        return p, moved

    def _joints(self) -> FloatVector:
        _, moved = self._moved_joints
        return np.union1d(np.nextafter(moved, 0.0), moved)

    def _formula(self, language: Language, name: str) -> None:
        """Return none: there is no exponential to write it with."""

    def moved(self, language: Language, name: str) -> str:
        """Return the expression that the map is a function of."""
        low, high = self.input_range  # few brackets: SQLite reads 100 within each other
        start, width = -low / (high - low), high - low
        return language.between(0.0, f"{start!r}+{name}/{width!r}", 1.0)


def sql_expression(
    map_: CalibrationMap, column: str, dialect: Dialect, accuracy: float, scale: Scale
) -> str:
    """Return the formula of a map, or else its table, as SQL."""
    language = DIALECTS[check_choice(dialect, DIALECTS, name="dialect")]
    quoted = language.quoted(column)
    given = language.name.format(quoted)
    if scale in TO_PROBABILITY and not language.exp:
        stretched = StretchedMap(map_, scale)
        name = stretched.moved(language, given)
        form = _form(stretched, language, name, accuracy)
        if isinstance(form, Table):
            form = form.with_ends(stretched.probabilities)
    else:
        name = language.probability(given, scale)
        form = _form(map_, language, name, accuracy)
    note = ""
    if isinstance(form, Table):
        at, pieces = name, form.pieces
        if scale in TO_PROBABILITY:
            at, pieces = given, form.on_scale(scale).pieces
        note = f"/* {form.note} */ " if form.note else ""
        form = form.clipped(language, language.piecewise(at, pieces, name))
    return f"CASE WHEN {language.lies(quoted, *RANGES[scale])} THEN {note}{form} END"


def python_function(
    map_: CalibrationMap, name: str, accuracy: float, scale: Scale
) -> str:
    """Return the formula of a map, or else its table, as a function in Python."""
    form = _form(map_, PYTHON, "p", accuracy)
    body, note = [f"return {form}"], ""
    converted = PYTHON.probability("p", scale)
    conversion = [] if scale == "prob" else [f"p = {converted}"]
    if isinstance(form, Table):
        at, pieces = "p", form.pieces
        if scale in TO_PROBABILITY:
            at, pieces = "given", form.on_scale(scale).pieces
            conversion = [f"given, p = p, {converted}"]
        body = [*lines_of_pieces(pieces, at), f"return {form.clipped(PYTHON, 'c')}"]
        note = f", {form.note}" if form.note else ""
    what = NOUNS[scale]
    purpose = f"Return the calibrated probability of {what}{note}; None if invalid."
    valid = PYTHON.lies("p", *RANGES[scale])
    guard = [f"if p is None or not {valid}:", f"{TAB}return None"]
    return function(name, purpose, [*guard, *conversion, *body])


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


def lines_of_pieces(pieces: list[Piece], at: str) -> list[str]:
    r"""Return statements that set c to a function of p, the piece of which `at` tells.

    Examples
    --------
    >>> from calibrant.numerics.short_formulas import Piece
    >>> pieces = [Piece(0.5, 0.0, (0.1,)), Piece(1.0, 0.0, (0.2, 0.5))]
    >>> print("\n".join(lines_of_pieces(pieces, "p")))
    if p < 0.5:
        c = 0.1
    else:
        c = 0.2+0.5*p
    """
    if len(pieces) == 1:
        return [f"c = {PYTHON.polynomial(pieces[0], 'p')}"]
    half = len(pieces) // 2
    below = lines_of_pieces(pieces[:half], at)
    above = lines_of_pieces(pieces[half:], at)
    return [
        f"if {at} < {pieces[half - 1].end!r}:",
        *(TAB + line for line in below),
        "else:",
        *(TAB + line for line in above),
    ]
