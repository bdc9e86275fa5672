"""Penalties by marginal likelihood, in Laplace's approximation.

How probable labels are for given penalties, whatever the coefficients: the density of
labels and coefficients at its mode times the volume of a normal density with the same
Hessian A. Its negative logarithm, in logarithms r of the penalties, is

    V(r) = loss + penalties at the mode + log det(A) / 2 - sum of size * r / 2 by group
           - log prior of the spreads exp(-r / 2).

First and second derivatives are exact (Wood 2011 gives them for any likelihood), so
that Newton's method needs few steps; the mode's own derivatives lead from one mode to
the next. Regressions of many groups may also share their penalties.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.special import expit

from calibrant.numerics.logistic import solve_penalised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.numerics.logistic import Mode, PenalisedProblem

MAX_STEPS = 60
MAX_HALVINGS = 12
MAX_STEP = 3.0
FLAT = 1e-6
"""The search ends where no derivative exceeds this."""
FADING = 0.2
"""How near to 1 the step of a term must be, and to 0 its derivative, for it to fade."""
ROUNDING = 1e-13
"""V is known up to this share of it."""
PRIOR_SPREAD = 3.0
"""The prior of the spread of a term, the root of one over its penalty, is half of a
normal distribution, as wide as this times the logits themselves: a term that doubles
logits is nothing unusual, one that multiplies them by ten is. Without it, labels that
are nearly separable by the prediction lead to endless steps."""
MIN_LOG = float(np.log(1e-4))
"""Smallest logarithm of a penalty."""
STARTS = (0.0, 5.0)
"""Logarithms of penalties to start from, in all combinations: V may have several
minima, since a term that seems unnecessary hides its possible effect."""
GAIN_PENALTIES = 80
"""How many penalties of a further group are tried."""

SHARED_START = 10.0
MIN_SHARED, MAX_SHARED = 1e-2, 1e4
"""Under the largest shared penalty, log-odds differ by a hundredth between groups."""
MAX_ROUNDS = 25
STRIDE = 1.8
"""Steps are that much longer than the rule says, as they are short near its end."""
SETTLED = 0.05
"""Shared penalties that change by no more than this share are the last."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The negative log marginal likelihood at some penalties, with derivatives."""

    mode: Mode

    @cached_property
    def value(self) -> float:
        """Return V."""
        sizes, penalties = self.mode.problem.sizes, self.mode.penalties
        half_log_det = float(np.log(self.mode.factor.diagonal()).sum())
        laplace = self.mode.value + half_log_det
        log_prior = -float(self._prior_surprise.sum())
        return laplace - 0.5 * float(sizes @ np.log(penalties)) - log_prior

    @cached_property
    def _prior_surprise(self) -> FloatVector:
        """Return minus the log prior of each spread, which is its second derivative.

        Its first derivative by r is minus that.
        """
        problem = self.mode.problem
        square = float(np.average(problem.offset**2, weights=problem.weight))
        typical_logit = max(1.0, float(np.sqrt(square)))
        variance = np.where(problem.sizes > 0, 1.0 / self.mode.penalties, 0.0)
        return variance / (2.0 * (PRIOR_SPREAD * typical_logit) ** 2)

    @cached_property
    def _members(self) -> FloatMatrix:
        """Return 1 where a coefficient (row) belongs to a group (column), else 0."""
        problem, groups = self.mode.problem, self.mode.penalties.size
        own = np.eye(groups)[problem.group]
        return np.vstack([own, np.zeros((problem.known, groups))])

    @cached_property
    def _pulls(self) -> FloatMatrix:
        """Return each penalty's part of the gradient, one column each."""
        mode = self.mode
        return self._members * (mode.penalties * mode.coefficients[:, np.newaxis])

    @cached_property
    def moves(self) -> FloatMatrix:
        """Return the derivative of coefficients by log penalties, (d, groups)."""
        return -self.mode.solve(self._pulls)

    @cached_property
    def derivatives(self) -> tuple[FloatVector, FloatMatrix]:
        """Return the gradient and the Hessian of V."""
        mode, design = self.mode, self.mode.problem.design
        yes, no = expit(mode.logits), expit(-mode.logits)
        weighted = mode.problem.weight * (yes * no)
        third = weighted * (no - yes)  # of the loss by the logit, as is the fourth
        fourth = weighted * (1.0 - 6.0 * (yes * no))
        inverse = mode.solve(np.eye(design.shape[1]))
        lifted = dtrtrs(mode.factor, design.T, lower=True)[0]
        leverage = np.einsum("ij,ij->j", lifted, lifted)
        tilts = design @ self.moves
        groups = self._members * mode.penalties
        # The derivative of the Hessian by each log penalty, times its inverse.
        changes = np.empty((groups.shape[1], *inverse.shape))
        for k, (group, tilt) in enumerate(zip(groups.T, tilts.T, strict=True)):
            bent = (design * (third * tilt)[:, np.newaxis]).T @ design
            bent[np.diag_indices_from(bent)] += group
            changes[k] = inverse @ bent
        squares = np.diag(0.5 * (mode.coefficients**2 @ groups))
        traces = np.array([np.trace(change) for change in changes])
        gradient = squares.diagonal() + 0.5 * traces - 0.5 * mode.problem.sizes
        gradient -= self._prior_surprise
        # The trace of the inverse times the Hessian's second derivatives. Second
        # derivatives of coefficients meet the third derivative at every point alike.
        second = (tilts * (fourth * leverage)[:, np.newaxis]).T @ tilts
        felt = inverse @ (design.T @ (third * leverage))
        bent = (tilts * (third * (design @ felt))[:, np.newaxis]).T @ tilts
        drawn = (groups * felt[:, np.newaxis]).T @ self.moves
        second -= bent + drawn + drawn.T
        second += np.diag((third * leverage) @ tilts + inverse.diagonal() @ groups)
        both = np.einsum("aij,bji->ab", changes, changes)
        curved = squares + np.diag(self._prior_surprise)
        return gradient, curved + self._pulls.T @ self.moves + 0.5 * (second - both)


def evidence_at(
    problem: PenalisedProblem,
    log_penalties: FloatVector,
    start: FloatVector | None = None,
) -> Evidence:
    """Return the marginal likelihood at some penalties."""
    return Evidence(solve_penalised(problem, np.exp(log_penalties), start))


def most_likely(
    problem: PenalisedProblem, starts: Iterable[FloatVector] | None = None
) -> Evidence:
    """Return the marginal likelihood at the penalties that maximise it.

    Penalties stay above 1e-4 and below the number of rows times 10,000, at which a
    term is practically absent. Groups without coefficients keep the penalty 1. The
    search starts from the best of `starts`, logarithms of penalties.
    """
    used = problem.sizes > 0
    max_log = float(np.log(1e4 * (1.0 + problem.weight.sum())))
    if starts is None:
        starts = (np.array(corner) for corner in product(STARTS, repeat=used.size))
    places = np.unique([np.where(used, start, 0.0) for start in starts], axis=0)
    tried = [evidence_at(problem, np.minimum(place, max_log)) for place in places]
    best = min(tried, key=lambda evidence: evidence.value)
    for _ in range(MAX_STEPS):
        step = _step(best, max_log)
        moved = None if step is None else _line_search(best, step, max_log)
        if moved is None:
            break
        best = moved
    return best


def most_likely_members(
    problem: PenalisedProblem, core: Collection[int] = (0,)
) -> list[Evidence]:
    """Return the best penalties for every set of groups that includes `core`.

    Each set starts from the results of the sets with one group less, so that larger
    ones need few steps. Sets are ordered by size; a set's problem has the other groups
    empty.
    """
    groups = np.arange(problem.sizes.size)
    others = [k for k in groups.tolist() if k not in core and problem.sizes[k]]
    best: dict[frozenset[int], Evidence] = {}
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            kept = np.isin(groups, [*core, *chosen])
            starts = []
            for smaller in (best[frozenset(chosen) - {k}] for k in chosen):
                # A new group starts from either corner; penalties so large that their
                # group has faded start from the larger one, where V is not yet flat.
                place = np.minimum(np.log(smaller.mode.penalties), STARTS[-1])
                new = kept & (smaller.mode.problem.sizes == 0)
                starts += [np.where(new, corner, place) for corner in STARTS]
            best[frozenset(chosen)] = most_likely(problem.only(kept), starts or None)
    return list(best.values())


def gain_of_group(mode: Mode, features: FloatMatrix) -> float:
    """Return by how much one more group of coefficients can lower V, to second order.

    The loss is expanded at the mode, and the other penalties stay; so this is exact
    where the mode hardly moves, and far too rough where labels refute the mode.
    """
    problem, yes, no = mode.problem, expit(mode.logits), expit(-mode.logits)
    weighted = features * (problem.weight * yes * no)[:, np.newaxis]
    shared = problem.design.T @ weighted
    information = features.T @ weighted - shared.T @ mode.solve(shared)
    score = ((problem.weight - problem.label_sum) * yes - problem.label_sum * no) @ (
        features
    )
    curvature, axes = np.linalg.eigh(information)
    curvature = np.maximum(curvature, 0.0)
    max_log = np.log(1e4 * (1.0 + problem.weight.sum()))
    penalty = np.exp(np.linspace(MIN_LOG, max_log, GAIN_PENALTIES))[:, np.newaxis]
    gains = (axes.T @ score) ** 2 / (curvature + penalty)
    return float(0.5 * (gains - np.log1p(curvature / penalty)).sum(axis=1).max())


def _step(at: Evidence, max_log: float) -> FloatVector | None:
    """Return the Newton step with curvatures made positive, or None at a minimum."""
    place = np.log(at.mode.penalties)
    gradient, hessian = at.derivatives
    at_low, at_high = place <= MIN_LOG, place >= max_log
    held = (at_low & (gradient > 0.0)) | (at_high & (gradient < 0.0))
    free = ~held & (np.abs(gradient) > FLAT)
    if not free.any():
        return None
    curvatures, axes = np.linalg.eigh(hessian[np.ix_(free, free)])
    floor = 0.1 * (np.abs(gradient[free]).max() / MAX_STEP)
    along = (axes.T @ gradient[free]) / np.maximum(np.abs(curvatures), floor)
    move = -axes @ along
    step = np.zeros_like(place)
    step[free] = move * min(1.0, MAX_STEP / np.abs(move).max())
    # Where a term fades, V falls as exp(-r), and Newton steps would have length 1.
    fades = (np.abs(step - 1.0) < FADING) & (np.abs(gradient) < FADING)
    step[fades] = max_log - place[fades]
    return step


def _line_search(at: Evidence, step: FloatVector, max_log: float) -> Evidence | None:
    """Halve the step until it does not raise V; None where rounding hides that."""
    place = np.log(at.mode.penalties)
    for length in 0.5 ** np.arange(MAX_HALVINGS):
        aim = np.clip(place + length * step, MIN_LOG, max_log)
        start = at.mode.coefficients + at.moves @ (aim - place)
        moved = evidence_at(at.mode.problem, aim, start)
        if moved.value <= at.value + ROUNDING * abs(at.value):
            return moved
    return None


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

    The coefficients of a term are normal around 0 with the same variance, one over the
    penalty, in all groups. So small groups are drawn to 0 by what large ones have
    shown, and all are where groups do not differ. At the maximum of the marginal
    likelihood, as far as it is normal, the penalty of a term is the effective number of
    its coefficients over the sum of their squares (MacKay 1992, section 4). Penalties
    go from a start to that number until they stay. There is one problem for each group,
    with the same terms.

    References
    ----------
    D. MacKay (1992). Bayesian interpolation. doi:10.1162/neco.1992.4.3.415
    """
    sizes = problems[0].sizes
    if penalties is None:
        penalties = np.full(sizes.size, SHARED_START)
    starts: list[FloatVector | None] = [None] * len(problems)
    for _ in range(MAX_ROUNDS):
        pairs = zip(problems, starts, strict=True)
        modes = [solve_penalised(one, penalties, start) for one, start in pairs]
        starts = [mode.coefficients for mode in modes]
        step = (_suiting_penalties(modes, penalties) / penalties) ** STRIDE
        penalties = np.clip(penalties * step, MIN_SHARED, MAX_SHARED)
        if (np.abs(np.log(step)) <= SETTLED).all():
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
    return np.clip(suiting, MIN_SHARED, MAX_SHARED)
