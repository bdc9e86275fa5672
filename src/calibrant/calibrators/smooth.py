"""Smooth maps: penalised splines around the identity, by marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import expit

from calibrant._validation.options import check_count, check_flag, check_penalties
from calibrant.calibrators.curve import CurveFit
from calibrant.exceptions import OptionError
from calibrant.maps.smooth import Curve, SmoothMap
from calibrant.numerics.few_cells import gather_few
from calibrant.numerics.links import logit
from calibrant.numerics.marginal_likelihood import most_likely, most_likely_members
from calibrant.numerics.natural_splines import BentBasis, spaced_knots
from calibrant.numerics.penalised_logistic import (
    Mode,
    PenalisedProblem,
    solve_many,
    solve_penalised,
)

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatMatrix, FloatVector
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.curve import Resamples
    from calibrant.numerics.log_cells import Gathered

TERMS = 3
"""The straight part, the curve of the logit and that of the prediction."""
NEGLIGIBLE = 1e-6
"""Fits that are less probable than the best by this factor are left out."""
NO_CURVE = Curve(np.array([0.0, 1.0]), np.zeros(2), np.zeros(2))


@dataclass(frozen=True, eq=False)
class Terms:
    """What can be added to the logit: a line and two sets of bent curves.

    Attributes
    ----------
    by_logit, by_prob : BentBasis
        Curves of the logit and of the prediction.
    scales : ndarray of shape (3,)
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
            for x in (logit(cells.p), cells.p)
        ]
        unscaled = cls(bases[0], bases[1], np.ones(TERMS))
        squares = [(part**2).sum(axis=1) for part in unscaled.parts(cells.p)]
        means = np.average(squares, axis=1, weights=cells.weight)
        scales = 1.0 / np.sqrt(np.where(means > 0.0, means, 1.0))
        return cls(bases[0], bases[1], scales)

    def parts(self, p: FloatVector) -> list[FloatMatrix]:
        """Return the features of each term."""
        u = logit(p)
        line = np.column_stack([np.ones(u.size), u])
        parts = (line, self.by_logit.at(u), self.by_prob.at(p))
        return [part * scale for part, scale in zip(parts, self.scales, strict=True)]

    def problem(
        self, p: FloatVector, weight: FloatVector, label: FloatVector
    ) -> PenalisedProblem:
        """Return the regression of labels on all terms."""
        parts = self.parts(p)
        sizes = np.array([part.shape[1] for part in parts])
        return PenalisedProblem(np.hstack(parts), logit(p), weight, label, sizes)

    def spread(self, coefficients: FloatVector, kept: BoolVector) -> FloatVector:
        """Return coefficients of all terms, 0 for those that are not kept."""
        bent = (self.by_logit.heights.shape[1], self.by_prob.heights.shape[1])
        found = np.zeros(2 + sum(bent))
        found[np.repeat(kept, [2, *bent])] = coefficients
        return found

    def map(self, coefficients: FloatVector) -> SmoothMap:
        """Return the map with given coefficients."""
        bends = self.by_logit.heights.shape[1]
        (constant, slope), logit_part, prob_part = np.split(
            coefficients, [2, 2 + bends]
        )
        constant, slope = self.scales[0] * constant, self.scales[0] * slope
        curved = _curve(self.by_logit, self.scales[1] * logit_part)
        straight = Curve(
            curved.knots,
            curved.heights + constant + slope * curved.knots,
            curved.slopes + slope,
        )
        return SmoothMap(straight, _curve(self.by_prob, self.scales[2] * prob_part))


def _curve(basis: BentBasis, coefficients: FloatVector) -> Curve:
    if coefficients.size == 0:
        return NO_CURVE
    return Curve(basis.knots, basis.heights @ coefficients, basis.slopes @ coefficients)


@dataclass(frozen=True, eq=False)
class Member:
    """One of the fits whose mean the map is.

    Attributes
    ----------
    kept : ndarray of shape (3,)
        Which terms it has.
    mode : Mode
        The penalised fit: coefficients, penalties and the Hessian.
    share : float
        How probable it is; shares of all members sum to 1.
    """

    kept: BoolVector
    mode: Mode
    share: float


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
            return (Member(whole, most_likely(problem).mode, 1.0),)
        found = most_likely_members(problem)
        kept = [evidence.mode.problem.sizes > 0 for evidence in found]
        # A fitted penalty gains about 1 by chance alone, as a fitted parameter does.
        value = np.array([evidence.value for evidence in found])
        value += np.sum(kept, axis=1)
        share = np.exp(value.min() - value)
        share[share < NEGLIGIBLE] = 0.0
        share /= share.sum()
        return tuple(
            Member(kept[k], found[k].mode, float(share[k]))
            for k in np.argsort(-share, kind="stable")
            if share[k] > 0.0
        )


def _edges(map_: SmoothMap) -> FloatVector:
    """Return the knots of the curve of logits, as probabilities, with 0 and 1."""
    knots = expit(map_.by_logit.knots[1:-1])
    return np.concatenate([[0.0], np.unique(knots[(knots > 0) & (knots < 1)]), [1.0]])
