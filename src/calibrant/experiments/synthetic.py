"""Synthetic predictions whose true calibration map is known.

The paper's data (appendix D.3): calibrated probabilities c are drawn first, labels
are drawn from them, and a monotone shape turns c into the prediction p; the true map is
its inverse. The shape is mixed with the identity,
``p = (1 - amount) c + amount shape(c)``, such that the expected error, the mean of
abs(c - p), is the requested one. Beside the five shapes of the paper there are five
others that no method was tuned on; any other function can take their place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import nan
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import expit, logit

from calibrant.calibrators.wrappers import UserMethod
from calibrant.core.array_types import FloatVector
from calibrant.core.parameters import check_choice, check_count, check_positive
from calibrant.exceptions import OptionError
from calibrant.experiments.assessment import THINNING, Contender, KnownSample
from calibrant.numerics.links import clip_probability

if TYPE_CHECKING:
    from calibrant.experiments.assessment import Truth

Shape: TypeAlias = Callable[[FloatVector], FloatVector]
"""From c to p: non-decreasing, with values in [0, 1]."""

Distribution: TypeAlias = tuple[float, float]
"""The parameters a and b of the Beta distribution of c."""

UNIFORM: Distribution = (1.0, 1.0)

DECIMALS = 6
"""The paper rounds expected errors and mixing amounts to six decimals."""

TEST_ROWS = 1_000_000
"""Unseen rows on which maps are compared with the truth, as many as in the paper."""

CHECK_GRID = np.linspace(0.0, 1.0, 1001)
TOLERANCE = 1e-9

ORACLE = "oracle"

GRID = (1.0 - np.cos(np.linspace(0.0, np.pi, 2**15 + 1))) / 2.0
"""Values of c from which a mixture is inverted, denser towards 0 and 1: accurate to
about 1e-9."""

FIRST_AMOUNTS = np.linspace(0.0, 1.0, 17)
"""The search of the oracle starts at the best of these, since there may be several
optima."""


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

    def waves(x: FloatVector) -> FloatVector:
        x = 3.0 * x * np.pi
        for _ in range(2):
            x = x - np.sin(x)
        return np.asarray(x / (3.0 * np.pi))

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
"""The paper's shapes and five others, by name."""


def find_shape(shape: str | Shape) -> Shape:
    """Return a function, or the shape of a name; raise with the nearest names."""
    if callable(shape):
        return shape
    return SHAPES[check_choice(shape, SHAPES, name="shape")]


def _check_shape(name: str, shape: Shape) -> None:
    """Raise where a shape does not rise from c to predictions within [0, 1]."""
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


def predictions(shape: str | Shape, amount: float, c: FloatVector) -> FloatVector:
    """Return ``(1 - amount) c + amount shape(c)``."""
    return (1.0 - amount) * c + amount * find_shape(shape)(c)


@cache
def mixing_amount(
    shape: str | Shape, error: float, distribution: Distribution = UNIFORM
) -> float:
    """Return the amount of a shape that gives the expected error.

    Computed by bisection on the expected abs(c - p), rounded as in the paper.

    >>> round(mixing_amount("square", 0.05), 4)
    0.3
    """
    if error == 0.0:
        return 0.0
    low, high = 0.0, 1.0
    shape = find_shape(shape)
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
        return float(np.abs(c - predictions(shape, amount, np.asarray(c))))

    return round(float(quad(gap, 0.0, 1.0, limit=200)[0]), DECIMALS)


def draw_labels(
    n: int, seed: int, distribution: Distribution = UNIFORM
) -> tuple[FloatVector, FloatVector]:
    """Draw labels and their probabilities c, in ascending order, as the paper did."""
    draw = np.random.RandomState(seed + n)
    c = np.sort(draw.dirichlet(list(distribution), n)[:, 0])
    return draw.binomial(1, c).astype(np.float64), c


@dataclass(frozen=True)
class SyntheticTruth:
    """A shape mixed with the identity, as a source of data for a `Design`.

    Parameters
    ----------
    shape : str
        Name of the row in tables.
    error : float
        Expected error.
    function : callable, optional
        The shape; by default that of this name in `SHAPES`.
    distribution : tuple of two floats
        Parameters of the Beta distribution of c.
    test_rows : int
        Number of unseen rows.

    Examples
    --------
    >>> truth = SyntheticTruth("square", 0.05)
    >>> truth.name
    'square 0.05 beta(1,1) test 1000000'
    >>> truth.draw(1000, seed=0).p.shape
    (1000,)
    """

    shape: str
    error: float
    function: Any = None
    distribution: Distribution = UNIFORM
    test_rows: int = TEST_ROWS

    def __post_init__(self) -> None:
        error, ab = self.error, self.distribution
        if not (isinstance(error, Real) and 0.0 <= error <= 1.0):
            raise OptionError(f"error must lie between 0 and 1; got {error!r}.")
        object.__setattr__(self, "error", float(error))
        if not (isinstance(ab, tuple) and len(ab) == len(UNIFORM)):
            raise OptionError(
                f"distribution must be a tuple (a, b) of the parameters of a Beta "
                f"distribution; got {ab!r}."
            )
        for name, value in zip("ab", ab, strict=True):
            check_positive(value, name=f"distribution's {name}")
        shape = find_shape(self.function or self.shape)
        _check_shape(self.shape, shape)
        object.__setattr__(self, "function", shape)

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
        amount = mixing_amount(self.function, self.error, self.distribution)
        return KnownSample(predictions(self.function, amount, c), y, c)


@cache
def _test_labels(
    rows: int, distribution: Distribution
) -> tuple[FloatVector, FloatVector]:
    return draw_labels(rows, 0, distribution)


def sample(
    shape: str | Shape,
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
    shape : {"square", "sqrt", "beta1", "beta2", "stairs", ...} or callable
        How predictions deviate from c: a name in SHAPES, or a function from an array
        of c to predictions in [0, 1] that never decreases.
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
    name = shape if isinstance(shape, str) else getattr(shape, "__name__", repr(shape))
    truth = SyntheticTruth(name, error, find_shape(shape), distribution)
    check_count(n, name="n")
    check_count(seed, name="seed", least=0)
    if seed + n >= 2**32:
        raise OptionError(f"seed + n must stay below 2**32; got {seed + n}.")
    data = truth.draw(n, seed)
    return data.p, data.y, data.c


@dataclass
class MixedShape:
    """The mixture of a shape with the identity that makes labels most likely."""

    shape: Shape
    amount: float = nan

    def fit(
        self, p: FloatVector, y: FloatVector, sample_weight: FloatVector | None = None
    ) -> MixedShape:
        """Estimate the amount by maximum likelihood."""
        from scipy.optimize import minimize_scalar

        weight = np.ones(p.size) if sample_weight is None else sample_weight

        def loss(amount: float) -> float:
            c = clip_probability(MixedShape(self.shape, amount).transform(p))
            return -float(weight @ np.log(np.where(y > 0.0, c, 1.0 - c)))

        best = int(np.argmin([loss(amount) for amount in FIRST_AMOUNTS]))
        last = FIRST_AMOUNTS.size - 1
        bounds = FIRST_AMOUNTS[[max(best - 1, 0), min(best + 1, last)]]
        inner = float(minimize_scalar(loss, bounds=bounds, method="bounded").x)
        # A bounded search comes close to its bounds without reaching them.
        self.amount = min([inner, *FIRST_AMOUNTS[[0, last]].tolist()], key=loss)
        return self

    def transform(self, p: FloatVector) -> FloatVector:
        """Return c at predictions."""
        at = (1.0 - self.amount) * GRID + self.amount * _on_grid(self.shape)
        return np.interp(p, at, GRID)


@cache
def _on_grid(shape: Shape) -> FloatVector:
    return shape(GRID)


@dataclass(frozen=True)
class Oracle(Contender):
    """Knows the shape of synthetic data and estimates only how much is mixed in.

    A method that has to find the shape as well can hardly do better: the ratio of its
    error to the oracle's shows how much is left to gain.
    """

    name: str = ORACLE
    family: Any = "the shape of the truth"
    every: int = THINNING

    def family_for(self, truth: Truth) -> UserMethod:
        """Return the mixtures of the truth's shape."""
        if not isinstance(truth, SyntheticTruth):
            raise OptionError(
                f"the oracle knows only the shapes of SyntheticTruth; {truth.name!r} "
                f"is another kind of truth. Remove the oracle from the design."
            )
        return UserMethod(calibrator=MixedShape(truth.function))
