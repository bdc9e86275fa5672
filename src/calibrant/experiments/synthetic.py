"""Synthetic predictions whose true calibration map is known.

The paper's data (appendix D.3): calibrated probabilities c are drawn first, labels
are drawn from them, and a monotone shape turns c into the prediction p. The shape is
mixed with the identity, ``p = (1 - amount) c + amount shape(c)``, such that the
expected error, the mean of abs(c - p), is the requested one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from calibrant.core.options import check_count, check_positive
from calibrant.exceptions import OptionError
from calibrant.experiments.assessment import KnownSample
from calibrant.experiments.shapes import Shape, find_shape

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

Distribution: TypeAlias = tuple[float, float]
"""The parameters a and b of the Beta distribution of c."""

UNIFORM: Distribution = (1.0, 1.0)

DECIMALS = 6
"""The paper rounds expected errors and mixing amounts to six decimals."""

TEST_ROWS = 1_000_000
"""Unseen rows on which maps are compared with the truth, as many as in the paper."""


def mix(shape: Shape, amount: float, c: FloatVector) -> FloatVector:
    """Return ``(1 - amount) c + amount shape(c)``."""
    return (1.0 - amount) * c + amount * shape(c)


def predictions(shape: str, amount: float, c: FloatVector) -> FloatVector:
    """Return the predictions of a named shape mixed with the identity."""
    return mix(find_shape(shape), amount, c)


def mixing_amount(
    shape: str, error: float, distribution: Distribution = UNIFORM
) -> float:
    """Return the amount of a named shape that gives the expected error.

    Computed by bisection on the expected abs(c - p), rounded as in the paper.

    Examples
    --------
    >>> round(mixing_amount("square", 0.05), 4)
    0.3
    """
    return amount_for_error(find_shape(shape), error, distribution)


@cache
def amount_for_error(
    shape: Shape, error: float, distribution: Distribution = UNIFORM
) -> float:
    """Return `mixing_amount` of a shape that is given as a function."""
    if error == 0.0:
        return 0.0
    low, high = 0.0, 1.0
    highest = _expected_error(shape, high, distribution)
    if error > highest:
        raise OptionError(
            f"error must not exceed {highest:g}, the expected error of the shape "
            f"itself; got {error:g}."
        )
    while True:
        middle = 0.5 * (low + high)
        expected = _expected_error(shape, middle, distribution)
        if expected == error or high - low < 10.0 ** -(DECIMALS + 6):
            return round(middle, DECIMALS)
        low, high = (middle, high) if expected < error else (low, middle)


def _expected_error(shape: Shape, amount: float, distribution: Distribution) -> float:
    """Return the mean of abs(c - p), integrated over quantiles of c."""
    from scipy.integrate import quad
    from scipy.special import betaincinv

    def gap(level: float) -> float:
        uniform = distribution == UNIFORM
        c = level if uniform else float(betaincinv(*distribution, level))
        return float(np.abs(c - mix(shape, amount, np.asarray(c))))

    return round(float(quad(gap, 0.0, 1.0, limit=200)[0]), DECIMALS)


def draw_labels(
    n: int, seed: int, distribution: Distribution = UNIFORM
) -> tuple[FloatVector, FloatVector]:
    """Draw labels and their probabilities c, in ascending order, as the paper did."""
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

    Bit for bit the paper's data. Labels and c depend only on `n`, `seed` and the
    distribution, so that all shapes and errors share the same labels.

    Parameters
    ----------
    shape : {"square", "sqrt", "beta1", "beta2", "stairs"} or another in SHAPES
        How predictions deviate from c; `add_shape` adds more.
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
    _check_error(error)
    _check_distribution(distribution)
    y, c = draw_labels(n, seed, distribution)
    amount = mixing_amount(shape, float(error), distribution)
    return predictions(shape, amount, c), y, c


def _check_error(error: float) -> None:
    if not (isinstance(error, Real) and 0.0 <= error <= 1.0):
        raise OptionError(f"error must lie between 0 and 1; got {error!r}.")


def _check_distribution(distribution: Distribution) -> None:
    if not (isinstance(distribution, tuple) and len(distribution) == len(UNIFORM)):
        raise OptionError(
            f"distribution must be a tuple (a, b) of the parameters of a Beta "
            f"distribution; got {distribution!r}."
        )
    for name, value in zip("ab", distribution, strict=True):
        check_positive(value, name=f"distribution's {name}")


@dataclass(frozen=True)
class SyntheticTruth:
    """A shape mixed with the identity, as a source of data for a `Design`.

    Parameters
    ----------
    shape : str
        Name of the shape.
    error : float
        Expected error.
    function : callable
        The shape; looked up by `of`, so that workers need not know its name.
    distribution : tuple of two floats
        Parameters of the Beta distribution of c.
    test_rows : int
        Number of unseen rows.

    Examples
    --------
    >>> truth = SyntheticTruth.of("square", 0.05)
    >>> truth.name
    'square 0.05 beta(1,1) test 1000000'
    >>> truth.draw(1000, seed=0).p.shape
    (1000,)
    """

    shape: str
    error: float
    function: Shape
    distribution: Distribution = UNIFORM
    test_rows: int = TEST_ROWS

    def __post_init__(self) -> None:
        _check_error(self.error)
        _check_distribution(self.distribution)

    @classmethod
    def of(
        cls,
        shape: str,
        error: float,
        *,
        distribution: Distribution = UNIFORM,
        test_rows: int = TEST_ROWS,
    ) -> SyntheticTruth:
        """Return the truth of a named shape."""
        return cls(shape, float(error), find_shape(shape), distribution, test_rows)

    @property
    def name(self) -> str:
        """Return shape, error, distribution and test rows in one line."""
        a, b = self.distribution
        return f"{self.shape} {self.error:g} beta({a:g},{b:g}) test {self.test_rows}"

    def draw(self, n: int, seed: int) -> KnownSample:
        """Draw rows to fit on."""
        return self._known_sample(*draw_labels(n, seed, self.distribution))

    def unseen(self) -> KnownSample:
        """Return the test rows, which all shapes and errors share."""
        return self._known_sample(*_test_labels(self.test_rows, self.distribution))

    def _known_sample(self, y: FloatVector, c: FloatVector) -> KnownSample:
        amount = amount_for_error(self.function, self.error, self.distribution)
        return KnownSample(mix(self.function, amount, c), y, c)


@cache
def _test_labels(
    rows: int, distribution: Distribution
) -> tuple[FloatVector, FloatVector]:
    return draw_labels(rows, 0, distribution)
