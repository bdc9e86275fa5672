"""Kernel estimates of the observed rate near a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector

REACH = 3.0
"""Half the width of a triweight kernel with standard deviation 1."""
AT_ONCE = 2**20
"""Most pairs of points whose kernel is computed at once."""


def kernel_matrix(at: FloatVector, p: FloatVector, bandwidth: float) -> FloatMatrix:
    """Return the triweight kernel of each pair, points being mirrored at an end.

    The part of a kernel beyond 0 or 1 would be lost; so each point has a mirror image,
    beyond 0 if it is below 1/2, else beyond 1.

    Examples
    --------
    >>> kernel_matrix(np.array([0.0, 0.5]), np.array([0.0]), 0.2)
    array([[2.       ],
           [0.0570559]])
    """
    image = np.where(p < 0.5, -p, 2.0 - p)  # noqa: PLR2004
    reach = REACH * bandwidth
    kernel = np.zeros((at.size, p.size))
    for centre in (p, image):
        near = 1.0 - ((at[:, np.newaxis] - centre) / reach) ** 2
        np.maximum(near, 0.0, out=near)
        kernel += near**3
    return kernel


@dataclass(frozen=True, eq=False)
class KernelRates:
    """Kernel estimate of the observed rate, from weighted points."""

    p: FloatVector
    weight: FloatVector
    label: FloatVector
    bandwidth: float

    def __call__(self, at: FloatVector) -> FloatVector:
        """Return the observed rate near each place, NaN where no point is near."""
        rows = max(AT_ONCE // self.p.size, 1)
        rate = np.full(at.size, np.nan)
        for start in range(0, at.size, rows):
            some = slice(start, start + rows)
            kernel = kernel_matrix(at[some], self.p, self.bandwidth)
            density, events = kernel @ self.weight, kernel @ self.label
            np.divide(events, density, out=rate[some], where=density > 0.0)
        return np.asarray(np.clip(rate, 0.0, 1.0))

    def polygon(
        self, tolerance: float, max_rounds: int = 14
    ) -> tuple[FloatVector, FloatVector]:
        """Return places and rates between which the estimate is nearly straight.

        Intervals are halved until the estimate in their middle is within `tolerance`
        of the straight line, or they are far shorter than the kernel.
        """
        spread = self.p[np.linspace(0, self.p.size - 1, 129).astype(np.intp)]
        at = np.unique(np.concatenate([np.linspace(0.0, 1.0, 65), spread]))
        rate = self(at)
        left = np.arange(at.size - 1)
        for _ in range(max_rounds):
            width = at[left + 1] - at[left]
            middle = at[left] + 0.5 * width
            between = self(middle)
            straight = 0.5 * (rate[left] + rate[left + 1])
            ends_here = np.isnan(rate[left]) != np.isnan(rate[left + 1])
            curved = (np.abs(between - straight) > tolerance) | ends_here
            split = curved & (width > 1e-4 * self.bandwidth)
            if not split.any():
                break
            left = left[split]
            at = np.insert(at, left + 1, middle[split])
            rate = np.insert(rate, left + 1, between[split])
            left = left + np.arange(left.size)
            left = np.sort(np.concatenate([left, left + 1]))
        known = np.isfinite(rate)
        return at[known], rate[known]
