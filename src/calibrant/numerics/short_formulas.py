"""Functions of a probability as few polynomials with short decimal coefficients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import expit

from calibrant.numerics.binning import edges_with_ends

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import BoolVector, FloatMatrix, FloatVector

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
CURVED = 3e-6
"""Where a line between neighbouring points is off by more, points are added."""
CLOSE, JUMP = 1e-12, 0.01
"""Between points that are close only jumps are sought."""
MAX_POINTS = 12_000
"""Where rounding makes values jump from each number to the next, points never end."""
UNEVEN = 0.382
"""Part of an interval where a symmetric function is not half its rise."""
HALVINGS = 80
"""From any interval within [0, 1] to two neighbouring numbers, even unevenly."""


class Piece(NamedTuple):
    """A polynomial in powers of (p - origin), for p below `end`."""

    end: float
    origin: float
    coefficients: tuple[float, ...]

    def __call__(self, p: FloatVector) -> FloatVector:
        """Evaluate the polynomial."""
        return np.asarray(polyval(p - self.origin, self.coefficients))

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
    p, values = followed_points(function, bends)
    pieces: list[Piece] = []
    while p.size > 1:
        curve, stop = _farthest(function, degree, tolerance, p, values)
        jump = np.nextafter(p[0], 1.0) >= p[stop]
        here = slice(1) if jump else slice(stop + 1)
        piece = _rounded(curve, p[here], values[here], tolerance)
        pieces.append(piece._replace(end=float(p[stop])))
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
    stops = np.append(np.nextafter(ends[:-1], 0.0), 1.0)
    points = np.linspace(starts, stops, 2 * degree + 3, axis=1)
    values = function(points.reshape(-1)).reshape(points.shape)
    nodes = np.linspace(0, 2 * degree + 2, degree + 1).astype(int)
    curves = _interpolants(nodes / (2 * degree + 2), values[:, nodes])
    pieces: list[Piece] = []
    for end, p, v, curve in zip(ends.tolist(), points, values, curves, strict=True):
        piece = _rounded(curve, p, v, tolerance)
        if np.abs(piece(p) - v).max() > max(tolerance, VERIFIED):
            return None
        pieces.append(piece._replace(end=end))
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

    edges = edges_with_ends(bends)
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


def followed_points(
    function: Function, bends: FloatVector
) -> tuple[FloatVector, FloatVector]:
    """Return a grid of probabilities, finer where a function bends, and its values.

    Examples
    --------
    >>> p, values = followed_points(lambda p: np.where(p < 0.3, 0.2, 0.7), np.array([]))
    >>> p[values < 0.5].max().item(), p[values > 0.5].min().item()
    (0.29999999999999993, 0.3)
    """
    p = grid(bends)
    for _ in range(HALVINGS):
        values, between = function(p), p[:-1] + UNEVEN * np.diff(p)
        line = values[:-1] + UNEVEN * np.diff(values)
        curved = np.abs(function(between) - line) > CURVED
        apart = (np.diff(p) > CLOSE) | (np.abs(np.diff(values)) > JUMP)
        finer = np.union1d(p, between[curved & apart])
        if finer.size == p.size or finer.size > MAX_POINTS:
            break
        p = finer
    return p, function(p)


def grid(bends: FloatVector) -> FloatVector:
    """Return points from 0 to 1, dense towards both, and the bends."""
    logits, middle = np.linspace(-37.0, 0.0, 3001), np.linspace(0.0, 0.5, 1501)
    near = [f"{p:.{SIGNIFICANT_DIGITS}g}" for p in (*expit(logits), *middle)]
    half = np.array(near, dtype=np.float64)
    # Rounded, 1 - 0.47433 is 0.52567; but near 1 every number counts.
    above = np.where(half < EXACT, 1.0 - half, np.round(1.0 - half, 15))
    return np.unique(np.concatenate([half, above, edges_with_ends(bends)]))


def values_of_pieces(pieces: list[Piece], p: FloatVector) -> FloatVector:
    """Evaluate pieces at ascending probabilities.

    Examples
    --------
    >>> pieces = [Piece(0.5, 0.0, (0.1,)), Piece(1.0, 0.5, (0.25, 1.0))]
    >>> values_of_pieces(pieces, np.array([0.2, 0.5, 1.0]))
    array([0.1 , 0.25, 0.75])
    """
    bends = np.searchsorted(p, [piece.end for piece in pieces[:-1]], side="left")
    parts = zip(pieces, np.split(p, bends), strict=True)
    return np.concatenate([piece(part) for piece, part in parts])


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
) -> tuple[FloatVector, int]:
    """Return a polynomial from the first point on, and how many points it follows."""
    least = (1.0 - ROUNDED_SHARE) * tolerance

    def follow(stop: int, degree: int) -> tuple[FloatVector, bool]:
        """Return the polynomial through Chebyshev extremes; whether it is near."""
        nodes = np.sin(0.5 * np.pi * np.arange(degree + 1) / degree) ** 2
        at = np.minimum(p[0] + (p[stop] - p[0]) * nodes, p[stop])
        curve = _interpolants(nodes, function(at)[np.newaxis]).reshape(-1)
        along = (p[: stop + 1] - p[0]) / (p[stop] - p[0])
        error = np.abs(polyval(along, curve) - values[: stop + 1]).max()
        return curve, bool(error <= least)

    low, high = 1, p.size
    while high - low > 1:
        stop = (low + high) // 2
        low, high = (stop, high) if follow(stop, degree)[1] else (low, stop)
    for lower in range(1, degree):  # where a bend ends a piece, less may do
        curve, near = follow(low, lower)
        if near:
            return curve, low
    return follow(low, degree)[0], low


def _interpolants(nodes: FloatVector, values: FloatMatrix) -> FloatMatrix:
    """Return coefficients in powers of t in [0, 1] of each row of values at nodes."""
    powers = np.vander(nodes, increasing=True)
    return np.asarray(np.linalg.solve(powers, values.T).T, dtype=np.float64)


def _rounded(
    curve: FloatVector, p: FloatVector, values: FloatVector, tolerance: float
) -> Piece:
    """Return the polynomial with coefficients of few digits, about the best origin."""
    left, right = float(p[0]), float(p[-1])
    constant = Piece(right, 0.0, (float(values[0]),))
    if left == right:
        return constant
    near = _decimal(left, 0.1 * (right - left))
    pieces = [_about(curve, o, left, right, tolerance) for o in (0.0, 1.0, near, left)]
    errors = [float(np.abs(piece(p) - values).max()) for piece in pieces]
    enough = max(tolerance, np.nanmin([*errors, np.inf]))
    good = [piece for piece, e in zip(pieces, errors, strict=True) if e <= enough]
    # No error is a number if the piece is so narrow that its powers overflow.
    return min(good, key=lambda piece: piece.signs, default=constant)


def _about(
    curve: FloatVector, origin: float, left: float, right: float, tolerance: float
) -> Piece:
    """Return the polynomial in powers of (p - origin), rounded."""
    start, step = (origin - left) / (right - left), 1.0 / (right - left)
    powers: list[float] = []
    for number in reversed(curve.tolist()):  # times (start + step * x), plus the number
        shifted = [0.0, *(step * c for c in powers)]
        powers = [start * c + s for c, s in zip([*powers, 0.0], shifted, strict=True)]
        powers[0] += number
    reach = max(abs(left - origin), abs(right - origin))
    share = ROUNDED_SHARE * tolerance / len(powers)
    kept = [_decimal(c, share / max(reach**k, TINY)) for k, c in enumerate(powers)]
    while len(kept) > 1 and kept[-1] == 0.0:
        kept.pop()
    return Piece(right, origin, tuple(kept))


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
