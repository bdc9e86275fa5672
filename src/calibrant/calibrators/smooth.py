"""Smooth maps: penalised splines around the identity, by marginal likelihood.

Many samples of few rows are fitted together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit

from calibrant.calibrators.base import ClassCalibrator, EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE
from calibrant.calibrators.multiclass_smooth import fit_classes
from calibrant.calibrators.smooth_fits import FewRowsFit, Member, SmoothFit
from calibrant.core.parameters import check_count, check_flag, check_penalties
from calibrant.exceptions import OptionError
from calibrant.maps.smooth import SmoothMap
from calibrant.numerics.clustered import effective_rows
from calibrant.numerics.links import logit
from calibrant.numerics.marginal_likelihood import (
    evidence_at,
    gain_of_group,
    most_likely,
    most_likely_members,
)
from calibrant.numerics.penalised_logistic import (
    Mode,
    PenalisedProblem,
    solve_many,
    solve_penalised,
)
from calibrant.numerics.small_samples import SmallSamples
from calibrant.numerics.smooth_terms import (
    STRAIGHT,
    TERMS,
    Terms,
    wrong_ends,
)
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.base import Kind
    from calibrant.calibrators.fits import MulticlassFit, Resamples
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.numerics.clustered import Effective
    from calibrant.numerics.weighted_points import WeightedPoints

NEGLIGIBLE = 1e-6
"""Fits that are less probable than the best by this factor are left out."""
MARGIN = 1.0
"""Ends have rates of their own, and the second curve is one of ranks, where that raises
the log-likelihood by so much."""
PENALTY_GAIN = 1.0
"""A fitted penalty gains so much by chance alone, as a fitted parameter does."""
MIN_ROWS = 30.0
"""With fewer rows there are no curves, and shift and tilt are integrated over."""
SAMPLES_AT_ONCE = 256
"""At most so many samples of few rows are fitted together."""
SHIFT_AND_TILT = np.array([True, True, False, False])
SIZES = SHIFT_AND_TILT.astype(np.intp)
MIN_SHARE = 0.01
"""Less probable spreads of shift and tilt are left out."""


@dataclass(kw_only=True, eq=False, repr=False)
class Smooth(ClassCalibrator, EventCalibrator):
    """Penalised regression around the identity, penalties by marginal likelihood.

    For one event, the logit of the map is logit(p) + a + b logit(p) + s1(logit(p)) +
    s2(p) with natural cubic splines s1 and s2. Their curvatures are penalised, and so
    are a and b: without evidence to the contrary, the map is the identity. The four
    penalties are those that make the labels most probable. If labels are clearly more
    probable by it, s2 is a spline of the rank of p instead: the share of rows below.
    Where predictions crowd, such a map can be steep.

    For several classes it is softmax regression on logits and probabilities (see
    `calibrant.calibrators.multiclass_smooth`), for which only `scale` and `labels` can
    be set.

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
    monotone : bool
        Whether the map is used as a repair: it then does not decrease, and moves no
        prediction farther than the rows within one logit and one more row, which agrees
        with the prediction, can support. Evaluation uses the unrestricted curve.

    References
    ----------
    S. Wood (2011). Fast stable restricted maximum likelihood and marginal likelihood
    estimation of semiparametric generalized linear models. JRSS B.
    """

    coefficients: int = 20
    average: bool = True
    penalties: tuple[float, float, float, float] | None = None
    monotone: bool = True

    _only_for: ClassVar[dict[Kind, tuple[str, ...]]] = {
        "binary": ("coefficients", "average", "penalties", "monotone")
    }

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_count(self.coefficients, name="coefficients", least=3)
        check_flag(self.average, name="average")
        check_flag(self.monotone, name="monotone")
        if self.penalties is not None:
            given: tuple[Any, ...] = check_penalties(self.penalties, name="penalties")
            if len(given) != TERMS:
                raise OptionError(
                    f"penalties must be four numbers, of a, b and both splines; got "
                    f"{self.penalties!r}."
                )

    def fit_event(self, sample: BinarySample) -> SmoothFit:
        """Estimate the calibration map of a sample."""
        return self.fit_many([sample])[0]

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit the tempering of all classes, then the terms."""
        return fit_classes(sample)

    def fit_many(self, samples: Sequence[BinarySample]) -> list[SmoothFit]:
        """Estimate the calibration maps of samples, those of few rows together."""
        clustered = [effective_rows(sample) for sample in samples]
        cells = [
            compress_to_at_most(sample) if rows is None else rows.cells
            for sample, rows in zip(samples, clustered, strict=True)
        ]
        few = [place for place, one in enumerate(cells) if self._has_few_rows(one)]
        fits = {
            place: self._fit_cells(one, clustered[place])
            for place, one in enumerate(cells)
            if not self._has_few_rows(one)
        }
        for place in few:
            rows = clustered[place]
            cells[place] = cells[place] if rows is None else rows.cells_of_mean
        for start in range(0, len(few), SAMPLES_AT_ONCE):
            part = few[start : start + SAMPLES_AT_ONCE]
            together = _few_rows_fits([cells[place] for place in part], self)
            fits |= dict(zip(part, together, strict=True))
        return [fits[place] for place in range(len(cells))]

    def fit_near(self, sample: BinarySample, near: SmoothFit) -> SmoothFit:
        """Estimate the map of a part of a sample, with the penalties of the whole.

        They are the same but for noise where rows are very many, and most of the work.
        """
        return self._fit_terms(near.terms, compress_to_at_most(sample), None, near)

    def _has_few_rows(self, cells: WeightedPoints) -> bool:
        free = self.penalties is None and self.average
        return free and float(cells.weight.sum()) < MIN_ROWS

    def _fit_cells(
        self, cells: WeightedPoints, clustered: Effective | None
    ) -> SmoothFit:
        fit = self._fit_terms(Terms.of(cells, self.coefficients), cells, clustered)
        if not fit.evidence > 0.0:  # nan where penalties are not averaged over
            return fit
        chosen: dict[str, Any] = {}
        if any(own_ends := wrong_ends(cells)):
            terms = Terms.of(cells, self.coefficients, own_ends=own_ends)
            other = self._fit_terms(terms, cells, clustered)
            if other.evidence > fit.evidence + MARGIN:
                fit, chosen = other, {"own_ends": own_ends}
        terms = Terms.of(cells, self.coefficients, by_rank=True, **chosen)
        if clustered is None and _ranks_are_useless(fit, terms):
            return fit
        other = self._fit_terms(terms, cells, clustered)
        return other if other.evidence > fit.evidence + MARGIN else fit

    def _fit_terms(
        self,
        terms: Terms,
        cells: WeightedPoints,
        clustered: Effective | None,
        near: SmoothFit | None = None,
    ) -> SmoothFit:
        problem = terms.problem(cells.p, cells.weight, cells.label_sum)
        if clustered is not None:
            problem = problem.with_known(clustered.blurs(problem.design))
        members = self._members(problem, () if near is None else near.members)
        parts = [m.share * terms.spread(m.coefficients, m.kept) for m in members]
        coefficients = np.sum(parts, axis=0)
        map_ = SmoothMap.through(terms.nodes, terms.shifts(coefficients), terms.ends)
        return SmoothFit(
            self.shown(map_, cells),
            0,  # a curve without bins or pieces
            terms.edges,
            partial(_refit, terms=terms, members=members),
            family=self,
            terms=terms,
            members=members,
            problem=problem,
            coefficients=coefficients,
            cells=cells,
            freedom=np.inf if clustered is None else clustered.dependence.freedom,
        )

    def shown(self, map_: SmoothMap, cells: WeightedPoints) -> SmoothMap:
        """Return the map that is asked for: the curve itself, or made to repair."""
        return map_.repairing(cells.p, cells.weight) if self.monotone else map_

    def _members(
        self, problem: PenalisedProblem, near: tuple[Member, ...] = ()
    ) -> tuple[Member, ...]:
        whole = np.ones(TERMS, dtype=bool)
        if self.penalties is not None:
            given = np.array(self.penalties, dtype=np.float64)
            return (Member.of(solve_penalised(problem, given), whole),)
        if not self.average:
            return (Member.of(most_likely(problem).mode, whole),)
        fits = [
            evidence_at(problem.only(m.kept), np.log(m.penalties), m.coefficients)
            for m in near
        ] or most_likely_members(problem, STRAIGHT)
        kept = [fit.mode.problem.sizes > 0 for fit in fits]
        value = np.array([fit.value for fit in fits])
        value += PENALTY_GAIN * np.sum(kept, axis=1)
        share = np.exp(value.min() - value)
        share[share < NEGLIGIBLE] = 0.0
        share /= share.sum()
        return tuple(
            Member.of(fits[k].mode, kept[k], float(share[k]), -float(value[k]))
            for k in np.argsort(-share, kind="stable")
            if share[k] > 0.0
        )


def _ranks_are_useless(fit: SmoothFit, by_rank: Terms) -> bool:
    """Tell whether no curve of ranks can make labels clearly more probable.

    That is known without a search where the most probable fit is straight: the gain of
    a curve is then small, and its expansion off by at most 0.33 in 377 samples, less
    than a third of the margin that ranks need.
    """
    best, ends = fit.members[0], by_rank.sizes.cumsum()
    if best.kept.sum() > len(STRAIGHT):
        return False
    straight = fit.problem.only(best.kept)
    mode = Mode(straight, best.penalties, best.coefficients, nan)
    curve = by_rank.design(fit.cells.p)[:, ends[-2] : ends[-1]]
    return gain_of_group(mode, curve) < PENALTY_GAIN


def _refit(
    resamples: Resamples, *, terms: Terms, members: tuple[Member, ...]
) -> FloatMatrix:
    """Return the map of each resample, with the penalties of the sample."""
    sample = resamples.sample
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
        for m in members
    ]
    return np.asarray(expit(np.sum(logits, axis=0)))


def _few_rows_fits(cells: Sequence[WeightedPoints], family: Smooth) -> list[FewRowsFit]:
    """Return the fits of samples of few rows.

    At each prediction of a sample the map is the mean of drawn maps.
    """
    batch = SmallSamples.side_by_side(cells)
    shifts = logit(batch.draws.mean_probabilities) - batch.logits
    return [
        _few_rows_fit(batch, k, one, shifts[k], family) for k, one in enumerate(cells)
    ]


def _few_rows_fit(
    batch: SmallSamples,
    place: int,
    cells: WeightedPoints,
    shifts: FloatVector,
    family: Smooth,
) -> FewRowsFit:
    u = batch.logits[place, : cells.p.size]
    design = np.ones((u.size, 2))
    design[:, 1] = batch.tilt[place, : u.size]
    low, high = batch.ends[:, place].tolist()
    first = np.flatnonzero(np.diff(u, prepend=-np.inf))  # some may share a logit
    terms = Terms((low, high), u[first], design[first], SIZES, WHOLE_RANGE)
    members = _few_rows_members(batch, place)
    map_ = SmoothMap.through(u[first], shifts[first], (low, high))
    return FewRowsFit(
        family.shown(map_, cells),
        1,
        WHOLE_RANGE,
        partial(_refit, terms=terms, members=members),
        family=family,
        terms=terms,
        members=members,
        problem=PenalisedProblem(design, u, cells.weight, cells.label_sum, SIZES),
        coefficients=batch.draws.mean_coefficients[place],
        cells=cells,
        batch=batch,
        place=place,
    )


def _few_rows_members(batch: SmallSamples, place: int) -> tuple[Member, ...]:
    """Return the fit of each spread that is probable, the most probable first."""
    share = batch.draws.spread_share[place]
    modes, _ = batch.modes
    return tuple(
        Member(
            SHIFT_AND_TILT,
            np.where(SHIFT_AND_TILT, batch.spreads[place, k] ** -2.0, 1.0),
            modes[place, k],
            float(share[k]),
        )
        for k in np.argsort(-share, kind="stable")
        if share[k] > MIN_SHARE
    )


EVALUATOR = Smooth(monotone=False)
"""The curve as it is."""


def smooth_fit(sample: BinarySample) -> SmoothFit:
    """Return the curve that evaluation takes of a sample, fitted once."""
    fit: SmoothFit = sample.cached("smooth fit", partial(EVALUATOR.fit_sample, sample))
    return fit
