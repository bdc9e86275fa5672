"""Smooth maps: penalised splines around the identity, by marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import expit

from calibrant.calibrators.base import fit_family
from calibrant.calibrators.smooth_few_rows import few_rows_fits
from calibrant.calibrators.smooth_fits import Member, SmoothFit
from calibrant.calibrators.smooth_terms import STRAIGHT, TERMS, Terms
from calibrant.core.options import check_count, check_flag, check_penalties
from calibrant.exceptions import OptionError
from calibrant.numerics.marginal_likelihood import most_likely, most_likely_members
from calibrant.numerics.penalised_logistic import solve_many, solve_penalised
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.curve import CurveFit, Resamples
    from calibrant.core.array_types import FloatMatrix
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.penalised_logistic import PenalisedProblem
    from calibrant.numerics.weighted_points import WeightedPoints

NEGLIGIBLE = 1e-6
"""Fits that are less probable than the best by this factor are left out."""
FEW_ROWS = 30.0
"""With fewer rows there are no curves, and shift and tilt are integrated over."""
SAMPLES_AT_ONCE = 256
"""Most samples of few rows that are fitted together."""


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
        Number of knots of each spline, at quantiles of the predictions; at most one
        for every five rows, but at least three.
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
        return self.fit_many([sample])[0]

    def fit_many(self, samples: Sequence[BinarySample]) -> list[SmoothFit]:
        """Estimate the calibration maps of samples, those of few rows together."""
        cells = [compress_to_at_most(sample) for sample in samples]
        few = [place for place, one in enumerate(cells) if self._has_few_rows(one)]
        fits = {
            place: self._fit_cells(one)
            for place, one in enumerate(cells)
            if not self._has_few_rows(one)
        }
        for start in range(0, len(few), SAMPLES_AT_ONCE):
            part = few[start : start + SAMPLES_AT_ONCE]
            found = few_rows_fits([cells[place] for place in part], self)
            fits |= dict(zip(part, found, strict=True))
        return [fits[place] for place in range(len(cells))]

    def _has_few_rows(self, cells: WeightedPoints) -> bool:
        free = self.penalties is None and self.average
        return free and float(cells.weight.sum()) < FEW_ROWS

    def _fit_cells(self, cells: WeightedPoints) -> SmoothFit:
        terms = Terms.of(cells, self.coefficients)
        problem = terms.problem(cells.p, cells.weight, cells.label)
        members = self._members(problem)
        parts = [m.share * terms.spread(m.coefficients, m.kept) for m in members]
        coefficients = np.sum(parts, axis=0)
        edges = terms.edges
        return SmoothFit(
            terms.map(coefficients),
            edges.size - 1,
            edges,
            self,
            terms=terms,
            members=members,
            problem=problem,
            coefficients=coefficients,
            cells=cells,
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
                problem.only(m.kept),
                m.penalties,
                m.coefficients,
                resamples.weight,
                resamples.label,
            )
            for m in own.members
        ]
        return np.asarray(expit(np.sum(logits, axis=0)))

    def _members(self, problem: PenalisedProblem) -> tuple[Member, ...]:
        whole = np.ones(TERMS, dtype=bool)
        if self.penalties is not None:
            given = np.array(self.penalties, dtype=np.float64)
            return (Member.of(solve_penalised(problem, given), whole),)
        if not self.average:
            return (Member.of(most_likely(problem).mode, whole),)
        found = most_likely_members(problem, STRAIGHT)
        kept = [evidence.mode.problem.sizes > 0 for evidence in found]
        # A fitted penalty gains about 1 by chance alone, as a fitted parameter does.
        value = np.array([evidence.value for evidence in found])
        value += np.sum(kept, axis=1)
        share = np.exp(value.min() - value)
        share[share < NEGLIGIBLE] = 0.0
        share /= share.sum()
        return tuple(
            Member.of(found[k].mode, kept[k], float(share[k]))
            for k in np.argsort(-share, kind="stable")
            if share[k] > 0.0
        )


def smooth_fit(sample: BinarySample) -> SmoothFit:
    """Return the fit of `Smooth` with its defaults to a sample, made once."""
    return sample.cached("smooth fit", partial(fit_family, Smooth(), sample))
