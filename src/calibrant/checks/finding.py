"""A finding: what is wrong, how sure, how bad and what would help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

Severity: TypeAlias = Literal["note", "minor", "moderate", "severe"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

MODERATE, SEVERE = 0.01, 0.05
"""Probabilities that are off by this much over all rows, as the root of the mean
square, are moderately, severely off."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Attributes
    ----------
    code : str
        The check, as "CAL001"; codes never change their meaning.
    title : str
        The check in two or three words.
    severity : {"note", "minor", "moderate", "severe"}
        "note": worth knowing, but no fault of the probabilities. The others go by how
        far probabilities are off, as the root of the mean square over all rows: less
        than 0.01, less than 0.05, more. So few rows that are far off weigh less.
    message : str
        What was found, in words and numbers.
    remedy : str
        What to do about it.
    calibrator : str
        A method of this kind of predictions that is made for the fault; empty where
        none is. Whether it helps these rows is not measured; reports do that.
    besides : str
        The part of the remedy that is not about a calibrator.
    evidence : dict
        The numbers behind the message; "off_by" is what the severity goes by.
    where : dict
        Model, class or group that it is about; empty where there is one only.
    """

    code: str
    title: str
    severity: Severity
    message: str
    remedy: str
    calibrator: str = ""
    evidence: dict[str, float | str] = field(default_factory=dict)
    besides: str = ""
    where: dict[str, Any] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """Return 0 for a note up to 3 for what is severe."""
        return SEVERITIES.index(self.severity)

    def __str__(self) -> str:
        place = ", ".join(f"{name}={value}" for name, value in self.where.items())
        told = f" ({place})" if place else ""
        return f"{self.code} {self.severity}{told}: {self.message} {self.remedy}"


def severity_of(effect: float) -> Severity:
    """Return how bad it is that probabilities are off by `effect`.

    Examples
    --------
    >>> severity_of(0.002), severity_of(-0.02), severity_of(0.2)
    ('minor', 'moderate', 'severe')
    """
    if abs(effect) < MODERATE:
        return "minor"
    return "moderate" if abs(effect) < SEVERE else "severe"
