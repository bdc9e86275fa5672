"""Checks of parts of the map: a region that is off, a region where it falls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, ndtr

from calibrant.checks.finding import Finding, severity_of

if TYPE_CHECKING:
    from calibrant._typing import FloatVector
    from calibrant.checks.subject import Subject
    from calibrant.numerics.binning import BinTable

FEWEST_BINS = 2


def gap_in_a_region(subject: Subject) -> Finding | None:
    """CAL004: in some region what happens is not what is predicted."""
    bins = subject.bins
    pvalue = _two_sided(bins)
    worst = int(np.argmin(pvalue))
    # Bonferroni's bound: one of the bins may look off by chance.
    adjusted = min(float(pvalue[worst]) * bins.weight.size, 1.0)
    if adjusted >= subject.level:
        return None
    says, happens = float(bins.mean_prob[worst]), float(bins.mean_label[worst])
    off = pvalue * bins.weight.size < subject.level
    share = float(bins.weight[off].sum() / bins.weight.sum())
    how = "high" if says > happens else "low"
    return Finding(
        "CAL004",
        "region that is off",
        severity_of(happens - says),
        f"Predictions from {bins.edges[worst]:.3f} to {bins.edges[worst + 1]:.3f} are "
        f"too {how}: they say {says:.3f} and {happens:.3f} happen. Bins that are "
        f"surely off hold {100 * share:.0f} % of the rows.",
        "smooth follows any shape that the rows support.",
        "smooth",
        {
            "left": float(bins.edges[worst]),
            "right": float(bins.edges[worst + 1]),
            "predicted": says,
            "observed": happens,
            "share_off": share,
            "pvalue": adjusted,
        },
    )


def falling_region(subject: Subject) -> Finding | None:
    """CAL005: the event happens less often where predictions are higher."""
    bins = subject.bins
    if bins.weight.size < FEWEST_BINS:
        return None
    first, second, pvalue = _largest_fall(bins)
    if pvalue >= subject.level:
        return None
    high, low = bins.mean_label[first], bins.mean_label[second]
    return Finding(
        "CAL005",
        "not monotone",
        severity_of(high - low),
        f"Higher predictions are less often right: around "
        f"{bins.mean_prob[first]:.3f} the event happens in {high:.3f}, but around "
        f"{bins.mean_prob[second]:.3f} only in {low:.3f}.",
        "platt, beta and isotonic cannot repair this; smooth and pl can. Look at "
        "which rows lie there.",
        "smooth",
        {
            "predicted_first": float(bins.mean_prob[first]),
            "observed_first": float(high),
            "predicted_second": float(bins.mean_prob[second]),
            "observed_second": float(low),
            "pvalue": pvalue,
        },
    )


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
    variance = pooled * (1.0 - pooled) * (1.0 / n[first] + 1.0 / n[second])
    z = np.zeros(first.size)
    np.divide(
        rate[first] - rate[second], np.sqrt(variance), out=z, where=variance > 0.0
    )
    most = int(np.argmax(z))
    pvalue = min(float(ndtr(-z[most])) * first.size, 1.0)
    return int(first[most]), int(second[most]), pvalue
