"""Pieces of SQL that maps share: numbers and quoted names only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector


def quoted(column: str) -> str:
    """Return a column's name as SQL reads it, whatever characters it holds.

    Examples
    --------
    >>> print(quoted('odd "name" here'))
    "odd ""name"" here"
    """
    return '"' + column.replace('"', '""') + '"'


def within_unit_interval(expression: str) -> str:
    """Return an expression held between 0 and 1."""
    return f"LEAST(1.0, GREATEST(0.0, {expression}))"


def of_probabilities(name: str, expression: str) -> str:
    """Return an expression that is NULL where the column holds no probability.

    Examples
    --------
    >>> of_probabilities("p", "p * p")
    'CASE WHEN p BETWEEN 0.0 AND 1.0 THEN p * p END'
    """
    return f"CASE WHEN {name} BETWEEN 0.0 AND 1.0 THEN {expression} END"


def by_piece(x: str, bends: FloatVector, pieces: list[str]) -> str:
    """Return the expression of the piece that `x` lies in.

    Examples
    --------
    >>> import numpy as np
    >>> by_piece("x", np.array([0.5]), ["low", "high"])
    'CASE WHEN x < 0.5 THEN low ELSE high END'
    """
    if len(pieces) == 1:
        return pieces[0]
    cases = [
        f"WHEN {x} < {bend!r} THEN {piece}"
        for bend, piece in zip(bends.tolist(), pieces, strict=False)
    ]
    return f"CASE {' '.join(cases)} ELSE {pieces[-1]} END"


def clipped_sql(expression: str, clip: float = CLIP) -> str:
    """Return a probability kept off 0 and 1 as for logits."""
    return f"LEAST({1.0 - clip!r}, GREATEST({clip!r}, {expression}))"


def expit_sql(logit: str) -> str:
    """Return the probability that belongs to a logit."""
    # Beyond 700 EXP would overflow; probabilities are 0 or 1 long before.
    return f"1.0 / (1.0 + EXP(LEAST(700.0, -({logit}))))"
