"""Numbers in sentences: what differs reads differently."""

from __future__ import annotations

LEAST, MOST = 3, 12
TINY = 1e-5
"""Smaller numbers are written with an exponent."""


def told(value: float, decimals: int = LEAST) -> str:
    """Return a probability; only 0 and 1 themselves read as 0 and 1.

    Examples
    --------
    >>> told(0.25), told(0.00042), told(0.99996), told(1.0), told(2e-7)
    ('0.250', '0.0004', '0.99996', '1.000', '2e-07')
    """
    if 0.0 < value < TINY:
        return f"{value:.1g}"
    for digits in range(decimals, MOST):
        text = f"{value:.{digits}f}"
        if float(text) not in (0.0, 1.0) or value in (0.0, 1.0):
            return text
    return f"{value:.{MOST}f}"


def apart(first: float, second: float, least: int = LEAST) -> int:
    """Return how many decimals tell two probabilities apart, three or more.

    Examples
    --------
    >>> apart(0.2, 0.4), apart(0.99991, 0.99996), apart(0.3, 0.3)
    (3, 4, 3)
    """
    if first == second:
        return least
    for digits in range(least, MOST):
        if f"{first:.{digits}f}" != f"{second:.{digits}f}":
            return digits
    return MOST


def both(first: float, second: float) -> tuple[str, str]:
    """Return two probabilities that read differently where they differ.

    Examples
    --------
    >>> both(0.4, 0.25), both(0.99991, 0.99996), both(0.0004, 0.0066)
    (('0.400', '0.250'), ('0.99991', '0.99996'), ('0.0004', '0.0066'))
    """
    digits = apart(first, second)
    for value in (first, second):
        text = told(value, digits)
        digits = max(digits, len(text.partition(".")[2]))
    return told(first, digits), told(second, digits)


def span(left: float, right: float) -> str:
    """Return a range of predictions in words.

    Examples
    --------
    >>> span(0.2, 0.4), span(0.99991, 0.99996), span(0.3, 0.3)
    ('from 0.200 to 0.400', 'from 0.99991 to 0.99996', 'of 0.3')
    """
    first, last = both(left, right)
    return f"of {left:.6g}" if first == last else f"from {first} to {last}"


def counted(number: float) -> str:
    """Return a number of rows, or a sum of weights, never with an exponent.

    Examples
    --------
    >>> counted(481.0), counted(1_709_267.0), counted(2.25)
    ('481', '1,709,267', '2.2')
    """
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
