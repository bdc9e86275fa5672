"""Maps that could be the true one: draws from the posterior of a smooth map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from calibrant.maps.smooth import held_logit
from calibrant.numerics.few_cells import few_cells

if TYPE_CHECKING:
    from calibrant._typing import FloatMatrix, FloatVector
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.smooth_terms import Terms

CERTAIN = 1e-6
"""Predictions nearer to 0 or 1 count as certain. No smooth map moves them by much,
however few rows there are to support them."""
JEFFREYS = 0.5
"""Events and non-events that the prior of a rate is worth."""


@dataclass(frozen=True, eq=False)
class DrawnMaps:
    """Calibration maps drawn from the posterior.

    Certain predictions are a group of their own on either side: how often they fail is
    drawn from what their rows say of it, with the prior of Jeffreys. So ten rows at 1
    that were all right do not prove that such predictions never fail.

    Attributes
    ----------
    terms : Terms
        What maps are made of.
    coefficients : ndarray of shape (d, draws)
        Those of each map.
    failing : ndarray of shape (2, draws)
        How often certain predictions fail: those near 0, and those near 1.
    """

    terms: Terms
    coefficients: FloatMatrix
    failing: FloatMatrix

    @classmethod
    def of(
        cls,
        terms: Terms,
        coefficients: FloatMatrix,
        sample: BinarySample,
        rng: np.random.Generator,
    ) -> DrawnMaps:
        """Add the rates at which certain predictions fail."""
        return cls(terms, coefficients, _failing(sample, coefficients.shape[1], rng))

    def at(self, p: FloatVector) -> FloatMatrix:
        """Return the maps at predictions, one column per map."""
        moved = np.hstack(self.terms.parts(p)) @ self.coefficients
        moved += held_logit(p)[:, np.newaxis]
        rate: FloatMatrix = expit(moved, out=moved)
        rate[p < CERTAIN] = self.failing[0]
        rate[p > 1.0 - CERTAIN] = 1.0 - self.failing[1]
        return rate

    def errors(self, sample: BinarySample, alpha: float) -> FloatVector:
        """Return the mean of abs(map(p) - p) ** alpha over the rows, for each map."""
        cells = few_cells(sample)
        gap = np.abs(self.at(cells.p) - cells.p[:, np.newaxis])
        if alpha != 1.0:
            gap **= alpha
        return np.asarray(cells.weight @ gap / cells.weight.sum())


def _failing(sample: BinarySample, draws: int, rng: np.random.Generator) -> FloatMatrix:
    cells = few_cells(sample)
    sides = (
        (cells.p < CERTAIN, cells.label),
        (cells.p > 1.0 - CERTAIN, cells.weight - cells.label),
    )
    failing = np.zeros((len(sides), draws))
    for side, (rows, wrong) in enumerate(sides):
        if rows.any():
            total, failed = cells.weight[rows].sum(), wrong[rows].sum()
            right = max(total - failed, 0.0)
            failing[side] = rng.beta(failed + JEFFREYS, right + JEFFREYS, draws)
    return failing
