"""Check of groups: whose calibration differs from that of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import chdtrc

from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.smooth import Smooth
from calibrant.checks.decimals import both, told
from calibrant.checks.finding import Finding, severity_of
from calibrant.core.sample import FEW_ROWS
from calibrant.numerics.holm import holm
from calibrant.numerics.log_cells import many_cells

if TYPE_CHECKING:
    from calibrant.checks.subject import Subject
    from calibrant.core.array_types import FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.maps.base import CalibrationMap

LEAST_NOISE = 10.0
"""Groups whose sums of labels vary less than this are not judged: a chi-square would
be a poor guess of what chance does."""
FEWEST_GROUPS = 2
APART = "Recalibrate this group by itself, or add a feature that identifies it."


@dataclass(frozen=True)
class GroupGap:
    """How one group departs from the map of all rows.

    Attributes
    ----------
    name : str
        The group.
    rows : float
        Its rows.
    predicted, observed : float
        Mean prediction and share of positives.
    gap, expected_gap : float
        Observed less predicted, and what the map of all rows makes of it.
    pvalue : float
        Chance of so large a departure, after Holm's correction for all groups.
    """

    name: str
    rows: float
    predicted: float
    observed: float
    gap: float
    expected_gap: float
    pvalue: float


def group_gaps(subject: Subject) -> list[GroupGap]:
    """Return how each group departs from the map of all rows.

    Each group is tested for a level and a slope of its own, given the smooth map of
    all rows: chi-square with two degrees of freedom, a little too careful since the
    group itself took part in that map. P-values are Holm's over all groups.
    """
    if len(subject.groups) < FEWEST_GROUPS:
        return []
    map_ = fit_family(Smooth(), subject.sample).map
    found = [_departure(name, s, map_) for name, s in subject.groups.items()]
    adjusted = holm([pvalue for _, pvalue in found])
    return [
        GroupGap(*fields, pvalue)
        for (fields, _), pvalue in zip(found, adjusted, strict=True)
    ]


def group_that_differs(subject: Subject) -> list[Finding]:
    """CAL010: a group is worse calibrated than the rest, beyond chance."""
    return [
        Finding(
            "CAL010",
            "group worse than the rest",
            severity_of(group.gap - group.expected_gap),
            _told(subject, group),
            f"{APART} {subject.method('smooth')} fits any shape, given enough rows.",
            subject.method("smooth"),
            {
                "rows": group.rows,
                "predicted": group.predicted,
                "observed": group.observed,
                "expected": group.predicted + group.expected_gap,
                "off_by": abs(group.gap - group.expected_gap),
                "pvalue": group.pvalue,
            },
            APART,
            {"group": group.name},
        )
        for group in group_gaps(subject)
        if group.pvalue < subject.level and abs(group.gap) > abs(group.expected_gap)
    ]


def _told(subject: Subject, group: GroupGap) -> str:
    says, happens = both(group.predicted, group.observed)
    usual = told(group.predicted + group.expected_gap, len(says.partition(".")[2]))
    return (
        f"In {group.name} the mean prediction is {says}, the {subject.rate} {happens}; "
        f"over all rows such predictions have a rate of {usual}."
    )


def _departure(
    name: str, sample: BinarySample, map_: CalibrationMap
) -> tuple[tuple[str, float, float, float, float, float], float]:
    cells = many_cells(sample)
    total = float(cells.weight.sum())
    expected = map_.values(cells.p)
    predicted = float(cells.weight @ cells.p) / total
    observed = float(cells.label.sum()) / total
    mean = float(cells.weight @ expected) / total
    noise = cells.weight * expected * (1.0 - expected)
    pvalue = 1.0
    if total >= FEW_ROWS:
        pvalue = _score_test(cells.p, cells.label - cells.weight * expected, noise)
    fields = (name, total, predicted, observed, observed - predicted, mean - predicted)
    return fields, pvalue


def _score_test(p: FloatVector, excess: FloatVector, noise: FloatVector) -> float:
    """Return the p-value of a level and a slope among the residuals."""
    total = float(noise.sum())
    if total < LEAST_NOISE:
        return 1.0
    centred = p - float(noise @ p) / total
    statistic = float(excess.sum()) ** 2 / total
    spread = float(noise @ centred**2)
    if spread <= 1e-12 * total:
        return float(chdtrc(1, statistic))
    statistic += float(excess @ centred) ** 2 / spread
    return float(chdtrc(2, statistic))
