"""Kernel estimates of the share of positives near a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from calibrant.core.array_types import (
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
    )

REACH = 3.0
"""A triweight kernel with standard deviation 1 reaches so far."""
AT_ONCE = 2**20
"""Most pairs of points whose kernel is computed at once."""


def kernel_matrix(at: FloatVector, p: FloatVector, bandwidth: float) -> FloatMatrix:
    """Return the triweight kernel of each pair, points being mirrored at an end.

    What a kernel would put beyond 0 or 1 is lost; so each point has a mirror image,
    beyond 0 if it is below 1/2, else beyond 1.

    Examples
    --------
    >>> kernel_matrix(np.array([0.0, 0.5]), np.array([0.0]), 0.2)
    array([[2.       ],
           [0.0570559]])
    """
    image = np.where(p < 0.5, -p, 2.0 - p)  # noqa: PLR2004
    reach = REACH * bandwidth
    found = np.zeros((at.size, p.size))
    for centre in (p, image):
        near = 1.0 - ((at[:, np.newaxis] - centre) / reach) ** 2
        np.maximum(near, 0.0, out=near)
        found += near**3
    return found


@dataclass(frozen=True, eq=False)
class KernelShares:
    """Kernel estimate of the share of positives, from weighted points."""

    p: FloatVector
    weight: FloatVector
    label: FloatVector
    bandwidth: float

    def __call__(self, at: FloatVector) -> FloatVector:
        """Return the share of positives near each place, NaN where nothing is near."""
        rows = max(AT_ONCE // self.p.size, 1)
        parts = [self._part(at[i : i + rows]) for i in range(0, at.size, rows)]
        return np.concatenate(parts)

    def _part(self, at: FloatVector) -> FloatVector:
        kernel = kernel_matrix(at, self.p, self.bandwidth)
        density, events = kernel @ self.weight, kernel @ self.label
        some = density > 0.0
        share = np.divide(events, density, out=np.full(at.size, np.nan), where=some)
        return np.asarray(np.clip(share, 0.0, 1.0))

    def polygon(
        self, tolerance: float, most_rounds: int = 14
    ) -> tuple[FloatVector, FloatVector]:
        """Return places and shares between which the estimate is nearly straight.

        Intervals are halved until the estimate in their middle is within `tolerance`
        of the straight line, or they are far shorter than the kernel.
        """
        spread = self.p[np.linspace(0, self.p.size - 1, 129).astype(np.intp)]
        at = np.unique(np.concatenate([np.linspace(0.0, 1.0, 65), spread]))
        value = self(at)
        left = np.arange(at.size - 1)
        for _ in range(most_rounds):
            width = at[left + 1] - at[left]
            middle = at[left] + 0.5 * width
            found = self(middle)
            straight = 0.5 * (value[left] + value[left + 1])
            ends_here = np.isnan(value[left]) != np.isnan(value[left + 1])
            bent = (np.abs(found - straight) > tolerance) | ends_here
            split = bent & (width > 1e-4 * self.bandwidth)
            if not split.any():
                break
            at, value, left = _inserted(at, value, left[split], middle, found, split)
        known = np.isfinite(value)
        return at[known], value[known]


def _inserted(
    at: FloatVector,
    value: FloatVector,
    left: IntVector,
    middle: FloatVector,
    found: FloatVector,
    split: BoolVector,
) -> tuple[FloatVector, FloatVector, IntVector]:
    """Insert the middles of split intervals; return also the new intervals."""
    place = left + 1 + np.arange(left.size)
    at = np.insert(at, left + 1, middle[split])
    value = np.insert(value, left + 1, found[split])
    return at, value, np.sort(np.concatenate([place - 1, place]))
