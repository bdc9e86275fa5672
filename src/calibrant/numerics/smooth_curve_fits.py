"""Fits of smooth curves: which terms they have, with which penalties.

Penalties are those of the largest marginal likelihood, and the curve is the mean over
choices of terms. Many samples of few rows are fitted together.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrant.numerics.binning import width_edges
from calibrant.numerics.cluster_dependence import effective_rows
from calibrant.numerics.links import logit
from calibrant.numerics.logistic import Mode, PenalisedProblem, solve_penalised
from calibrant.numerics.marginal_likelihood import (
    evidence_at,
    gain_of_group,
    most_likely,
    most_likely_members,
)
from calibrant.numerics.sample_cache import cached_on_sample
from calibrant.numerics.small_samples import SmallSamples
from calibrant.numerics.smooth_curves import FewRowsCurve, Member, SmoothCurve
from calibrant.numerics.smooth_terms import STRAIGHT, TERMS, Terms, wrong_ends
from calibrant.numerics.weighted_points import compress_to_at_most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.cluster_dependence import Effective
    from calibrant.numerics.marginal_likelihood import Evidence
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


class CurveChoices(NamedTuple):
    """What is not left to the data; the calibrator `Smooth` describes the choices."""

    knots: int = 20
    average: bool = True
    penalties: tuple[float, ...] | None = None

    @property
    def given(self) -> FloatVector | None:
        """Return the penalties, where they are not fitted."""
        return None if self.penalties is None else np.array(self.penalties, np.float64)

    def integrate(self, cells: WeightedPoints) -> bool:
        """Tell whether rows are so few that shift and tilt are integrated over."""
        free = self.penalties is None and self.average
        return free and float(cells.weight.sum()) < MIN_ROWS


FREE = CurveChoices()
"""What is usually left to the data: everything."""


@cached_on_sample("smooth curve")
def smooth_curve(sample: BinarySample) -> SmoothCurve:
    """Return the curve of a sample with the usual choices, fitted once."""
    return fit_curves([sample])[0]


def fit_curves(
    samples: Sequence[BinarySample], choices: CurveChoices = FREE
) -> list[SmoothCurve]:
    """Return the curves of samples; those of few rows are fitted together."""
    curves: dict[int, SmoothCurve] = {}
    few: dict[int, WeightedPoints] = {}
    for place, sample in enumerate(samples):
        clustered = effective_rows(sample)
        cells = compress_to_at_most(sample) if clustered is None else clustered.cells
        if not choices.integrate(cells):
            curves[place] = _fit_cells(cells, clustered, choices)
        else:
            few[place] = cells if clustered is None else clustered.cells_of_mean
    places = list(few)
    for start in range(0, len(places), SAMPLES_AT_ONCE):
        part = places[start : start + SAMPLES_AT_ONCE]
        together = _few_rows_curves([few[place] for place in part])
        curves |= dict(zip(part, together, strict=True))
    return [curves[place] for place in range(len(samples))]


def fit_near(sample: BinarySample, near: SmoothCurve) -> SmoothCurve:
    """Return the curve of a part of a sample, with the penalties of the whole.

    They are the same but for noise where rows are very many, and most of the work.
    """
    cells = compress_to_at_most(sample)
    problem = near.terms.problem(cells.p, cells.weight, cells.label_sum)
    fits = [
        evidence_at(problem.only(m.kept), np.log(m.penalties), m.coefficients)
        for m in near.members
    ]
    return _mean_curve(near.terms, problem, cells, _weighed(fits))


def _fit_cells(
    cells: WeightedPoints, clustered: Effective | None, choices: CurveChoices
) -> SmoothCurve:
    """Return the curve with rates of its own at the ends, and of ranks, if needed."""
    curve = _fit_terms(Terms.of(cells, choices.knots), cells, clustered, choices)
    if not curve.evidence > 0.0:  # nan where penalties are not averaged over
        return curve
    chosen: dict[str, Any] = {}
    if any(own_ends := wrong_ends(cells)):
        terms = Terms.of(cells, choices.knots, own_ends=own_ends)
        other = _fit_terms(terms, cells, clustered, choices)
        if other.evidence > curve.evidence + MARGIN:
            curve, chosen = other, {"own_ends": own_ends}
    terms = Terms.of(cells, choices.knots, by_rank=True, **chosen)
    if clustered is None and _ranks_are_useless(curve, terms):
        return curve
    other = _fit_terms(terms, cells, clustered, choices)
    return other if other.evidence > curve.evidence + MARGIN else curve


def _ranks_are_useless(curve: SmoothCurve, by_rank: Terms) -> bool:
    """Tell whether no curve of ranks can make labels clearly more probable.

    That is known without a search where the most probable fit is straight: the gain of
    a curve is then small, and its expansion off by at most 0.33 in 377 samples, less
    than a third of the margin that ranks need.
    """
    best, ends = curve.members[0], by_rank.sizes.cumsum()
    if best.kept.sum() > len(STRAIGHT):
        return False
    straight = curve.problem.only(best.kept)
    mode = Mode(straight, best.penalties, best.coefficients, nan)
    features = by_rank.design(curve.cells.p)[:, ends[-2] : ends[-1]]
    return gain_of_group(mode, features) < PENALTY_GAIN


def _fit_terms(
    terms: Terms,
    cells: WeightedPoints,
    clustered: Effective | None,
    choices: CurveChoices,
) -> SmoothCurve:
    problem = terms.problem(cells.p, cells.weight, cells.label_sum)
    freedom, given = np.inf, choices.given
    if clustered is not None:
        problem = problem.with_known(clustered.blurs(problem.design))
        freedom = clustered.dependence.freedom
    if given is not None:
        members = _alone(solve_penalised(problem, given))
    elif not choices.average:
        members = _alone(most_likely(problem).mode)
    else:
        members = _weighed(most_likely_members(problem, STRAIGHT))
    return _mean_curve(terms, problem, cells, members, given=given, freedom=freedom)


def _mean_curve(
    terms: Terms,
    problem: PenalisedProblem,
    cells: WeightedPoints,
    members: tuple[Member, ...],
    **further: Any,
) -> SmoothCurve:
    parts = [m.share * terms.spread(m.coefficients, m.kept) for m in members]
    coefficients = np.sum(parts, axis=0)
    return SmoothCurve(
        terms=terms,
        members=members,
        problem=problem,
        coefficients=coefficients,
        shifts=terms.shifts(coefficients),
        cells=cells,
        **further,
    )


def _alone(mode: Mode) -> tuple[Member, ...]:
    """Return the fit with all terms as the only one."""
    kept = np.ones(TERMS, dtype=bool)
    return (Member(kept, mode.penalties, mode.coefficients),)


def _weighed(fits: Sequence[Evidence]) -> tuple[Member, ...]:
    """Return the fits that are not negligible, the most probable first."""
    kept = [fit.mode.problem.sizes > 0 for fit in fits]
    value = np.array([fit.value for fit in fits])
    value += PENALTY_GAIN * np.sum(kept, axis=1)
    share = np.exp(value.min() - value)
    share[share < NEGLIGIBLE] = 0.0
    share /= share.sum()
    return tuple(
        Member(
            kept[k],
            fits[k].mode.penalties,
            fits[k].mode.coefficients,
            float(share[k]),
            -float(value[k]),
        )
        for k in np.argsort(-share, kind="stable")
        if share[k] > 0.0
    )


def _few_rows_curves(cells: Sequence[WeightedPoints]) -> list[FewRowsCurve]:
    """Return the curves of samples of few rows.

    At each prediction of a sample the curve is the mean of drawn curves.
    """
    batch = SmallSamples.side_by_side(cells)
    shifts = logit(batch.draws.mean_probabilities) - batch.logits
    return [_few_rows_curve(batch, k, one, shifts[k]) for k, one in enumerate(cells)]


def _few_rows_curve(
    batch: SmallSamples, place: int, cells: WeightedPoints, shifts: FloatVector
) -> FewRowsCurve:
    u = batch.logits[place, : cells.p.size]
    design = np.ones((u.size, 2))
    design[:, 1] = batch.tilt[place, : u.size]
    low, high = batch.ends[:, place].tolist()
    first = np.flatnonzero(np.diff(u, prepend=-np.inf))  # some may share a logit
    return FewRowsCurve(
        terms=Terms((low, high), u[first], design[first], SIZES, width_edges(1)),
        members=_few_rows_members(batch, place),
        problem=PenalisedProblem(design, u, cells.weight, cells.label_sum, SIZES),
        coefficients=batch.draws.mean_coefficients[place],
        shifts=shifts[first],
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
