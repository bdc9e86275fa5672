"""The verdict: what a manager should know, in two or three sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.calibrators.registry import find_evaluator
from calibrant.checks.formatting import (
    MIN_DECIMALS,
    decimals_to_distinguish,
    format_probability,
)
from calibrant.numerics.weighted_points import compress_on_log_grid
from calibrant.report.advice import best_sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.core.array_types import BoolVector, FloatVector
    from calibrant.core.sample import BinarySample

Grade: TypeAlias = Literal["good", "fair", "poor", "bad", "unknown"]
GRADES: tuple[tuple[float, Grade, str], ...] = (
    (0.01, "good", "well calibrated"),
    (0.03, "fair", "slightly off"),
    (0.1, "poor", "clearly off"),
    (np.inf, "bad", "badly off"),
)
"""Relative errors below the first number have this grade."""
NEGLIGIBLE = 1e-5
COUNTS = 0.01
"""Regions with a smaller share of the rows are not spoken of."""
AN_END = 0.005
"""Regions that begin or end so near to 0 or 1 are said to reach it."""
LEAST_GAP, LEAST_SHARE = 0.005, 0.2
MATTERS = 0.1
"""Nor are those with a smaller share of the error."""


@dataclass(frozen=True)
class Region:
    """A range of predictions that is surely too high or too low.

    Attributes
    ----------
    left, right : float
        Where it lies.
    open_left, open_right : bool
        Whether hardly any prediction lies beyond that end, or 0 or 1 is near.
    says, happens, margin : float
        Where most of the error is: what is predicted, what happens, and plus or minus.
    error : float
        What it adds to the calibration error.
    """

    left: float
    right: float
    open_left: bool
    open_right: bool
    says: float
    happens: float
    margin: float
    error: float

    @property
    def too_high(self) -> bool:
        """Tell whether predictions are too high there."""
        return self.says > self.happens

    @property
    def matters(self) -> bool:
        """Tell whether anybody would mind: a fifth of a small chance, or 0.005."""
        gap, near = abs(self.says - self.happens), min(self.says, 1.0 - self.says)
        return gap >= LEAST_GAP or (near > NEGLIGIBLE and gap >= LEAST_SHARE * near)

    def __str__(self) -> str:
        left, right = _place(self.left), _place(self.right)
        if self.open_left and self.open_right:
            return "everywhere"
        if left == right:
            return f"at {left}"
        if self.open_left:
            return f"below {right}"
        if self.open_right:
            return f"above {left}"
        return f"between {left} and {right}"


def _place(p: float) -> str:
    """Return an end of a region; only 0 and 1 themselves read as 0 and 1.

    Examples
    --------
    >>> _place(0.0), _place(0.068), _place(0.9991), _place(1.0)
    ('0', '0.068', '0.999', '1')
    """
    text = f"{p:.2g}"
    return format_probability(p) if text == "1" and p < 1.0 else text


def regions_of(curve: Mapping[str, Any], sample: BinarySample) -> list[Region]:
    """Return where the band of a map excludes the diagonal, largest error first.

    It is the band that holds everywhere at once, as all regions are looked at.
    """
    p, mid, low, high = (
        np.asarray(curve[name], dtype=np.float64)
        for name in ("p", "calibrated", "low", "high")
    )
    share = _shares(p, sample)
    error = share * np.abs(mid - p)
    found = []
    whole_low, whole_high = (
        np.asarray(curve[name], dtype=np.float64)
        for name in ("whole_low", "whole_high")
    )
    for off in (whole_high < p, whole_low > p):
        found += [
            _region(part, p, mid, 0.5 * (high - low), share)
            for part in _runs(off)
            if share[part].sum() >= COUNTS
            and error[part].sum() >= MATTERS * error.sum()
        ]
    found = [region for region in found if region.matters]
    return sorted(found, key=lambda region: -region.error)


def _region(
    part: slice,
    p: FloatVector,
    mid: FloatVector,
    half: FloatVector,
    share: FloatVector,
) -> Region:
    # Where rows and gap together are largest, not where few rows are far off.
    most = part.start + int(np.argmax((share * np.abs(mid - p))[part]))
    return Region(
        left=float(p[part.start]),
        right=float(p[part.stop - 1]),
        open_left=bool(share[: part.start].sum() < COUNTS or p[part.start] < AN_END),
        open_right=bool(
            share[part.stop :].sum() < COUNTS or p[part.stop - 1] > 1.0 - AN_END
        ),
        says=float(p[most]),
        happens=float(mid[most]),
        margin=float(half[most]),
        error=float((share * np.abs(mid - p))[part].sum()),
    )


def _shares(p: FloatVector, sample: BinarySample) -> FloatVector:
    """Return the share of rows around each point of a curve."""
    cells = compress_on_log_grid(sample)
    place = np.searchsorted(0.5 * (p[1:] + p[:-1]), cells.p)
    rows = np.bincount(place, weights=cells.weight, minlength=p.size)
    return np.asarray(rows / rows.sum())


def _runs(which: BoolVector) -> list[slice]:
    ends = np.flatnonzero(np.diff(np.concatenate([[0], which.astype(int), [0]])))
    return [slice(a, b) for a, b in ends.reshape(-1, 2).tolist()]


def graded_method(methods: Sequence[str]) -> str:
    """Return the method that a verdict is about: the first that has grades.

    Squared norms have none, whatever the exponent. Where there is nothing else, the
    verdict is about the first of them, without a grade.

    Examples
    --------
    >>> graded_method(["kce", "es15", "smooth"])
    'es15'
    """
    plain = (name for name in methods if not find_evaluator(name).squared)
    return next(plain, methods[0])


def verdict_of(  # noqa: PLR0913
    error: Mapping[str, Any],
    regions: list[Region],
    repairs: Mapping[str, Any] | None,
    *,
    base_rate: float,
    alpha: float = 1.0,
    proved: bool = False,
    confidence: float | None,
    task: str,
) -> dict[str, Any]:
    """Return the verdict: its grade, a headline and the sentences after it.

    The grade goes by the relative error: the error, its root of order `alpha` taken,
    over twice the standard deviation of the outcome, so that one of a rare event is
    not good merely as all its probabilities are small. At a base rate of one half and
    with `alpha` 1 it is the error itself. The grade is "unknown" where the interval
    reaches from 0 to what is poor, unless some check has `proved` that predictions are
    off; and where the error is a squared norm.
    """
    value, low, high = max(float(error["value"]), 0.0), error["low"], error["high"]
    # Of one outcome alone nothing is known of how rare the other one is.
    spread = 2.0 * np.sqrt(max(base_rate * (1.0 - base_rate), 0.0)) or 1.0
    sure = proved or low is None or low > 0.0
    grade: Grade = "unknown"
    relative: float | None = None
    if find_evaluator(error["method"]).squared:
        headline = f"not graded, as {error['method']} is a squared norm"
    else:
        relative = float(value ** (1.0 / alpha) / spread)
        most = None if high is None else high ** (1.0 / alpha) / spread
        grade, words = _grade(relative, most, sure=sure)
        headline = _headline(words, grade, task, sure=sure)
    points = _points(value, alpha, task, squared=relative is None)
    said = _error_sentence(error, confidence, sure=sure, points=points)
    return {
        **{name: error[name] for name in ("method", "value", "low", "high")},
        "grade": grade,
        "relative_error": relative,
        "headline": headline,
        "error": said,
        "sentences": [
            *_where(regions if sure else [], task),
            said,
            *best_sentence(repairs, value),
        ],
    }


def _grade(relative: float, most: float | None, *, sure: bool) -> tuple[Grade, str]:
    if not sure and most is not None and most >= GRADES[1][0]:
        return "unknown", "not known well enough"
    return next((grade, words) for limit, grade, words in GRADES if relative < limit)


def _headline(words: str, grade: Grade, task: str, *, sure: bool) -> str:
    if grade == "unknown":
        return "not enough data to judge calibration"
    if not sure:
        return "no significant miscalibration found"
    who = "confidence is" if task == "confidence" else "probabilities are"
    return f"{who} {words}"


def _where(regions: list[Region], task: str) -> list[str]:
    sentences = []
    for region in regions[:2]:
        how = "too high" if region.too_high else "too low"
        digits = _digits(region.margin)
        truth = f"{region.happens:.{digits}f} \N{PLUS-MINUS SIGN} "
        truth += f"{max(region.margin, 10.0**-digits):.{digits}f}"
        who, rate = f"Probabilities are {how}", "observed rate"
        if task == "confidence":
            who, rate = f"Confidence is {how}", "accuracy"
        at = f"at a predicted {_said(region.says)} the {rate} is {truth}"
        sentences.append(f"{who} {region}: {at}.")
    return sentences


def _said(p: float) -> str:
    """Return a prediction with two decimals, more near 0 and 1.

    Examples
    --------
    >>> _said(0.84), _said(0.0042), _said(1.0), _said(1e-9)
    ('0.84', '0.004', '1', 'almost 0')
    """
    near = min(p, 1.0 - p)
    if near == 0.0:
        return f"{p:g}"
    return f"almost {round(p)}" if near < NEGLIGIBLE else format_probability(p, 2)


def _digits(margin: float) -> int:
    """Return how many decimals a margin needs, two to five.

    Examples
    --------
    >>> _digits(0.04), _digits(0.0042), _digits(0.0)
    (2, 3, 5)
    """
    return int(np.clip(np.ceil(-np.log10(2.0 * max(margin, NEGLIGIBLE))), 2, 5))


def _error_sentence(
    error: Mapping[str, Any], confidence: float | None, *, sure: bool, points: str
) -> str:
    value, low, high = error["value"], error["low"], error["high"]
    digits = MIN_DECIMALS if low is None else decimals_to_distinguish(low, high)
    found = f"Calibration error {value:.{digits}f}"
    if low is not None and confidence is not None:
        found += f", {100 * confidence:g} % interval {low:.{digits}f} to "
        found += f"{high:.{digits}f}"
    return f"{found}{points}." if sure else f"{found}: chance alone could explain it."


def _points(value: float, alpha: float, task: str, *, squared: bool) -> str:
    """Return what a plain error means, for people who do not know the word."""
    if squared or alpha != 1.0:
        return ""
    who = "confidence is" if task == "confidence" else "probabilities are"
    over = " over rows and classes" if task == "classwise" else ""
    points = format_probability(100.0 * value, 1)
    return f": {who} off by {points} percentage points on average{over}"
