"""Checks of the whole map: too extreme, too timid, shifted, upside down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from calibrant.checks.finding import Finding, severity_of
from calibrant.numerics.links import logit

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatVector
    from calibrant.checks.subject import Subject

FARTHEST = 80.0
"""No prediction needs a larger shift of its logit than this."""
LEAST_NOISE = 10.0
"""Sums of labels with less variance than this are not near a normal distribution."""


def over_confident(subject: Subject) -> Finding | None:
    """CAL001: predictions are more extreme than what happens."""
    found = _off(subject, sign=-1.0)
    if found is None:
        return None
    effect, told, evidence = found
    return Finding(
        "CAL001",
        "over-confident",
        severity_of(effect),
        told,
        _scaling(subject, "less extreme"),
        "temperature" if subject.top_label else "platt",
        evidence,
    )


def under_confident(subject: Subject) -> Finding | None:
    """CAL002: predictions are more timid than what happens."""
    found = _off(subject, sign=1.0)
    if found is None:
        return None
    effect, told, evidence = found
    return Finding(
        "CAL002",
        "under-confident",
        severity_of(effect),
        told,
        _scaling(subject, "more extreme"),
        "temperature" if subject.top_label else "platt",
        evidence,
    )


def shifted_base_rate(subject: Subject) -> Finding | None:
    """CAL003: the event happens more or less often than predicted on average."""
    gap, pvalue = _shift(subject)
    if subject.top_label or pvalue >= subject.level:
        return None
    cells = subject.cells
    predicted = float(cells.weight @ cells.p) / subject.total
    how = "more" if gap > 0.0 else "less"
    return Finding(
        "CAL003",
        "shifted base rate",
        severity_of(gap),
        f"The event happens {how} often than predicted: mean prediction "
        f"{predicted:.3f}, share of positives {predicted + gap:.3f}.",
        "If the share has changed since training, recalibrate on recent rows; "
        "platt moves all predictions together.",
        "platt",
        {"mean_prob": predicted, "base_rate": predicted + gap, "pvalue": pvalue},
    )


def reversed_order(subject: Subject) -> Finding | None:
    """CAL012: the higher the prediction, the less often the event happens."""
    cells, total = subject.cells, subject.total
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
        f"The higher the prediction, the less often the event happens (correlation "
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


def _off(subject: Subject, *, sign: float) -> Found | None:
    """Look for too much confidence (sign -1) or too little (+1)."""
    if subject.top_label:
        return _confidence_gap(subject, sign=sign)
    return _spread(subject, sign=sign)


def _confidence_gap(subject: Subject, *, sign: float) -> Found | None:
    gap, pvalue = _shift(subject)
    if pvalue >= subject.level or gap * sign < 0.0:
        return None
    confidence = float(subject.cells.weight @ subject.cells.p) / subject.total
    told = (
        f"The model's mean confidence is {confidence:.3f}, and it is right in "
        f"{confidence + gap:.3f} of the rows."
    )
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
    if subject.noise.sum() < LEAST_NOISE:
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
    return _two_sides(subject, middle, pvalue)


def _moved(subject: Subject) -> FloatVector:
    """Return predictions moved by one logit, so that their mean is the base rate."""
    cells, rate = subject.cells, float(subject.cells.label.sum()) / subject.total
    if not 0.0 < rate < 1.0:
        return cells.p
    logits = logit(cells.p)

    def surplus(shift: float) -> float:
        return float(cells.weight @ expit(logits + shift)) / subject.total - rate

    shift = float(brentq(surplus, -FARTHEST, FARTHEST, xtol=1e-9))
    return np.asarray(expit(logits + shift))


def _two_sides(subject: Subject, middle: float, pvalue: float) -> Found:
    upper = _moved(subject) >= middle
    middle = float(subject.cells.p[upper].min())  # as it was predicted, not moved
    says_up, happens_up = _rates(subject, upper)
    says_low, happens_low = _rates(subject, ~upper)
    effect = 0.5 * abs((happens_up - says_up) - (happens_low - says_low))
    told = (
        f"Above {middle:.2f} it says {says_up:.3f} on average and {happens_up:.3f} "
        f"happen; below it says {says_low:.3f} and {happens_low:.3f} happen."
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


def _scaling(subject: Subject, how: str) -> str:
    method = "Temperature" if subject.top_label else "Platt"
    return f"{method} scaling makes all predictions {how} by one rule."
