"""Names of users as figures show them."""

from __future__ import annotations

from calibrant.core.wording import visible


def as_drawn(name: str) -> str:
    r"""Return a name as it is: dollar signs are no mathematics, hidden signs written.

    Examples
    --------
    >>> print(as_drawn("cost in $, \x1b[1m$x$"))
    cost in \$, \x1b[1m\$x\$
    """
    return visible(name).replace("$", "\\$")
