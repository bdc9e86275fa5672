"""How sure a smooth map is: the normal posterior around each of its fits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dtrtrs

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatMatrix, FloatVector
    from calibrant.calibrators.smooth_terms import Terms
    from calibrant.numerics.marginal_likelihood import Evidence
    from calibrant.numerics.penalised_logistic import Mode

VAGUE = 4.0
"""Variance of a log penalty that the data say nothing about."""


@dataclass(frozen=True, eq=False)
class Member:
    """One of the fits whose mean the map is.

    Attributes
    ----------
    kept : ndarray of shape (4,)
        Which terms it has.
    mode : Mode
        The penalised fit: coefficients, penalties and the Hessian.
    share : float
        How probable it is; shares of all members sum to 1.
    evidence : Evidence or None
        Its marginal likelihood; None where penalties were given.
    """

    kept: BoolVector
    mode: Mode
    share: float
    evidence: Evidence | None = None

    @cached_property
    def roots(self) -> FloatMatrix:
        """Return what turns standard normal draws into deviations of coefficients.

        The covariance of coefficients is the inverse Hessian, plus what the uncertain
        penalties add to first order (Wood, Pya and Säfken 2016).
        """
        factor = self.mode.factor
        eye = np.eye(len(factor))
        inner = dtrtrs(factor, eye, lower=True, trans=1)[0]
        if self.evidence is None:
            return np.asarray(inner)
        bends, axes = np.linalg.eigh(self.evidence.derivatives[1])
        spread = axes / np.sqrt(np.maximum(bends, 0.0) + 1.0 / VAGUE)
        return np.hstack([inner, self.evidence.moves @ spread])

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return coefficients drawn from the posterior, a column each."""
        normal = rng.standard_normal((self.roots.shape[1], count))
        return self.mode.coefficients[:, np.newaxis] + self.roots @ normal


def logits_drawn(
    terms: Terms,
    members: tuple[Member, ...],
    p: FloatVector,
    n_draws: int,
    rng: np.random.Generator,
) -> FloatMatrix:
    """Return what draws of the map add to the logit, shape (predictions, draws)."""
    counts = rng.multinomial(n_draws, [member.share for member in members])
    parts = terms.parts(p)
    found = []
    for member, count in zip(members, counts.tolist(), strict=True):
        kept = [part for part, keep in zip(parts, member.kept, strict=True) if keep]
        found.append(np.hstack(kept) @ member.draws(count, rng))
    return np.hstack(found)


def moments(
    terms: Terms, members: tuple[Member, ...], p: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Return mean and variance, over the posterior, of what is added to the logit."""
    parts = terms.parts(p)
    mean, square = np.zeros(p.size), np.zeros(p.size)
    for member in members:
        kept = [part for part, keep in zip(parts, member.kept, strict=True) if keep]
        design = np.hstack(kept)
        centre = design @ member.mode.coefficients
        mean += member.share * centre
        square += member.share * (
            centre**2 + ((design @ member.roots) ** 2).sum(axis=1)
        )
    return mean, np.maximum(square - mean**2, 0.0)
