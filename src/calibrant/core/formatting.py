"""Numbers and names in sentences and tables; numbers that differ read differently."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_DECIMALS, MAX_DECIMALS = 3, 12
TINY = 1e-5
"""Smaller numbers are written with an exponent."""
UNKNOWN = "\N{EN DASH}"


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals; 0 has no sign.

    >>> fixed(-0.25, 1), fixed(-0.004, 2), fixed(12.0, 0)
    ('-0.2', '0.00', '12')
    """
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def format_estimate(value: float, decimals: int) -> str:
    """Return an estimate; a hyphen where there is none (NaN)."""
    return "-" if isnan(value) else fixed(value, decimals)


def format_limits(low: float, high: float, decimals: int) -> str:
    """Return the ends of an interval; nothing where there is none (NaN)."""
    if isnan(low):
        return ""
    return f"{fixed(low, decimals)} to {fixed(high, decimals)}"


def format_interval(
    value: float, low: float, high: float, decimals: int, level: str = ""
) -> str:
    """Return an estimate with its interval, if it has one, and perhaps its level.

    Examples
    --------
    >>> from math import nan
    >>> format_interval(0.5, 0.25, 0.75, 2), format_interval(0.5, nan, nan, 1)
    ('0.50 (0.25 to 0.75)', '0.5')
    """
    number = format_estimate(value, decimals)
    limits = format_limits(low, high, decimals)
    return f"{number} ({level}{limits})" if limits else number


def format_number(value: float | None, decimals: int = MIN_DECIMALS) -> str:
    """Return a number of a table; a dash where it is not known.

    >>> format_number(0.03149), format_number(-0.00001), format_number(12.0, 0)
    ('0.031', '0.000', '12')
    """
    return UNKNOWN if value is None else fixed(value, decimals)


def format_pvalue(value: float | None) -> str:
    """Return a p-value; a dash where it is not known."""
    if value is None:
        return UNKNOWN
    return "< 0.001" if value < 0.001 else f"{value:.3f}"  # noqa: PLR2004


def format_probability(value: float | None, decimals: int = MIN_DECIMALS) -> str:
    """Return a probability; only 0 and 1 themselves read as 0 and 1.

    A dash where it is not known.

    >>> [format_probability(p) for p in (0.25, 0.00042, 0.99996, 2e-7, 1.0 - 4e-15)]
    ['0.250', '0.0004', '0.99996', '2e-07', '1 - 4e-15']
    >>> format_probability(1.0, 12)
    '1.000'
    """
    if value is None:
        return UNKNOWN
    if value in (0.0, 1.0):
        return f"{value:.{MIN_DECIMALS}f}"
    if 0.0 < value < TINY:
        return f"{value:.1g}"
    for digits in range(min(decimals, MAX_DECIMALS - 1), MAX_DECIMALS):
        text = f"{value:.{digits}f}"
        if float(text) not in (0.0, 1.0):
            return text
    return f"1 - {1.0 - value:.1g}"


def decimals_to_distinguish(first: float, second: float) -> int:
    """Return how many decimals distinguish two probabilities, at least three.

    >>> decimals_to_distinguish(0.2, 0.4), decimals_to_distinguish(0.99991, 0.99996)
    (3, 4)
    """
    if first == second:
        return MIN_DECIMALS
    for digits in range(MIN_DECIMALS, MAX_DECIMALS):
        if f"{first:.{digits}f}" != f"{second:.{digits}f}":
            return digits
    return MIN_DECIMALS  # no number of decimals would do


def format_pair(first: float, second: float) -> tuple[str, str]:
    """Return two probabilities that read differently where they differ.

    >>> format_pair(0.4, 0.25), format_pair(0.99991, 0.99996)
    (('0.400', '0.250'), ('0.99991', '0.99996'))
    """
    digits = decimals_to_distinguish(first, second)
    for value in (first, second):
        text = format_probability(value, digits)
        digits = max(digits, len(text.partition(".")[2]))
    return format_probability(first, digits), format_probability(second, digits)


def format_range(left: float, right: float) -> str:
    """Return a range of predictions in words.

    >>> format_range(0.2, 0.4), format_range(0.3, 0.3)
    ('from 0.200 to 0.400', 'of 0.3')
    """
    first, last = format_pair(left, right)
    return f"of {left:.6g}" if first == last else f"from {first} to {last}"


def join_names(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> join_names(["a", "b", "c"]), join_names(["a"])
    ('a, b and c', 'a')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def format_count(number: float) -> str:
    """Return a number of rows, or a sum of weights, never with an exponent.

    >>> format_count(481.0), format_count(1_709_267.0), format_count(2.25)
    ('481', '1,709,267', '2.2')
    """
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
