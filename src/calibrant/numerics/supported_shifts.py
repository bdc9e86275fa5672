"""Shifts of logits that other rows can be repaired by: supported by rows, and rising.

A fitted curve says what the rows at hand are like. Where they are few and their labels
agree, the curve that makes them most probable is nearly certain; and where it falls,
that is mostly noise. Neither holds for other rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, IntVector

NEARBY = 1.0
"""Rows whose logits differ by no more than this support a shift."""
MIN_SHARE = 1e-12
"""Every knot has at least this share of the weight."""


def supported_shifts(
    knots: FloatVector, shifts: FloatVector, u: FloatVector, weight: FloatVector
) -> FloatVector:
    """Return shifts that are no farther than nearby rows can support.

    With m rows nearby and one more that agrees with the prediction p, the rate is
    between p / (m + 1) and (m + p) / (m + 1), whatever the labels.

    Parameters
    ----------
    knots, shifts : ndarray of shape (k,)
        Logits, ascending, and what is added to them there.
    u, weight : ndarray of shape (m,)
        Logits of predictions, ascending, and their weights.

    Examples
    --------
    >>> at = np.array([0.0])
    >>> supported_shifts(at, np.array([-7.0]), np.array([-0.5, 0.5, 3.0]), np.ones(3))
    array([-1.60943791])
    >>> expit(_)  # 0.5 / 3
    array([0.16666667])
    """
    below = np.append(0.0, np.cumsum(weight))
    last = np.searchsorted(u, knots + NEARBY, side="right")
    nearby = below[last] - below[np.searchsorted(u, knots - NEARBY)]
    low, high = -np.log1p(nearby / expit(-knots)), np.log1p(nearby / expit(knots))
    return np.clip(shifts, low, high)


def rising_shifts(
    knots: FloatVector, shifts: FloatVector, u: FloatVector, weight: FloatVector
) -> FloatVector:
    """Return the nearest shifts whose map ``expit(u + shift(u))`` does not fall.

    It has the mean of the map where that falls, by weight: of all maps that do not fall
    it would have the least log-loss, if the map were true.

    Examples
    --------
    >>> at = np.array([0.0, 1.0, 2.0])
    >>> at + rising_shifts(at, np.array([0.5, -0.5, 0.0]), at, np.ones(3))
    array([0.5, 0.5, 2. ])
    """
    from scipy.optimize import isotonic_regression

    heights = knots + shifts
    if (np.diff(heights) >= 0.0).all():
        return shifts
    parts = _knot_weights(knots, u, weight)
    events, others = parts * expit(heights), parts * expit(-heights)
    starts = isotonic_regression(events / parts, weights=parts).blocks[:-1]
    sums = (np.add.reduceat(part, starts) for part in (events, others))
    yes, no = (np.repeat(one, np.diff(starts, append=knots.size)) for one in sums)
    # Rounding hides falls between values that are nearly 1.
    rising = np.maximum.accumulate(np.log(yes) - np.log(no))
    return np.asarray(rising - knots)


def repairing_shifts(
    knots: FloatVector, shifts: FloatVector, u: FloatVector, weight: FloatVector
) -> FloatVector:
    """Return the nearest shifts that rows support and whose map does not decrease."""
    supported = supported_shifts(knots, shifts, u, weight)
    return rising_shifts(knots, supported, u, weight)


def line_of(knots: FloatVector, shifts: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return knots of a line, at least two, and the shifts there."""
    if knots.size > 1:
        return knots, shifts
    return knots + np.array([0.0, 1.0]), np.repeat(shifts, 2)


def needed_knots(
    knots: FloatVector, shifts: FloatVector, tolerance: float
) -> IntVector:
    """Return the knots without which the shift would differ by more than `tolerance`.

    The farthest knot from a line through both ends divides it, again and again (Douglas
    and Peucker 1973).

    Examples
    --------
    >>> needed_knots(np.arange(4.0), np.array([0.0, 1.0, 2.0, 0.0]), 0.01)
    array([0, 2, 3])
    """
    needed, parts = {0, knots.size - 1}, [(0, knots.size - 1)]
    while parts:
        first, last = parts.pop()
        ends = [first, last]
        inner = slice(first, last + 1)
        gaps = np.abs(
            np.interp(knots[inner], knots[ends], shifts[ends]) - shifts[inner]
        )
        if gaps.max() > tolerance:
            middle = first + int(gaps.argmax())
            needed.add(middle)
            parts += [(first, middle), (middle, last)]
    return np.array(sorted(needed))


def _knot_weights(
    knots: FloatVector, u: FloatVector, weight: FloatVector
) -> FloatVector:
    """Return the weight of rows between two knots, divided by their distance."""
    right = np.clip(np.searchsorted(knots, u), 1, knots.size - 1)
    share = np.clip((u - knots[right - 1]) / np.diff(knots)[right - 1], 0.0, 1.0)
    parts = np.bincount(right - 1, (1.0 - share) * weight, minlength=knots.size)
    parts += np.bincount(right, share * weight, minlength=knots.size)
    return np.asarray(np.maximum(parts, MIN_SHARE * weight.sum()))
