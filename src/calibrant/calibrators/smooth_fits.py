"""Fitted smooth maps, with their posterior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import nan
from numbers import Integral
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import expit, ndtri

from calibrant.calibrators.fits import CurveFit
from calibrant.core.parameters import check_count, check_fraction, generator
from calibrant.numerics.posterior_mixture import posterior
from calibrant.numerics.smooth_terms import STRAIGHT
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from calibrant.calibrators.smooth import Smooth
    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.penalised_logistic import Mode, PenalisedProblem
    from calibrant.numerics.small_samples import SmallSamples
    from calibrant.numerics.smooth_terms import Terms
    from calibrant.numerics.weighted_points import WeightedPoints

BAND_DRAWS = 1000
"""Drawn maps from which simultaneous limits are found."""
SUPPORT = 8.0
"""Expected events farther out, with fewer of which a simultaneous lower limit falls to
0; events that do not happen for the upper limit. Maps may bend there unseen."""
LOOSE = 0.01
"""A penalty of this share of the information about a constant moves the fit by about
a hundredth."""


class Draws(Protocol):
    """A distribution of coefficients."""

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return drawn coefficients, one column per draw."""
        ...


@dataclass(frozen=True, eq=False)
class WeighedDraws:
    """Coefficients, one column per draw, and how probable each column is."""

    coefficients: FloatMatrix
    share: FloatVector

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return some of the columns, the more probable the more often."""
        chosen = rng.choice(self.share.size, count, p=self.share)
        return np.asarray(self.coefficients[:, chosen])


@dataclass(frozen=True, eq=False)
class Member:
    """One of the fits whose mean the map is.

    Attributes
    ----------
    kept : ndarray of shape (4,)
        Which terms it has.
    penalties : ndarray of shape (4,)
        Penalty of each term.
    coefficients : ndarray
        Those of the terms that it has.
    share : float
        How probable it is; shares of all members sum to 1.
    log_likelihood : float
        Logarithm of how probable it makes the labels, whatever its coefficients, less
        what fitting its penalties gains by chance; nan if they were not fitted.
    """

    kept: BoolVector
    penalties: FloatVector
    coefficients: FloatVector
    share: float
    log_likelihood: float = nan

    @classmethod
    def of(
        cls,
        mode: Mode,
        kept: BoolVector,
        share: float = 1.0,
        log_likelihood: float = nan,
    ) -> Member:
        """Return the member that a penalised fit is."""
        return cls(kept, mode.penalties, mode.coefficients, share, log_likelihood)


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothFit(CurveFit):
    """A fitted smooth map.

    Attributes
    ----------
    family : Smooth
        The hyper-parameters.
    terms : Terms
        What the map is made of.
    members : tuple of Member
        Fits with other terms or penalties, most probable first.
    problem : PenalisedProblem
        The regression of labels on all terms.
    coefficients : ndarray
        Those of the map, for all terms.
    cells : WeightedPoints
        The distinct predictions that were fitted, or cells of them.
    freedom : float
        Degrees of freedom by which the variance between clusters is known.
    """

    family: Smooth
    terms: Terms
    members: tuple[Member, ...]
    problem: PenalisedProblem
    coefficients: FloatVector
    cells: WeightedPoints
    freedom: float = np.inf

    @cached_property
    def posterior(self) -> Draws:
        """Return the posterior of the coefficients, over all penalties."""
        if self.family.penalties is not None:
            known = np.array(self.family.penalties, dtype=np.float64)
            return posterior(self.problem, self.coefficients, known)
        if (
            self.problem.known > self.terms.own
        ):  # clusters: labels say less of the shift than of the tilt
            return posterior(self.problem, self.coefficients)
        # One spread for shift and tilt: there are eight times fewer to go through.
        joined = self.problem.joined(len(STRAIGHT))
        return posterior(joined, self.coefficients)

    @property
    def evidence(self) -> float:
        """Return the logarithm of how many times more probable labels are by the map.

        A Bayes factor of the most probable member against the predictions themselves.
        """
        unrepaired = self.problem.loss(self.problem.offset)
        return unrepaired + self.members[0].log_likelihood

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
        spread of its own on either side of the mean, and hold the map itself.
        Simultaneous limits open towards 0 and 1 where hardly any rows lie farther out.

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
        draws = self.drawn_terms(BAND_DRAWS, random_state)
        reach = float(ndtri(0.5 + 0.5 * confidence))
        if simultaneous:
            reach = _reach(self.terms.design(self.cells.p), draws, confidence)
        below, middle, above = _spreads(self.terms.design(p), draws)
        u, map_ = self.terms.logits(p) + middle, self.map.values(p)
        lower, upper = expit(u - reach * below), expit(u + reach * above)
        if simultaneous:
            events, others = self._support(p)
            lower, upper = events * lower, 1.0 - others * (1.0 - upper)
        return np.minimum(lower, map_), np.maximum(upper, map_)

    def _support(self, p: FloatVector) -> tuple[FloatVector, FloatVector]:
        """Return how well limits are supported by events below, and others above."""
        cells, rate = self.cells, self.map.values(self.cells.p)
        events = np.cumsum(cells.weight * rate) / SUPPORT
        others = np.cumsum((cells.weight * (1.0 - rate))[::-1])[::-1] / SUPPORT
        below = np.interp(p, cells.p, events, left=0.0)
        above = np.interp(p, cells.p, others, right=0.0)
        return np.minimum(below, 1.0), np.minimum(above, 1.0)

    def drawn_terms(self, count: int, random_state: Seed) -> FloatMatrix:
        """Return drawn coefficients of the terms, one column per draw.

        Intervals and bands of the same seed are of the same draws, made once.
        """
        if not isinstance(random_state, Integral):
            return self._drawn(count, generator(random_state))
        key = count, int(random_state)
        if key not in self._known_draws:
            self._known_draws[key] = self._drawn(count, generator(random_state))
        return self._known_draws[key]

    @cached_property
    def _known_draws(self) -> dict[tuple[int, int], FloatMatrix]:
        return {}

    def _drawn(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return drawn coefficients.

        Where few clusters tell how much rows depend on each other, draws scatter more,
        as Student's distribution does.
        """
        draws = self.posterior.draws(count, rng)[: self.terms.features.shape[1]]
        if np.isinf(self.freedom):
            return draws
        centre = draws.mean(axis=1, keepdims=True)
        wider = np.sqrt(self.freedom / rng.chisquare(self.freedom, count))
        return np.asarray(centre + wider * (draws - centre))

    def posterior_errors(
        self,
        sample: BinarySample,
        *,
        n_draws: int,
        rng: Seed,
        alpha: float = 1.0,
    ) -> FloatVector:
        """Return the mean of abs(map(p) - p) ** alpha for draws of the map."""
        check_count(n_draws, name="n_draws")
        return self._drawn_errors(compress_to_at_most(sample), n_draws, rng, alpha)

    def error_quantiles(
        self,
        levels: tuple[float, ...],
        *,
        n_draws: int,
        random_state: Seed = 0,
        alpha: float = 1.0,
    ) -> FloatVector:
        """Return quantiles of the errors of drawn maps on what was fitted."""
        errors = self._drawn_errors(self.cells, n_draws, random_state, alpha)
        return np.asarray(np.quantile(errors, levels))

    def drawn_maps(
        self, p: FloatVector, n_draws: int, random_state: Seed
    ) -> FloatMatrix:
        """Return maps drawn from the posterior, at predictions: one column each."""
        drawn = self.terms.design(p) @ self.drawn_terms(n_draws, random_state)
        drawn += self.terms.logits(p)[:, np.newaxis]
        return np.asarray(expit(drawn, out=drawn))

    def _drawn_errors(
        self,
        cells: WeightedPoints,
        n_draws: int,
        random_state: Seed,
        alpha: float,
    ) -> FloatVector:
        maps = self.drawn_maps(cells.p, n_draws, random_state)
        gaps = np.abs(maps - cells.p[:, np.newaxis])
        if alpha != 1.0:
            gaps **= alpha
        return np.asarray(cells.weight @ gaps / cells.weight.sum())

    def forget_posterior(self) -> None:
        """Free the megabytes that the posterior takes, for each of many classes."""
        for name in ("posterior", "_known_draws"):
            self.__dict__.pop(name, None)

    def loosened(self, sample: BinarySample) -> SmoothFit:
        """Return the fit of all terms with penalties far below what the data weigh.

        Penalties that hold the map at the identity hold it there in every resample,
        so that errors of resamples scatter less than the error does from sample to
        sample, where penalties are chosen again. These maps scatter at least as much.
        """
        information = sample.total * sample.mean(sample.p * (1.0 - sample.p))
        most = LOOSE * max(information, 1.0)
        penalties = np.minimum(self.penalties, most).tolist()
        if sample.clusters is not None:  # resamples draw whole clusters
            sample = replace(sample, clusters=None)
        loose = replace(self.family, penalties=tuple(penalties))
        return loose.fit_event(sample)

    @property
    def penalties(self) -> FloatVector:
        """Return penalties of shift, tilt, curve of logits and curve of predictions.

        They are those of the most probable member, infinite for terms that it lacks.
        """
        best = self.members[0]
        return np.where(best.kept, best.penalties, np.inf)


@dataclass(frozen=True, eq=False, kw_only=True)
class FewRowsFit(SmoothFit):
    """A fitted map of few rows, whose shift and tilt were integrated over.

    Attributes
    ----------
    batch : SmallSamples
        Samples that were fitted together.
    place : int
        Which of them this is.
    """

    batch: SmallSamples
    place: int

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:
        """Return the mean of abs(map(p) - p) ** alpha."""
        if compress_to_at_most(sample) is not self.cells:
            return super().error(sample, alpha=alpha, debias=debias)
        return float(self.batch.draws.map_errors(alpha)[self.place])

    @cached_property
    def posterior(self) -> Draws:
        """Return the posterior of shift and tilt."""
        draws = self.batch.draws
        coefficients = draws.coefficients[self.place].reshape(-1, 2)
        return WeighedDraws(coefficients.T, draws.share[self.place])

    def error_quantiles(
        self,
        levels: tuple[float, ...],
        *,
        n_draws: int,  # noqa: ARG002
        random_state: Seed = 0,  # noqa: ARG002
        alpha: float = 1.0,
    ) -> FloatVector:
        """Return quantiles of the errors of maps on what was fitted."""
        return np.asarray(self.batch.draws.error_quantiles(levels, alpha)[self.place])


def _spreads(
    design: FloatMatrix, draws: FloatMatrix
) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Return the spread below the mean, the mean, and the spread above it.

    They are roots of mean squares: quantiles of draws would jump from point to point.
    """
    middle = design @ draws.mean(axis=1)
    below, above = np.empty_like(middle), np.empty_like(middle)
    for part in np.array_split(np.arange(middle.size), 1 + middle.size // 1024):
        apart = design[part] @ draws - middle[part, np.newaxis]
        below[part] = np.square(np.minimum(apart, 0.0)).mean(axis=1)
        above[part] = np.square(np.maximum(apart, 0.0)).mean(axis=1)
    return np.sqrt(2.0 * below), middle, np.sqrt(2.0 * above)


def _reach(design: FloatMatrix, draws: FloatMatrix, confidence: float) -> float:
    """Return how many standard deviations hold whole drawn maps so often."""
    below, middle, above = (line[:, np.newaxis] for line in _spreads(design, draws))
    apart = design @ draws - middle
    apart = np.abs(apart) / np.maximum(
        np.where(apart > 0.0, above, below), np.finfo(float).tiny
    )
    return float(np.quantile(apart.max(axis=0), confidence))
