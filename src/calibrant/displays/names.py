"""Names in figures: as they are, on as many lines as they need."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from calibrant.core.wording import visible

if TYPE_CHECKING:
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen


def as_drawn(name: str) -> str:
    r"""Return a name as it is: dollar signs are no mathematics, hidden signs written.

    Examples
    --------
    >>> print(as_drawn("cost in $, \x1b[1m$x$"))
    cost in \$, \x1b[1m\$x\$
    """
    return visible(name).replace("$", "\\$")


def shortened(name: str, longest: int) -> str:
    r"""Return a name as a figure shows it: on one line, not too long, as it is.

    Both ends are kept, since names of models often differ at the end.

    Examples
    --------
    >>> shortened("a very long name of a model, v2", 13), shortened("$x$", 12)
    ('a very…el, v2', '\\$x\\$')
    """
    line = " ".join(name.split())
    if len(line) > longest:
        end = (longest - 1) // 2
        line = f"{line[: longest - 1 - end]}…{line[len(line) - end :]}"
    return as_drawn(line)


def title_of(display: ReliabilityDisplay, inches: float, pen: Pen) -> str:
    """Return the name of a diagram; for the paper's kinds also its error."""
    lines = [] if display.name is None else [wrapped(display.name, inches, pen)]
    if display.kind != "curve":
        error = f"{display.method}: error {display.statistics.error_text()}"
        lines.append(wrapped(error, inches, pen))
    return "\n".join(lines)


def wrapped(text: str, inches: float, pen: Pen) -> str:
    """Return text that is not wider than so many inches, in up to three lines."""
    characters = max(int(inches * 72.0 / (0.6 * pen.size)), 12)
    lines = textwrap.wrap(text, characters, max_lines=3, placeholder=" …")
    return "\n".join(map(as_drawn, lines))
