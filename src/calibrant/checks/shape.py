"""Checks of the whole map: too extreme, too timid, shifted, upside down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from calibrant.checks.decimals import both, told
from calibrant.checks.finding import Finding, severity_of
from calibrant.core.sample import FEW_ROWS
from calibrant.numerics.links import logit

if TYPE_CHECKING:
    from calibrant.checks.subject import Subject
    from calibrant.core.array_types import BoolVector, FloatVector

FARTHEST = 80.0
"""No prediction needs a larger shift of its logit than this."""
LEAST_NOISE = 10.0
"""Sums of labels with less variance than this are not near a normal distribution."""
TINY = np.finfo(float).tiny
RECENT = "If the share has changed since training, recalibrate on recent rows."


def over_confident(subject: Subject) -> Finding | None:
    """CAL001: predictions are more extreme than the observed rates."""
    return _confidence(subject, "CAL001", "over-confident", sign=-1.0)


def under_confident(subject: Subject) -> Finding | None:
    """CAL002: predictions are less extreme than the observed rates."""
    return _confidence(subject, "CAL002", "under-confident", sign=1.0)


def _confidence(
    subject: Subject, code: str, title: str, *, sign: float
) -> Finding | None:
    found = (
        _confidence_gap(subject, sign=sign)
        if subject.top_label
        else _spread(subject, sign=sign)
    )
    if found is None:
        return None
    return Finding(
        code,
        title,
        severity_of(found.effect),
        found.message,
        found.remedy,
        found.method,
        found.evidence | {"off_by": float(abs(found.effect))},
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
        f"The event happens {how} often than predicted: mean prediction {says}, "
        f"observed rate {happens}.",
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


@dataclass(frozen=True)
class _Found:
    """What a look at the whole map found: size of the error, and what would help."""

    effect: float
    message: str
    method: str
    remedy: str
    evidence: dict[str, float | str]


def _slope_remedy(method: str, sign: float) -> str:
    how = "shrinks" if sign < 0.0 else "stretches"
    return f"{method} {how} all predictions with a single slope."


def _confidence_gap(subject: Subject, *, sign: float) -> _Found | None:
    gap, pvalue = _shift(subject)
    if pvalue >= subject.level or gap * sign < 0.0:
        return None
    confidence = float(subject.cells.weight @ subject.cells.p) / subject.total
    says, right = both(confidence, confidence + gap)
    return _Found(
        gap,
        f"The mean confidence is {says}, and {right} of the rows are right.",
        "temperature",
        _slope_remedy("temperature", sign),
        {
            "confidence": confidence,
            "accuracy": confidence + gap,
            "pvalue": pvalue,
        },
    )


def _spread(subject: Subject, *, sign: float) -> _Found | None:
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


@dataclass(frozen=True)
class _Side:
    """Mean prediction and observed rate on one side of the middle.

    Attributes
    ----------
    predicted, observed : float
        The two means.
    off : int
        1 where the observed rate is significantly above the prediction, -1 where it is
        below, else 0.
    """

    predicted: float
    observed: float
    off: int

    @property
    def gap(self) -> float:
        """Return by how much the observed rate exceeds the prediction."""
        return self.observed - self.predicted

    @property
    def direction(self) -> str:
        """Return what is wrong with the predictions."""
        return "too low" if self.gap > 0.0 else "too high"

    @property
    def rates(self) -> tuple[str, str]:
        """Return both means, so that they read differently where they differ."""
        return both(self.predicted, self.observed)


def _two_sides(
    subject: Subject, middle: float, pvalue: float, *, sign: float
) -> _Found | None:
    """Compare predictions and observed rates on both sides of the middle.

    None where these plain means do not show what the slope of the logits says.
    """
    upper = _moved(subject) >= middle
    middle = float(subject.cells.p[upper].min())  # as it was predicted, not moved
    up, low = _side(subject, upper), _side(subject, ~upper)
    if (up.gap - low.gap) * sign <= 0.0:
        return None
    share = float(subject.cells.weight[upper].sum()) / subject.total
    method, remedy = _spread_remedy(subject, up, low, sign)
    return _Found(
        # Of the two gaps only how they differ: what they share is a shift.
        abs(up.gap - low.gap) * np.sqrt(share * (1.0 - share)),
        _spread_message(told(middle, 2), up, low, sign),
        method,
        remedy,
        {
            "middle": middle,
            "predicted_above": up.predicted,
            "observed_above": up.observed,
            "predicted_below": low.predicted,
            "observed_below": low.observed,
            "pvalue": pvalue,
        },
    )


def _side(subject: Subject, which: BoolVector) -> _Side:
    cells = subject.cells
    weight = float(cells.weight[which].sum())
    predicted = float(cells.weight[which] @ cells.p[which])
    observed = float(cells.label[which].sum())
    noise = float(subject.noise[which].sum())
    chance = 2.0 * ndtr(-abs(observed - predicted) / np.sqrt(max(noise, TINY)))
    off = int(np.sign(observed - predicted)) if chance < subject.level else 0
    return _Side(predicted / weight, observed / weight, off)


def _alone(up: _Side, low: _Side, sign: float) -> _Side | None:
    """Return the one side that is off, if the other is not."""
    if up.off == sign and not low.off:
        return up
    return low if low.off == -sign and not up.off else None


def _spread_message(middle: str, up: _Side, low: _Side, sign: float) -> str:
    """Say which side is off and how; `sign` is that of the slope less 1."""
    above, below = f"from {middle} up", f"below {middle}"
    one = _alone(up, low, sign)
    if one is not None:
        where, elsewhere = (above, below) if one is up else (below, above)
        other = low if one is up else up
        return (
            f"Predictions {where} are {one.direction}: {_means(one)}. Those "
            f"{elsewhere} are not significantly off: {_means(other)}."
        )
    if up.off * low.off > 0:  # they are shifted as well
        worst = above if up.off == sign else below
        how = f"{up.direction}, most of all {worst}"
    elif up.off and low.off:
        how = "too extreme" if sign < 0.0 else "not extreme enough"
    else:
        how = "too far apart" if sign < 0.0 else "too close together"
    return f"Predictions are {how}: {above} {_means(up)}; {below} {_means(low)}."


def _means(side: _Side) -> str:
    predicted, observed = side.rates
    return f"the mean prediction is {predicted}, the observed rate {observed}"


def _spread_remedy(
    subject: Subject, up: _Side, low: _Side, sign: float
) -> tuple[str, str]:
    """Return the method that helps, and how; one slope would move both sides."""
    if _alone(up, low, sign) is None:
        method = subject.method("platt")
        return method, _slope_remedy(method, sign)
    method = subject.method("beta")
    return method, f"{method} moves low and high predictions by slopes of their own."
