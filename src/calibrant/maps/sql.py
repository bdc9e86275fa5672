"""Pieces of SQL that maps share: numbers and quoted names only."""

from __future__ import annotations


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
