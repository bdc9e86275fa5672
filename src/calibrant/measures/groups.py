"""Groups of rows in results: what they may be called, and which were left out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from calibrant.core.warn import warn
from calibrant.exceptions import OptionError, SmallSampleWarning
from calibrant.measures.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_NAMED = 5
"""How many groups a warning names."""


def result_names(by: Sequence[str], others: Iterable[str] = ()) -> dict[str, str]:
    """Return what results call each column of groups.

    A column that is called like a result, as "model" or "task", becomes "by_model".

    Examples
    --------
    >>> result_names(["region", "model"])
    {'region': 'region', 'model': 'by_model'}
    """
    reserved = {"model", *(f.name for f in fields(Estimate)), *others}
    names = {name: f"by_{name}" if name in reserved else name for name in by}
    for name, new in names.items():
        if list(names.values()).count(new) > 1:
            raise OptionError(
                f"by must not name both {name!r} and {new!r}, as results call the "
                f"first like the second; rename one."
            )
    return names


def result_key(key: Mapping[str, Any], others: Iterable[str] = ()) -> dict[str, Any]:
    """Return the values of groups under the names that results give them."""
    names = result_names(list(key), others)
    return {names[name]: value for name, value in key.items()}


@dataclass
class SkippedGroups:
    """Groups that could not be used, or not by some methods, for few warnings.

    Attributes
    ----------
    reasons : dict
        Why, by the method ("" for all of them) and the name of the group.
    """

    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    nothing_left = (
        "no group has as many rows as the methods need; use fewer bins, or larger "
        "groups."
    )

    def add(self, group: str, reason: Exception, method: str = "") -> None:
        """Note a group; the same group of several models counts once."""
        self.reasons.setdefault(method, {}).setdefault(group, str(reason))

    def warn(self) -> None:
        """Warn once for each method, however many groups there are."""
        for method, reasons in self.reasons.items():
            warn(_skipped(method, reasons), SmallSampleWarning)


def _skipped(method: str, reasons: Mapping[str, str]) -> str:
    """Return which groups were left out by which method, and why the first was."""
    names = list(reasons)
    first = reasons[names[0]]
    if names == [""]:  # all rows
        return f"{method} is left out: {first}"
    if len(names) == 1:
        what = f"{method} is left out of group" if method else "group"
        return f"{what} {names[0]}{'' if method else ' is left out'}: {first}"
    more = f" and {len(names) - MAX_NAMED} more" * (len(names) > MAX_NAMED)
    count = f"{len(names)} groups"
    what = f"{method} is left out of {count}" if method else f"{count} are left out"
    listed = "; ".join(names[:MAX_NAMED])
    return f"{what}: {listed}{more}. Why the first: {first}"
