"""Synthetic predictions whose true calibration map is known.

The paper's data (appendix D.3): calibrated probabilities c are drawn first, labels
from them, and a monotone shape turns c into the prediction p. A shape is mixed with
the identity so that the expected error, the integral of abs(c - p), is as asked.
"""

from __future__ import annotations

from functools import cache
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from calibrant._validation.options import check_choice, check_count
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant._typing import FloatVector

ROUNDING = 6
"""The paper compares expected errors, and keeps mixing amounts, to six digits."""


def _square(c: FloatVector) -> FloatVector:
    return c**2


def _sqrt(c: FloatVector) -> FloatVector:
    return np.sqrt(c)


def _beta_shape(a: float, b: float, middle: float) -> Callable[..., FloatVector]:
    """Return a beta calibration map that crosses the diagonal at `middle`."""
    offset = b * np.log(1.0 - middle) - a * np.log(middle)

    def shape(c: FloatVector) -> FloatVector:
        with np.errstate(divide="ignore"):
            odds = np.exp(offset) * c**a / (1.0 - c) ** b
            return np.asarray(1.0 / (1.0 + 1.0 / odds))

    return shape


def _stairs(c: FloatVector) -> FloatVector:
    def step(x: FloatVector) -> FloatVector:
        return x - np.sin(x)

    def helper(x: FloatVector) -> FloatVector:
        return np.asarray(step(step(3.0 * x * np.pi)) / (3.0 * np.pi))

    return helper(c + 1.0 / 3.0) - helper(np.asarray(1.0 / 3.0))


SHAPES: dict[str, Callable[[FloatVector], FloatVector]] = {
    "square": _square,
    "sqrt": _sqrt,
    "beta1": _beta_shape(0.4, 0.45, 0.4),
    "beta2": _beta_shape(2.0, 2.2, 0.48),
    "stairs": _stairs,
}
"""From the calibrated probability c to the prediction p; one function a shape."""


def predictions(shape: str, amount: float, c: FloatVector) -> FloatVector:
    """Return the mix of the identity and the shape, ``(1 - a) c + a shape(c)``."""
    return (1.0 - amount) * c + amount * SHAPES[shape](c)


@cache
def mixing_amount(shape: str, error: float) -> float:
    """Return how much of the shape gives the expected error for uniform c.

    Found by bisection on the integral of abs(c - p), rounded as in the paper.

    Examples
    --------
    >>> round(mixing_amount("square", 0.05), 4)
    0.3
    """
    from scipy.integrate import quad

    def expected(amount: float) -> float:
        def gap(c: float) -> float:
            return float(np.abs(c - predictions(shape, amount, np.asarray(c))))

        return round(float(quad(gap, 0.0, 1.0, limit=200)[0]), ROUNDING)

    if error == 0.0:
        return 0.0
    low, high = 0.0, 1.0
    if error > expected(high):
        raise OptionError(
            f"error must not exceed {expected(high):g}, the expected error of the "
            f"shape {shape!r}; got {error:g}."
        )
    while True:
        middle = 0.5 * (low + high)
        found = expected(middle)
        if found == error or high - low < 10.0 ** -(ROUNDING + 6):
            return round(middle, ROUNDING)
        low, high = (middle, high) if found < error else (low, middle)


def sample(
    shape: str, error: float, n: int, seed: int
) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Draw predictions, labels and the true calibrated probabilities.

    Bit for bit the paper's data. Labels and c depend on `n` and `seed` alone, so
    that the same labels are seen through every shape and error.

    Parameters
    ----------
    shape : {"square", "sqrt", "beta1", "beta2", "stairs"}
        How predictions depart from c.
    error : float
        Expected calibration error, the mean of abs(c - p) for uniform c.
    n : int
        Number of rows.
    seed : int
        The paper uses 0 to 4.

    Returns
    -------
    p, y, c : ndarray of shape (n,)
        Predictions in ascending order, labels, and the true map's value at p.

    Examples
    --------
    >>> p, y, c = sample("square", 0.05, 1000, seed=0)
    >>> round(float(abs(c - p).mean()), 5)
    0.04983
    """
    check_choice(shape, SHAPES, name="shape")
    check_count(n, name="n")
    check_count(seed, name="seed", least=0)
    if seed + n >= 2**32:
        raise OptionError(f"seed + n must stay below 2**32; got {seed + n}.")
    if not (isinstance(error, Real) and 0.0 <= error <= 1.0):
        raise OptionError(f"error must lie between 0 and 1; got {error!r}.")
    draw = np.random.RandomState(seed + n)
    c = np.sort(draw.dirichlet([1.0, 1.0], n)[:, 0])
    y = draw.binomial(1, c).astype(np.float64)
    return predictions(shape, mixing_amount(shape, float(error)), c), y, c
