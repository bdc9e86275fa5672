r"""How good a calibrator and an evaluator are, where the truth is known.

With predictions P, the true map c*(p) = E[Y | P = p], an estimated map c_hat, and a
divergence d(prediction, truth) (paper, section 6):

- CMEE = E[d(c_hat(P), c*(P))], the map estimation error;
- CEAC = E[d(c_hat(P), E[c*(P) | c_hat(P)])], the calibration error after calibration;
- their difference is E[d(E[c*(P) | c_hat(P)], c*(P))] for every Bregman divergence
  (Theorem 3): the loss from giving one value to rows with different true
  probabilities;
- abs(ECE - CE), the distance of an estimated error from the true one;
- Spearman's rank correlation of estimated and true errors over several models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import rel_entr

from calibrant.core.array_types import FloatVector
from calibrant.core.parameters import check_choice

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike
    from calibrant.core.sample import BinarySample

Divergence: TypeAlias = Callable[[FloatVector, FloatVector], FloatVector]


DIVERGENCES: dict[str, Divergence] = {
    "absolute": lambda prediction, truth: np.abs(prediction - truth),
    "squared": lambda prediction, truth: (prediction - truth) ** 2,
    "kullback-leibler": lambda prediction, truth: (
        rel_entr(truth, prediction) + rel_entr(1 - truth, 1 - prediction)
    ),
}
"""The last two are Bregman divergences; the paper's tables use the first."""

TIE_RESOLUTION = 1e-4
"""Values of a map closer than this count as equal in the error after calibration."""

TIE_ROWS = 50_000
"""Approximate number of unseen rows for the error after calibration."""

MEASURES = (
    "pieces", "true_error", "true_error_sq", "estimate", "estimate_sq", "raw_estimate",
    "raw_estimate_sq", "map_error", "map_error_sq", "error_after", "error_after_sq",
    "true_error_flat", "map_error_flat", "true_error_slope", "map_error_slope",
    "true_error_exact", "map_error_exact",
)  # fmt: skip
"""Measured in each cell; NaN where a method has no such thing.

``true_error`` is the mean of abs(p - c) over the rows that were fitted on and
``estimate`` the method's estimate of it, debiased where the method knows its bias;
``map_error`` is CMEE and ``error_after`` CEAC on unseen rows. ``_sq`` uses squares;
``_flat``, ``_slope`` and ``_exact`` use other estimates of an unknown true map.
"""


@dataclass(frozen=True, eq=False)
class KnownSample:
    """Rows whose calibrated probabilities are known.

    Attributes
    ----------
    p, y, c : ndarray of shape (n,)
        Predictions, labels, and the true calibration map at p.
    others : dict of ndarray of shape (n,)
        Other estimates of the true map at p, by name, where it is not known exactly.
    """

    p: FloatVector
    y: FloatVector
    c: FloatVector
    others: dict[str, FloatVector] = field(default_factory=dict)

    def true_errors(self) -> dict[str, float]:
        """Return the true calibration errors by the names of `MEASURES`."""
        gap = np.abs(self.p - self.c)
        errors = {"true_error": gap.mean(), "true_error_sq": (gap**2).mean()}
        for name, c in self.others.items():
            errors[f"true_error_{name}"] = np.abs(self.p - c).mean()
        return {name: float(error) for name, error in errors.items()}

    def thin(self, every: int) -> slice:
        """Return a slice of every so many rows, at least one."""
        every = min(every, self.p.size)
        return slice(every // 2, None, every)


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
    distance = DIVERGENCES[check_choice(divergence, DIVERGENCES, name="divergence")]
    return float(np.mean(distance(np.asarray(c_hat, float), np.asarray(c, float))))


def error_after_calibration(
    c_hat: ArrayLike,
    c: ArrayLike,
    divergence: str = "absolute",
    *,
    resolution: float = 0.0,
) -> float:
    """Return CEAC, the calibration error that remains after calibration.

    Parameters
    ----------
    c_hat, c, divergence
        As in `map_error`.
    resolution : float
        Values of `c_hat` are rounded to multiples of this before ties are looked for,
        as a map that is not monotone takes nearly equal values at distant predictions;
        0 for exact ties only.

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

    It is the loss from giving one value to rows with different true probabilities;
    parameters are those of `error_after_calibration`.

    Examples
    --------
    >>> lost_by_ties([0.3, 0.3], [0.1, 0.5])
    0.2
    """
    values = _rounded(c_hat, resolution)
    return map_error(truth_after_calibration(values, c), c, divergence)


def truth_after_calibration(c_hat: ArrayLike, c: ArrayLike) -> FloatVector:
    """Return E[c* | c_hat] for each row: the true map of the calibrated model."""
    _, group = np.unique(np.asarray(c_hat, float), return_inverse=True)
    total = np.bincount(group, weights=np.asarray(c, float))
    return np.asarray((total / np.bincount(group))[group])


def _rounded(c_hat: ArrayLike, resolution: float) -> FloatVector:
    values = np.asarray(c_hat, dtype=np.float64)
    return np.round(values / resolution) * resolution if resolution else values


def rank_correlation(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return Spearman's rank correlation of estimated and true errors.

    Ties get their mean rank; NaN where all values of one of the two are equal.

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


def measure_errors(
    fit: Any, sample: BinarySample, *, squared_only: bool
) -> dict[str, float]:
    """Return the estimated errors of the rows that were fitted on."""
    measures: dict[str, float] = {}
    ends = {2.0: "_sq"} if squared_only else {1.0: "", 2.0: "_sq"}
    for alpha, end in ends.items():
        debias = fit.debiases(alpha)
        raw = fit.error(sample, alpha=alpha, debias=False)
        debiased = fit.error(sample, alpha=alpha, debias=True) if debias else raw
        measures |= {f"raw_estimate{end}": raw, f"estimate{end}": debiased}
    return measures


def measure_map(
    c_hat: FloatVector, unseen: KnownSample, rows: slice
) -> dict[str, float]:
    """Compare calibrated probabilities with the truth at some unseen rows."""
    c = unseen.c[rows]
    some = slice(None, None, max(c.size // TIE_ROWS, 1))
    measures = {
        f"map_error_{name}": map_error(c_hat, other[rows])
        for name, other in unseen.others.items()
    }
    for divergence, end in (("absolute", ""), ("squared", "_sq")):
        measures["map_error" + end] = map_error(c_hat, c, divergence)
        measures["error_after" + end] = error_after_calibration(
            c_hat[some], c[some], divergence, resolution=TIE_RESOLUTION
        )
    return measures
