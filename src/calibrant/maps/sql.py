"""Pieces of SQL that maps share: numbers and quoted names only."""

from __future__ import annotations

from calibrant.numerics.links import CLIP


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


def clipped_sql(expression: str) -> str:
    """Return a probability kept off 0 and 1 as for logits."""
    return f"LEAST({1.0 - CLIP!r}, GREATEST({CLIP!r}, {expression}))"


def expit_sql(logit: str) -> str:
    """Return the probability that belongs to a logit."""
    # Beyond 700 EXP would overflow; probabilities are 0 or 1 long before.
    return f"1.0 / (1.0 + EXP(LEAST(700.0, -({logit}))))"
