"""Distances between a calibration map and the diagonal, and their bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erf

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector

DEBIASED_ALPHAS = (1.0, 2.0)
"""The exponents for which the bias of a binned error is known."""


def mean_gap(
    calibrated: FloatVector,
    p: FloatVector,
    weight: FloatVector | None,
    alpha: float,
) -> float:
    """Return the plug-in error, the mean of abs(c(p) - p) ** alpha."""
    return float(np.average(np.abs(calibrated - p) ** alpha, weights=weight))


def folded_normal_mean(mean: FloatMatrix, sd: FloatMatrix) -> FloatMatrix:
    """Return E abs(X) for X normal with the given mean and standard deviation.

    Examples
    --------
    >>> folded_normal_mean(np.array([0.0, 3.0]), np.array([1.0, 0.0])).round(4)
    array([0.7979, 3.    ])
    """
    size = np.abs(mean)
    z = np.divide(size, sd, out=np.full_like(size, np.inf), where=sd > 0.0)
    noise = sd * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z**2)
    return np.asarray(noise + size * erf(z / np.sqrt(2.0)), dtype=np.float64)


def binned_error(
    weight: FloatMatrix, prob: FloatMatrix, label: FloatMatrix, *, alpha: float
) -> FloatVector:
    """Return ECE, the weighted mean of abs(mean y - mean p) ** alpha over bins.

    Sums per bin stand on the last axis; any axes before it are kept, so that
    thousands of resampled tables are one call. Empty bins do not count.
    """
    gap, _ = _gap_and_share(weight, prob, label)
    return _mean_over_bins(weight, np.abs(gap) ** alpha)


def debiased_binned_error(
    weight: FloatMatrix, prob: FloatMatrix, label: FloatMatrix, *, alpha: float
) -> FloatVector:
    """Return ECE less its estimated bias, for alpha 1 or 2; it may be negative.

    For alpha = 1 the share of positives of a bin with n rows is taken as a draw from
    N(s, s (1 - s) / n) around the observed share s; the bias is the expected error
    of such draws less the observed error (Kumar et al. 2019). The expectation is that
    of a folded normal variable, in closed form. For alpha = 2 the sampling variance
    s (1 - s) / (n - 1) is subtracted, nothing where n is 1 or less.
    """
    gap, share = _gap_and_share(weight, prob, label)
    variance = share * (1.0 - share)
    if alpha == 1.0:
        used = weight > 0.0
        spread = np.divide(variance, weight, out=np.zeros_like(gap), where=used)
        size = np.abs(gap)
        return _mean_over_bins(
            weight, 2.0 * size - folded_normal_mean(gap, np.sqrt(spread))
        )
    if alpha == 2.0:  # noqa: PLR2004
        several = weight > 1.0
        noise = np.divide(variance, weight - 1.0, out=np.zeros_like(gap), where=several)
        return _mean_over_bins(weight, gap**2 - noise)
    raise ValueError(f"no debiasing for alpha={alpha}")


def _gap_and_share(
    weight: FloatMatrix, prob: FloatMatrix, label: FloatMatrix
) -> tuple[FloatMatrix, FloatMatrix]:
    used = weight > 0.0
    gap = np.divide(label - prob, weight, out=np.zeros_like(prob), where=used)
    share = np.divide(label, weight, out=np.zeros_like(prob), where=used)
    return gap, np.clip(share, 0.0, 1.0)


def _mean_over_bins(weight: FloatMatrix, values: FloatMatrix) -> FloatVector:
    total = np.sum(weight * values, axis=-1) / np.sum(weight, axis=-1)
    return np.asarray(total, dtype=np.float64)
