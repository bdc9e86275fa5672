"""Checks of the rows themselves: too few, rounded, certain, of one outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.checks.decimals import counted
from calibrant.checks.finding import Finding
from calibrant.core.sample import FEW_ROWS
from calibrant.numerics.binning import tabulate, width_edges
from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from calibrant.checks.subject import Subject
    from calibrant.core.array_types import BoolVector, FloatVector

ENOUGH_ROWS = 1000
REGIONS = 10
DIGITS = (1, 2, 3)
ROWS_A_VALUE = 20
MAX_VALUES = 200
SOME_ROWS = 10_000
KEEP_DIGITS = "Keep the digits that the model gives."
FLOAT32_ERROR = 2.0**-24
"""Decimals that went through single precision are off by as much as this."""


def few_rows(subject: Subject) -> Finding | None:
    """CAL006: there are fewer than 1000 rows."""
    if subject.total >= ENOUGH_ROWS:
        return None
    positives = float(subject.cells.label.sum())
    rarer = max(min(positives, subject.total - positives), 0.0)
    return Finding(
        "CAL006",
        "few rows",
        "note",
        f"There are {_rows(subject.total)}, {counted(rarer)} of the rarer outcome: "
        f"small errors are indistinguishable from noise.",
        f"Collect at least {ENOUGH_ROWS} rows before trusting a small error.",
        evidence={"rows": subject.total, "rarer_outcome": rarer},
    )


def thin_region(subject: Subject) -> Finding | None:
    """CAL007: some tenth of the range has a few rows, too few to know it by.

    Of fewer than 300 rows some tenth always has too few, and CAL006 has said so.
    """
    cells = subject.cells
    share = cells.label / cells.weight
    rows = tabulate(cells.p, share, cells.weight, width_edges(REGIONS)).weight
    thin = (rows > 0.0) & (rows < FEW_ROWS)
    number = float(rows[thin].sum())
    if subject.total < REGIONS * FEW_ROWS or not thin.any():
        return None
    places = _as_ranges(thin)
    return Finding(
        "CAL007",
        "thin region",
        "note",
        f"Only {_rows(number)} of {counted(subject.total)} lie {places}: the "
        f"observed rate there is hardly known.",
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
    if digits is None and np.unique(inner[:SOME_ROWS]).size > MAX_VALUES:
        return None  # without having sorted all rows
    values = int(np.unique(inner).size)
    few = values <= MAX_VALUES and inner.size >= ROWS_A_VALUE * values
    if digits is None and not few:
        return None
    message, remedy = _same_values(values, digits)
    if values == 1:
        message = f"All predictions between 0 and 1 are the same: {inner[0]:.6g}."
        remedy = (
            "Only the level of such predictions can be repaired: they tell no two rows "
            "apart."
        )
    return Finding(
        "CAL008",
        "rounded predictions",
        "note",
        message,
        remedy,
        evidence={"values": float(values), "digits": float(digits or np.nan)},
    )


def _same_values(values: int, digits: int | None) -> tuple[str, str]:
    """Return what is said of predictions that share values, and what to do."""
    told = f"Predictions take only {values} values between 0 and 1"
    if digits is None:
        remedy = (
            "Rows with the same prediction cannot be distinguished; if the model has "
            "more to say than that, keep it."
        )
        return f"{told}.", remedy
    remedy = (
        f"{KEEP_DIGITS} Rounding hides rare events and makes certainty of what is "
        f"merely likely."
    )
    return f"{told}, rounded to {digits} decimal{'s' if digits > 1 else ''}.", remedy


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
    share = f"{100 * rows / subject.total:.2g}".replace("1e+02", "100")
    told = f"{counted(rows)} of {counted(subject.total)} predictions ({share} %) are "
    told += "exactly 0 or 1"
    if not wrong:
        return Finding(
            "CAL009",
            "certain predictions",
            "note",
            f"{told}; none of them failed.",
            f"{KEEP_DIGITS} One that fails would make the log-loss infinite.",
            evidence={"rows": rows, "failed": 0.0, "share": rows / subject.total},
            besides=KEEP_DIGITS,
        )
    methods = [subject.method(name) for name in ("smooth", "beta")]
    return Finding(
        "CAL009",
        "certain predictions",
        "severe",
        f"{told}, and {counted(wrong)} of them failed. By its definition the log-loss "
        f"is infinite then; shown is one with 0 and 1 moved inwards by {CLIP:.1e}, "
        f"where a failure costs {-np.log(CLIP):.0f}.",
        f"{KEEP_DIGITS} Or recalibrate by {methods[0]} or {methods[1]}.",
        methods[0],
        {"rows": rows, "failed": wrong, "share": rows / subject.total},
        KEEP_DIGITS,
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
        f"The event {always} happened in these {_rows(subject.total)}.",
        "Nothing can be said of how well predictions tell events apart; check that "
        "the right column of labels was read.",
        evidence={"rows": subject.total, "positives": positives},
    )


def _rows(number: float) -> str:
    return f"{counted(number)} row{'s' if number != 1.0 else ''}"


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
