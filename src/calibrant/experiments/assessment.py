r"""How good a calibrator and an evaluator are, where the truth is known.

With predictions P, the true map c*(p) = E[Y | P = p], an estimated map c_hat, and a
divergence d(prediction, truth) (paper, section 6):

- CMEE = E[d(c_hat(P), c*(P))], the map estimation error;
- CEAC = E[d(c_hat(P), E[c*(P) | c_hat(P)])], the calibration error after calibration;
- their difference is E[d(E[c*(P) | c_hat(P)], c*(P))] for every Bregman divergence
  (Theorem 3): what is lost where c_hat gives one value to rows of different truth;
- abs(ECE - CE), how far an estimated error is from the true one, and the bias, the
  mean of ECE - CE;
- Spearman's rank correlation of estimated and true errors over several models.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibrant._typing import FloatVector
from calibrant._validation.options import check_choice

if TYPE_CHECKING:
    from calibrant._typing import ArrayLike

Divergence: TypeAlias = Callable[[FloatVector, FloatVector], FloatVector]


def _absolute(prediction: FloatVector, truth: FloatVector) -> FloatVector:
    return np.abs(prediction - truth)


def _squared(prediction: FloatVector, truth: FloatVector) -> FloatVector:
    return (prediction - truth) ** 2


def _kullback_leibler(prediction: FloatVector, truth: FloatVector) -> FloatVector:
    from scipy.special import rel_entr

    return np.asarray(rel_entr(truth, prediction) + rel_entr(1 - truth, 1 - prediction))


DIVERGENCES: dict[str, Divergence] = {
    "absolute": _absolute,
    "squared": _squared,
    "kullback-leibler": _kullback_leibler,
}
"""The last two are Bregman divergences; the paper's tables use the first."""


def map_error(c_hat: ArrayLike, c: ArrayLike, divergence: str = "absolute") -> float:
    """Return CMEE, the mean divergence of an estimated map from the true one.

    Parameters
    ----------
    c_hat, c : array-like of shape (n,)
        Both maps at predictions that were not fitted on.
    divergence : {"absolute", "squared", "kullback-leibler"}
        How distance is measured.

    Returns
    -------
    float
        E[d(c_hat, c*)].

    Examples
    --------
    >>> round(map_error([0.2, 0.4], [0.1, 0.5]), 6)
    0.1
    """
    found = _distance(divergence)(np.asarray(c_hat, float), np.asarray(c, float))
    return float(np.mean(found))


def error_after_calibration(
    c_hat: ArrayLike,
    c: ArrayLike,
    divergence: str = "absolute",
    *,
    resolution: float = 0.0,
) -> float:
    """Return CEAC, the calibration error that is left after calibration.

    Parameters
    ----------
    c_hat, c, divergence
        As in `map_error`.
    resolution : float
        Values of `c_hat` are rounded to multiples of this, so that those of different
        pieces of a map that falls somewhere meet; 0 for exact ties alone.

    Returns
    -------
    float
        E[d(c_hat, E[c* | c_hat])], at most `map_error` for Bregman divergences.

    Examples
    --------
    >>> error_after_calibration([0.3, 0.3], [0.1, 0.5])
    0.0
    """
    values = _rounded(c_hat, resolution)
    return map_error(values, truth_after_calibration(values, c), divergence)


def lost_by_ties(
    c_hat: ArrayLike,
    c: ArrayLike,
    divergence: str = "absolute",
    *,
    resolution: float = 0.0,
) -> float:
    """Return E[d(E[c* | c_hat], c*)], by which CMEE exceeds CEAC (Theorem 3).

    Parameters
    ----------
    c_hat, c, divergence, resolution
        As in `error_after_calibration`.

    Returns
    -------
    float
        What is lost where rows of different truth get the same value.

    Examples
    --------
    >>> lost_by_ties([0.3, 0.3], [0.1, 0.5])
    0.2
    """
    return map_error(
        truth_after_calibration(_rounded(c_hat, resolution), c), c, divergence
    )


def truth_after_calibration(c_hat: ArrayLike, c: ArrayLike) -> FloatVector:
    """Return E[c* | c_hat] for each row: the true map of the calibrated model."""
    _, group = np.unique(np.asarray(c_hat, float), return_inverse=True)
    total = np.bincount(group, weights=np.asarray(c, float))
    return np.asarray((total / np.bincount(group))[group])


def error_distance(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean of abs(ECE - CE) over data sets.

    Examples
    --------
    >>> round(error_distance([0.05, 0.02], [0.04, 0.04]), 6)
    0.015
    """
    return float(np.mean(np.abs(np.asarray(estimate) - np.asarray(truth))))


def error_bias(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean of ECE - CE over data sets; above 0 where errors look too large.

    Examples
    --------
    >>> round(error_bias([0.05, 0.02], [0.04, 0.04]), 6)
    -0.005
    """
    return float(np.mean(np.asarray(estimate) - np.asarray(truth)))


def rank_correlation(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return Spearman's rank correlation of estimated and true errors.

    The correlation of ranks, ties at their mean rank; NaN where all of one are equal.

    Examples
    --------
    >>> round(rank_correlation([0.01, 0.02, 0.05], [0.0, 0.03, 0.2]), 6)
    1.0
    """
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(estimate), rankdata(truth)])
    if not np.isfinite([estimate, truth]).all() or not np.ptp(ranks, axis=1).all():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def _distance(divergence: str) -> Divergence:
    return DIVERGENCES[check_choice(divergence, DIVERGENCES, name="divergence")]


def _rounded(c_hat: ArrayLike, resolution: float) -> FloatVector:
    values = np.asarray(c_hat, dtype=np.float64)
    return np.round(values / resolution) * resolution if resolution else values
