"""Groups of rows in results: what they may be called, and which were left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from calibrant.exceptions import OptionError, SmallSampleWarning
from calibrant.measures.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_NAMED = 5
"""How many groups a warning names."""


def refuse_reserved(by: Sequence[str], others: Iterable[str] = ()) -> None:
    """Refuse group columns that would be overwritten by the results."""
    reserved = {"model", *(f.name for f in fields(Estimate)), *others}
    taken = [name for name in by if name in reserved]
    if taken:
        raise OptionError(
            f"by must not name a column called like a result; rename {taken[0]!r}."
        )


@dataclass
class LeftOut:
    """Groups that could not be used, for one warning about all of them.

    Attributes
    ----------
    reasons : dict
        Why, by the name of the group.
    """

    reasons: dict[str, str] = field(default_factory=dict)
    nothing_left = (
        "no group has as many rows as the methods need; use fewer bins, or larger "
        "groups."
    )

    def add(self, group: str, reason: Exception) -> None:
        """Note a group; the same group of several models counts once."""
        self.reasons.setdefault(group, str(reason))

    def warn(self, *, stacklevel: int) -> None:
        """Warn once, however many groups there are."""
        names = list(self.reasons)
        if not names:
            return
        first = self.reasons[names[0]]
        if len(names) == 1:
            told = f"group {names[0]} is left out: {first}"
        else:
            more = f" and {len(names) - MOST_NAMED} more" * (len(names) > MOST_NAMED)
            told = (
                f"{len(names)} groups are left out: "
                f"{'; '.join(names[:MOST_NAMED])}{more}. Why the first: {first}"
            )
        warnings.warn(told, SmallSampleWarning, stacklevel=stacklevel)
