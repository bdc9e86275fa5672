"""Pieces of SQL that maps share: numbers and quoted names only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.core.array_types import FloatVector


def quoted(column: str) -> str:
    """Return a column's name as SQL reads it, whatever characters it holds.

    Examples
    --------
    >>> print(quoted('odd "name" here'))
    "odd ""name"" here"
    """
    return '"' + column.replace('"', '""') + '"'


def between(low: float, expression: str, high: float) -> str:
    """Return an expression clipped to an interval."""
    return f"LEAST({high!r}, GREATEST({low!r}, {expression}))"


def by_piece(x: str, bends: FloatVector, pieces: Iterable[str]) -> str:
    """Return the expression of the piece that `x` lies in.

    Examples
    --------
    >>> by_piece("x", np.array([0.5]), ["low", "high"])
    'CASE WHEN x < 0.5 THEN low ELSE high END'
    """
    *inner, last = pieces
    cases = [
        f"WHEN {x} < {bend!r} THEN {piece}"
        for bend, piece in zip(bends.tolist(), inner, strict=True)
    ]
    return f"CASE {' '.join(cases)} ELSE {last} END" if cases else last


def lines(x: str, knots: FloatVector, heights: FloatVector) -> list[str]:
    """Return the straight lines from knot to knot."""
    slopes = (np.diff(heights) / np.diff(knots)).tolist()
    parts = zip(knots.tolist(), heights.tolist(), slopes, strict=False)
    return [
        f"{height!r} + {slope!r} * ({x} - {knot!r})" for knot, height, slope in parts
    ]


def logit(name: str, low: float = CLIP, high: float = 1.0 - CLIP) -> str:
    """Return the logit of a probability that is clipped first."""
    p = between(low, name, high)
    return f"LN({p} / (1.0 - {p}))"


def expit(expression: str) -> str:
    """Return the probability with a given logit."""
    # Beyond 700 EXP would overflow; probabilities are 0 or 1 long before.
    return f"1.0 / (1.0 + EXP(LEAST(700.0, -({expression}))))"
