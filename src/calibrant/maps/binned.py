"""Maps that are a straight line within each bin and may jump between bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from calibrant.exceptions import MapFormatError
from calibrant.maps.base import CalibrationMap, stored_numbers
from calibrant.numerics.binning import bin_index

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector, JsonObject, Tops
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

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Self:
        """Build the map from `to_dict`, or raise MapFormatError.

        Parameters
        ----------
        stored : mapping
            What `to_dict` returned.

        Returns
        -------
        BinnedMap
            The same map.
        """
        edges = stored_numbers(stored, "edges")
        intercepts = stored_numbers(stored, "intercepts", size=edges.size - 1)
        slopes = stored_numbers(stored, "slopes", size=edges.size - 1)
        if edges.size < 2 or edges[0] != 0.0 or edges[-1] != 1.0:  # noqa: PLR2004
            raise MapFormatError("edges of a binned map must run from 0 to 1.")
        if (np.diff(edges) < 0.0).any():
            raise MapFormatError("edges of a binned map must not decrease.")
        return cls(edges, intercepts, slopes)

    @property
    def _degree(self) -> int:
        """Return the degree of the lines."""
        return 1

    def _joints(self) -> FloatVector:
        """Return the inner edges."""
        return self.edges[1:-1]
