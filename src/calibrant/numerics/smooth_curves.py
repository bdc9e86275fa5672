"""Smooth curves around the identity, with their posterior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from calibrant.core.parameters import generator
from calibrant.numerics.logistic import solve_many
from calibrant.numerics.posterior_mixture import Posterior, posterior
from calibrant.numerics.scores import mean_gap
from calibrant.numerics.smooth_terms import STRAIGHT
from calibrant.numerics.supported_shifts import line_of, repairing_shifts
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.logistic import PenalisedProblem
    from calibrant.numerics.resampling import Resamples
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
SPREAD_AT_ONCE = 1024
"""Points whose spread over drawn curves is computed together."""


@dataclass(frozen=True, eq=False)
class WeighedDraws:
    """Coefficients, one column per draw, and how probable each column is."""

    coefficients: FloatMatrix
    share: FloatVector

    def draws(self, count: int, rng: np.random.Generator) -> FloatMatrix:
        """Return some of the columns, the more probable the more often."""
        chosen = rng.choice(self.share.size, count, p=self.share)
        return np.asarray(self.coefficients[:, chosen])


class Member(NamedTuple):
    """One of the fits whose mean the curve is.

    `kept` (4,) says which terms it has, `penalties` (4,) are those of each term, and
    `coefficients` belong to the terms that it has. `share` is how probable it is;
    shares of all members sum to 1. `log_likelihood` is the logarithm of how probable it
    makes the labels, whatever its coefficients, less what fitting its penalties gains
    by chance; nan if they were not fitted.
    """

    kept: BoolVector
    penalties: FloatVector
    coefficients: FloatVector
    share: float = 1.0
    log_likelihood: float = nan


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothCurve:
    """A fitted smooth curve.

    Attributes
    ----------
    terms : Terms
        What is added to logits.
    members : tuple of Member
        Fits with other terms or penalties, most probable first.
    problem : PenalisedProblem
        The regression of labels on all terms.
    coefficients : ndarray
        Their mean over the members.
    shifts : ndarray
        What the curve adds to the logits of the nodes.
    cells : WeightedPoints
        The distinct predictions that were fitted, or cells of them.
    given : ndarray of shape (4,), optional
        The penalties, where they were not fitted.
    freedom : float
        Degrees of freedom by which the variance between clusters is known.
    """

    terms: Terms
    members: tuple[Member, ...]
    problem: PenalisedProblem
    coefficients: FloatVector
    shifts: FloatVector
    cells: WeightedPoints
    given: FloatVector | None = None
    freedom: float = np.inf

    def values(self, p: FloatVector) -> FloatVector:
        """Return the curve at predictions."""
        return self._values(p, (self.terms.nodes, self.shifts))

    def _values(
        self, p: FloatVector, line: tuple[FloatVector, FloatVector]
    ) -> FloatVector:
        u = self.terms.logits(p)
        return np.asarray(expit(u + np.interp(u, *line)))

    def line(self, *, repairing: bool) -> tuple[FloatVector, FloatVector]:
        """Return logits, and what the curve or a repair adds there.

        A repair is the nearest curve that does not decrease and that the rows support.
        """
        knots, shifts = line_of(self.terms.nodes, self.shifts)
        if not repairing:
            return knots, shifts
        u = self.terms.logits(self.cells.p)
        return knots, repairing_shifts(knots, shifts, u, self.cells.weight)

    @cached_property
    def posterior(self) -> Posterior | WeighedDraws:
        """Return the posterior of the coefficients, over all penalties."""
        if self.given is not None or self.problem.known > self.terms.own:
            # Where clusters are known, labels say less of the shift than of the tilt.
            return posterior(self.problem, self.coefficients, self.given)
        # One spread for shift and tilt: there are eight times fewer to go through.
        return posterior(self.problem.joined(len(STRAIGHT)), self.coefficients)

    @property
    def evidence(self) -> float:
        """Return the logarithm of how many times more probable labels are by the curve.

        A Bayes factor of the most probable member against the predictions themselves.
        """
        unrepaired = self.problem.loss(self.problem.offset)
        return unrepaired + self.members[0].log_likelihood

    @property
    def penalties(self) -> FloatVector:
        """Return penalties of shift, tilt, curve of logits and curve of predictions.

        They are those of the most probable member, infinite for terms that it lacks.
        """
        best = self.members[0]
        return np.where(best.kept, best.penalties, np.inf)

    def loose_penalties(self, sample: BinarySample) -> FloatVector:
        """Return penalties far below what the data weigh."""
        information = sample.total * sample.mean(sample.p * (1.0 - sample.p))
        return np.minimum(self.penalties, LOOSE * max(information, 1.0))

    def refitted(self, resamples: Resamples) -> FloatMatrix:
        """Return the curve of each resample, with the penalties of the sample."""
        sample, terms = resamples.sample, self.terms
        problem = terms.problem(sample.p, sample.weight[0], sample.label_sum[0])
        logits = [
            m.share
            * solve_many(
                problem.only(m.kept),
                m.penalties,
                m.coefficients[: int(terms.sizes[m.kept].sum()) + terms.own],
                resamples.weight,
                resamples.label_sum,
            )
            for m in self.members
        ]
        return np.asarray(expit(np.sum(logits, axis=0)))

    def band(
        self,
        p: FloatVector,
        confidence: float,
        *,
        simultaneous: bool = False,
        random_state: Seed = 0,
        around: tuple[FloatVector, FloatVector] | None = None,
    ) -> tuple[FloatVector, FloatVector]:
        """Return limits of the true map at predictions, each or all of them at once.

        They come from the posterior of the logit, as a normal distribution with a
        spread of its own on either side of the mean, and hold the map of a line
        `around`, as `line` returns it, or else the curve itself. Simultaneous limits
        open towards 0 and 1 where hardly any rows lie farther out.
        """
        draws = self.drawn_terms(BAND_DRAWS, random_state)
        reach = float(ndtri(0.5 + 0.5 * confidence))
        if simultaneous:
            reach = _reach(self.terms.design(self.cells.p), draws, confidence)
        below, middle, above = _spreads(self.terms.design(p), draws)
        u = self.terms.logits(p) + middle
        lower, upper = expit(u - reach * below), expit(u + reach * above)
        line = around or (self.terms.nodes, self.shifts)
        if simultaneous:
            events, others = self._support(p, self._values(self.cells.p, line))
            lower, upper = events * lower, 1.0 - others * (1.0 - upper)
        map_ = self._values(p, line)
        return np.minimum(lower, map_), np.maximum(upper, map_)

    def _support(
        self, p: FloatVector, rate: FloatVector
    ) -> tuple[FloatVector, FloatVector]:
        """Return how well limits are supported by events below, and others above."""
        cells = self.cells
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
            rng = np.random.default_rng(int(random_state))
            self._known_draws[key] = self._drawn(count, rng)
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

    def drawn_curves(
        self, p: FloatVector, n_draws: int, random_state: Seed
    ) -> FloatMatrix:
        """Return curves drawn from the posterior, at predictions: one column each."""
        drawn = self.terms.design(p) @ self.drawn_terms(n_draws, random_state)
        drawn += self.terms.logits(p)[:, np.newaxis]
        return np.asarray(expit(drawn, out=drawn))

    def error_of(
        self, line: tuple[FloatVector, FloatVector], sample: BinarySample, alpha: float
    ) -> float:
        """Return the mean of abs(map(p) - p) ** alpha for the map of a line."""
        cells = compress_on_log_grid(sample)
        return mean_gap(self._values(cells.p, line), cells.p, cells.weight, alpha)

    def error_quantiles(
        self,
        levels: tuple[float, ...],
        *,
        n_draws: int,
        random_state: Seed = 0,
        alpha: float = 1.0,
    ) -> FloatVector:
        """Return quantiles of the errors of drawn curves on what was fitted."""
        p, weight = self.cells.p, self.cells.weight
        gaps = self.drawn_curves(p, n_draws, random_state)
        gaps = np.abs(gaps - p[:, np.newaxis])
        if alpha != 1.0:
            gaps **= alpha
        errors = weight @ gaps / weight.sum()
        return np.asarray(np.quantile(errors, levels))

    def forget_posterior(self) -> None:
        """Free the megabytes that the posterior takes, for each of many classes."""
        for name in ("posterior", "_known_draws"):
            self.__dict__.pop(name, None)


@dataclass(frozen=True, eq=False, kw_only=True)
class FewRowsCurve(SmoothCurve):
    """A fitted curve of few rows, whose shift and tilt were integrated over.

    Attributes
    ----------
    batch : SmallSamples
        Samples that were fitted together.
    place : int
        Which of them this is.
    """

    batch: SmallSamples
    place: int

    def own_error(self, alpha: float) -> float:
        """Return the mean of abs(curve(p) - p) ** alpha on what was fitted."""
        return float(self.batch.draws.map_errors(alpha)[self.place])

    @cached_property
    def posterior(self) -> WeighedDraws:
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
        """Return quantiles of the errors of all drawn curves on what was fitted."""
        return np.asarray(self.batch.draws.error_quantiles(levels, alpha)[self.place])


def _spreads(
    design: FloatMatrix, draws: FloatMatrix
) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Return the spread below the mean, the mean, and the spread above it.

    They are roots of mean squares: quantiles of draws would jump from point to point.
    """
    middle = design @ draws.mean(axis=1)
    below, above = np.empty_like(middle), np.empty_like(middle)
    parts = 1 + middle.size // SPREAD_AT_ONCE
    for part in np.array_split(np.arange(middle.size), parts):
        apart = design[part] @ draws - middle[part, np.newaxis]
        below[part] = np.square(np.minimum(apart, 0.0)).mean(axis=1)
        above[part] = np.square(np.maximum(apart, 0.0)).mean(axis=1)
    return np.sqrt(2.0 * below), middle, np.sqrt(2.0 * above)


def _reach(design: FloatMatrix, draws: FloatMatrix, confidence: float) -> float:
    """Return how many standard deviations hold whole drawn curves so often."""
    below, middle, above = (line[:, np.newaxis] for line in _spreads(design, draws))
    apart = design @ draws - middle
    apart = np.abs(apart) / np.maximum(
        np.where(apart > 0.0, above, below), np.finfo(float).tiny
    )
    return float(np.quantile(apart.max(axis=0), confidence))
