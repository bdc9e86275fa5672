"""Smooth maps: penalised splines around the identity, by marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import expit, ndtri

from calibrant._validation.options import (
    check_count,
    check_flag,
    check_fraction,
    check_penalties,
)
from calibrant.calibrators.curve import CurveFit
from calibrant.calibrators.smooth_posterior import Member, logits_drawn, moments
from calibrant.calibrators.smooth_terms import TERMS, Terms
from calibrant.exceptions import OptionError
from calibrant.numerics.few_cells import gather_few
from calibrant.numerics.links import logit
from calibrant.numerics.marginal_likelihood import most_likely, most_likely_members
from calibrant.numerics.penalised_logistic import (
    PenalisedProblem,
    solve_many,
    solve_penalised,
)

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatMatrix, FloatVector
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.curve import Resamples
    from calibrant.maps.smooth import SmoothMap
    from calibrant.numerics.marginal_likelihood import Evidence

NEGLIGIBLE = 1e-6
"""Fits that are less probable than the best by this factor are left out."""

LOOSE = 0.01
"""A penalty of this share of the information that labels hold about a constant moves
what is fitted by hardly a hundredth."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothFit(CurveFit):
    """A fitted smooth map.

    Attributes
    ----------
    terms : Terms
        What the map is made of.
    members : tuple of Member
        Fits with and without curves, most probable first.
    """

    terms: Terms
    members: tuple[Member, ...]

    def band(
        self, p: FloatVector, confidence: float = 0.95
    ) -> tuple[FloatVector, FloatVector]:
        """Return point-wise limits of the map at predictions.

        They come from the posterior of the logit, taken as normal.
        """
        check_fraction(confidence, name="confidence")
        mean, variance = moments(self.terms, self.members, p)
        centre = logit(p) + mean
        half = float(ndtri(0.5 + 0.5 * confidence)) * np.sqrt(variance)
        return expit(centre - half), expit(centre + half)

    def posterior_errors(
        self,
        sample: BinarySample,
        *,
        n_draws: int,
        rng: np.random.Generator,
        alpha: float = 1.0,
    ) -> FloatVector:
        """Return the mean of abs(map(p) - p) ** alpha for draws of the map."""
        check_count(n_draws, name="n_draws")
        cells = gather_few(sample.p, sample.y, sample.weight)
        added = logits_drawn(self.terms, self.members, cells.p, n_draws, rng)
        added += logit(cells.p)[:, np.newaxis]
        gaps = np.abs(expit(added, out=added) - cells.p[:, np.newaxis])
        if alpha != 1.0:
            gaps **= alpha
        return np.asarray(cells.weight @ gaps / cells.weight.sum())

    def loosened(self, sample: BinarySample) -> SmoothFit:
        """Return the fit of all terms with penalties far below what the data weigh.

        Penalties that hold the map at the identity hold it there in every resample,
        so that errors of resamples scatter less than the error does from sample to
        sample, where penalties are chosen anew. These maps scatter at least as much.
        """
        information = sample.total * sample.mean(sample.p * (1.0 - sample.p))
        most = LOOSE * max(information, 1.0)
        penalties = np.minimum(self.penalties, most).tolist()
        family = replace(cast("Smooth", self.family), penalties=tuple(penalties))
        return family.fit(sample)

    @property
    def penalties(self) -> FloatVector:
        """Return penalties of line, curve of logits and curve of predictions.

        They are those of the most probable member, infinite for terms that it lacks.
        """
        best = self.members[0]
        return np.where(best.kept, best.mode.penalties, np.inf)


@dataclass(frozen=True, kw_only=True)
class Smooth:
    """Penalised splines around the identity, smoothness by marginal likelihood.

    The logit of the map is logit(p) + a + b logit(p) + s1(logit(p)) + s2(p) with
    natural cubic splines s1 and s2. Their curvatures are penalised, and so are a and b:
    where the data do not object, the map is the identity. The three penalties are
    those that make the labels most probable.

    Parameters
    ----------
    coefficients : int
        Number of knots of each spline, at quantiles of the predictions.
    average : bool
        Whether to take the mean over fits with both splines, with either and with
        none, by how probable each makes the labels; else the fit with both.
    penalties : tuple of three numbers, optional
        Penalties of the line, of s1 and of s2, instead of the most probable ones: one
        over the mean square that each term is thought to add to the logit. Then there
        is one fit only.

    References
    ----------
    S. Wood (2011). Fast stable restricted maximum likelihood and marginal likelihood
    estimation of semiparametric generalized linear models. JRSS B.
    """

    coefficients: int = 20
    average: bool = True
    penalties: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        check_count(self.coefficients, name="coefficients", least=3)
        check_flag(self.average, name="average")
        if self.penalties is not None:
            given: tuple[Any, ...] = check_penalties(self.penalties, name="penalties")
            if len(given) != TERMS:
                raise OptionError(
                    f"penalties must be three numbers, of the line and of both "
                    f"splines; got {self.penalties!r}."
                )

    def fit(self, sample: BinarySample) -> SmoothFit:
        """Estimate the calibration map of a sample."""
        cells = gather_few(sample.p, sample.y, sample.weight)
        terms = Terms.of(cells, self.coefficients)
        members = self._members(terms.problem(cells.p, cells.weight, cells.label))
        parts = [m.share * terms.spread(m.mode.coefficients, m.kept) for m in members]
        map_ = terms.map(np.sum(parts, axis=0))
        edges = _edges(map_)
        pieces = edges.size - 1
        return SmoothFit(map_, pieces, edges, self, terms=terms, members=members)

    def refitted(
        self,
        fit: CurveFit,
        sample: Resamples,
        resamples: Resamples,
    ) -> FloatMatrix:
        """Return the map of each resample, with the same penalties, at the points."""
        own = cast("SmoothFit", fit)
        problem = own.terms.problem(sample.p, sample.weight[0], sample.label[0])
        logits = [
            m.share
            * solve_many(
                problem.only(m.kept), m.mode, resamples.weight, resamples.label
            )
            for m in own.members
        ]
        return np.asarray(expit(np.sum(logits, axis=0)))

    def _members(self, problem: PenalisedProblem) -> tuple[Member, ...]:
        whole = np.ones(TERMS, dtype=bool)
        if self.penalties is not None:
            given = np.array(self.penalties, dtype=np.float64)
            return (Member(whole, solve_penalised(problem, given), 1.0),)
        if not self.average:
            return (_member(whole, most_likely(problem), 1.0),)
        found = most_likely_members(problem)
        kept = [evidence.mode.problem.sizes > 0 for evidence in found]
        # A fitted penalty gains about 1 by chance alone, as a fitted parameter does.
        value = np.array([evidence.value for evidence in found])
        value += np.sum(kept, axis=1)
        share = np.exp(value.min() - value)
        share[share < NEGLIGIBLE] = 0.0
        share /= share.sum()
        return tuple(
            _member(kept[k], found[k], float(share[k]))
            for k in np.argsort(-share, kind="stable")
            if share[k] > 0.0
        )


def _member(kept: BoolVector, evidence: Evidence, share: float) -> Member:
    return Member(kept, evidence.mode, share, evidence)


def _edges(map_: SmoothMap) -> FloatVector:
    """Return the knots of the curve of logits, as probabilities, with 0 and 1."""
    knots = expit(map_.by_logit.knots[1:-1])
    return np.concatenate([[0.0], np.unique(knots[(knots > 0) & (knots < 1)]), [1.0]])
