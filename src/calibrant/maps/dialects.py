"""Dialects of SQL, and Python: how each writes the formulas of maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.special import expit

from calibrant.core.scales import PERCENT
from calibrant.numerics.links import CLIP
from calibrant.numerics.short_formulas import Piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector, Scale

MAX_LOGIT = 700.0
"""Beyond it exponentials overflow."""

Dialect: TypeAlias = Literal[
    "ansi", "duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite", "mysql"
]


@dataclass(frozen=True)
class Language:
    """Names and signs in which dialects differ.

    None of the functions ever sees NULL, which LEAST and GREATEST skip in some
    dialects and return in others.

    Attributes
    ----------
    quote, quote_within, backslash : str
        Around names, and what is written for these signs within names.
    least, greatest, exp, ln : str
        Functions; `ln` is empty where not every installation has logarithms.
    floating : str
        What makes a decimal number a floating one; else products of decimals
        overflow or lose digits.
    name : str
        The column, or its conversion where no suffix makes numbers floating or text
        would be compared as text.
    limit : str
        A number that the column itself is compared with.
    text : str
        The type of text that is compared sign by sign.
    apostrophe, backslash_in_text : str
        What is written for these signs within text.
    """

    quote: str = '"'
    quote_within: str = '""'
    backslash: str = "\\"
    least: str = "LEAST"
    greatest: str = "GREATEST"
    exp: str = "EXP"
    ln: str = "LN"
    floating: str = ""
    name: str = "{}"
    limit: str = "{}"
    text: str = "VARCHAR"
    apostrophe: str = "''"
    backslash_in_text: str = "\\"
    in_a_row: int = 8  # at most so many pieces are listed in one CASE

    def quoted(self, column: str) -> str:
        """Return a column's name, whatever characters it holds.

        Examples
        --------
        >>> print(DIALECTS["ansi"].quoted('odd "name" here'))
        "odd ""name"" here"
        """
        within = column.replace("\\", self.backslash)
        within = within.replace(self.quote, self.quote_within)
        return f"{self.quote}{within}{self.quote}"

    def equals(self, column: str, value: str | None) -> str:
        """Return the condition that a column has a value, whatever its type.

        Examples
        --------
        >>> print(DIALECTS["ansi"].equals("site", "St. Mary's"))
        CAST("site" AS VARCHAR) = 'St. Mary''s'
        """
        name = self.quoted(column)
        if value is None:
            return f"{name} IS NULL"
        cast, texts = f"CAST({name} AS {self.text})", [value]
        if value in ("False", "True"):
            texts.append(value.lower())  # of booleans
        elif value.removeprefix("-").isdecimal():
            texts.append(f"{value}.0")  # of floating numbers
        texts = [text.replace("\\", self.backslash_in_text) for text in texts]
        within = ["'" + text.replace("'", self.apostrophe) + "'" for text in texts]
        if len(texts) == 1:
            return f"{cast} = {within[0]}"
        return f"{cast} IN ({', '.join(within)})"

    def number(self, value: float) -> str:
        """Return a floating number.

        Examples
        --------
        >>> DIALECTS["duckdb"].number(0.5), DIALECTS["sqlite"].number(0.5)
        ('0.5e0', '0.5')
        """
        text = repr(float(value))
        return text if "e" in text else text + self.floating

    def lies(self, column: str, low: float | None, high: float) -> str:
        """Return the condition that a column lies between two numbers.

        Examples
        --------
        >>> DIALECTS["ansi"].lies("p", 0.0, 1.0), DIALECTS["ansi"].lies("p", None, 0.0)
        ('p BETWEEN 0 AND 1', 'p <= 0')
        """
        lowest, highest = (self.limit.format(f"{x:g}") for x in (low or 0.0, high))
        return (
            f"{column} <= {highest}"
            if low is None
            else f"{column} BETWEEN {lowest} AND {highest}"
        )

    def between(self, low: float, expression: str, high: float) -> str:
        """Return an expression clipped to an interval."""
        lowest = f"{self.greatest}({self.number(low)}, {expression})"
        return f"{self.least}({self.number(high)}, {lowest})"

    def expit(self, expression: str) -> str:
        """Return the probability with a given logit."""
        # Beyond 700 EXP would overflow; probabilities are 0 or 1 long before.
        exponent = f"{self.least}({self.number(MAX_LOGIT)}, -({expression}))"
        one = self.number(1.0)
        return f"{one} / ({one} + {self.exp}({exponent}))"

    def probability(self, name: str, scale: Scale) -> str:
        """Return the probability that a number on a scale is.

        Examples
        --------
        >>> DIALECTS["ansi"].probability("p", "percent")
        '(p / 100.0e0)'
        >>> DIALECTS["ansi"].probability("p", "logprob")
        'EXP(GREATEST(-700.0e0, p))'
        """
        if scale == "prob":
            return name
        if scale == "percent":
            return f"({name} / {self.number(PERCENT)})"
        # An exponential that is too small for a number is an error in Postgres.
        low = f"{self.greatest}({self.number(-MAX_LOGIT)}, {name})"
        if scale == "logprob":
            return f"{self.exp}({low})"
        return f"({self.expit(f'{self.least}({self.number(MAX_LOGIT)}, {low})')})"

    def logit(self, name: str, low: float = CLIP, high: float = 1.0 - CLIP) -> str:
        """Return the logit of a probability that is clipped first."""
        p = self.between(low, name, high)
        return f"{self.ln}({p} / ({self.number(1.0)} - {p}))"

    def choice(self, condition: str, yes: str, no: str) -> str:
        """Return one of two expressions by a condition."""
        return f"CASE WHEN {condition} THEN {yes} ELSE {no} END"

    def piecewise(self, name: str, pieces: Sequence[Piece], x: str) -> str:
        """Return the polynomial in x of the piece that a probability lies in.

        Examples
        --------
        >>> from calibrant.numerics.short_formulas import Piece
        >>> pieces = [Piece(0.5, 0.0, (0.1,)), Piece(1.0, 0.0, (0.8,))]
        >>> DIALECTS["sqlite"].piecewise("p", pieces, "p")
        'CASE WHEN p<0.5 THEN 0.1 ELSE 0.8 END'
        """
        if len(pieces) == 1:
            return self.polynomial(pieces[0], x)
        if len(pieces) <= self.in_a_row:
            return self._one_by_one(name, pieces, x)
        half = len(pieces) // 2  # bisection keeps evaluation short
        below = self.piecewise(name, pieces[:half], x)
        above = self.piecewise(name, pieces[half:], x)
        end = self.number(pieces[half - 1].end)
        return self.choice(f"{name}<{end}", below, above)

    def _one_by_one(self, name: str, pieces: Sequence[Piece], x: str) -> str:
        *others, last = pieces
        cases = [
            f"WHEN {name}<{self.number(piece.end)} THEN {self.polynomial(piece, x)}"
            for piece in others
        ]
        return f"CASE {' '.join(cases)} ELSE {self.polynomial(last, x)} END"

    def polynomial(self, piece: Piece, x: str) -> str:
        """Return a polynomial by Horner's rule.

        Examples
        --------
        >>> from calibrant.numerics.short_formulas import Piece
        >>> piece = Piece(1.0, 0.5, (0.25, 1.0, -0.5))
        >>> DIALECTS["sqlite"].polynomial(piece, "p")
        '0.25+(p-0.5)*(1.0-0.5*(p-0.5))'
        """
        *lower, last = piece.coefficients
        if not lower:
            return self.number(last)
        if piece.origin:
            sign = "-" if piece.origin > 0.0 else "+"  # two minus begin a comment
            x = f"({x}{sign}{self.number(abs(piece.origin))})"
        text = x if last == 1.0 else f"{self.number(last)}*{x}"
        for number in reversed(lower[1:]):
            text = f"{x}*({self._sum(number, text)})"
        return self._sum(lower[0], text)

    def _sum(self, number: float, text: str) -> str:
        sign = "" if text.startswith("-") else "+"
        return f"{self.number(number)}{sign}{text}" if number else text


class PythonLanguage(Language):
    """Python writes conditions the other way round."""

    def choice(self, condition: str, yes: str, no: str) -> str:
        """Return one of two expressions by a condition."""
        return f"({yes} if {condition} else {no})"

    def lies(self, column: str, low: float | None, high: float) -> str:
        """Return the condition that a number lies between two others."""
        return (
            f"{column} <= {high!r}"
            if low is None
            else f"{low!r} <= {column} <= {high!r}"
        )


TWICE = "\\\\"
DIALECTS: dict[Dialect, Language] = {
    "ansi": Language(floating="e0"),
    "duckdb": Language(floating="e0"),
    # Else numbers of columns of type real are compared with rounded ones.
    "postgres": Language(name="CAST({} AS double precision)"),
    "bigquery": Language(
        quote="`",
        quote_within="\\`",
        backslash=TWICE,
        text="STRING",
        apostrophe="\\'",
        backslash_in_text=TWICE,
    ),
    # It has no floating numbers but by conversion.
    "snowflake": Language(name="{}::FLOAT", backslash_in_text=TWICE),
    "spark": Language(
        quote="`",
        quote_within="``",
        floating="e0",
        text="STRING",
        apostrophe="\\'",
        backslash_in_text=TWICE,
    ),
    # In double quotes, a name that does not exist would be a string.
    "sqlite": Language(
        quote="`",
        quote_within="``",
        least="MIN",
        greatest="MAX",
        exp="",
        ln="",
        # A column may contain text, which is compared as text, or is above all numbers,
        # unless it is converted or the other number has a type. That alone tells text
        # such as "abc" from 0, which it would be converted to.
        name="CAST({} AS REAL)",
        limit="CAST({} AS REAL)",
        text="TEXT",
        in_a_row=10_000,  # its parser cannot read many cases within cases
    ),
    "mysql": Language(
        quote="`",
        quote_within="``",
        floating="e0",
        text="BINARY",
        backslash_in_text=TWICE,
    ),
}
PYTHON = PythonLanguage(
    least="min",
    greatest="max",
    exp="2.718281828459045 ** ",
    ln="logarithm",
    in_a_row=1,
)


def lines_between(knots: FloatVector, heights: FloatVector) -> list[Piece]:
    """Return the lines from knot to knot between logits, by probabilities."""
    slopes = np.diff(heights) / np.diff(knots)
    parts = zip(expit(knots[1:]), knots, heights, slopes, strict=False)
    return [Piece(float(e), float(k), (float(h), float(s))) for e, k, h, s in parts]
