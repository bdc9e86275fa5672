"""Numbers and sentences as pages show them."""

from __future__ import annotations

import re

from calibrant.checks import formatting
from calibrant.checks.formatting import format_probability

THIN_SPACE = "\N{NARROW NO-BREAK SPACE}"
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
"""A comma between thousands."""
UNKNOWN = "\N{EN DASH}"


def shown(value: float | None, digits: int = 3) -> str:
    """Return a number as the page shows it; a dash where it is not known.

    Examples
    --------
    >>> shown(0.03149), shown(-0.00001), shown(12.0, 0)
    ('0.031', '0.000', '12')
    """
    if value is None:
        return UNKNOWN
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0.0 else text


def format_or_dash(value: float | None, decimals: int = 3) -> str:
    """Return a probability with as many digits as it needs not to read as 0 or 1.

    Examples
    --------
    >>> format_or_dash(0.25), format_or_dash(0.99996), format_or_dash(None) == UNKNOWN
    ('0.250', '0.99996', True)
    """
    return UNKNOWN if value is None else format_probability(value, decimals)


def counted(value: float | None) -> str:
    r"""Return a number of rows with thin spaces between thousands.

    Examples
    --------
    >>> counted(1234567.0).replace("\u202f", "_")
    '1_234_567'
    """
    if value is None:
        return UNKNOWN
    return THOUSANDS.sub(THIN_SPACE, formatting.format_count(value))


def chance(value: float | None) -> str:
    """Return a p-value.

    Examples
    --------
    >>> chance(0.0), chance(0.034), chance(1.0)
    ('< 0.001', '0.034', '1.000')
    """
    if value is None:
        return UNKNOWN
    return "< 0.001" if value < 0.001 else f"{value:.3f}"  # noqa: PLR2004


def capitalise(text: str) -> str:
    """Return a sentence with its first letter large, the others as they are.

    Examples
    --------
    >>> capitalise("probabilities of GPT are off")
    'Probabilities of GPT are off'
    """
    return text[:1].upper() + text[1:]


def unbroken(text: str) -> str:
    r"""Return text whose numbers stay on one line with what belongs to them.

    Examples
    --------
    >>> unbroken("95 % sure").replace("\u00a0", "_")
    '95_% sure'
    >>> unbroken("1,234 rows, 5").replace("\u202f", "_")
    '1_234 rows, 5'
    """
    space = "\N{NO-BREAK SPACE}"
    sign = "\N{PLUS-MINUS SIGN}"
    text = THOUSANDS.sub(THIN_SPACE, text)
    return text.replace(" %", f"{space}%").replace(f" {sign} ", f"{space}{sign}{space}")
