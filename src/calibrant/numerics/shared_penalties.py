"""Penalised regressions of many groups that share their penalties.

The coefficients of a term are normal around 0 with the same variance in all groups.
That variance says how much groups differ, and it is estimated from all of them: small
groups are drawn to 0 by what large ones have shown, and all are where groups do not
differ. The penalty of a term is one over the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.penalised_logistic import solve_penalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.numerics.penalised_logistic import Mode, PenalisedProblem

START = 10.0
MIN_PENALTY, MAX_PENALTY = 1e-2, 1e4
"""Under the largest, log-odds differ by a hundredth from group to group."""
MAX_ROUNDS = 25
STRIDE = 1.8
"""Steps are that much longer than the rule says, as they are short near its end."""
SOLVED = 0.05
"""Penalties that change by no more than this share are the last."""


@dataclass(frozen=True, eq=False)
class SharedFit:
    """Regressions of groups with their common penalties.

    Attributes
    ----------
    coefficients : ndarray of shape (groups, d)
        The coefficients of each group.
    penalties : ndarray of shape (terms,)
        The penalty of each term.
    """

    coefficients: FloatMatrix
    penalties: FloatVector


def fit_shared(
    problems: Sequence[PenalisedProblem], penalties: FloatVector | None = None
) -> SharedFit:
    """Return the regressions of groups under the penalties that suit all of them.

    At the maximum of the marginal likelihood, as far as it is normal, the penalty of a
    term is the effective number of its coefficients over the sum of their squares
    (MacKay 1992, section 4). Penalties go to that number until they stay.

    Parameters
    ----------
    problems : sequence of PenalisedProblem
        One problem for each group, with the same terms.
    penalties : ndarray of shape (terms,), optional
        Where to start.

    References
    ----------
    D. MacKay (1992). Bayesian interpolation. doi:10.1162/neco.1992.4.3.415
    """
    sizes = problems[0].sizes
    if penalties is None:
        penalties = np.full(sizes.size, START)
    starts: list[FloatVector | None] = [None] * len(problems)
    for _ in range(MAX_ROUNDS):
        pairs = zip(problems, starts, strict=True)
        modes = [solve_penalised(one, penalties, start) for one, start in pairs]
        starts = [mode.coefficients for mode in modes]
        step = (_suiting_penalties(modes, penalties) / penalties) ** STRIDE
        penalties = np.clip(penalties * step, MIN_PENALTY, MAX_PENALTY)
        if (np.abs(np.log(step)) <= SOLVED).all():
            break
    return SharedFit(np.array(starts), penalties)


def _suiting_penalties(modes: Sequence[Mode], penalties: FloatVector) -> FloatVector:
    """Return effective numbers of coefficients over the sums of their squares."""
    squares, known = np.zeros(penalties.size), np.zeros(penalties.size)
    for mode in modes:
        term, size = mode.problem.group, mode.coefficients.size
        variance = mode.solve(np.eye(size)).diagonal()
        squares += np.bincount(term, mode.coefficients**2, penalties.size)
        known += np.bincount(term, 1.0 - penalties[term] * variance, penalties.size)
    tiny = np.finfo(float).tiny
    suiting = np.maximum(known, tiny) / np.maximum(squares, tiny)
    return np.clip(suiting, MIN_PENALTY, MAX_PENALTY)
