"""Checks of the whole map: too extreme, too timid, shifted, upside down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from calibrant._validation.sample import FEW_ROWS
from calibrant.checks.decimals import both
from calibrant.checks.finding import Finding, severity_of
from calibrant.numerics.links import logit

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatVector
    from calibrant.checks.subject import Subject

FARTHEST = 80.0
"""No prediction needs a larger shift of its logit than this."""
LEAST_NOISE = 10.0
"""Sums of labels with less variance than this are not near a normal distribution."""
RECENT = "If the share has changed since training, recalibrate on recent rows."


def over_confident(subject: Subject) -> Finding | None:
    """CAL001: predictions are more extreme than what happens."""
    return _confidence(subject, "CAL001", "over-confident", sign=-1.0)


def under_confident(subject: Subject) -> Finding | None:
    """CAL002: predictions are more timid than what happens."""
    return _confidence(subject, "CAL002", "under-confident", sign=1.0)


def _confidence(
    subject: Subject, code: str, title: str, *, sign: float
) -> Finding | None:
    look = _confidence_gap if subject.top_label else _spread
    found = look(subject, sign=sign)
    if found is None:
        return None
    effect, told, evidence = found
    how = "less" if sign < 0.0 else "more"
    method = "temperature" if subject.top_label else subject.method("platt")
    return Finding(
        code,
        title,
        severity_of(effect),
        told,
        f"{method} makes all predictions {how} extreme by one rule.",
        method,
        evidence | {"off_by": float(abs(effect))},
    )


def shifted_base_rate(subject: Subject) -> Finding | None:
    """CAL003: the event happens more or less often than predicted on average."""
    gap, pvalue = _shift(subject)
    if subject.top_label or pvalue >= subject.level:
        return None
    cells = subject.cells
    predicted = float(cells.weight @ cells.p) / subject.total
    how = "more" if gap > 0.0 else "less"
    rate = float(cells.label.sum()) / subject.total
    says, happens = both(predicted, rate)
    method = subject.method("platt")
    return Finding(
        "CAL003",
        "shifted base rate",
        severity_of(gap),
        f"The event happens {how} often than predicted: mean prediction {says}, share "
        f"that happened {happens}.",
        f"{method} moves all predictions together. {RECENT}",
        method,
        {
            "mean_prob": predicted,
            "base_rate": rate,
            "off_by": abs(gap),
            "pvalue": pvalue,
        },
        RECENT,
    )


def reversed_order(subject: Subject) -> Finding | None:
    """CAL012: the higher the prediction, the less often the event happens."""
    cells, total = subject.cells, subject.total
    if total < FEW_ROWS:
        return None
    share = cells.label / cells.weight
    p = cells.p - cells.weight @ cells.p / total
    rate = float(cells.label.sum()) / total
    covariance = float(cells.weight @ (p * (share - rate)))
    scale = float(cells.weight @ p**2) * total * rate * (1.0 - rate)
    if scale == 0.0:
        return None
    correlation = covariance * np.sqrt(total / scale)
    pvalue = float(ndtr(correlation * np.sqrt(total)))
    if pvalue >= subject.level:
        return None
    return Finding(
        "CAL012",
        "upside down",
        "severe",
        f"The higher the prediction, the less often it comes true (correlation "
        f"{correlation:.2f}).",
        "Are the labels swapped, or is this the probability of the other class?",
        "",
        {"correlation": float(correlation), "pvalue": pvalue},
    )


def _shift(subject: Subject) -> tuple[float, float]:
    """Return the mean of label less prediction, and its two-sided p-value."""
    noise = float(subject.noise.sum())
    gap = float(subject.excess.sum())
    if noise < LEAST_NOISE:
        return gap / subject.total, 1.0
    return gap / subject.total, float(2.0 * ndtr(-abs(gap) / np.sqrt(noise)))


Found = tuple[float, str, dict[str, float | str]]


def _confidence_gap(subject: Subject, *, sign: float) -> Found | None:
    gap, pvalue = _shift(subject)
    if pvalue >= subject.level or gap * sign < 0.0:
        return None
    confidence = float(subject.cells.weight @ subject.cells.p) / subject.total
    says, right = both(confidence, confidence + gap)
    told = f"The mean confidence is {says}, and {right} of the rows are right."
    evidence: dict[str, float | str] = {
        "confidence": confidence,
        "accuracy": confidence + gap,
        "pvalue": pvalue,
    }
    return gap, told, evidence


def _spread(subject: Subject, *, sign: float) -> Found | None:
    """Look for predictions too far apart (sign -1) or too close together (+1).

    The statistic is the score of a slope at the predictions, these moved by one
    constant on the logit scale to the base rate: so a shift alone does not show.
    """
    if subject.noise.sum() < LEAST_NOISE or subject.one_outcome:
        return None
    p = _moved(subject)
    noise = subject.cells.weight * p * (1.0 - p)
    excess = subject.cells.label - subject.cells.weight * p
    middle = float(noise @ p / noise.sum())
    variance = float(noise @ (p - middle) ** 2)
    if variance <= 0.0:
        return None
    z = float(excess @ (p - middle)) / np.sqrt(variance)
    pvalue = float(2.0 * ndtr(-abs(z)))
    if pvalue >= subject.level or z * sign < 0.0:
        return None
    return _two_sides(subject, middle, pvalue, sign=sign)


def _moved(subject: Subject) -> FloatVector:
    """Return predictions moved by one logit, so that their mean is the base rate."""
    cells, rate = subject.cells, float(subject.cells.label.sum()) / subject.total
    logits = logit(cells.p)

    def surplus(shift: float) -> float:
        return float(cells.weight @ expit(logits + shift)) / subject.total - rate

    shift = float(brentq(surplus, -FARTHEST, FARTHEST, xtol=1e-9))
    return np.asarray(expit(logits + shift))


def _two_sides(
    subject: Subject, middle: float, pvalue: float, *, sign: float
) -> Found | None:
    """Tell what is said and what happens on both sides of the middle.

    None where these plain means do not show what the slope of the logits says.
    """
    upper = _moved(subject) >= middle
    middle = float(subject.cells.p[upper].min())  # as it was predicted, not moved
    says_up, happens_up = _rates(subject, upper)
    says_low, happens_low = _rates(subject, ~upper)
    widening = (happens_up - says_up) - (happens_low - says_low)
    if widening * sign <= 0.0:
        return None
    share = float(subject.cells.weight[upper].sum()) / subject.total
    # Of the two gaps only how they differ: what they share is a shift.
    effect = abs(widening) * np.sqrt(share * (1.0 - share))
    how = "far apart" if sign < 0.0 else "close together"
    up, low = both(says_up, happens_up), both(says_low, happens_low)
    told = (
        f"Predictions lie too {how}: from {middle:.2g} up they say {up[0]} on average "
        f"and {up[1]} happen; below that they say {low[0]} and {low[1]} happen."
    )
    evidence: dict[str, float | str] = {
        "middle": middle,
        "predicted_above": says_up,
        "observed_above": happens_up,
        "predicted_below": says_low,
        "observed_below": happens_low,
        "pvalue": pvalue,
    }
    return effect, told, evidence


def _rates(subject: Subject, which: BoolVector) -> tuple[float, float]:
    cells = subject.cells
    weight = float(cells.weight[which].sum())
    predicted = float(cells.weight[which] @ cells.p[which])
    return predicted / weight, float(cells.label[which].sum()) / weight
