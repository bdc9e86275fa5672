"""Shapes: how predictions depart from calibrated probabilities.

A shape is one function from the calibrated probability c to the prediction p, so that
the true calibration map is its inverse. The five shapes of the paper (appendix D.3)
are here under their names, and five others, which no method was made for; `add_shape`
adds more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit, logit

from calibrant._typing import FloatVector
from calibrant.exceptions import OptionError, UnknownNameError

Shape: TypeAlias = Callable[[FloatVector], FloatVector]
"""From c to p: within [0, 1], and nowhere falling."""

CHECKED_AT = np.linspace(0.0, 1.0, 1001)
ROUNDING_ERROR = 1e-9


def square(c: FloatVector) -> FloatVector:
    """Return c squared: too low everywhere."""
    return c**2


def sqrt(c: FloatVector) -> FloatVector:
    """Return the root of c: too high everywhere."""
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
    """Return a stair of waves, which crosses the diagonal twice."""

    def step(x: FloatVector) -> FloatVector:
        return x - np.sin(x)

    def waves(x: FloatVector) -> FloatVector:
        return np.asarray(step(step(3.0 * x * np.pi)) / (3.0 * np.pi))

    return waves(c + 1.0 / 3.0) - waves(np.asarray(1.0 / 3.0))


def jump(c: FloatVector) -> FloatVector:
    """Return predictions that leap over the middle, from 1/4 to 3/4.

    What is too low just below the leap is too high just above it.
    """
    return np.where(c < 0.5, 0.5 * c, 0.5 + 0.5 * c)  # noqa: PLR2004


def shift(c: FloatVector) -> FloatVector:
    """Return c with its logit moved by 1, as after a change of the base rate."""
    return np.asarray(expit(logit(c) + 1.0))


def saturation(c: FloatVector) -> FloatVector:
    """Return predictions from 1/4 to 3/4 only: the true map is 0 and 1 at these."""
    return np.asarray(0.25 + 0.5 * c)


def wiggle(c: FloatVector) -> FloatVector:
    """Return two and a half sharp waves around the diagonal."""
    x = 5.0 * np.pi * c
    for _ in range(3):
        x = x - np.sin(x)
    return np.asarray(x / (5.0 * np.pi))


def tail(c: FloatVector) -> FloatVector:
    """Return c up to 0.3, then what is surer than it should be."""
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
"""All shapes by name: the paper's, five others, and what users add."""


def find_shape(name: str) -> Shape:
    """Return the shape of that name, or raise with the nearest names."""
    if name not in SHAPES:
        raise UnknownNameError.among("shape", name, SHAPES)
    return SHAPES[name]


def add_shape(name: str, shape: Shape) -> None:
    """Make a shape known under a name, to `sample`, designs and figures.

    Parameters
    ----------
    name : str
        Not in use yet.
    shape : callable
        From an array of calibrated probabilities c to predictions p, within [0, 1]
        and nowhere falling.

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
    p = np.asarray(shape(CHECKED_AT), dtype=np.float64)
    if p.shape != CHECKED_AT.shape:
        raise OptionError(
            f"shape {name!r} must give one prediction for each c; it gave an array of "
            f"shape {p.shape} for {CHECKED_AT.shape}."
        )
    outside = ~((p >= -ROUNDING_ERROR) & (p <= 1.0 + ROUNDING_ERROR))
    falling = np.append(np.diff(p) < -ROUNDING_ERROR, False)
    for wrong, rule in ((outside, "stay within [0, 1]"), (falling, "nowhere fall")):
        if wrong.any():
            at = int(np.argmax(wrong))
            raise OptionError(
                f"shape {name!r} must {rule}; at c = {CHECKED_AT[at]:g} it is "
                f"{p[at]:g}, then {p[min(at + 1, p.size - 1)]:g}."
            )
    SHAPES[name] = shape
