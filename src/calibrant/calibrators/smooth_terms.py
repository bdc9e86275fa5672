"""What a smooth map adds to the logit of a prediction: shift, tilt and two curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.maps.smooth import Curve, SmoothMap, held_logit
from calibrant.numerics.natural_splines import BentBasis, spaced_knots
from calibrant.numerics.penalised_logistic import PenalisedProblem

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatMatrix, FloatVector
    from calibrant.numerics.log_cells import Gathered

TERMS = 4
"""A shift, a tilt around 1/2, the curve of the logit and that of the prediction."""
STRAIGHT = (0, 1)
"""The terms that every fit has."""
NO_CURVE = Curve(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2))


@dataclass(frozen=True, eq=False)
class Terms:
    """What can be added to the logit: a constant, a slope and two sets of bent curves.

    Constant and slope are terms of their own, since predictions that are too high
    everywhere (a changed base rate) and predictions that are too sure (a temperature)
    are different faults: where one is found, the other is not more likely.

    Attributes
    ----------
    by_logit, by_prob : BentBasis
        Curves of the logit and of the prediction.
    scales : ndarray of shape (4,)
        What makes the mean square of each term 1 where its coefficients are drawn
        with variance 1; so penalties of all terms and samples compare.
    """

    by_logit: BentBasis
    by_prob: BentBasis
    scales: FloatVector

    @classmethod
    def of(cls, cells: Gathered, knots: int) -> Terms:
        """Choose knots and scales for a sample."""
        bases = [
            BentBasis.over(spaced_knots(x, cells.weight, knots))
            for x in (held_logit(cells.p), cells.p)
        ]
        unscaled = cls(bases[0], bases[1], np.ones(TERMS))
        squares = [(part**2).sum(axis=1) for part in unscaled.parts(cells.p)]
        means = np.average(squares, axis=1, weights=cells.weight)
        scales = 1.0 / np.sqrt(np.where(means > 0.0, means, 1.0))
        return cls(bases[0], bases[1], scales)

    def parts(self, p: FloatVector) -> list[FloatMatrix]:
        """Return the features of each term."""
        u = held_logit(p)
        shift, tilt = np.ones((u.size, 1)), u[:, np.newaxis]
        parts = (shift, tilt, self.by_logit.at(u), self.by_prob.at(p))
        return [part * scale for part, scale in zip(parts, self.scales, strict=True)]

    def problem(
        self, p: FloatVector, weight: FloatVector, label: FloatVector
    ) -> PenalisedProblem:
        """Return the regression of labels on all terms."""
        parts = self.parts(p)
        sizes = np.array([part.shape[1] for part in parts])
        return PenalisedProblem(np.hstack(parts), held_logit(p), weight, label, sizes)

    def spread(self, coefficients: FloatVector, kept: BoolVector) -> FloatVector:
        """Return coefficients of all terms, 0 for those that are not kept."""
        bent = (self.by_logit.heights.shape[1], self.by_prob.heights.shape[1])
        found = np.zeros(2 + sum(bent))
        found[np.repeat(kept, [1, 1, *bent])] = coefficients
        return found

    def map(self, coefficients: FloatVector) -> SmoothMap:
        """Return the map with given coefficients."""
        bends = self.by_logit.heights.shape[1]
        straight, logit_part, prob_part = np.split(coefficients, [2, 2 + bends])
        constant, slope = straight * self.scales[:2]
        curved = _curve(self.by_logit, self.scales[2] * logit_part)
        tilted = Curve(
            curved.knots,
            curved.heights + constant + slope * curved.knots,
            curved.slopes + slope,
        )
        return SmoothMap(tilted, _curve(self.by_prob, self.scales[3] * prob_part))


def _curve(basis: BentBasis, coefficients: FloatVector) -> Curve:
    if coefficients.size == 0:
        return NO_CURVE
    return Curve(basis.knots, basis.heights @ coefficients, basis.slopes @ coefficients)
