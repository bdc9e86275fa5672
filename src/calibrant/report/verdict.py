"""The verdict: a grade and two or three sentences that no finding contradicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.calibrators.registry import EVALUATORS
from calibrant.checks.diagnosis import is_turned
from calibrant.core.formatting import (
    MIN_DECIMALS,
    decimals_to_distinguish,
    format_count,
    format_probability,
    join_names,
)
from calibrant.report.regions import NEGLIGIBLE, Region
from calibrant.report.repairs import NONE, NOT_BETTER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.checks.check import Finding

Grade: TypeAlias = Literal["good", "fair", "poor", "bad", "unknown"]
GRADES: tuple[tuple[float, Grade, str], ...] = (
    (0.01, "good", "well calibrated"),
    (0.03, "fair", "slightly off"),
    (0.1, "poor", "clearly off"),
    (np.inf, "bad", "badly off"),
)
"""Relative errors below the first number have this grade."""
STATISTICAL = ("CAL001", "CAL002", "CAL003", "CAL004", "CAL005", "CAL012", "CAL013")
"""Checks with significant findings that predictions are off."""
GRADE_AT_BEST: dict[str, Grade] = {"severe": "poor", "moderate": "fair"}
"""No grade is better than this beside such a finding."""
MAX_NAMES = 3
MIN_SHOWN_ERROR = 0.001
TITLES = {
    "auto": "Automatic recalibration",
    "platt": "Platt scaling",
    "beta": "Beta calibration",
    "isotonic": "Isotonic calibration",
    "temperature": "Temperature scaling",
    "vector": "Vector scaling",
    "smooth": "Smooth calibration",
}
WRAPPERS = {"top-": "of the top label", "ovr-": "of each class"}


def graded_method(names: Sequence[str]) -> str:
    """Return the name of the method that a verdict is about: the first that has grades.

    Squared norms have none, whatever the exponent. Where there is nothing else, the
    verdict is about the first of them, without a grade.

    >>> graded_method(["kce", "es15", "smooth"])
    'es15'
    """
    return next((name for name in names if name not in EVALUATORS), names[0])


def significant_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Return the significant findings that predictions are off, worst first."""
    return [finding for finding in findings if finding.code in STATISTICAL]


def verdict_of(  # noqa: PLR0913
    error: Mapping[str, Any],
    regions: list[Region],
    repairs: Mapping[str, Any] | None,
    *,
    base_rate: float,
    alpha: float = 1.0,
    significant: bool = False,
    confidence: float,
    task: str,
) -> dict[str, Any]:
    """Return the verdict: its grade, a headline and the sentences after it.

    The grade goes by the relative error: the error, its root of order `alpha` taken,
    over twice the standard deviation of the outcome, so that one of a rare event is
    not good merely because all its probabilities are small. At a base rate of one half
    and with `alpha` 1 it is the error itself. The grade is "unknown" where the interval
    reaches from 0 to what is poor, unless some check has `significant` findings; and
    where the error is a squared norm.
    """
    value, low, high = max(float(error["value"]), 0.0), error["low"], error["high"]
    # With one outcome alone nothing is known of how rare the other one is.
    spread = 2.0 * np.sqrt(max(base_rate * (1.0 - base_rate), 0.0)) or 1.0
    sure = significant or low is None or low > 0.0
    grade: Grade = "unknown"
    relative: float | None = None
    if error["method"] in EVALUATORS:  # without a map: squared norms
        headline = f"not graded, because {error['method']} is a squared norm"
    else:
        relative = float(value ** (1.0 / alpha) / spread)
        upper = relative if high is None else high ** (1.0 / alpha) / spread
        grade, headline = _grade(relative, upper, task, sure=sure)
    plain = alpha == 1.0 and relative is not None
    error_sentence = _error_sentence(error, confidence, task, sure=sure, plain=plain)
    return {
        **{name: error[name] for name in ("method", "value", "low", "high")},
        "grade": grade,
        "relative_error": relative,
        "headline": headline,
        "error": error_sentence,
        "sentences": [
            *(_region_sentence(one, confidence, task) for one in regions[:2] if sure),
            error_sentence,
            *_repair_sentence(repairs, value, confidence),
        ],
    }


def _grade(
    relative: float, upper: float, task: str, *, sure: bool
) -> tuple[Grade, str]:
    """Return the grade of a relative error with its upper limit, and the headline."""
    if not sure and upper >= GRADES[1][0]:
        return "unknown", "no miscalibration found, but too few rows to rule it out"
    grade, words = next((g, words) for limit, g, words in GRADES if relative < limit)
    if not sure:
        return grade, "no significant miscalibration found"
    return grade, f"{_subject(task)} {words}"


def _subject(task: str) -> str:
    return "confidence is" if task == "confidence" else "probabilities are"


def _region_sentence(region: Region, confidence: float, task: str) -> str:
    """Return where predictions are off, and by how much there."""
    near = min(region.predicted, 1.0 - region.predicted)
    predicted = format_probability(region.predicted, 2)
    if near == 0.0:
        predicted = f"{region.predicted:g}"
    elif near < NEGLIGIBLE:
        predicted = f"almost {round(region.predicted)}"
    width = max(region.high - region.low, NEGLIGIBLE)
    digits = int(np.clip(np.ceil(-np.log10(width)), 2, 5))
    rate = "accuracy" if task == "confidence" else "observed rate"
    return (
        f"{_subject(task).capitalize()} {'too high' if region.too_high else 'too low'} "
        f"{region}: for predictions of {predicted}, the {rate} is "
        f"{region.observed:.{digits}f} ({100 * confidence:g} % interval "
        f"{region.low:.{digits}f} to {region.high:.{digits}f})."
    )


def _error_sentence(
    error: Mapping[str, Any], confidence: float, task: str, *, sure: bool, plain: bool
) -> str:
    """Return the error with its interval; a `plain` one also in percentage points."""
    value, low, high = error["value"], error["low"], error["high"]
    digits = MIN_DECIMALS if low is None else decimals_to_distinguish(low, high)
    text = f"Calibration error {value:.{digits}f}"
    if low is not None:
        text += f", {100 * confidence:g} % interval {low:.{digits}f} to "
        text += f"{high:.{digits}f}"
    if not sure:
        return f"{text}: chance alone could explain it."
    if not plain:
        return f"{text}."
    points = format_probability(100.0 * max(value, 0.0), 1)
    over = " over rows and classes" if task == "classwise" else ""
    return (
        f"{text}: {_subject(task)} off by {points} percentage points on average{over}."
    )


def _repair_sentence(
    repairs: Mapping[str, Any] | None, value: float, confidence: float
) -> list[str]:
    """Return what the best repair would bring."""
    if repairs is None:
        return []
    best = next(r for r in repairs["rows"] if r["method"] == repairs["advised"])
    if best["method"] == NONE:
        return [NOT_BETTER]
    name = method_title(best["method"])
    if best["error"] is None:
        return [f"{name} would lower the log-loss by {best['gain']:.3f}."]
    error = max(float(best["error"]), 0.0)
    if error >= value:
        return [f"{name} would lower the log-loss, but not this error."]
    small, low, high = error < MIN_SHOWN_ERROR, best["low"], best["high"]
    if small and high is not None and high < value:
        limit = f"{high:.3f} (upper end of the {100 * confidence:g} % interval)"
        return [f"{name} would leave an error of at most {limit} on held-out rows."]
    left = f"below {MIN_SHOWN_ERROR:g}" if small else f"{error:.3f}"
    if high is not None:
        left += f" ({100 * confidence:g} % interval {low:.3f} to {high:.3f})"
    return [f"{name} would reduce the error to {left} on held-out rows."]


def method_title(method: str) -> str:
    """Return what a method is called at the start of a sentence.

    >>> method_title("platt"), method_title("top-smooth"), method_title("es15")
    ('Platt scaling', 'Smooth calibration of the top label', 'Calibration by es15')
    """
    wrapper = WRAPPERS.get(method[:4])
    if wrapper is not None and method[4:] in TITLES:
        return f"{TITLES[method[4:]]} {wrapper}"
    return TITLES.get(method, f"Calibration by {method}")


def reconcile(
    verdict: Mapping[str, Any],
    findings: Sequence[Finding],
    *,
    classes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a verdict that no finding contradicts.

    An error is a mean: it can be small although some rows, classes or groups are far
    off. Then the grade is at best poor beside a severe finding and at best fair beside
    a moderate one, the headline says so, and sentences name classes, groups and
    certain predictions that failed. Of predictions that are upside down it says only
    that. `classes` are all there are, worst first.
    """
    reversed_order = [f for f in findings if f.code == "CAL012" and not f.where]
    if any(map(is_turned, reversed_order)):
        return _upside_down(verdict, reversed_order[0])
    sentences = list(verdict["sentences"])
    place = sentences.index(verdict["error"]) + 1
    failed = _failed_sentence(findings)
    sentences[place:place] = [
        *_class_sentence(findings, classes),
        *failed,
        *_group_sentence(findings),
        *(f.message for f in findings if f.code == "CAL011" and not f.where),
    ]
    sentences[:0] = [finding.message for finding in reversed_order]
    grade, headline = verdict["grade"], verdict["headline"]
    order: list[Grade] = [grade for _, grade, _ in GRADES]
    worst = next((f.severity for f in significant_findings(findings)), "note")
    limit = GRADE_AT_BEST.get(worst)
    failed_only = bool(failed) and grade in ("good", "fair")
    if limit is not None and grade in order[: order.index(limit)]:
        far = "far off" if worst == "severe" else "off"
        grade, headline = limit, f"{headline} on average, but {far} in places"
    if failed_only:
        also = "and" if " off" in headline else "but"
        headline += f", {also} some predictions of 0 or 1 are wrong"
        grade = "fair" if grade == "good" else grade
    return {**verdict, "grade": grade, "headline": headline, "sentences": sentences}


def _upside_down(verdict: Mapping[str, Any], finding: Finding) -> dict[str, Any]:
    """Return the verdict on predictions that are probably those of the other label."""
    correlation = f"{finding.evidence['correlation']:.2f}"
    return {
        **verdict,
        "headline": "predictions are upside down",
        "sentences": [
            f"The correlation of predictions and labels is {correlation}.",
            finding.remedy,
            verdict["error"],
        ],
    }


def _class_sentence(findings: Sequence[Finding], classes: Sequence[str]) -> list[str]:
    """Return which classes are significantly off."""
    off = {finding.where.get("class") for finding in significant_findings(findings)}
    names = [name for name in classes if name in off]
    if not names:
        return []
    if len(names) == len(classes):
        return [f"All {len(names)} classes are significantly off."]
    which = join_names(names[:MAX_NAMES])
    if len(names) > MAX_NAMES:
        which = f"the worst are {which}"
    number = "one is" if len(names) == 1 else f"{len(names)} are"
    return [f"Of {len(classes)} classes, {number} significantly off: {which}."]


def _group_sentence(findings: Sequence[Finding]) -> list[str]:
    """Return which groups are worse calibrated than the rest."""
    names = list(
        dict.fromkeys(f.where["group"] for f in findings if f.code == "CAL010")
    )
    if not names:
        return []
    worse = "worse calibrated than other rows with the same predictions"
    first = join_names(names[:MAX_NAMES])
    if len(names) == 1:
        return [f"Group {first} is {worse}."]
    if len(names) <= MAX_NAMES:
        return [f"Groups {first} are {worse}."]
    return [f"{len(names)} groups are {worse}, above all {first}."]


def _failed_sentence(findings: Sequence[Finding]) -> list[str]:
    """Return how many certain predictions failed."""
    evidence = [f.evidence for f in findings if f.code == "CAL009"]
    failed, rows = (sum(float(e[key]) for e in evidence) for key in ("failed", "rows"))
    if not failed:
        return []
    certain = f"Of {format_count(rows)} predictions of exactly 0 or 1, "
    return [f"{certain}{format_count(failed)} turned out wrong."]
