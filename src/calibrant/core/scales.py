"""Scales of predictions: ranges, conversions, and what values look like.

Predictions may be probabilities, percentages, logits or log-probabilities. Nothing is
guessed: what values look like is said in errors and warnings, never acted on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.defaults import MAX_DROPPED
from calibrant.core.warn import warn
from calibrant.exceptions import ScaleWarning, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from calibrant.core.array_types import BoolVector, Scale
    from calibrant.core.wording import Wording

    Numbers = NDArray[np.float64]

ULPS = 4
"""Rounding, in units of the input's own precision, that counts as 0 or as 1."""

PERCENT = 100.0

TINY = np.finfo(np.float64).tiny

ONE = 1.0 + 1e-6
"""What is above it is above 1, whatever it was rounded to."""

MIN_PERCENTAGES = 0.01
"""From this share of rows on, values from 1 to 100 are percentages, not slips."""

SCALED = 2.0
"""Up to here values above 1 may be probabilities times something."""

MIN_LOGITS = 30
"""In fewer rows, logits of one event may all lie in [0, 1]."""

MIN_DISTINCT_LOGITS = 10
"""Fewer different logits may be those of a model with few distinct predictions."""

ROW_SUM_TOLERANCE = 1e-3
"""How far a row may sum from 1: room for rounding to four digits, not for scores."""

NAMES: dict[Scale, str] = {
    "prob": "probabilities",
    "logit": "logits",
    "percent": "percentages",
    "logprob": "log-probabilities",
}


@dataclass(frozen=True, kw_only=True)
class ScaleRule:
    """What predictions on a scale must contain, and how they become probabilities."""

    # what messages say that they must contain, and of others
    what: str
    outside: str
    # ends of the range
    low: float
    high: float
    unit: float  # what probability 1 is in sums of rows
    # from an array on the scale to probabilities, and back
    to_prob: Callable[[Numbers], Numbers]
    of_prob: Callable[[Numbers], Numbers]

    def allowed_range(self, precision: float) -> tuple[float, float]:
        """Return the range with room for rounding in a type of that precision."""
        slack = ULPS * precision * self.unit
        return self.low - slack, self.high + slack


SCALE_RULES: dict[Scale, ScaleRule] = {
    "prob": ScaleRule(
        what="probabilities in [0, 1]",
        outside="outside [0, 1]",
        low=0.0,
        high=1.0,
        unit=1.0,
        to_prob=np.asarray,
        of_prob=np.asarray,
    ),
    "percent": ScaleRule(
        what="percentages in [0, 100]",
        outside="outside [0, 100]",
        low=0.0,
        high=PERCENT,
        unit=PERCENT,
        to_prob=lambda x: x / PERCENT,
        of_prob=lambda p: p * PERCENT,
    ),
    "logprob": ScaleRule(
        what="log-probabilities, at most 0",
        outside="above 0",
        low=-np.inf,
        high=0.0,
        unit=1.0,
        to_prob=np.exp,
        of_prob=lambda p: np.log(np.maximum(p, TINY)),
    ),
}
"""Of all scales but logits, which may be any finite number."""


def warn_if_not_percent(
    highest: float,
    *,
    name: str,
    remedy: str = "their scale is prob, not percent",
) -> None:
    """Warn where no percentage of a column exceeds 1, as if they were probabilities."""
    if 0.0 < highest <= 1.0:
        warn(
            f"the largest percentage of {name} is {highest:g}; if these are "
            f"probabilities, {remedy}.",
            ScaleWarning,
        )


def warn_if_not_logits(logits: Numbers, *, name: str) -> None:
    """Warn where logits, of shape (n,) or (n, k), look like probabilities.

    Those of several classes do if they lie in [0, 1] and sum to 1 in each row.
    """
    low, high = logits.min(), logits.max()
    if low < 0.0 or high > 1.0:
        return
    if logits.ndim == 1:
        distinct = np.unique(logits).size
        warn_if_not_event_logits(low, high, logits.size, distinct, name=name)
    elif (np.abs(logits.sum(axis=1) - 1.0) <= ROW_SUM_TOLERANCE).all():
        _warn_of_probabilities("lie in [0, 1] and sum to 1 in each row", name)


def warn_if_not_event_logits(
    low: float, high: float, rows: int, distinct: int, *, name: str
) -> None:
    """Warn where many logits of one event, with many values, all lie in [0, 1]."""
    many = rows >= MIN_LOGITS and distinct >= MIN_DISTINCT_LOGITS
    if many and low >= 0.0 and high <= 1.0:
        _warn_of_probabilities("lie in [0, 1]", name)


def _warn_of_probabilities(seen: str, name: str) -> None:
    warn(
        f"all logits of {name} {seen}; if these are probabilities, their scale is "
        "prob, not logit.",
        ScaleWarning,
    )


def precision_of(dtype: np.dtype[Any]) -> float:
    """Return the rounding unit of a type; whole numbers have that of doubles."""
    return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)


def precision_of_columns(dtypes: Iterable[np.dtype[Any]]) -> float:
    """Return the rounding unit of the columns of a model: that of the array of all."""
    return min(map(precision_of, dtypes))


@dataclass(frozen=True)
class ValueSummary:
    """The finite predictions of a model at a glance."""

    # the least and the largest; NaN where there are none
    low: float
    high: float
    rows: int  # rows that have any
    outside: int  # rows of these with one outside the range of the scale
    above: int  # rows of these with one above 1
    least_above: float  # the least that is above 1; NaN where there are none

    @classmethod
    def of(
        cls,
        values: Numbers,
        allowed: tuple[float, float],
        counts: NDArray[Any] | None = None,
    ) -> ValueSummary:
        """Look at predictions of shape (n,) or (n, k).

        `counts` says how many rows each row stands for; by default one.
        """
        table = values.reshape(len(values), -1)
        counts = np.ones(len(table)) if counts is None else counts

        def rows_with(which: BoolVector) -> int:
            return int(counts[which.any(axis=1)].sum())

        finite = np.isfinite(table)
        above = finite & (table > ONE)
        outside = finite & ((table < allowed[0]) | (table > allowed[1]))
        return cls(
            low=_smallest(table[finite]),
            high=-_smallest(-table[finite]),
            rows=rows_with(finite),
            outside=rows_with(outside),
            above=rows_with(above),
            least_above=_smallest(table[above]),
        )

    def and_valid(self, rows: int, p: Numbers, scale: Scale) -> ValueSummary:
        """Return the summary with `rows` valid rows added, some of them with p."""
        on_scale = SCALE_RULES[scale].of_prob(p)
        return replace(
            self,
            low=min(self.low, on_scale.min(initial=np.inf)),
            high=max(self.high, on_scale.max(initial=-np.inf)),
            rows=self.rows + rows,
        )

    def likely(self, scale: Scale) -> Scale:
        """Return the scale that the values look like, other than the one given."""
        negative = self.low < 1.0 - ONE
        if scale != "logprob" and negative and self.high <= 0.0:
            return "logprob"
        if not negative:
            if scale != "prob" and self.high <= 1.0:
                return "prob"
            if scale != "percent" and self.high <= PERCENT:
                return "percent"
        return "logit"

    def are_many_outside(self, limit: float = MAX_DROPPED) -> bool:
        """Tell whether more rows are out of range than may be dropped."""
        return self.outside > limit * self.rows

    def is_clearly_other(self, scale: Scale, limit: float = MAX_DROPPED) -> bool:
        """Tell whether the values are so like another scale that no row is dropped."""
        likely = self.likely(scale)
        if likely == "percent":
            several = self.least_above < self.high
            return several and self.above >= MIN_PERCENTAGES * self.rows
        return likely != "logit" and self.are_many_outside(limit)

    def remedy(self, scale: Scale, wording: Wording) -> Text:
        """Return what the values look like, and the way out."""
        likely, sure = self.likely(scale), self.is_clearly_other(scale)
        sure = sure and (likely != "percent" or self.high > SCALED)
        ways = wording.pass_scale(likely)
        if likely == "logprob" or (likely == "percent" and not sure):
            ways = (*ways, "; if these are logits, ", *wording.pass_scale("logit"))
        if sure:
            return (f"These look like {NAMES[likely]}: ", *ways, ".")
        return (f"If these are {NAMES[likely]}, ", *ways, ".")


def _smallest(values: Numbers) -> float:
    return float(values.min()) if values.size else np.nan
