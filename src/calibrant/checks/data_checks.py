"""Checks of the rows: few, rounded, certain, of one outcome, groups that differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import chdtrc

from calibrant.calibrators.smooth import smooth_fit
from calibrant.checks.check import TITLES, Finding, Subject, fault, note
from calibrant.core.formatting import format_count, format_pair, format_probability
from calibrant.core.sample import FEW_ROWS
from calibrant.numerics.binning import width_edges
from calibrant.numerics.cluster_dependence import dependence_of
from calibrant.numerics.clustered_test import smooth_p_value
from calibrant.numerics.links import CLIP
from calibrant.numerics.paired import holm

if TYPE_CHECKING:
    from calibrant.core.array_types import BoolVector, FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.maps.base import CalibrationMap

ENOUGH_ROWS = 1000
INTERVAL_LEVEL = 0.05
"""The level of tests that 95 % intervals are."""
REGIONS = 10
DIGITS = (1, 2, 3)
ROWS_PER_VALUE = 20
MAX_VALUES = 200
FIRST_ROWS = 10_000
KEEP_DIGITS = "Keep the full precision of the model's output."
STATED_ENDS = "Stated confidences of 0 and 1 stand for less certain ones near them."
STATED_STEP = 0.05
"""People and language models state confidences in such steps, or larger ones."""
FLOAT32_ERROR = 2.0**-24
"""Decimals that went through single precision are off by as much as this."""
MIN_NOISE = 10.0
"""Groups whose sums of labels vary less than this are not judged: a chi-square would
be a poor approximation."""
MIN_GROUPS = 2
MIN_WIDER = 1.1
"""Intervals that should be wider by less than this factor are not worth a word."""
APART = "Recalibrate this group by itself, or add a feature that identifies it."


def few_rows(subject: Subject) -> Finding | None:
    """CAL006: there are fewer than 1000 rows."""
    if subject.total >= ENOUGH_ROWS:
        return None
    rarer = max(min(subject.positives, subject.total - subject.positives), 0.0)
    limit = "small errors are indistinguishable from noise"
    remedy = f"Collect at least {ENOUGH_ROWS} rows before trusting a small error."
    if smooth_p_value(subject.sample).rejects(subject.level):
        limit = (
            f"predictions are significantly off{_mean_off(subject)}, but by how much "
            "is uncertain"
        )
        remedy = "Look at the interval of the error, not only at its estimate."
    return note(
        "CAL006",
        f"There are {_format_rows(subject.total)}, {format_count(rarer)} of them with "
        f"the rarer label: {limit}.",
        remedy,
        rows=subject.total,
        rarer_outcome=rarer,
    )


def _mean_off(subject: Subject) -> str:
    """Return in which direction the mean is off where only an interval shows it.

    CAL003 is silent where O:E differs from 1 at 5 %, but not at the level of checks.
    """
    gap, pvalue = subject.mean_shift
    if not subject.level <= pvalue < INTERVAL_LEVEL:
        return ""
    predicted, observed = format_pair(subject.mean_prob, subject.mean_prob + gap)
    return (
        f" and on average too {'low' if gap > 0.0 else 'high'} (mean prediction "
        f"{predicted}, {subject.rate_name} {observed})"
    )


def _format_rows(number: float) -> str:
    return f"{format_count(number)} row{'s' if number != 1.0 else ''}"


def thin_region(subject: Subject) -> Finding | None:
    """CAL007: some tenth of the range has a few rows, too few to know it by.

    Of fewer than 300 rows some tenth always has too few, and CAL006 has said so.
    """
    rows = subject.tabulate(width_edges(REGIONS)).weight
    thin = (rows > 0.0) & (rows < FEW_ROWS)
    number = float(rows[thin].sum())
    if subject.total < REGIONS * FEW_ROWS or not thin.any():
        return None
    places = _format_regions(thin)
    return note(
        "CAL007",
        f"Only {format_count(number)} of {format_count(subject.total)} predictions are "
        f"in the range {places}: the observed rate there is very uncertain.",
        "Do not read too much into the diagram there; collect more such rows if "
        "decisions depend on them.",
        rows=number,
        where=places,
    )


def _format_regions(which: BoolVector) -> str:
    """Return regions of equal width in words, neighbours joined.

    >>> _format_regions(np.array([True, False, True, True]))
    'from 0 to 0.25 and from 0.5 to 1'
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], which.astype(int), [0]])))
    ends = (edges / which.size).reshape(-1, 2)
    return " and ".join(f"from {left:g} to {right:g}" for left, right in ends)


def rounded(subject: Subject) -> Finding | None:
    """CAL008: predictions are rounded, or take few values."""
    p = subject.sample.p
    inner = p[(p > 0.0) & (p < 1.0)]
    if inner.size < ENOUGH_ROWS // 10:
        return None
    some = inner[:FIRST_ROWS]  # they tell at once, unless predictions are rounded
    digits = next(
        (d for d in DIGITS if _has_digits(some, d) and _has_digits(inner, d)), None
    )
    if digits is None and np.unique(some).size > MAX_VALUES:
        return None  # without having sorted all rows
    values = int(np.unique(inner).size)
    few = values <= MAX_VALUES and inner.size >= ROWS_PER_VALUE * values
    if digits is None and not few:
        return None
    message = f"Predictions take only {values} values between 0 and 1"
    if values == 1:
        message = f"All predictions between 0 and 1 are the same: {inner[0]:.6g}"
        remedy = "Recalibration can only correct their overall level: they do not "
        remedy += "distinguish between rows."
    elif digits is None:
        remedy = "Rows with the same prediction cannot be distinguished; if the model "
        remedy += "can give finer scores, use those."
    elif _are_multiples(inner, STATED_STEP):
        message += f", multiples of {STATED_STEP:g}"
        remedy = "Nothing was lost if these are stated confidences. If a model "
        remedy += "computed them, keep the full precision of its output."
    else:
        message += f", rounded to {digits} decimal{'s' if digits > 1 else ''}"
        remedy = f"{KEEP_DIGITS} Rounding hides rare events and turns likely into "
        remedy += "certain."
    known = {"values": float(values), "digits": float(digits or np.nan)}
    return note("CAL008", f"{message}.", remedy, **known)


def _has_digits(p: FloatVector, digits: int) -> bool:
    """Tell whether predictions between 0 and 1 are decimals of so many digits."""
    near = np.rint(p * 10**digits) / 10**digits
    inside = (near > 0.0) & (near < 1.0)  # tiny probabilities are not a rounded 0
    return bool((inside & (np.abs(p - near) <= FLOAT32_ERROR)).all())


def _are_multiples(p: FloatVector, step: float) -> bool:
    """Tell whether all predictions are multiples of a step."""
    return bool((np.abs(p - step * np.rint(p / step)) <= FLOAT32_ERROR).all())


def certain(subject: Subject) -> Finding | None:
    """CAL009: predictions of exactly 0 or 1."""
    p, y = subject.sample.p, subject.sample.y
    sure = (p == 0.0) | (p == 1.0)
    if not sure.any():
        return None
    weight = subject.sample.weights
    rows = float(weight[sure].sum())
    failed = float((weight * np.abs(y - p))[sure].sum())
    share = f"{100 * rows / subject.total:.2g}".replace("1e+02", "100")
    message = (
        f"{format_count(rows)} of {format_count(subject.total)} predictions ({share} "
        f"%) are exactly 0 or 1"
    )
    smooth, beta = subject.method("smooth"), subject.method("beta")
    inner = p[~sure]
    stated = inner.size > 0 and _are_multiples(inner, STATED_STEP)
    keep = STATED_ENDS if stated else KEEP_DIGITS
    if failed:
        message += (
            f", and {format_count(failed)} of them turned out wrong, which makes the "
            "exact log-loss infinite. For any log-loss shown here, 0 and 1 are moved "
            f"inwards by {CLIP:.1e}, so that a wrong prediction costs "
            f"{-np.log(CLIP):.0f}."
        )
        remedy = f"{keep[:-1]}, or recalibrate with {smooth} or {beta}."
        if keep == STATED_ENDS:
            remedy = f"{keep} Recalibrate with {smooth} or {beta}."
    else:
        message += "; none of them turned out wrong."
        remedy = (
            f"{keep} A single wrong prediction of exactly 0 or 1 would make the "
            "log-loss infinite."
        )
    return Finding(
        "CAL009",
        TITLES["CAL009"],
        "severe" if failed else "note",
        message,
        remedy,
        smooth if failed else "",
        {"rows": rows, "failed": failed, "share": rows / subject.total},
        keep,
    )


def one_outcome(subject: Subject) -> Finding | None:
    """CAL011: the event always happened, or never."""
    if not subject.one_outcome:
        return None
    always = "always" if subject.positives else "never"
    return note(
        "CAL011",
        f"The event {always} happened in these {_format_rows(subject.total)}.",
        "With one outcome, nothing shows how well predictions separate events from "
        "other rows; check that the right label column was read.",
        rows=subject.total,
        positives=subject.positives,
    )


def dependent_rows(subject: Subject) -> Finding | None:
    """CAL014: labels of a cluster are correlated, so that all rows tell less."""
    dependence = dependence_of(subject.sample)
    if dependence is None or subject.one_outcome:
        return None
    wider = float(np.sqrt(dependence.factor))
    if wider < MIN_WIDER or dependence.pvalue >= subject.level:
        return None
    rows, count = subject.total, dependence.sums.count
    return note(
        "CAL014",
        f"Labels within a cluster are correlated ({dependence.label_correlation:.2f}). "
        f"{format_count(rows)} rows in {format_count(count)} clusters say as much "
        "about the mean label as "
        f"{format_count(round(rows / dependence.factor))} independent rows: its "
        f"interval must be {wider:.1f} times as wide.",
        "Keep passing the clusters whenever you evaluate, compare or test these "
        "predictions.",
        correlation=dependence.label_correlation,
        clusters=float(count),
        wider=wider,
        pvalue=dependence.pvalue,
    )


class GroupGap(NamedTuple):
    """How one group departs from the calibration map of all rows.

    `gap` is the observed rate less the mean prediction, `expected_gap` the same by the
    map of all rows; `pvalue` has Holm's correction for all tested groups, and is NaN
    where labels vary too little for a test.
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
    group itself took part in that map. P-values are Holm's over all tested groups.
    """
    if len(subject.groups) < MIN_GROUPS:
        return []
    map_ = smooth_fit(subject.sample).map
    gaps = [_group_gap(name, s, map_) for name, s in subject.groups.items()]
    tested = [gap for gap in gaps if not np.isnan(gap.pvalue)]
    adjusted = holm([gap.pvalue for gap in tested])
    pvalues = dict(zip([gap.name for gap in tested], adjusted, strict=True))
    return [gap._replace(pvalue=pvalues.get(gap.name, np.nan)) for gap in gaps]


def _group_gap(name: str, sample: BinarySample, map_: CalibrationMap) -> GroupGap:
    """Return the departure of one group, its p-value not corrected."""
    group = Subject(sample)
    cells, predicted, observed = group.cells, group.mean_prob, group.rate
    expected = map_.values(cells.p)
    mean = float(cells.weight @ expected) / group.total
    noise = cells.weight * expected * (1.0 - expected)
    pvalue = _score_test(cells.p, cells.label_sum - cells.weight * expected, noise)
    gaps = (observed - predicted, mean - predicted)
    return GroupGap(name, group.total, predicted, observed, *gaps, pvalue)


def _score_test(p: FloatVector, excess: FloatVector, noise: FloatVector) -> float:
    """Return the p-value of a level and a slope among the residuals, or NaN."""
    total = float(noise.sum())
    if total < MIN_NOISE:
        return np.nan
    centred = p - float(noise @ p) / total
    statistic = float(excess.sum()) ** 2 / total
    spread = float(noise @ centred**2)
    if spread <= 1e-12 * total:
        return float(chdtrc(1, statistic))
    return float(chdtrc(2, statistic + float(excess @ centred) ** 2 / spread))


def groups_that_differ(subject: Subject) -> list[Finding]:
    """CAL010: groups that are significantly worse calibrated than the rest."""
    return [
        _group_finding(subject, gap)
        for gap in group_gaps(subject)
        if gap.pvalue < subject.level and abs(gap.gap) > abs(gap.expected_gap)
    ]


def _group_finding(subject: Subject, group: GroupGap) -> Finding:
    predicted, observed = format_pair(group.predicted, group.observed)
    expected = group.predicted + group.expected_gap
    usual = format_probability(expected, len(predicted.partition(".")[2]))
    method = subject.method("smooth")
    finding = fault(
        "CAL010",
        group.gap - group.expected_gap,
        f"In {group.name} the mean prediction is {predicted}, the {subject.rate_name} "
        f"{observed}; over all rows such predictions have a rate of {usual}.",
        f"{APART} {method} fits any shape, given enough rows.",
        method,
        besides=APART,
        rows=group.rows,
        predicted=group.predicted,
        observed=group.observed,
        expected=expected,
        pvalue=group.pvalue,
    )
    return replace(finding, where={"group": group.name})
