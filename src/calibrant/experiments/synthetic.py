"""Synthetic predictions whose true calibration map is known.

The paper's data (appendix D.3): calibrated probabilities c are drawn first, labels
from them, and a monotone shape turns c into the prediction p. A shape is mixed with
the identity so that the expected error, the mean of abs(c - p), is as asked.
"""

from __future__ import annotations

from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibrant._validation.options import check_count, check_positive
from calibrant.exceptions import OptionError
from calibrant.experiments.shapes import SHAPES, Shape, add_shape, find_shape

if TYPE_CHECKING:
    from calibrant._typing import FloatVector

__all__ = ["SHAPES", "add_shape", "mixing_amount", "predictions", "sample"]

Distribution: TypeAlias = tuple[float, float]
"""The parameters a and b of the Beta distribution of c."""

UNIFORM: Distribution = (1.0, 1.0)

ROUNDING = 6
"""The paper compares expected errors, and keeps mixing amounts, to six digits."""


def mixed(shape: Shape, amount: float, c: FloatVector) -> FloatVector:
    """Return the mix of the identity and the shape, ``(1 - a) c + a shape(c)``."""
    return (1.0 - amount) * c + amount * shape(c)


def predictions(shape: str, amount: float, c: FloatVector) -> FloatVector:
    """Return the predictions of a named shape mixed with the identity."""
    return mixed(find_shape(shape), amount, c)


def mixing_amount(
    shape: str, error: float, distribution: Distribution = UNIFORM
) -> float:
    """Return how much of the shape gives the expected error.

    Found by bisection on the expected abs(c - p), rounded as in the paper.

    Examples
    --------
    >>> round(mixing_amount("square", 0.05), 4)
    0.3
    """
    try:
        return amount_of(find_shape(shape), error, distribution)
    except OptionError as refused:
        raise OptionError(f"{refused} The shape is {shape!r}.") from None


@cache
def amount_of(
    shape: Shape, error: float, distribution: Distribution = UNIFORM
) -> float:
    """Return `mixing_amount` of a shape that is given as a function."""
    if error == 0.0:
        return 0.0
    low, high = 0.0, 1.0
    most = _expected_error(shape, high, distribution)
    if error > most:
        raise OptionError(
            f"error must not exceed {most:g}, the expected error of the shape itself; "
            f"got {error:g}."
        )
    while True:
        middle = 0.5 * (low + high)
        found = _expected_error(shape, middle, distribution)
        if found == error or high - low < 10.0 ** -(ROUNDING + 6):
            return round(middle, ROUNDING)
        low, high = (middle, high) if found < error else (low, middle)


def _expected_error(shape: Shape, amount: float, distribution: Distribution) -> float:
    """Return the mean of abs(c - p), integrated over quantiles of c."""
    from scipy.integrate import quad
    from scipy.special import betaincinv

    def gap(share: float) -> float:
        uniform = distribution == UNIFORM
        c = share if uniform else float(betaincinv(*distribution, share))
        return float(np.abs(c - mixed(shape, amount, np.asarray(c))))

    return round(float(quad(gap, 0.0, 1.0, limit=200)[0]), ROUNDING)


def draw_truth(
    n: int, seed: int, distribution: Distribution = UNIFORM
) -> tuple[FloatVector, FloatVector]:
    """Draw labels and true probabilities c in ascending order, as the paper did."""
    draw = np.random.RandomState(seed + n)
    c = np.sort(draw.dirichlet(list(distribution), n)[:, 0])
    return draw.binomial(1, c).astype(np.float64), c


def sample(
    shape: str,
    error: float,
    n: int,
    seed: int,
    *,
    distribution: Distribution = UNIFORM,
) -> tuple[FloatVector, FloatVector, FloatVector]:
    """Draw predictions, labels and the true calibrated probabilities.

    Bit for bit the paper's data. Labels and c depend on `n`, `seed` and the
    distribution alone, so that the same labels are seen through every shape and error.

    Parameters
    ----------
    shape : {"square", "sqrt", "beta1", "beta2", "stairs"} or another in SHAPES
        How predictions depart from c; `add_shape` adds more.
    error : float
        Expected calibration error, the mean of abs(c - p).
    n : int
        Number of rows.
    seed : int
        The paper uses 0 to 4.
    distribution : tuple of two floats
        Parameters a and b of the Beta distribution of c; by default uniform.

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
    find_shape(shape)
    check_count(n, name="n")
    check_count(seed, name="seed", least=0)
    if seed + n >= 2**32:
        raise OptionError(f"seed + n must stay below 2**32; got {seed + n}.")
    check_error(error)
    check_distribution(distribution)
    y, c = draw_truth(n, seed, distribution)
    amount = mixing_amount(shape, float(error), distribution)
    return predictions(shape, amount, c), y, c


def check_error(error: float) -> None:
    """Refuse what cannot be an expected error."""
    if not (isinstance(error, Real) and 0.0 <= error <= 1.0):
        raise OptionError(f"error must lie between 0 and 1; got {error!r}.")


def check_distribution(distribution: Distribution) -> None:
    """Refuse what cannot be the parameters of a Beta distribution."""
    if not (isinstance(distribution, tuple) and len(distribution) == len(UNIFORM)):
        raise OptionError(
            f"distribution must be a tuple (a, b) of the parameters of a Beta "
            f"distribution; got {distribution!r}."
        )
    for name, value in zip("ab", distribution, strict=True):
        check_positive(value, name=f"distribution's {name}")
