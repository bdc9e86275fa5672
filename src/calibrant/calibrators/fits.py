"""What fitting a method gives: a map, and the calibration error that it implies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from calibrant.maps.binned import BinnedMap, VennAbersMap
from calibrant.numerics.class_probabilities import class_probabilities
from calibrant.numerics.resampling import refitted_errors
from calibrant.numerics.scores import mean_gap
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.multiclass import MulticlassMap
    from calibrant.numerics.resampling import BootstrapCells, Resamples

WHOLE_RANGE = np.array([0.0, 1.0])
"""Edges of a map that nowhere bends or jumps."""


class ErrorFit(Protocol):
    """An estimate of the calibration error, perhaps without a map."""

    @property
    def n_pieces(self) -> int:
        """Return the number of bins or pieces; 0 of smooth curves and without a map."""
        ...

    @property
    def edges(self) -> FloatVector:
        """Return where the map may jump or bend, from 0 to 1."""
        ...

    def debiases(self, alpha: float) -> bool:
        """Tell whether the bias of the error is known for this exponent."""
        ...

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:
        """Return the mean of abs(map(p) - p) ** alpha, less its bias if asked."""
        ...

    def resampled_errors(
        self, cells: BootstrapCells, weights: FloatMatrix, *, alpha: float, debias: bool
    ) -> FloatVector:
        """Return the error for each row of cell weights, the method refitted."""
        ...


class Fit(ErrorFit, Protocol):
    """A fitted method: the map, and the calibration error that it implies."""

    @property
    def map(self) -> CalibrationMap:
        """Return the estimated calibration map."""
        ...


@runtime_checkable
class BandedFit(Protocol):
    """A fit that gives limits of the true map."""

    def band(
        self,
        p: FloatVector,
        confidence: float = 0.95,
        *,
        simultaneous: bool = False,
        random_state: Seed = 0,
    ) -> tuple[FloatVector, FloatVector]:
        """Return limits at predictions, at each or at all of them at once."""
        ...


@dataclass(frozen=True, eq=False)
class MulticlassFit:
    """A fitted multi-class method.

    Attributes
    ----------
    map : MulticlassMap
        The fitted map.
    losses : ndarray or None
        Cross-validated log-loss of each choice tried, where there was a choice.
    chosen : tuple of float or None
        The penalties chosen by these losses.
    """

    map: MulticlassMap
    losses: FloatVector | None = None
    chosen: tuple[float, float] | None = None

    @property
    def n_pieces(self) -> int:
        """Return 1: no map of several classes has bins of the whole vector."""
        return 1

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Tell that no bias is known."""
        return False

    def error(self, sample: ClassSample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean over rows of the sum of abs(map(p) - p) ** alpha."""
        p = class_probabilities(sample.scores, sample.scale)
        mapped = self.map.calibrated(sample.scores)
        return mean_gap(mapped, p, sample.weight, alpha)


@dataclass(frozen=True, eq=False)
class CurveFit:
    """A fitted map without bins, or whose bins are not what is measured.

    Attributes
    ----------
    map : CalibrationMap
        The estimated calibration map.
    n_pieces : int
        Number of pieces, of each map where the map is a mean.
    edges : ndarray
        Where the map may jump or bend, from 0 to 1.
    refit : callable
        Returns the map of each resample at its points; choices that were made for
        the whole sample are kept.
    losses : ndarray or None
        Cross-validated losses from simple to complex, where complexity was chosen so.
    """

    map: CalibrationMap
    n_pieces: int
    edges: FloatVector
    refit: Callable[[Resamples], FloatMatrix]
    losses: FloatVector | None = None

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Tell that no bias is known."""
        return False

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha.

        Very many rows are compressed into fine cells first, within which a map that
        does not jump is nearly straight.
        """
        p, weight = sample.p, sample.weight
        if not isinstance(self.map, BinnedMap | VennAbersMap):
            cells = compress_on_log_grid(sample)
            p, weight = cells.p, cells.weight
        return mean_gap(self.map.values(p), p, weight, alpha)

    def resampled_errors(
        self,
        cells: BootstrapCells,
        weights: FloatMatrix,
        *,
        alpha: float,
        debias: bool,  # noqa: ARG002
    ) -> FloatVector:
        """Return the error for each row of cell weights, the method refitted."""
        return refitted_errors(cells, weights, self.refit, alpha)
