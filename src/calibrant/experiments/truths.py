"""Truths: where data with a known calibration map come from.

Anything with the members of `Truth` can be put into a design: a shape of the bench, or
a data set of one's own for which c is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Protocol

from calibrant.experiments.shapes import Shape, find_shape
from calibrant.experiments.synthetic import (
    UNIFORM,
    Distribution,
    amount_of,
    check_distribution,
    check_error,
    draw_truth,
    mixed,
)

if TYPE_CHECKING:
    from calibrant._typing import FloatVector

TEST_ROWS = 1_000_000
"""Unseen rows on which maps are compared with the truth; the paper's number."""


@dataclass(frozen=True, eq=False)
class KnownSample:
    """Rows whose calibrated probabilities are known.

    Attributes
    ----------
    p, y, c : ndarray of shape (n,)
        Predictions, labels, and the true calibration map at p.
    others : dict of ndarray of shape (n,)
        Other estimates of the true map at p, by name, where it is not known exactly.
    """

    p: FloatVector
    y: FloatVector
    c: FloatVector
    others: dict[str, FloatVector] = field(default_factory=dict)


class Truth(Protocol):
    """A source of data with a known calibration map."""

    @property
    def shape(self) -> str:
        """Return the name of the row that this makes part of in tables."""
        ...

    @property
    def error(self) -> float:
        """Return the expected error, which tells truths of one shape apart."""
        ...

    @property
    def name(self) -> str:
        """Return a name that says all: results are found again by it."""
        ...

    def draw(self, n: int, seed: int) -> KnownSample:
        """Draw rows to fit on; the same for the same size and seed."""
        ...

    def unseen(self) -> KnownSample:
        """Return rows to compare maps on, in ascending order of p."""
        ...


@dataclass(frozen=True)
class SyntheticTruth:
    """A shape mixed with the identity, as in the paper.

    Parameters
    ----------
    shape : str
        Name of the shape.
    error : float
        Expected error.
    function : callable
        The shape; looked up by `of`, so that workers need not know the name.
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
        check_error(self.error)
        check_distribution(self.distribution)

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
        """Return shape, error, distribution and test rows in words."""
        a, b = self.distribution
        return f"{self.shape} {self.error:g} beta({a:g},{b:g}) test {self.test_rows}"

    def draw(self, n: int, seed: int) -> KnownSample:
        """Draw rows to fit on."""
        y, c = draw_truth(n, seed, self.distribution)
        return KnownSample(self._predictions(c), y, c)

    def unseen(self) -> KnownSample:
        """Return the test rows, which all shapes and errors share."""
        y, c = _test_truth(self.test_rows, self.distribution)
        return KnownSample(self._predictions(c), y, c)

    def _predictions(self, c: FloatVector) -> FloatVector:
        amount = amount_of(self.function, self.error, self.distribution)
        return mixed(self.function, amount, c)


@cache
def _test_truth(
    rows: int, distribution: Distribution
) -> tuple[FloatVector, FloatVector]:
    return draw_truth(rows, 0, distribution)
