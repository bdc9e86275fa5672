"""Conditions that make a row valid, with the wording of errors: for arrays and SQL.

A rule says which error is raised, what the values must be, and why rows that break it
are dropped. Where values are checked, the place, the value and the names are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.core.scales import ROW_SUM_TOLERANCE, SCALE_RULES
from calibrant.core.wording import shown
from calibrant.exceptions import (
    DROP_ROWS,
    InputError,
    LabelError,
    MissingValueError,
    ProbabilityRangeError,
    RowSumError,
    Setting,
    Text,
    WeightError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import Scale

MAX_LISTED = 6
"""How many distinct values an error message lists."""


@dataclass(frozen=True)
class RowRule:
    """A condition on the values of a row."""

    error: type[InputError]  # what is raised where rows break it
    rule: str  # what the values must be
    reason: str  # why rows that break it are dropped
    remedy: Text = ()  # what to do about such rows, if it does not depend on who asks
    each: str = ""  # what of the columns is meant, if not their values

    def broken(
        self,
        columns: str,
        fault: str,
        remedy: Text | None = None,
        *,
        place: tuple[int, ...] | None = None,
        value: Any = None,
    ) -> InputError:
        """Return the error about columns that break the rule."""
        way_out = self.remedy if remedy is None else remedy
        return self.error.of(
            self.each + columns, self.rule, fault, way_out, place=place, value=value
        )

    def reason_in(self, columns: str) -> str:
        """Return why rows are dropped that break the rule in some columns."""
        return f"{self.reason} in {columns}"


FINITE = RowRule(
    MissingValueError,
    "must not contain missing or infinite values",
    "missing or infinite",
    DROP_ROWS,
)
HAS_LABEL = RowRule(
    MissingValueError,
    "must not contain missing values",
    "without a label",
    DROP_ROWS,
)
HAS_CLUSTER = RowRule(
    MissingValueError,
    "must not contain missing values",
    "without a cluster",
    DROP_ROWS,
)
BINARY_LABEL = RowRule(
    LabelError, "must contain binary labels, 0 and 1", "with an unknown label"
)
NOT_NEGATIVE = RowRule(
    WeightError,
    "must not be negative",
    "with a negative weight",
    ("Weights are counts.",),
)


def in_range(scale: Scale) -> RowRule:
    """Return the rule that predictions are within the range of their scale."""
    rule = SCALE_RULES[scale]
    return RowRule(ProbabilityRangeError, f"must contain {rule.what}", rule.outside)


def sums_to_one(scale: Scale) -> RowRule:
    """Return the rule that the probabilities of all classes sum to 1."""
    unit = SCALE_RULES[scale].unit
    return RowRule(
        RowSumError,
        f"must sum to {unit:g} (within {ROW_SUM_TOLERANCE * unit:g})",
        f"that do not sum to {unit:g}",
        each=(
            "the exponentials of each row of " if scale == "logprob" else "each row of "
        ),
    )


def class_label(order: Sequence[Any]) -> RowRule:
    """Return the rule that labels are the classes of the columns, in this order."""
    return RowRule(
        LabelError,
        f"may contain only the classes {list_values(order)}",
        BINARY_LABEL.reason,
        (
            "State by ",
            Setting("labels"),
            " the class of each probability column, in order.",
        ),
    )


def list_values(values: Sequence[Any]) -> str:
    """Return the first few of some values, as a message lists them."""
    listed = ", ".join(map(shown, values[:MAX_LISTED]))
    more = len(values) - MAX_LISTED
    return listed + (f" and {more} more" if more > 0 else "")
