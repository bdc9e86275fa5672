"""Penalties by marginal likelihood, in Laplace's approximation.

How probable labels are for given penalties, whatever the coefficients: the density of
labels and coefficients at its mode times the volume of a normal density with the same
Hessian A. Its negative logarithm, in logarithms r of the penalties, is

    V(r) = loss + penalties at the mode + log det(A) / 2 - sum of size * r / 2 by group
           - log prior of the spreads exp(-r / 2).

First and second derivatives are exact (Wood 2011 gives them for any likelihood), so
that Newton's method needs few steps; the mode's own derivatives lead from one mode to
the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dtrtrs
from scipy.special import expit

from calibrant.numerics.penalised_logistic import solve_penalised

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector
    from calibrant.numerics.penalised_logistic import Mode, PenalisedProblem

MAX_STEPS = 60
MAX_HALVINGS = 12
LONGEST_STEP = 3.0
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
are nearly separable by the prediction ask for steps without end."""
LEAST = float(np.log(1e-4))
"""Least logarithm of a penalty."""
STARTS = (0.0, 5.0)
"""Logarithms of penalties to start from, in all combinations: V may have several
minima, as a term that seems not to be needed hides what it could do."""


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
        surprise = float(self._prior_surprise.sum())
        return laplace - 0.5 * float(sizes @ np.log(penalties)) + surprise

    @property
    def _prior_surprise(self) -> FloatVector:
        """Return minus the log prior of each spread.

        Minus that is its first derivative by r, and it is itself its second one.
        """
        problem = self.mode.problem
        variance = np.where(problem.sizes > 0, 1.0 / self.mode.penalties, 0.0)
        return variance / (2.0 * (PRIOR_SPREAD * problem.typical_logit) ** 2)

    @cached_property
    def moves(self) -> FloatMatrix:
        """Return how coefficients move with each log penalty, shape (d, groups)."""
        return -self.mode.solve(self._pulls)

    @cached_property
    def derivatives(self) -> tuple[FloatVector, FloatMatrix]:
        """Return the gradient and the Hessian of V."""
        mode, design = self.mode, self.mode.problem.design
        third, fourth = self._third_and_fourth
        inverse = mode.solve(np.eye(design.shape[1]))
        lifted = dtrtrs(mode.factor, design.T, lower=True)[0]
        leverage = np.einsum("ij,ij->j", lifted, lifted)
        tilts = design @ self.moves
        groups = self._members * mode.penalties
        # How the Hessian moves with each log penalty, times its inverse.
        changes = []
        for group, tilt in zip(groups.T, tilts.T, strict=True):
            bent = (design * (third * tilt)[:, np.newaxis]).T @ design
            bent[np.diag_indices_from(bent)] += group
            changes.append(inverse @ bent)
        squares = np.diag(0.5 * (mode.coefficients**2 @ groups))
        traces = np.array([np.trace(change) for change in changes])
        gradient = squares.diagonal() + 0.5 * traces - 0.5 * mode.problem.sizes
        gradient -= self._prior_surprise
        pulled = self._pulls.T @ self.moves
        both = np.einsum("aij,bji->ab", np.array(changes), np.array(changes))
        second = self._second_traces(groups, tilts, leverage, inverse, third, fourth)
        curved = squares + np.diag(self._prior_surprise)
        return gradient, curved + pulled + 0.5 * (second - both)

    def _second_traces(
        self,
        groups: FloatMatrix,
        tilts: FloatMatrix,
        leverage: FloatVector,
        inverse: FloatMatrix,
        third: FloatVector,
        fourth: FloatVector,
    ) -> FloatMatrix:
        """Return the trace of the inverse times the Hessian's second derivatives."""
        design = self.mode.problem.design
        found = (tilts * (fourth * leverage)[:, np.newaxis]).T @ tilts
        # Moves of moves meet the third derivative at every point alike.
        felt = inverse @ (design.T @ (third * leverage))
        bent = (tilts * (third * (design @ felt))[:, np.newaxis]).T @ tilts
        drawn = (groups * felt[:, np.newaxis]).T @ self.moves
        found -= bent + drawn + drawn.T
        straight = (third * leverage) @ tilts + inverse.diagonal() @ groups
        return np.asarray(found + np.diag(straight))

    @cached_property
    def _members(self) -> FloatMatrix:
        group = self.mode.problem.group
        groups = np.arange(self.mode.penalties.size)
        return np.asarray(group[:, np.newaxis] == groups, dtype=np.float64)

    @property
    def _pulls(self) -> FloatMatrix:
        """Return each penalty's share in the gradient, a column each."""
        drawn = self.mode.penalties * self.mode.coefficients[:, np.newaxis]
        return self._members * drawn

    @property
    def _third_and_fourth(self) -> tuple[FloatVector, FloatVector]:
        """Return the higher derivatives of the loss by the logit."""
        yes, no = expit(self.mode.logits), expit(-self.mode.logits)
        bend = yes * no
        weighted = self.mode.problem.weight * bend
        return weighted * (no - yes), weighted * (1.0 - 6.0 * bend)


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
    """Return the marginal likelihood at the penalties that make it largest.

    Penalties stay above 1e-4 and below the number of rows times 10,000, at which a
    term is as good as absent. Groups without coefficients keep the penalty 1.

    Parameters
    ----------
    problem : PenalisedProblem
        What to fit.
    starts : iterable of ndarray of shape (groups,), optional
        Logarithms of penalties; the search starts from the best of them.
    """
    used = problem.sizes > 0
    most = float(np.log(1e4 * (1.0 + problem.weight.sum())))
    if starts is None:
        starts = (np.array(corner) for corner in product(STARTS, repeat=used.size))
    places = np.unique([np.where(used, start, 0.0) for start in starts], axis=0)
    tried = [evidence_at(problem, np.minimum(place, most)) for place in places]
    return _descend(problem, min(tried, key=lambda found: found.value), most)


def most_likely_members(
    problem: PenalisedProblem, core: Collection[int] = (0,)
) -> list[Evidence]:
    """Return the best penalties for every set of groups that holds the groups `core`.

    Each set starts from what the sets with one group less have found, so that larger
    ones need few steps. Sets come by size; a set's problem has the other groups empty.
    """
    groups = np.arange(problem.sizes.size)
    others = [k for k in groups.tolist() if k not in core and problem.sizes[k]]
    found: dict[frozenset[int], Evidence] = {}
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            kept = np.isin(groups, [*core, *chosen])
            smaller = [found[frozenset(chosen) - {k}] for k in chosen]
            starts = _starts_after(smaller, kept) if smaller else None
            found[frozenset(chosen)] = most_likely(problem.only(kept), starts)
    return list(found.values())


def _starts_after(smaller: list[Evidence], kept: BoolVector) -> list[FloatVector]:
    """Return places to start from, given where sets with one group less ended.

    What is new starts from either corner. Penalties that have become so large that
    their group has faded start from the larger corner, where V is not yet flat.
    """
    starts = []
    for end in smaller:
        place = np.minimum(np.log(end.mode.penalties), STARTS[-1])
        new = kept & (end.mode.problem.sizes == 0)
        starts += [np.where(new, corner, place) for corner in STARTS]
    return starts


def _descend(problem: PenalisedProblem, at: Evidence, most: float) -> Evidence:
    for _ in range(MAX_STEPS):
        place = np.log(at.mode.penalties)
        gradient, hessian = at.derivatives
        held = ((place <= LEAST) & (gradient > 0.0)) | (
            (place >= most) & (gradient < 0.0)
        )
        free = ~held & (np.abs(gradient) > FLAT)
        if not free.any():
            break
        step = np.zeros_like(place)
        step[free] = _step(gradient[free], hessian[np.ix_(free, free)])
        # Where a term fades, V falls as exp(-r), and Newton would go by ones.
        fades = (np.abs(step - 1.0) < FADING) & (np.abs(gradient) < FADING)
        step[fades] = most - place[fades]
        moved = _line_search(problem, at, step, most)
        if moved is None:
            break
        at = moved
    return at


def _step(gradient: FloatVector, hessian: FloatMatrix) -> FloatVector:
    """Return the Newton step with curvatures made positive, not too long."""
    bends, axes = np.linalg.eigh(hessian)
    floor = np.abs(gradient).max() / LONGEST_STEP
    step = -axes @ ((axes.T @ gradient) / np.maximum(np.abs(bends), 0.1 * floor))
    return np.asarray(step * min(1.0, LONGEST_STEP / np.abs(step).max()))


def _line_search(
    problem: PenalisedProblem, at: Evidence, step: FloatVector, most: float
) -> Evidence | None:
    place = np.log(at.mode.penalties)
    for halving in range(MAX_HALVINGS):
        aim = np.clip(place + 0.5**halving * step, LEAST, most)
        start = at.mode.coefficients + at.moves @ (aim - place)
        moved = evidence_at(problem, aim, start)
        if moved.value <= at.value + ROUNDING * abs(at.value):
            return moved
    return None
