"""Checks of the calibration curve: too extreme, shifted, off in a region, falling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, expit, ndtr

from calibrant.checks.check import MIN_NOISE, TITLES, Finding, fault
from calibrant.core.formatting import format_pair, format_probability, format_range
from calibrant.numerics.binning import bin_index
from calibrant.numerics.classical_tests import find_reversal

if TYPE_CHECKING:
    from calibrant.checks.check import Subject
    from calibrant.core.array_types import BoolVector, FloatVector
    from calibrant.numerics.binning import BinTable

MIN_BINS = 2
MIN_COUNT = 5.0
"""Rates of bins with fewer expected rows of either outcome are not compared."""
TINY = np.finfo(float).tiny
BALANCED = 0.4
"""Training data were balanced if their log-odds of events are within this of 0."""
MIN_SHIFT = 1.0
"""Of logits: smaller shifts than this have many causes."""
UNEXPLAINED = 0.05
"""A shift explains what is wrong if this share of it remains at most."""
RECENT = "If the base rate has changed since training, recalibrate on recent rows."
LOOK = "Look at the rows in that range."


CONFIDENCE_CODES = {-1.0: "CAL001", 1.0: "CAL002"}
"""Predictions that are too extreme, and not extreme enough."""


def wrong_confidence(subject: Subject, *, sign: float) -> Finding | None:
    """CAL001, CAL002: predictions are more, or less, extreme than the observed rates.

    The `sign` is that of the slope less 1.
    """
    if not subject.top_label:
        return _spread(subject, sign=sign)
    gap, pvalue = subject.mean_shift
    if pvalue >= subject.level or gap * sign < 0.0:
        return None
    confidence = subject.mean_prob
    predicted, right = format_pair(confidence, confidence + gap)
    return fault(
        CONFIDENCE_CODES[sign],
        gap,
        f"The mean confidence is {predicted}, the accuracy {right}.",
        _slope_remedy("temperature", sign),
        "temperature",
        confidence=confidence,
        accuracy=confidence + gap,
        pvalue=pvalue,
    )


def _slope_remedy(method: str, sign: float) -> str:
    how = "shrinks" if sign < 0.0 else "stretches"
    return f"{method} {how} all predictions with a single slope."


def shifted_base_rate(subject: Subject) -> Finding | None:
    """CAL003: the event happens more or less often than predicted on average."""
    gap, pvalue = subject.mean_shift
    if subject.top_label or pvalue >= subject.level:
        return None
    predicted, observed = format_pair(subject.mean_prob, subject.rate)
    method = subject.method("platt")
    return fault(
        "CAL003",
        gap,
        f"The event happens {'more' if gap > 0.0 else 'less'} often than predicted: "
        f"mean prediction {predicted}, observed rate {observed}.",
        f"{method} corrects the overall level. {RECENT}",
        method,
        besides=RECENT,
        mean_prob=subject.mean_prob,
        base_rate=subject.rate,
        pvalue=pvalue,
    )


def balanced_training(subject: Subject) -> Finding | None:
    """CAL013: predictions are those of a model trained on as many events as others."""
    gap, pvalue = subject.mean_shift
    if subject.event != "binary" or pvalue >= subject.level or subject.one_outcome:
        return None
    rate, shift = subject.rate, subject.shift_to_base_rate
    trained = float(expit(np.log(rate / (1.0 - rate)) - shift))
    balanced = abs(np.log(trained / (1.0 - trained))) <= BALANCED
    if not balanced or abs(shift) < MIN_SHIFT or not _is_shift_alone(subject):
        return None
    return fault(
        "CAL013",
        gap,
        f"Predictions are too {'low' if shift > 0.0 else 'high'} by a constant, "
        f"{abs(shift):.2f} in log-odds, as if the model had been trained on balanced "
        f"data, with an event rate of {trained:.2f} instead of the observed "
        f"{format_probability(rate)}.",
        f"If training data or classes were balanced, adjust_prior({rate:.3g}, "
        "old_rate=0.5) reverses this, without labels.",
        shift=shift,
        training_rate=trained,
        base_rate=rate,
        pvalue=pvalue,
    )


def _is_shift_alone(subject: Subject) -> bool:
    """Tell whether a constant shift of logits explains nearly all that is wrong."""
    cells, edges = subject.cells, subject.bins.edges
    index = bin_index(cells.p, edges)

    def surprise(p: FloatVector) -> float:
        gaps, noise = cells.label_sum - cells.weight * p, cells.weight * p * (1.0 - p)
        sums = np.bincount(index, gaps), np.bincount(index, noise)
        return float((sums[0] ** 2 / np.maximum(sums[1], TINY)).sum())

    by_chance = float(np.unique(index).size)
    left, all_of_it = surprise(subject.at_base_rate), surprise(cells.p)
    return left - by_chance <= UNEXPLAINED * (all_of_it - by_chance)


def reversed_order(subject: Subject) -> Finding | None:
    """CAL012: the higher the prediction, the less often the event happens."""
    cells = subject.cells
    rates = cells.label_sum / cells.weight
    reversal = find_reversal(cells.p, rates, cells.weight, subject.level)
    if reversal is None:
        return None
    evidence = {"correlation": reversal.correlation, "pvalue": reversal.pvalue}
    if not subject.top_label:  # whose confidence is never that of another class
        evidence["turned_skill"] = _turned_skill(subject)
    return Finding(
        "CAL012",
        TITLES["CAL012"],
        "severe",
        f"The higher the prediction, the less often it comes true (correlation "
        f"{reversal.correlation:.2f}).",
        "Are the labels swapped, or is this the probability of the other class?",
        evidence={**evidence},
    )


def _turned_skill(subject: Subject) -> float:
    """Return by how much 1 - p, shifted to the base rate, has a lower Brier score.

    The score of the base rate alone is 0, a perfect one 1.
    """
    sample = subject.sample
    turned = replace(subject, sample=replace(sample, p=1.0 - sample.p))
    p, cells = turned.at_base_rate, turned.cells
    misses = cells.weight - cells.label_sum
    brier = float(cells.label_sum @ (1.0 - p) ** 2 + misses @ p**2) / subject.total
    return 1.0 - brier / (subject.rate * (1.0 - subject.rate))


@dataclass(frozen=True)
class _Side:
    """Mean prediction and observed rate on one side of the middle.

    `off` is 1 where the observed rate is significantly above the prediction, -1 where
    it is below, else 0.
    """

    predicted: float
    observed: float
    off: int

    @property
    def gap(self) -> float:
        return self.observed - self.predicted

    @property
    def direction(self) -> str:
        return "too low" if self.gap > 0.0 else "too high"

    def __str__(self) -> str:
        predicted, observed = format_pair(self.predicted, self.observed)
        return f"the mean prediction is {predicted}, the observed rate {observed}"


def _spread(subject: Subject, *, sign: float) -> Finding | None:
    """Look for predictions too far apart (sign -1) or too close together (+1).

    The statistic is the score of a slope at the predictions, after a shift on the
    logit scale to the base rate, so that a shift alone is not significant.
    """
    if subject.noise.sum() < MIN_NOISE or subject.one_outcome:
        return None
    p = subject.at_base_rate
    noise = subject.cells.weight * p * (1.0 - p)
    excess = subject.cells.label_sum - subject.cells.weight * p
    middle = float(noise @ p / noise.sum())
    variance = float(noise @ (p - middle) ** 2)
    if variance <= 0.0:
        return None
    z = float(excess @ (p - middle)) / np.sqrt(variance)
    pvalue = float(2.0 * ndtr(-abs(z)))
    if pvalue >= subject.level or z * sign < 0.0:
        return None
    return _two_sides(subject, p >= middle, pvalue, sign=sign)


def _two_sides(
    subject: Subject, upper: BoolVector, pvalue: float, *, sign: float
) -> Finding | None:
    """Compare predictions and observed rates on both sides of the middle.

    None where these plain means do not show what the slope of the logits says.
    """
    middle = float(subject.cells.p[upper].min())  # as it was predicted, not shifted
    up, low = _side(subject, upper), _side(subject, ~upper)
    if (up.gap - low.gap) * sign <= 0.0:
        return None
    share = float(subject.cells.weight[upper].sum()) / subject.total
    method, remedy = _spread_repair(subject, up, low, sign)
    return fault(
        CONFIDENCE_CODES[sign],
        # Only the difference of the two gaps: what they share is a shift.
        (up.gap - low.gap) * np.sqrt(share * (1.0 - share)),
        _spread_message(format_probability(middle, 2), up, low, sign),
        remedy,
        method,
        middle=middle,
        predicted_above=up.predicted,
        observed_above=up.observed,
        predicted_below=low.predicted,
        observed_below=low.observed,
        pvalue=pvalue,
    )


def _side(subject: Subject, which: BoolVector) -> _Side:
    cells = subject.cells
    weight = float(cells.weight[which].sum())
    predicted = float(cells.weight[which] @ cells.p[which])
    observed = float(cells.label_sum[which].sum())
    noise = float(subject.noise[which].sum())
    pvalue = 2.0 * ndtr(-abs(observed - predicted) / np.sqrt(max(noise, TINY)))
    off = int(np.sign(observed - predicted)) if pvalue < subject.level else 0
    return _Side(predicted / weight, observed / weight, off)


def _only_side_off(up: _Side, low: _Side, sign: float) -> _Side | None:
    """Return the one side that is off, if the other is not."""
    if up.off == sign and not low.off:
        return up
    return low if low.off == -sign and not up.off else None


def _spread_message(middle: str, up: _Side, low: _Side, sign: float) -> str:
    """Return which side is off and how; `sign` is that of the slope less 1."""
    above, below = f"above {middle}", f"below {middle}"
    one = _only_side_off(up, low, sign)
    if one is not None:
        where, elsewhere = (above, below) if one is up else (below, above)
        return (
            f"Predictions {where} are {one.direction}: {one}. Predictions "
            f"{elsewhere} are not significantly off: {low if one is up else up}."
        )
    if up.off * low.off > 0:  # they are shifted as well
        worst = above if up.off == sign else below
        how = f"{up.direction}, especially {worst}"
    elif up.off and low.off:
        how = "too extreme" if sign < 0.0 else "not extreme enough"
    else:
        how = "too spread out" if sign < 0.0 else "not spread out enough"
    return f"Predictions are {how}: {above} {up}; {below} {low}."


def _spread_repair(
    subject: Subject, up: _Side, low: _Side, sign: float
) -> tuple[str, str]:
    """Return the method that helps, and how; one slope would move both sides."""
    if _only_side_off(up, low, sign) is None:
        method = subject.method("platt")
        return method, _slope_remedy(method, sign)
    method = subject.method("beta")
    return method, f"{method} corrects low and high predictions with separate slopes."


def gap_in_a_region(subject: Subject) -> Finding | None:
    """CAL004: in some region the observed rate is not the predicted one."""
    bins = subject.bins
    # Bonferroni's bound: one of the bins may look off by chance.
    pvalues = np.minimum(_binomial_pvalues(bins) * bins.weight.size, 1.0)
    off = pvalues < subject.level
    if not off.any():
        return None
    squares = _squared_gaps(bins)
    worst = int(np.argmax(np.where(off, squares, -1.0)))
    means = float(bins.mean_prob[worst]), float(bins.mean_label[worst])
    inside = subject.cells.p[bin_index(subject.cells.p, bins.edges) == worst]
    left, right = float(inside.min()), float(inside.max())
    share = float(bins.weight[off].sum() / bins.weight.sum())
    predicted, observed = format_pair(*means)
    message = (
        f"Predictions {format_range(left, right)} are too "
        f"{'high' if means[0] > means[1] else 'low'}: the mean prediction is "
        f"{predicted}, the {subject.rate_name} {observed}."
    )
    if bins.weight.size > 1:
        message += f" {100 * share:.0f} % of all rows lie in bins that are "
        message += "significantly off."
    off_by = float(np.sqrt(squares[off].sum()))
    method = subject.method("smooth")
    return fault(
        "CAL004",
        off_by,
        message,
        f"{method} can correct errors of any shape.",
        method,
        left=left,
        right=right,
        predicted=means[0],
        observed=means[1],
        share_off=share,
        pvalue=float(pvalues[worst]),
    )


def _binomial_pvalues(bins: BinTable) -> FloatVector:
    """Return the two-sided p-value of each bin's count, taken as binomial.

    Predictions that differ within a bin make its count vary less than that.
    """
    n, label = bins.weight, np.clip(bins.label_sum, 0.0, bins.weight)
    p = np.clip(bins.mean_prob, 0.0, 1.0)
    above = np.where(label > 0.0, betainc(np.maximum(label, 1e-9), n - label + 1, p), 1)
    below = np.where(
        label < n, betainc(np.maximum(n - label, 1e-9), label + 1, 1 - p), 1
    )
    return np.minimum(2.0 * np.minimum(above, below), 1.0)


def _squared_gaps(bins: BinTable) -> FloatVector:
    """Return what each bin adds to the mean squared gap, without noise."""
    rate = np.clip(bins.mean_label, 0.0, 1.0)
    noise = rate * (1.0 - rate) / bins.weight
    square = np.maximum((rate - bins.mean_prob) ** 2 - noise, 0.0)
    return np.asarray(bins.weight / bins.weight.sum() * square)


def falling_region(subject: Subject) -> Finding | None:
    """CAL005: the event happens less often where predictions are higher."""
    bins = subject.bins
    if bins.weight.size < MIN_BINS:
        return None
    first, second, pvalue = _largest_fall(bins)
    if pvalue >= subject.level:
        return None
    predicted = bins.mean_prob[[first, second]].tolist()
    observed = bins.mean_label[[first, second]].tolist()
    around, rates = format_pair(*predicted), format_pair(*observed)
    # The nearest map that does not fall is flat: both bins have their common rate.
    weight = bins.weight[[first, second]]
    share = weight.prod() / weight.sum() / bins.weight.sum()
    off_by = float((observed[0] - observed[1]) * np.sqrt(share))
    what = "it is right" if subject.top_label else "the event happens"
    platt, beta, isotonic, smooth, pl = map(
        subject.method, ("platt", "beta", "isotonic", "smooth", "pl")
    )
    return fault(
        "CAL005",
        off_by,
        f"Higher predictions come true less often: around {around[0]} {what} in "
        f"{rates[0]} of the rows, but around {around[1]} in only {rates[1]}.",
        f"{platt}, {beta} and {isotonic} cannot repair this; {smooth} and {pl} can. "
        f"{LOOK}",
        smooth,
        besides=LOOK,
        predicted_first=predicted[0],
        observed_first=observed[0],
        predicted_second=predicted[1],
        observed_second=observed[1],
        pvalue=pvalue,
    )


def _largest_fall(bins: BinTable) -> tuple[int, int, float]:
    """Return the pair of bins with the most significant fall, and its p-value.

    That is Bonferroni's bound over all pairs.
    """
    rate, n = bins.mean_label, bins.weight
    first, second = np.triu_indices(n.size, k=1)
    pooled = (bins.label_sum[first] + bins.label_sum[second]) / (n[first] + n[second])
    rarer = np.minimum(pooled, 1.0 - pooled) * np.minimum(n[first], n[second])
    variance = pooled * (1.0 - pooled) * (1.0 / n[first] + 1.0 / n[second])
    z = np.zeros(first.size)
    np.divide(
        rate[first] - rate[second],
        np.sqrt(np.maximum(variance, 0.0)),
        out=z,
        where=rarer >= MIN_COUNT,
    )
    largest = int(np.argmax(z))
    pvalue = min(float(ndtr(-z[largest])) * first.size, 1.0)
    return int(first[largest]), int(second[largest]), pvalue
