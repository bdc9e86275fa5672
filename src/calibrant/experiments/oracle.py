"""The oracle: it knows the shape and estimates only how much of it there is.

Maximum likelihood within the true one-parameter family of derivates. A method that must
find the shape as well can hardly do better: the ratio of its error to the oracle's says
how much there is left to gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from calibrant.exceptions import OptionError
from calibrant.experiments.synthetic import mixed
from calibrant.experiments.truths import SyntheticTruth
from calibrant.numerics.gaps import mean_gap
from calibrant.numerics.links import clipped

if TYPE_CHECKING:
    from calibrant._typing import FloatVector
    from calibrant._validation.sample import BinarySample
    from calibrant.experiments.shapes import Shape
    from calibrant.experiments.truths import Truth

GRID = (1.0 - np.cos(np.linspace(0.0, np.pi, 2**15 + 1))) / 2.0
"""Where a derivate is inverted from, denser towards both ends: to about 1e-9."""

FIRST_AMOUNTS = np.linspace(0.0, 1.0, 17)
"""The search starts at the best of these, since there may be several optima."""


@dataclass(frozen=True)
class DerivateMap:
    """The true map of a shape that is mixed with the identity by some amount.

    Examples
    --------
    >>> half = DerivateMap(lambda c: c**2, 0.5)
    >>> half(np.array([0.0, 0.375, 1.0])).round(6)  # c / 2 + c**2 / 2 at c = 1/2
    array([0. , 0.5, 1. ])
    """

    shape: Shape
    amount: float

    def __call__(self, p: FloatVector) -> FloatVector:
        """Return c at predictions."""
        at = (1.0 - self.amount) * GRID + self.amount * _on_grid(self.shape)
        return np.interp(p, at, GRID)


@cache
def _on_grid(shape: Shape) -> FloatVector:
    return mixed(shape, 1.0, GRID)


@dataclass(frozen=True)
class OracleFit:
    """The most likely derivate."""

    map: DerivateMap
    pieces: int = 1

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Tell that no bias is known."""
        return False

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha."""
        return mean_gap(self.map(sample.p), sample.p, sample.weight, alpha)


@dataclass(frozen=True)
class Derivates:
    """All derivates of one shape."""

    shape: Shape

    def fit(self, sample: BinarySample) -> OracleFit:
        """Return the derivate that makes the labels most probable."""
        from scipy.optimize import minimize_scalar

        weight = np.ones(sample.n) if sample.weight is None else sample.weight

        def loss(amount: float) -> float:
            c = clipped(DerivateMap(self.shape, amount)(sample.p))
            right = np.where(sample.y > 0.0, c, 1.0 - c)
            return -float(weight @ np.log(right))

        best = int(np.argmin([loss(amount) for amount in FIRST_AMOUNTS]))
        last = FIRST_AMOUNTS.size - 1
        around = FIRST_AMOUNTS[[max(best - 1, 0), min(best + 1, last)]]
        found = float(minimize_scalar(loss, bounds=around, method="bounded").x)
        # A bounded search comes near to the ends, but not to them.
        amount = min([found, *FIRST_AMOUNTS[[0, last]].tolist()], key=loss)
        return OracleFit(DerivateMap(self.shape, amount))


@dataclass(frozen=True)
class Oracle:
    """Knows the shape of every synthetic truth."""

    def family_of(self, truth: Truth) -> Derivates:
        """Return the derivates of the truth's shape."""
        if not isinstance(truth, SyntheticTruth):
            raise OptionError(
                f"the oracle knows the shapes of SyntheticTruth alone; {truth.name!r} "
                f"is another truth. Leave the oracle out."
            )
        return Derivates(truth.function)
