"""Where to put the knots of continuous piecewise polynomials of least squares.

For given knots the fit is linear, in the truncated powers

    1, x, .., x^d  and  (x - t)_+, .., (x - t)_+^d  for each inner knot t.

With these made orthonormal, the gain of a further knot is known for all places at once
from running sums. The search therefore removes one knot and puts it back where it gains
most, knot after knot, until none moves: each exchange considers the whole axis. Two
knots at neighbouring points make a jump; for them pairs are exchanged. All problems and
starts of a batch move together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import (
        FloatMatrix,
        FloatVector,
        IntMatrix,
        IntVector,
    )
    from calibrant.numerics.weighted_points import WeightedPoints

    Stack: TypeAlias = NDArray[np.float64]

MIN_NEW = 1e-11
"""A column of which less than this share is new adds nothing but rounding."""
MIN_GAIN = 1e-7
"""A knot moves only if that lowers the loss by more than this share."""
MAX_ROUNDS = 8


def _sums_above(terms: Stack) -> Stack:
    """Return sums over each point and all above it."""
    return np.cumsum(terms[..., ::-1], axis=-1)[..., ::-1]


@dataclass(frozen=True, eq=False)
class KnotProblems:
    """Problems of least squares that share their points.

    Points lie at the m ascending places `x`; knots are numbers of points. `share` and
    `rate` (sources, m) are weights that sum to 1 and observed rates, and `source` (B,)
    names the data of each problem.
    """

    x: FloatVector
    share: FloatMatrix
    rate: FloatMatrix
    degree: int
    source: IntVector

    @classmethod
    def of(cls, points: WeightedPoints, degree: int) -> KnotProblems:
        """Return the problems of a batch of points."""
        source = np.arange(len(points.weight))
        return cls(points.p, points.share, points.rate, degree, source)

    def chosen(self, rows: IntVector) -> KnotProblems:
        """Return the chosen problems, which may be repeated."""
        return replace(self, source=self.source[rows])

    @cached_property
    def powers(self) -> FloatMatrix:
        """Return x^s for s = 0 .. degree."""
        return self.x ** np.arange(self.degree + 1)[:, np.newaxis]

    @cached_property
    def places(self) -> Stack:
        """Return coefficients of (x - t)^j for knots t at all points: (t, j, power)."""
        size = self.degree + 1
        coefficients = np.zeros((size, size, self.x.size))
        coefficients[0, 0] = 1.0
        for j in range(self.degree):
            coefficients[j + 1, 1:] += coefficients[j, :-1]
            coefficients[j + 1] -= self.x * coefficients[j]
        return np.moveaxis(coefficients[1:], 2, 0)

    @cached_property
    def moments(self) -> Stack:
        """Return sums of w x^(s + t) over each point and those above: (B, s, t, m)."""
        power = np.arange(2 * self.degree + 1)[:, np.newaxis]
        sums = _sums_above(self.share[:, np.newaxis] * self.x**power)
        index = np.add.outer(np.arange(self.degree + 1), np.arange(self.degree + 1))
        return sums[:, index]

    def products(self, step: int) -> Stack:
        """Return products of the columns of a knot at c and of one at c + step."""
        here, there = self.places[: self.x.size - step], self.places[step:]
        products: Stack = np.einsum(
            "cjs,ckt,bstc->bcjk", here, there, self.moments[..., step:], optimize=True
        )
        return products

    def columns(self, knots: IntMatrix) -> Stack:
        """Return the columns of the knots at all points, (B, m, q)."""
        distance = np.maximum(self.x[:, np.newaxis] - self.x[knots][:, np.newaxis], 0.0)
        bent = [distance**j for j in range(1, self.degree + 1)]
        whole = np.broadcast_to(self.powers.T, (len(knots), *self.powers.T.shape))
        return np.concatenate([whole, *bent], axis=2)


@dataclass(frozen=True, eq=False)
class _Eliminated:
    """A fit with some knots, and what one knot more would add at each place.

    `left` (B,) is the loss of the fit, `along` (B, q, m, d) the part of each place's
    columns that the fit already spans, and `pull` (B, m, d) has products of the columns
    with the residuals.
    """

    problems: KnotProblems
    left: FloatVector
    along: Stack
    pull: Stack

    @classmethod
    def of(cls, problems: KnotProblems, knots: IntMatrix) -> _Eliminated:
        root = np.sqrt(problems.share[problems.source])
        design = problems.columns(knots) * root[:, :, np.newaxis]
        basis, triangle = np.linalg.qr(design)
        rank = basis.shape[2]  # of more columns than points the last ones are not new
        length = np.sqrt((design[:, :, :rank] ** 2).sum(axis=1))
        diagonal = np.einsum("bii->bi", triangle[:, :, :rank])
        basis = basis * (np.abs(diagonal) > MIN_NEW * length)[:, np.newaxis]
        target = root * problems.rate[problems.source]
        inside = np.einsum("bmq,bm->bq", basis, target)
        rest = target - np.einsum("bmq,bq->bm", basis, inside)
        weighted = np.concatenate([basis.transpose(0, 2, 1), rest[:, np.newaxis]], 1)
        weighted *= root[:, np.newaxis]
        sums = _sums_above(weighted[:, :, np.newaxis] * problems.powers)
        products = np.einsum("cjs,bqsc->bqcj", problems.places, sums, optimize=True)
        left = (rest**2).sum(axis=1)
        return cls(problems, left, products[:, :-1], products[:, -1])

    def gain(self, offsets: Sequence[int]) -> FloatMatrix:
        """Return the gain of knots at each place and at these offsets from it.

        It is pull' new^-1 pull, by elimination of one column after the other.
        """
        new, pull, length = self._new_columns(offsets)
        gain = np.zeros(pull.shape[:2])
        for j in range(pull.shape[2]):
            pivot = new[:, :, j, j]
            some = pivot > MIN_NEW * length[:, :, j]
            safe = np.where(some, pivot, 1.0)
            gain += np.where(some, pull[:, :, j] ** 2 / safe, 0.0)
            share = np.where(some, 1.0 / safe, 0.0)[:, :, np.newaxis] * new[:, :, j, :]
            pull = pull - share * pull[:, :, j : j + 1]
            new = new - share[:, :, :, np.newaxis] * new[:, :, j : j + 1, :]
        return gain

    def _new_columns(self, offsets: Sequence[int]) -> tuple[Stack, Stack, Stack]:
        """Return products among new columns, with the residuals, and their lengths."""
        problems, degree = self.problems, self.problems.degree
        size = degree * len(offsets)
        count = problems.x.size - offsets[-1]
        new = np.zeros((len(self.left), count, size, size))
        for a, here in enumerate(offsets):
            for b, there in enumerate(offsets[a:], start=a):
                block = problems.products(there - here)[:, here : here + count]
                near = self.along[:, :, here : here + count]
                far = self.along[:, :, there : there + count]
                block = block[problems.source] - np.einsum(
                    "bqcj,bqck->bcjk", near, far, optimize=True
                )
                rows = slice(a * degree, (a + 1) * degree)
                columns = slice(b * degree, (b + 1) * degree)
                new[:, :, rows, columns] = block
                new[:, :, columns, rows] = np.swapaxes(block, 2, 3)
        own = np.einsum("bcjj->bcj", problems.products(0))[problems.source]
        pull = [self.pull[:, o : o + count] for o in offsets]
        length = [own[:, o : o + count] for o in offsets]
        return new, np.concatenate(pull, axis=2), np.concatenate(length, axis=2)


def insert(
    problems: KnotProblems, knots: IntMatrix, offsets: Sequence[int] = (0,)
) -> IntMatrix:
    """Return the knots with further ones, so far apart, where they gain most."""
    gain = _Eliminated.of(problems, knots).gain(offsets)
    best = np.argmax(gain, axis=1)[:, np.newaxis] + np.array(offsets)
    return np.sort(np.concatenate([knots, best], axis=1), axis=1)


def exchange(
    problems: KnotProblems,
    knots: IntMatrix,
    *,
    together: int = 1,
    rounds: int = MAX_ROUNDS,
) -> tuple[IntMatrix, FloatVector]:
    """Move knots, or pairs of them to the best jump, until none moves.

    Returns the knots and their losses.
    """
    knots = knots.copy()
    loss = _Eliminated.of(problems, knots).left
    active = np.arange(len(knots))
    offsets = np.arange(together)
    groups = [list(group) for group in combinations(range(knots.shape[1]), together)]
    for _ in range(rounds if groups else 0):
        some = problems.chosen(active)
        moved = np.zeros(active.size, dtype=bool)
        for group in groups:
            base = _Eliminated.of(some, np.delete(knots[active], group, axis=1))
            gain = base.gain(offsets.tolist())
            value = base.left - gain.max(axis=1)
            better = value < loss[active] * (1.0 - MIN_GAIN)
            rows, best = active[better], np.argmax(gain, axis=1)[better]
            knots[np.ix_(rows, group)] = best[:, np.newaxis] + offsets
            loss[rows] = value[better]
            moved |= better
        active = active[moved]
        if not active.size:
            break
    knots = np.sort(knots, axis=1)
    return knots, _Eliminated.of(problems, knots).left
