"""Shapes: how predictions deviate from calibrated probabilities.

A shape is a function from the calibrated probability c to the prediction p; the true
calibration map is its inverse. The five shapes of the paper (appendix D.3) are here,
and five others that no method was tuned on; `add_shape` registers more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit, logit

from calibrant.core.array_types import FloatVector
from calibrant.exceptions import OptionError, UnknownNameError

Shape: TypeAlias = Callable[[FloatVector], FloatVector]
"""From c to p: non-decreasing, with values in [0, 1]."""

CHECK_GRID = np.linspace(0.0, 1.0, 1001)
TOLERANCE = 1e-9


def square(c: FloatVector) -> FloatVector:
    """Return c squared: predictions are too low everywhere."""
    return c**2


def sqrt(c: FloatVector) -> FloatVector:
    """Return the square root of c: predictions are too high everywhere."""
    return np.sqrt(c)


@dataclass(frozen=True)
class BetaShape:
    """A beta calibration map that crosses the diagonal at `middle`.

    The odds of p are ``exp(offset) c**a / (1 - c)**b``: for a and b below 1 the
    predictions are under-confident, above 1 over-confident.
    """

    a: float
    b: float
    middle: float

    def __call__(self, c: FloatVector) -> FloatVector:
        """Return the predictions."""
        offset = self.b * np.log(1.0 - self.middle) - self.a * np.log(self.middle)
        with np.errstate(divide="ignore"):
            odds = np.exp(offset) * c**self.a / (1.0 - c) ** self.b
            return np.asarray(1.0 / (1.0 + 1.0 / odds))


def stairs(c: FloatVector) -> FloatVector:
    """Return a wavy staircase that crosses the diagonal twice."""

    def step(x: FloatVector) -> FloatVector:
        return x - np.sin(x)

    def waves(x: FloatVector) -> FloatVector:
        return np.asarray(step(step(3.0 * x * np.pi)) / (3.0 * np.pi))

    return waves(c + 1.0 / 3.0) - waves(np.asarray(1.0 / 3.0))


def jump(c: FloatVector) -> FloatVector:
    """Return predictions that jump from 1/4 to 3/4 at c = 1/2.

    They are too low below the jump and too high above it.
    """
    return np.where(c < 0.5, 0.5 * c, 0.5 + 0.5 * c)  # noqa: PLR2004


def shift(c: FloatVector) -> FloatVector:
    """Return c with its logit shifted by 1, as after a change of the base rate."""
    return np.asarray(expit(logit(c) + 1.0))


def saturation(c: FloatVector) -> FloatVector:
    """Return predictions between 1/4 and 3/4, where the true map is 0 and 1."""
    return np.asarray(0.25 + 0.5 * c)


def wiggle(c: FloatVector) -> FloatVector:
    """Return two and a half steep waves around the diagonal."""
    x = 5.0 * np.pi * c
    for _ in range(3):
        x = x - np.sin(x)
    return np.asarray(x / (5.0 * np.pi))


def tail(c: FloatVector) -> FloatVector:
    """Return c up to 0.3, and over-confident predictions above."""
    return np.where(c < 0.3, c, 1.0 - (1.0 - c) ** 3 / 0.49)  # noqa: PLR2004


PAPER_SHAPES = ("square", "sqrt", "beta1", "beta2", "stairs")
OTHER_SHAPES = ("jump", "shift", "saturation", "wiggle", "tail")

SHAPES: dict[str, Shape] = {
    "square": square,
    "sqrt": sqrt,
    "beta1": BetaShape(0.4, 0.45, 0.4),
    "beta2": BetaShape(2.0, 2.2, 0.48),
    "stairs": stairs,
    "jump": jump,
    "shift": shift,
    "saturation": saturation,
    "wiggle": wiggle,
    "tail": tail,
}
"""All shapes by name: the paper's, five others, and those that users add."""


def find_shape(name: str) -> Shape:
    """Return the shape of that name, or raise with the nearest names."""
    if name not in SHAPES:
        raise UnknownNameError.among("shape", name, SHAPES)
    return SHAPES[name]


def add_shape(name: str, shape: Shape) -> None:
    """Register a shape under a name, for `sample`, designs and figures.

    Parameters
    ----------
    name : str
        A name that is not in use yet.
    shape : callable
        From an array of calibrated probabilities c to predictions p in [0, 1];
        non-decreasing.

    Examples
    --------
    >>> from calibrant.experiments.synthetic import sample
    >>> add_shape("cube", lambda c: c**3)
    >>> p, y, c = sample("cube", 0.05, 10_000, seed=0)
    >>> round(float(abs(p - c).mean()), 3)
    0.05
    >>> del SHAPES["cube"]
    """
    if name in SHAPES:
        raise OptionError(f"name must be new; the shape {name!r} exists already.")
    p = np.asarray(shape(CHECK_GRID), dtype=np.float64)
    if p.shape != CHECK_GRID.shape:
        raise OptionError(
            f"shape {name!r} must return one prediction for each c; it returned an "
            f"array of shape {p.shape} for {CHECK_GRID.shape}."
        )
    outside = ~((p >= -TOLERANCE) & (p <= 1.0 + TOLERANCE))
    falling = np.append(np.diff(p) < -TOLERANCE, False)
    for wrong, rule in ((outside, "stay within [0, 1]"), (falling, "never decrease")):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise OptionError(
                f"shape {name!r} must {rule}; at c = {CHECK_GRID[at]:g} it is "
                f"{p[at]:g}, then {p[min(at + 1, p.size - 1)]:g}."
            )
    SHAPES[name] = shape
