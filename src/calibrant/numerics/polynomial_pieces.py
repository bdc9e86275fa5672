"""Functions of a probability as few polynomials with short decimal coefficients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial import Polynomial
from scipy.special import expit

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import BoolVector, FloatVector

    Function: TypeAlias = Callable[[FloatVector], FloatVector]

ROUNDED_SHARE = 0.25
"""Share of the tolerance that rounding of coefficients may use up."""
EXACT = 1e-9
"""Polynomials between the bends of a function agree with it up to this."""
FINEST, VERIFIED = 1e-15, 1e-12
"""What rounding leaves at best, and what two ways to compute a value may differ by."""
SIGNIFICANT_DIGITS = 5
"""Of distances from 0 and 1 on the grid, so that pieces end at short numbers."""
TINY = float(np.finfo(np.float64).tiny)
HALVINGS = 60
"""From any interval within [0, 1] to two neighbouring numbers."""


class Piece(NamedTuple):
    """A polynomial in powers of (p - origin), for p below `end`."""

    end: float
    origin: float
    coefficients: tuple[float, ...]

    def __call__(self, p: FloatVector) -> FloatVector:
        """Evaluate the polynomial."""
        return np.asarray(Polynomial(self.coefficients)(p - self.origin))

    @property
    def signs(self) -> int:
        """Return about how long its text is."""
        x = 6 + len(repr(self.origin)) * (self.origin != 0.0)
        return 30 + sum(x + len(repr(number)) for number in self.coefficients)


def fewest_pieces(
    function: Function, degree: int, tolerance: float, bends: FloatVector
) -> list[Piece]:
    """Return polynomials that follow a continuous function, each as far as it can.

    They meet where one ends, but for rounding.

    Parameters
    ----------
    function : callable
        From probabilities to numbers.
    degree : int
        Of the polynomials.
    tolerance : float
        Largest difference, on a grid that is fine towards 0 and 1.
    bends : ndarray
        Where the function bends, if it does; these points join the grid.

    Examples
    --------
    >>> fewest_pieces(lambda p: p**2 / 4, 3, 1e-6, np.array([]))
    [Piece(end=1.0, origin=0.0, coefficients=(0.0, 0.0, 0.25))]
    """
    p = grid(bends)
    values = function(p)
    pieces: list[Piece] = []
    while p.size > 1:
        curve, stop = _farthest(function, degree, tolerance, p, values)
        here = slice(stop + 1)
        pieces.append(_rounded(curve, p[here], values[here], tolerance))
        p, values = p[stop:], values[stop:]
    return _joined(pieces)


def exact_pieces(
    function: Function, degree: int, joints: FloatVector, tolerance: float = EXACT
) -> list[Piece] | None:
    """Return the polynomials that a function consists of, or None if it does not.

    Parameters
    ----------
    function : callable
        From probabilities to numbers.
    degree : int
        Of the polynomials.
    joints : ndarray
        Where one polynomial ends and the next begins, by a jump or not.
    tolerance : float
        Largest difference, by rounded coefficients.

    Examples
    --------
    >>> def twice(p):
    ...     return np.minimum(2.0 * p, 1.0)
    >>> for piece in exact_pieces(twice, 1, with_clips(twice, np.array([]))):
    ...     print(piece)
    Piece(end=0.5, origin=0.0, coefficients=(0.0, 2.0))
    Piece(end=1.0, origin=0.0, coefficients=(1.0,))
    """
    starts = np.unique(np.append(joints[(joints > 0.0) & (joints <= 1.0)], 0.0))
    ends = np.append(starts[1:], 1.0)
    last = np.append(np.nextafter(ends[:-1], 0.0), 1.0)
    pieces: list[Piece] = []
    for start, end, stop in zip(starts, ends, last, strict=True):
        p = np.linspace(start, stop, 2 * degree + 3)
        values = function(p)
        if start == stop:
            pieces.append(Piece(float(end), 0.0, (float(values[0]),)))
            continue
        curve = _interpolant(function, degree, start, stop)
        piece = _rounded(curve, p, values, tolerance)
        if np.abs(piece(p) - values).max() > max(tolerance, VERIFIED):
            return None
        pieces.append(piece._replace(end=float(end)))
    return _joined(pieces)


def with_clips(function: Function, bends: FloatVector) -> FloatVector:
    """Return bends, and where a function reaches 0 or 1 and stays there until a bend.

    Examples
    --------
    >>> with_clips(lambda p: np.clip(2.0 * p - 0.5, 0.0, 1.0), np.array([0.4]))
    array([0.25, 0.4 , 0.75])
    """

    def is_flat(p: FloatVector) -> BoolVector:
        values = function(p)
        return (values <= 0.0) | (values >= 1.0)

    edges = _edges(bends)
    left, right = edges[:-1], np.nextafter(edges[1:], 0.0)
    p = np.linspace(left, right, 9)
    flat = is_flat(p.reshape(-1)).reshape(p.shape)
    step, piece = np.nonzero(flat[:-1] != flat[1:])
    low, high, at_low = p[step, piece], p[step + 1, piece], flat[step, piece]
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        same = is_flat(middle) == at_low
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    apart = np.minimum(high - left[piece], right[piece] - high)
    return np.sort(np.append(bends, high[apart > EXACT * (right - left)[piece]]))


def _edges(bends: FloatVector) -> FloatVector:
    inner = bends[(bends > 0.0) & (bends < 1.0)]
    return np.concatenate([[0.0], np.unique(inner), [1.0]])


def grid(bends: FloatVector) -> FloatVector:
    """Return points from 0 to 1, dense towards both, and the bends."""
    logits, middle = np.linspace(-37.0, 0.0, 3001), np.linspace(0.0, 0.5, 1501)
    near = [f"{p:.{SIGNIFICANT_DIGITS}g}" for p in (*expit(logits), *middle)]
    half = np.array(near, dtype=np.float64)
    above = np.round(1.0 - half, 15)  # so that 1 - 0.47433 is 0.52567
    return np.unique(np.concatenate([half, above, _edges(bends)]))


def range_of_pieces(pieces: list[Piece]) -> tuple[float, float]:
    """Return the least and the largest of some values of each piece.

    Examples
    --------
    >>> range_of_pieces([Piece(0.5, 0.0, (0.1,)), Piece(1.0, 0.0, (0.0, 1.5))])
    (0.1, 1.5)
    """
    starts = [0.0, *(piece.end for piece in pieces[:-1])]
    values = [
        piece(np.linspace(start, piece.end, 17))
        for start, piece in zip(starts, pieces, strict=True)
    ]
    return float(np.min(values)), float(np.max(values))


def _farthest(
    function: Function,
    degree: int,
    tolerance: float,
    p: FloatVector,
    values: FloatVector,
) -> tuple[Polynomial, int]:
    """Return a polynomial from the first point on, and how many points it follows."""
    low, high = 1, p.size
    best = _interpolant(function, degree, p[0], p[1])
    while high - low > 1:
        stop = (low + high) // 2
        curve = _interpolant(function, degree, p[0], p[stop])
        error = np.abs(curve(p[: stop + 1]) - values[: stop + 1]).max()
        if error <= (1.0 - ROUNDED_SHARE) * tolerance:
            low, best = stop, curve
        else:
            high = stop
    return best, low


def _interpolant(
    function: Function, degree: int, left: float, right: float
) -> Polynomial:
    """Return the polynomial through both ends and the Chebyshev extremes between."""
    t = np.sin(0.5 * np.pi * np.arange(degree + 1) / max(degree, 1)) ** 2
    values = function(np.minimum(left + (right - left) * t, right))
    coefficients = np.linalg.solve(np.vander(t, increasing=True), values)
    return Polynomial(coefficients, domain=[left, right], window=[0.0, 1.0])


def _rounded(
    curve: Polynomial, p: FloatVector, values: FloatVector, tolerance: float
) -> Piece:
    """Return the polynomial with coefficients of few digits, about the best origin."""
    left, right = p[0], p[-1]
    near = _decimal(float(left), 0.1 * (right - left))
    pieces = [_about(curve, o, p, tolerance) for o in (0.0, 1.0, near, float(left))]
    errors = [float(np.abs(piece(p) - values).max()) for piece in pieces]
    enough = max(tolerance, min(errors))
    good = [piece for piece, e in zip(pieces, errors, strict=True) if e <= enough]
    return min(good, key=lambda piece: piece.signs)


def _about(curve: Polynomial, origin: float, p: FloatVector, tolerance: float) -> Piece:
    """Return the polynomial in powers of (p - origin), rounded."""
    left, width = p[0], p[-1] - p[0]
    powers = Polynomial(curve.coef)(Polynomial([(origin - left) / width, 1.0 / width]))
    reach = float(np.abs(p - origin).max())
    share = ROUNDED_SHARE * tolerance / len(curve.coef)
    errors = [share / max(reach**k, TINY) for k in range(len(powers.coef))]
    kept = list(map(_decimal, powers.coef.tolist(), errors))
    while len(kept) > 1 and kept[-1] == 0.0:
        kept.pop()
    return Piece(float(p[-1]), origin, tuple(kept))


def _decimal(number: float, error: float) -> float:
    """Return a number with as few decimals as an error allows."""
    return round(number, math.ceil(-math.log10(2.0 * error))) + 0.0


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Return pieces without those that the next one continues."""
    following = [*pieces[1:], None]
    return [
        piece
        for piece, after in zip(pieces, following, strict=True)
        if after is None or piece[1:] != after[1:]
    ]
