"""Result tables: rows as columns, the columns of groups, and groups left out."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant.core.warn import warn
from calibrant.exceptions import (
    Argument,
    OptionError,
    SmallSampleWarning,
    TooFewRowsError,
    WeightError,
)
from calibrant.measures.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from calibrant.core.array_types import Frame
    from calibrant.engines.groups import Group

Result = TypeVar("Result")

MAX_NAMED = 5
"""How many groups a warning names."""


def as_columns(rows: Sequence[Mapping[str, Any]]) -> Frame:
    """Return rows that have the same names as columns.

    Examples
    --------
    >>> as_columns([{"method": "pl", "bins": 9.0}, {"method": "es15", "bins": 15.0}])
    {'method': array(['pl', 'es15'], dtype='<U4'), 'bins': array([ 9, 15])}
    """
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    columns = {name: np.array([row[name] for row in rows]) for name in names}
    if "bins" in columns and (columns["bins"] % 1 == 0).all():
        columns["bins"] = columns["bins"].astype(int)  # a mean over classes is not
    return columns


def result_key(key: Mapping[str, Any], reserved: Iterable[str] = ()) -> dict[str, Any]:
    """Return the values of a group under the names that results give its columns.

    A column that is called like a result, as "model" or "task", becomes "by_model".

    Examples
    --------
    >>> result_key({"region": "north", "model": "T"})
    {'region': 'north', 'by_model': 'T'}
    """
    taken = {"model", *(f.name for f in fields(Estimate)), *reserved}
    names = {name: f"by_{name}" if name in taken else name for name in key}
    for name, new in names.items():
        if list(names.values()).count(new) > 1:
            raise OptionError(
                Argument("by"),
                f" must not name both {name!r} and {new!r}, because results "
                "rename the first to the second; rename one.",
            )
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

    def add(self, group: str, reason: Exception, method: str = "") -> None:
        """Note a group; the same group of several models counts once."""
        self.reasons.setdefault(method, {}).setdefault(group, str(reason))

    @contextmanager
    def skipping(self, group: Group) -> Iterator[None]:
        """Note a group that cannot be used, instead of raising; raise for all rows."""
        try:
            yield
        except (TooFewRowsError, WeightError) as error:
            if not group.key:
                raise
            self.add(str(group), error)

    def warn(self) -> None:
        """Warn once for each method, however many groups there are."""
        for method, reasons in self.reasons.items():
            warn(_describe_skipped(method, reasons), SmallSampleWarning)

    def checked(self, results: list[Result]) -> list[Result]:
        """Return the results of the other groups, with a warning; raise without any."""
        self.warn()
        if not results:
            raise OptionError(
                "no group has enough rows for the methods; use fewer bins, or "
                "larger groups."
            )
        return results


def _describe_skipped(method: str, reasons: Mapping[str, str]) -> str:
    """Return which groups were left out by which method, and why the first was."""
    names = list(reasons)
    first = reasons[names[0]]
    if names == [""]:  # all rows
        return f"{method} is skipped: {first}"
    if len(names) == 1:
        what = f"{method} is skipped for group" if method else "group"
        return f"{what} {names[0]}{'' if method else ' is skipped'}: {first}"
    more = f" and {len(names) - MAX_NAMED} more" * (len(names) > MAX_NAMED)
    count = f"{len(names)} groups"
    what = f"{method} is skipped for {count}" if method else f"{count} are skipped"
    listed = "; ".join(names[:MAX_NAMED])
    return f"{what}: {listed}{more}. Reason for the first: {first}"
