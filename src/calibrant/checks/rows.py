"""Checks of the rows themselves: too few, rounded, certain, of one outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant._validation.sample import FEW_ROWS
from calibrant.checks.finding import Finding
from calibrant.numerics.binning import tabulate, width_edges

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatVector
    from calibrant.checks.subject import Subject

ENOUGH_ROWS = 1000
REGIONS = 10
DIGITS = (1, 2, 3)
ROWS_A_VALUE = 20
MOST_VALUES = 200
SOME_ROWS = 10_000
FLOAT32_ERROR = 2.0**-24
"""Decimals that went through single precision are off by as much as this."""


def few_rows(subject: Subject) -> Finding | None:
    """CAL006: there are fewer than 1000 rows."""
    if subject.total >= ENOUGH_ROWS:
        return None
    positives = float(subject.cells.label.sum())
    rarer = min(positives, subject.total - positives)
    return Finding(
        "CAL006",
        "few rows",
        "note",
        f"There are {subject.total:g} rows, {rarer:g} of the rarer outcome: small "
        f"errors cannot be told from chance.",
        f"Collect at least {ENOUGH_ROWS} rows before trusting a small error.",
        evidence={"rows": subject.total, "rarer_outcome": rarer},
    )


def thin_region(subject: Subject) -> Finding | None:
    """CAL007: some tenth of the range has a few rows, too few to know it by."""
    cells = subject.cells
    share = cells.label / cells.weight
    rows = tabulate(cells.p, share, cells.weight, width_edges(REGIONS)).weight
    thin = (rows > 0.0) & (rows < FEW_ROWS)
    if subject.total < FEW_ROWS or not thin.any():
        return None
    number = float(rows[thin].sum())
    places = _as_ranges(thin)
    return Finding(
        "CAL007",
        "thin region",
        "note",
        f"Only {number:g} rows lie {places}: what happens there is hardly known.",
        "Do not read much into the diagram there; collect such rows if decisions "
        "depend on them.",
        evidence={"rows": number, "where": places},
    )


def rounded(subject: Subject) -> Finding | None:
    """CAL008: predictions are rounded, or take few values."""
    p = subject.sample.p
    inner = p[(p > 0.0) & (p < 1.0)]
    if inner.size < ENOUGH_ROWS // 10:
        return None
    digits = next((d for d in DIGITS if _has_digits(inner, d)), None)
    if digits is None and np.unique(inner[:SOME_ROWS]).size > MOST_VALUES:
        return None  # without having sorted all rows
    values = int(np.unique(inner).size)
    few = values <= MOST_VALUES and inner.size >= ROWS_A_VALUE * values
    if digits is None and not few:
        return None
    told = f"Predictions take only {values} values between 0 and 1"
    told += f", rounded to {digits} decimals." if digits else "."
    return Finding(
        "CAL008",
        "rounded predictions",
        "note",
        told,
        "Keep the digits that the model gives: rounding hides rare events and makes "
        "certainty of what is merely likely.",
        evidence={"values": float(values), "digits": float(digits or np.nan)},
    )


def certain(subject: Subject) -> Finding | None:
    """CAL009: predictions of exactly 0 or 1."""
    p, y = subject.sample.p, subject.sample.y
    weight = subject.sample.weight
    sure = (p == 0.0) | (p == 1.0)
    if not sure.any():
        return None
    ones = np.ones(p.size) if weight is None else weight
    rows = float(ones[sure].sum())
    wrong = float((ones * np.abs(y - p))[sure].sum())
    told = (
        f"{rows:g} predictions ({100 * rows / subject.total:.2g} %) are exactly 0 or 1"
    )
    told += f", and {wrong:g} of them failed." if wrong else "; none of them failed."
    return Finding(
        "CAL009",
        "certain predictions",
        "severe" if wrong else "note",
        told,
        "A single failure of a certain prediction makes the log-loss infinite. Keep "
        "the model's own digits, or recalibrate by smooth or beta.",
        "smooth" if wrong else "",
        {"rows": rows, "failed": wrong, "share": rows / subject.total},
    )


def one_outcome(subject: Subject) -> Finding | None:
    """CAL011: the event always happened, or never."""
    positives = float(subject.cells.label.sum())
    if 0.0 < positives < subject.total:
        return None
    always = "always" if positives else "never"
    return Finding(
        "CAL011",
        "one outcome only",
        "note",
        f"The event {always} happened in these {subject.total:g} rows.",
        "Nothing can be said of how well predictions tell events apart; check that "
        "the right column of labels was read.",
        evidence={"rows": subject.total, "positives": positives},
    )


def _has_digits(p: FloatVector, digits: int) -> bool:
    """Tell whether predictions between 0 and 1 are decimals of so many digits."""
    near = np.rint(p * 10**digits) / 10**digits
    inside = (near > 0.0) & (near < 1.0)  # tiny chances are not a rounded 0
    return bool((inside & (np.abs(p - near) <= FLOAT32_ERROR)).all())


def _as_ranges(which: BoolVector) -> str:
    """Return regions in words, neighbours joined.

    Examples
    --------
    >>> _as_ranges(np.array([True, False, True, True]))
    'from 0 to 0.25 and from 0.5 to 1'
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], which.astype(int), [0]])))
    ends = (edges / which.size).reshape(-1, 2)
    return " and ".join(f"from {left:g} to {right:g}" for left, right in ends)
