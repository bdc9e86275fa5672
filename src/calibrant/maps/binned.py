"""Maps that may jump: straight lines within bins, and the steps of Venn-Abers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from calibrant.core.probabilities import probabilities_of_any_shape
from calibrant.maps.base import CalibrationMap, require
from calibrant.numerics.binning import bin_index

if TYPE_CHECKING:
    from calibrant.core.array_types import ArrayLike, FloatVector, Tops
    from calibrant.numerics.binning import BinTable


@dataclass(frozen=True, eq=False)
class BinnedMap(CalibrationMap):
    """The line ``intercepts[i] + slopes[i] * p`` in bin i.

    Parameters
    ----------
    edges : ndarray of shape (k + 1,)
        From 0 to 1; bin i is [edges[i], edges[i + 1]), the last one closed.
    intercepts, slopes : ndarray of shape (k,)
        The line of each bin.

    See Also
    --------
    save_map : writes a map as JSON.

    Examples
    --------
    >>> half = BinnedMap(np.array([0, 0.5, 1]), np.array([0.1, 0]), np.array([1.0, 1]))
    >>> half(np.array([0.2, 0.5, 1.0]))
    array([0.3, 0.5, 1. ])
    >>> half == BinnedMap.from_dict(half.to_dict())
    True
    """

    kind: ClassVar[str] = "binned"
    edges: FloatVector
    intercepts: FloatVector
    slopes: FloatVector

    @classmethod
    def of_table(cls, table: BinTable, tops: Tops) -> BinnedMap:
        """Fit the tops of the bins to their rows by least squares.

        Slope-1 tops pass through (mean p, mean y) of their bin, parallel to the
        diagonal; flat tops lie at mean y. An empty bin is left on the diagonal.

        Parameters
        ----------
        table : BinTable
            Sums over the rows of each bin.
        tops : {"slope-1", "flat"}
            The shape of the map within a bin.

        Returns
        -------
        BinnedMap
            The fitted map.
        """
        empty = table.weight <= 0.0
        if tops == "slope-1":
            shift = np.where(empty, 0.0, table.mean_label - table.mean_prob)
            return cls(table.edges, shift, np.ones_like(shift))
        level = np.where(empty, 0.0, table.mean_label)
        return cls(table.edges, level, empty.astype(np.float64))

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked.

        Parameters
        ----------
        p : ndarray
            Probabilities.

        Returns
        -------
        ndarray
            Calibrated probabilities, in the shape of `p`.
        """
        index = bin_index(p.reshape(-1), self.edges).reshape(p.shape)
        return np.asarray(self.intercepts[index] + self.slopes[index] * p)

    def _check_fields(self) -> None:
        edges = self.edges
        self._check_sizes(edges.size - 1, "intercepts", "slopes")
        require(
            edges.size > 1 and edges[0] == 0.0 and edges[-1] == 1.0,
            "edges of a binned map must run from 0 to 1.",
        )
        rise = (np.diff(edges) >= 0.0).all()
        require(rise, "edges of a binned map must not decrease.")

    @property
    def _degree(self) -> int:
        return 1

    def _joints(self) -> FloatVector:
        return self.edges[1:-1]


@dataclass(frozen=True, eq=False)
class VennAbersMap(CalibrationMap):
    """The map ``p1 / (1 - p0 + p1)``; p0 and p1 are the ends of an interval.

    Parameters
    ----------
    starts, lower : ndarray of shape (m,) and (m + 1,)
        p0 is ``lower[i]`` from ``starts[i - 1]`` on, and ``lower[0]`` below all starts.
    ends, upper : ndarray of shape (k,) and (k + 1,)
        p1 is ``upper[i]`` up to and including ``ends[i]``, and ``upper[k]`` above all
        ends.

    Examples
    --------
    >>> half = np.array([0.5])
    >>> map_ = VennAbersMap(half, np.array([0.0, 0.6]), half, np.array([0.8, 1.0]))
    >>> map_.intervals([0.5, 0.9])
    (array([0.6, 0.6]), array([0.8, 1. ]))
    >>> map_([0.5, 0.9]).round(3)
    array([0.667, 0.714])
    """

    kind: ClassVar[str] = "venn-abers"
    starts: FloatVector
    lower: FloatVector
    ends: FloatVector
    upper: FloatVector

    @classmethod
    def through(cls, p: FloatVector, low: FloatVector, high: FloatVector) -> Self:
        """Return the map with p0 and p1 given at distinct ascending predictions."""
        rises = np.diff(low, prepend=0.0) > 0.0
        ends = np.diff(high, append=1.0) > 0.0
        lower, upper = np.append(0.0, low[rises]), np.append(high[ends], 1.0)
        return cls(p[rises], lower, p[ends], upper)

    def intervals(self, p: ArrayLike) -> tuple[FloatVector, FloatVector]:
        """Return the two Venn-Abers probabilities of each prediction, p0 <= p1.

        If a new row is exchangeable with the rows of the fit, one of the two, the one
        that its label selects, is perfectly calibrated.

        Parameters
        ----------
        p : array-like
            Predicted probabilities.

        Returns
        -------
        low, high : ndarray
            p0 and p1, in the shape of `p`.
        """
        return self._limits(probabilities_of_any_shape(p))

    def _limits(self, p: FloatVector) -> tuple[FloatVector, FloatVector]:
        low = self.lower[np.searchsorted(self.starts, p, side="right")]
        return low, self.upper[np.searchsorted(self.ends, p, side="left")]

    def values(self, p: FloatVector) -> FloatVector:
        """Evaluate the map at predictions that have been checked."""
        low, high = self._limits(p)
        return np.asarray(high / (1.0 - low + high))

    def _check_fields(self) -> None:
        self._check_sizes(self.starts.size + 1, "lower")
        self._check_sizes(self.ends.size + 1, "upper")
        lower, upper = self.lower, self.upper
        steps = (self.starts, lower, self.ends, upper)
        rise = all((np.diff(one) >= 0.0).all() for one in steps)
        require(rise, "steps of a Venn-Abers map must not decrease.")
        require(
            0.0 <= lower[0] <= lower[-1] < 1.0 and 0.0 < upper[0] <= 1.0,
            "steps of a Venn-Abers map must be probabilities.",
        )

    @property
    def _degree(self) -> int:
        return 0

    def _joints(self) -> FloatVector:
        after = np.nextafter(self.ends, 2.0)  # p1 still holds at its end
        return np.append(self.starts, after)
