"""The verdict and the findings say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.checks.formatting import format_count
from calibrant.report.verdict import GRADES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.checks.check import Finding

PROOFS = ("CAL001", "CAL002", "CAL003", "CAL004", "CAL005", "CAL012")
"""Checks that speak up only where chance cannot explain what is off."""
AT_BEST = {"severe": "poor", "moderate": "fair"}
"""No grade is better than this beside such a finding."""
MAX_NAMES = 3
_ORDER: list[str] = [grade for _, grade, _ in GRADES]


def proved(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings which prove that predictions are off, worst first."""
    return [finding for finding in findings if finding.code in PROOFS]


def agreed(
    verdict: Mapping[str, Any],
    findings: Sequence[Finding],
    *,
    classes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a verdict that no finding contradicts.

    An error is a mean: it can be small although some rows, classes or groups are far
    off. Then the grade is at best poor beside a severe finding and at best fair beside
    a moderate one, the headline says so, and sentences name classes, groups and
    certain predictions that failed. `classes` are all there are, worst first.
    """
    sentences = list(verdict["sentences"])
    place = sentences.index(verdict["error"]) + 1
    extra = [
        *_classes(proved(findings), classes),
        *_failed(findings),
        *_groups(findings),
        *(f.message for f in findings if f.code == "CAL011" and not f.where),
    ]
    return {
        **verdict,
        **_grade(verdict, findings),
        "sentences": [*sentences[:place], *extra, *sentences[place:]],
    }


def _grade(verdict: Mapping[str, Any], findings: Sequence[Finding]) -> dict[str, str]:
    grade, headline = verdict["grade"], verdict["headline"]
    proofs = proved(findings)
    worst = proofs[0].severity if proofs else "note"
    limit = AT_BEST.get(worst)
    failed = bool(_failed(findings)) and grade in ("good", "fair")
    if limit is not None and grade in _ORDER[: _ORDER.index(limit)]:
        far = "far off" if worst == "severe" else "off"
        grade, headline = limit, f"{headline} on average, but {far} in places"
    if failed:
        also = "and" if " off" in headline else "but"
        headline += f", {also} certain predictions failed"
        grade = "fair" if grade == "good" else grade
    return {"grade": grade, "headline": headline}


def _classes(proofs: Sequence[Finding], classes: Sequence[str]) -> list[str]:
    off = {finding.where.get("class") for finding in proofs}
    names = [name for name in classes if name in off]
    if not names:
        return []
    which = _joined(names[:MAX_NAMES])
    if len(names) == len(classes):
        return [f"All {len(names)} classes are off beyond chance."]
    if len(names) == 1:
        return [f"Of {len(classes)} classes one is off beyond chance: {which}."]
    if len(names) > MAX_NAMES:
        which = f"the worst are {which}"
    return [f"Of {len(classes)} classes {len(names)} are off beyond chance: {which}."]


def _groups(findings: Sequence[Finding]) -> list[str]:
    names = [f.where["group"] for f in findings if f.code == "CAL010"]
    names = list(dict.fromkeys(names))
    if not names:
        return []
    if len(names) > MAX_NAMES:
        first = _joined(names[:MAX_NAMES])
        told = (
            f"{len(names)} groups are further off than others with the same predictions"
        )
        return [f"{told}, above all {first}."]
    return [f"Further off than others with the same predictions: {_joined(names)}."]


def _failed(findings: Sequence[Finding]) -> list[str]:
    found = [f.evidence for f in findings if f.code == "CAL009"]
    failed, rows = (sum(float(e[key]) for e in found) for key in ("failed", "rows"))
    if not failed:
        return []
    certain = f"Of {format_count(rows)} predictions of exactly 0 or 1, "
    return [f"{certain}{format_count(failed)} failed."]


def _joined(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    Examples
    --------
    >>> _joined(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
