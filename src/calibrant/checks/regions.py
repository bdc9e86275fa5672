"""Checks of parts of the map: a region that is off, a region where it falls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, ndtr

from calibrant.checks.decimals import both, span
from calibrant.checks.finding import Finding, severity_of

if TYPE_CHECKING:
    from calibrant.checks.subject import Subject
    from calibrant.core.array_types import FloatVector
    from calibrant.numerics.binning import BinTable

FEWEST_BINS = 2
LOOK = "Look at which rows lie there."
LEAST_COUNT = 5.0
"""Shares of bins with fewer of either outcome to be expected are not compared."""


def gap_in_a_region(subject: Subject) -> Finding | None:
    """CAL004: in some region the observed rate is not the predicted one."""
    bins = subject.bins
    pvalue = _two_sided(bins)
    # Bonferroni's bound: one of the bins may look off by chance.
    adjusted = np.minimum(pvalue * bins.weight.size, 1.0)
    off = adjusted < subject.level
    if not off.any():
        return None
    worst = int(np.argmax(np.where(off, _squared_gaps(bins), -1.0)))
    says, happens = float(bins.mean_prob[worst]), float(bins.mean_label[worst])
    left, right = (float(ends[worst]) for ends in subject.spans)
    share = float(bins.weight[off].sum() / bins.weight.sum())
    off_by = float(np.sqrt(_squared_gaps(bins)[off].sum()))
    return Finding(
        "CAL004",
        "region that is off",
        severity_of(off_by),
        _told(subject, (left, right), (says, happens), share),
        f"{subject.method('smooth')} follows any shape that the rows support.",
        subject.method("smooth"),
        {
            "left": left,
            "right": right,
            "predicted": says,
            "observed": happens,
            "share_off": share,
            "off_by": off_by,
            "pvalue": float(adjusted[worst]),
        },
    )


def _told(
    subject: Subject,
    ends: tuple[float, float],
    rates: tuple[float, float],
    share: float,
) -> str:
    says, happens = both(*rates)
    how = "high" if rates[0] > rates[1] else "low"
    where = f"Predictions {span(*ends)} are too {how}"
    if subject.bins.weight.size == 1:
        return f"{where}: the mean prediction is {says}, the {subject.rate} {happens}."
    return (
        f"{where}: the mean prediction is {says}, the {subject.rate} {happens}. "
        f"{100 * share:.0f} % of all rows lie in bins that are significantly off."
    )


def _squared_gaps(bins: BinTable) -> FloatVector:
    """Return what each bin adds to the mean squared gap, noise taken out."""
    rate = np.clip(bins.mean_label, 0.0, 1.0)
    noise = rate * (1.0 - rate) / bins.weight
    square = np.maximum((rate - bins.mean_prob) ** 2 - noise, 0.0)
    return np.asarray(bins.weight / bins.weight.sum() * square)


def falling_region(subject: Subject) -> Finding | None:
    """CAL005: the event happens less often where predictions are higher."""
    bins = subject.bins
    if bins.weight.size < FEWEST_BINS:
        return None
    first, second, pvalue = _largest_fall(bins)
    if pvalue >= subject.level:
        return None
    high, low = float(bins.mean_label[first]), float(bins.mean_label[second])
    around = both(float(bins.mean_prob[first]), float(bins.mean_prob[second]))
    rates = both(high, low)
    off_by = _off_by_falling(bins, first, second)
    what = "it is right" if subject.top_label else "the event happens"
    lifts = [subject.method(name) for name in ("platt", "beta", "isotonic")]
    return Finding(
        "CAL005",
        "not monotone",
        severity_of(off_by),
        f"Higher predictions come true less often: around {around[0]} {what} in "
        f"{rates[0]} of the rows, but around {around[1]} only in {rates[1]}.",
        f"{lifts[0]}, {lifts[1]} and {lifts[2]} cannot repair this; "
        f"{subject.method('smooth')} and {subject.method('pl')} can. {LOOK}",
        subject.method("smooth"),
        {
            "predicted_first": float(bins.mean_prob[first]),
            "observed_first": high,
            "predicted_second": float(bins.mean_prob[second]),
            "observed_second": low,
            "off_by": off_by,
            "pvalue": pvalue,
        },
        LOOK,
    )


def _off_by_falling(bins: BinTable, first: int, second: int) -> float:
    """Return how far the two bins are from a map that does not fall there.

    The nearest such map is flat: it gives both the share that they have together.
    """
    pair = bins.weight[[first, second]]
    fall = bins.mean_label[first] - bins.mean_label[second]
    within = pair.prod() / pair.sum() ** 2
    return float(fall * np.sqrt(within * pair.sum() / bins.weight.sum()))


def _two_sided(bins: BinTable) -> FloatVector:
    """Return the p-value of each bin's count, taken as binomial.

    Predictions that differ within a bin make its count vary less than that.
    """
    n, label = bins.weight, np.clip(bins.label, 0.0, bins.weight)
    p = np.clip(bins.mean_prob, 0.0, 1.0)
    above = np.where(label > 0.0, betainc(np.maximum(label, 1e-9), n - label + 1, p), 1)
    below = np.where(
        label < n, betainc(np.maximum(n - label, 1e-9), label + 1, 1 - p), 1
    )
    return np.minimum(2.0 * np.minimum(above, below), 1.0)


def _largest_fall(bins: BinTable) -> tuple[int, int, float]:
    """Return the pair of bins that falls most surely, and its p-value.

    That is Bonferroni's bound over all pairs.
    """
    rate, n = bins.mean_label, bins.weight
    first, second = np.triu_indices(n.size, k=1)
    pooled = (bins.label[first] + bins.label[second]) / (n[first] + n[second])
    rarer = np.minimum(pooled, 1.0 - pooled) * np.minimum(n[first], n[second])
    variance = pooled * (1.0 - pooled) * (1.0 / n[first] + 1.0 / n[second])
    z = np.zeros(first.size)
    np.divide(
        rate[first] - rate[second],
        np.sqrt(np.maximum(variance, 0.0)),
        out=z,
        where=rarer >= LEAST_COUNT,
    )
    most = int(np.argmax(z))
    pvalue = min(float(ndtr(-z[most])) * first.size, 1.0)
    return int(first[most]), int(second[most]), pvalue
