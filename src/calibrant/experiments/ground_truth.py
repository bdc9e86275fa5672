"""The true calibration map, estimated on a vast hold-out in three ways.

As in the paper (appendix D.2): isotonic regression; 100 bins of equal size with flat
tops; the same with tops of slope 1. Where the exact probability of the event given the
inputs is known, isotonic regression on it is a fourth way, free of the chance that is
in labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant._validation.sample import BinarySample
from calibrant.calibrators.binned import FixedBins
from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.isotonic import Isotonic
from calibrant.exceptions import SourceError

if TYPE_CHECKING:
    from calibrant._typing import FloatVector, IntVector
    from calibrant.calibrators.base import Family
    from calibrant.experiments.predictions import Outcomes
    from calibrant.maps.base import CalibrationMap

BINS = 100

FAMILIES: dict[str, Family] = {
    "isotonic": Isotonic(),
    "flat": FixedBins(bins=BINS, tops="flat"),
    "slope": FixedBins(bins=BINS),
}
"""How the true map is estimated; the first is the one that is meant without a name."""

DRAWN_SHARE = 0.15
"""Share of the hold-out that samples are drawn from; the rest is halved into the rows
that the true map is fitted on and those that distances are measured on."""

SHUFFLE_SEED = 0
LEAST_VARIANCE = 5.0


@dataclass(frozen=True, eq=False)
class Parts:
    """Three parts of a hold-out that share no row.

    Attributes
    ----------
    drawn : ndarray of int
        Rows that samples are drawn from.
    fitted, measured : ndarray of int
        Rows that the true map is fitted on, and that distances are measured on.
    """

    drawn: IntVector
    fitted: IntVector
    measured: IntVector

    @classmethod
    def of(cls, rows: int) -> Parts:
        """Part the rows at random, always in the same way.

        Examples
        --------
        >>> parts = Parts.of(1000)
        >>> parts.drawn.size, parts.fitted.size, parts.measured.size
        (150, 425, 425)
        """
        order = np.random.default_rng(SHUFFLE_SEED).permutation(rows)
        drawn = int(rows * DRAWN_SHARE)
        half = drawn + (rows - drawn) // 2
        return cls(*(np.sort(part) for part in np.split(order, [drawn, half])))

    def sample(self, n: int, seed: int) -> IntVector:
        """Return rows of the sample number `seed` of `n` rows.

        Samples of one size share no row; those of different sizes may.
        """
        most = self.drawn.size // n
        if seed >= most:
            raise SourceError(
                f"the hold-out is too small: {self.drawn.size} of its rows are for "
                f"samples, which makes {most} samples of {n} rows, and number "
                f"{seed + 1} was asked for. Take smaller sizes or fewer seeds."
            )
        order = np.random.default_rng(n).permutation(self.drawn.size)
        return self.drawn[np.sort(order[seed * n : (seed + 1) * n])]


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """Estimates of one true calibration map.

    Attributes
    ----------
    maps : dict of CalibrationMap
        By the names of `FAMILIES`, and "exact" where exact probabilities are known.
    """

    maps: dict[str, CalibrationMap]

    @classmethod
    def of(cls, rows: Outcomes) -> GroundTruth:
        """Fit all estimates."""
        sample = BinarySample(rows.p, rows.y)
        maps = {
            name: fit_family(family, sample).map for name, family in FAMILIES.items()
        }
        if rows.exact is not None:
            maps["exact"] = fit_family(Isotonic(), BinarySample(rows.p, rows.exact)).map
        return cls(maps)

    def at(self, p: FloatVector) -> dict[str, FloatVector]:
        """Return all estimates at some predictions."""
        return {name: map_(p) for name, map_ in self.maps.items()}


@dataclass(frozen=True, eq=False)
class Agreement:
    """How well labels of a hold-out tell the exact map, bin by bin.

    Attributes
    ----------
    p : ndarray
        Mean prediction of each bin.
    estimate : ndarray
        Share of labels that are 1 in each bin.
    exact : ndarray
        Mean of the exact probabilities of the same rows.
    error : ndarray
        The standard error that the number of rows implies: the root of the mean of
        q (1 - q) over the number of rows.
    rows : ndarray
        Number of rows of each bin.
    """

    p: FloatVector
    estimate: FloatVector
    exact: FloatVector
    error: FloatVector
    rows: FloatVector

    @property
    def scores(self) -> FloatVector:
        """Return differences in standard errors: about standard normal.

        Bins in which the number of events has a variance below 5 are left out: such
        counts are too small to be about normal.
        """
        kept = np.square(self.error * self.rows) >= LEAST_VARIANCE
        return (self.estimate[kept] - self.exact[kept]) / self.error[kept]


def agreement(rows: Outcomes, bins: int = BINS) -> Agreement:
    """Compare labels with exact probabilities in bins of equal size.

    Examples
    --------
    >>> from calibrant.experiments.predictions import Outcomes
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(100_000)
    >>> found = agreement(Outcomes(p, 1.0 * (rng.random(p.size) < p**2), p**2))
    >>> bool(np.abs(found.scores).max() < 4.0)     # about standard normal
    True
    """
    if rows.exact is None:
        raise SourceError("exact probabilities of the event are not known.")
    order = np.argsort(rows.p, kind="stable")
    parts = np.array_split(order, bins)
    spread = rows.exact * (1.0 - rows.exact)
    means = [
        [values[part].mean() for part in parts]
        for values in (rows.p, rows.y, rows.exact, spread)
    ]
    p, estimate, exact, variance = (np.array(column) for column in means)
    sizes = np.array([part.size for part in parts], dtype=np.float64)
    return Agreement(p, estimate, exact, np.sqrt(variance / sizes), sizes)
