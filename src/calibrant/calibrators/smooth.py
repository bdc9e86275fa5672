"""Smooth maps: penalised splines around the identity, by marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import expit, ndtr, ndtri

from calibrant._validation.options import (
    check_count,
    check_flag,
    check_fraction,
    check_penalties,
    generator,
)
from calibrant.calibrators.curve import CurveFit
from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.smooth_terms import STRAIGHT, TERMS, Terms
from calibrant.exceptions import OptionError
from calibrant.maps.smooth import held_logit
from calibrant.numerics.few_cells import few_cells
from calibrant.numerics.marginal_likelihood import most_likely, most_likely_members
from calibrant.numerics.penalised_logistic import solve_many, solve_penalised
from calibrant.numerics.penalty_mixture import posterior

if TYPE_CHECKING:
    from calibrant._typing import BoolVector, FloatMatrix, FloatVector, Seed
    from calibrant._validation.sample import BinarySample
    from calibrant.calibrators.curve import Resamples
    from calibrant.maps.smooth import SmoothMap
    from calibrant.numerics.penalised_logistic import Mode, PenalisedProblem
    from calibrant.numerics.penalty_mixture import Posterior

NEGLIGIBLE = 1e-6
"""Fits that are less probable than the best by this factor are left out."""
BAND_DRAWS = 1000
"""Drawn maps from which simultaneous limits are found."""
LOOSE = 0.01
"""A penalty of this share of the information that labels hold about a constant moves
what is fitted by hardly a hundredth."""


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
    problem : PenalisedProblem
        The regression of labels on all terms.
    coefficients : ndarray
        Those of the map, for all terms.
    """

    terms: Terms
    members: tuple[Member, ...]
    problem: PenalisedProblem
    coefficients: FloatVector

    @cached_property
    def posterior(self) -> Posterior:
        """Return the posterior of the coefficients, over all penalties."""
        given = cast("Smooth", self.family).penalties
        if given is not None:
            known = np.array(given, dtype=np.float64)
            return posterior(self.problem, self.coefficients, known)
        # One spread for shift and tilt: there are eight times fewer to go through.
        joined = self.problem.joined(len(STRAIGHT))
        return posterior(joined, self.coefficients)

    def band(
        self,
        p: FloatVector,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        random_state: Seed = 0,
    ) -> tuple[FloatVector, FloatVector]:
        """Return limits of the map at predictions.

        They come from the posterior of the logit, as a normal distribution with a
        spread of its own on either side of the median, and hold the map itself.

        Parameters
        ----------
        p : ndarray
            Where.
        confidence : float
            Chance that the true map lies between the limits.
        simultaneous : bool
            At all predictions of the sample at once, instead of at each.
        random_state : int, generator or None
            Seeds the maps that are drawn.
        """
        check_fraction(confidence, name="confidence")
        draws = self.posterior.draws(BAND_DRAWS, generator(random_state))
        reach = float(ndtri(0.5 + 0.5 * confidence))
        if simultaneous:
            reach = _reach(self.problem.design, draws, confidence)
        low, middle, high = _spreads(np.hstack(self.terms.parts(p)), draws)
        u, map_ = held_logit(p), self.map(p)
        lower = expit(u + middle - reach * (middle - low))
        upper = expit(u + middle + reach * (high - middle))
        return np.minimum(lower, map_), np.maximum(upper, map_)

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
        cells = few_cells(sample)
        design = np.hstack(self.terms.parts(cells.p))
        drawn = design @ self.posterior.draws(n_draws, rng)
        drawn += held_logit(cells.p)[:, np.newaxis]
        gaps = np.abs(expit(drawn, out=drawn) - cells.p[:, np.newaxis])
        if alpha != 1.0:
            gaps **= alpha
        return np.asarray(cells.weight @ gaps / cells.weight.sum())

    def forget_posterior(self) -> None:
        """Free the megabytes that the posterior takes, for each of many classes."""
        self.__dict__.pop("posterior", None)

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
        """Return penalties of shift, tilt, curve of logits and curve of predictions.

        They are those of the most probable member, infinite for terms that it lacks.
        """
        best = self.members[0]
        return np.where(best.kept, best.mode.penalties, np.inf)


@dataclass(frozen=True, kw_only=True)
class Smooth:
    """Penalised splines around the identity, smoothness by marginal likelihood.

    The logit of the map is logit(p) + a + b logit(p) + s1(logit(p)) + s2(p) with
    natural cubic splines s1 and s2. Their curvatures are penalised, and so are a and b:
    where the data do not object, the map is the identity. The four penalties are
    those that make the labels most probable.

    Parameters
    ----------
    coefficients : int
        Number of knots of each spline, at quantiles of the predictions.
    average : bool
        Whether to take the mean over fits with both splines, with either and with
        none, by how probable each makes the labels; else the fit with both.
    penalties : tuple of four numbers, optional
        Penalties of a, b, s1 and s2, instead of the most probable ones: one over the
        mean square that each term is thought to add to the logit. Then there is one
        fit only.

    References
    ----------
    S. Wood (2011). Fast stable restricted maximum likelihood and marginal likelihood
    estimation of semiparametric generalized linear models. JRSS B.
    """

    coefficients: int = 20
    average: bool = True
    penalties: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        check_count(self.coefficients, name="coefficients", least=3)
        check_flag(self.average, name="average")
        if self.penalties is not None:
            given: tuple[Any, ...] = check_penalties(self.penalties, name="penalties")
            if len(given) != TERMS:
                raise OptionError(
                    f"penalties must be four numbers, of a, b and both splines; got "
                    f"{self.penalties!r}."
                )

    def fit(self, sample: BinarySample) -> SmoothFit:
        """Estimate the calibration map of a sample."""
        cells = few_cells(sample)
        terms = Terms.of(cells, self.coefficients)
        problem = terms.problem(cells.p, cells.weight, cells.label)
        members = self._members(problem)
        parts = [m.share * terms.spread(m.mode.coefficients, m.kept) for m in members]
        coefficients = np.sum(parts, axis=0)
        map_ = terms.map(coefficients)
        edges = _edges(map_)
        return SmoothFit(
            map_,
            edges.size - 1,
            edges,
            self,
            terms=terms,
            members=members,
            problem=problem,
            coefficients=coefficients,
        )

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
        found = most_likely_members(problem, STRAIGHT)
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


def smooth_fit(sample: BinarySample) -> SmoothFit:
    """Return the fit of `Smooth` with its defaults to a sample, made once."""
    return sample.once("smooth fit", partial(fit_family, Smooth(), sample))


def _spreads(
    design: FloatMatrix, draws: FloatMatrix
) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Return where a normal distribution has -1, 0 and 1 standard deviations."""
    blocks = np.array_split(design, 1 + len(design) // 1024)
    found = [np.quantile(block @ draws, ndtr([-1, 0, 1]), axis=1) for block in blocks]
    low, middle, high = np.hstack(found)
    return low, middle, high


def _reach(design: FloatMatrix, draws: FloatMatrix, confidence: float) -> float:
    """Return how many standard deviations hold whole drawn maps so often."""
    low, middle, high = (line[:, np.newaxis] for line in _spreads(design, draws))
    apart = design @ draws - middle
    spread = np.where(apart > 0.0, high - middle, middle - low)
    apart = np.abs(apart) / np.maximum(spread, np.finfo(float).tiny)
    return float(np.quantile(apart.max(axis=0), confidence))


def _edges(map_: SmoothMap) -> FloatVector:
    """Return the knots of the curve of logits, as probabilities, with 0 and 1."""
    knots = expit(map_.by_logit.knots[1:-1])
    return np.concatenate([[0.0], np.unique(knots[(knots > 0) & (knots < 1)]), [1.0]])
