"""Smooth maps of few rows, many samples at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.calibrators.curve import WHOLE_RANGE
from calibrant.calibrators.smooth_fits import FewRowsFit, Member
from calibrant.calibrators.smooth_terms import Terms
from calibrant.maps.smooth import SmoothMap
from calibrant.numerics.links import logit
from calibrant.numerics.penalised_logistic import PenalisedProblem
from calibrant.numerics.small_samples import SmallSamples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.calibrators.smooth import Smooth
    from calibrant.core.array_types import FloatVector
    from calibrant.numerics.weighted_points import WeightedPoints

SHIFT_AND_TILT = np.array([True, True, False, False])
SIZES = SHIFT_AND_TILT.astype(np.intp)
NEGLIGIBLE = 0.01
"""Spreads that are less probable than this are no members."""


def few_rows_fits(cells: Sequence[WeightedPoints], family: Smooth) -> list[FewRowsFit]:
    """Return the fits of samples of few rows.

    At each prediction of a sample the map is the mean of what drawn maps say there.
    """
    batch = SmallSamples.side_by_side(cells)
    shifts = logit(batch.draws.mean_probabilities) - batch.logits
    return [_fit(batch, k, one, shifts[k], family) for k, one in enumerate(cells)]


def _fit(
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
    return FewRowsFit(
        SmoothMap.through(u[first], shifts[first], (low, high)),
        1,
        WHOLE_RANGE,
        family,
        terms=Terms((low, high), u[first], design[first], SIZES, WHOLE_RANGE),
        members=_members(batch, place),
        problem=PenalisedProblem(design, u, cells.weight, cells.label, SIZES),
        coefficients=batch.draws.mean_coefficients[place],
        cells=cells,
        batch=batch,
        place=place,
    )


def _members(batch: SmallSamples, place: int) -> tuple[Member, ...]:
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
        if share[k] > NEGLIGIBLE
    )
