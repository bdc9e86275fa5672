"""What a family of calibration maps is, and what fitting one gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.maps.base import CalibrationMap
    from calibrant.numerics.resampling import BootstrapCells


class ErrorFit(Protocol):
    """A calibration error that is settled but for the rows; perhaps without a map."""

    @property
    def pieces(self) -> int:
        """Return the number of bins or pieces; 0 where there is no map."""
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
        """Return the error for each row of cell weights, the family fitted anew."""
        ...


class Fit(ErrorFit, Protocol):
    """A fitted family: the map, and the calibration error that it implies."""

    @property
    def map(self) -> CalibrationMap:
        """Return the estimated calibration map."""
        ...


@runtime_checkable
class BandedFit(Protocol):
    """A fit that knows between which limits the true map lies."""

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


class Family(Protocol):
    """Hyper-parameters of a family of calibration maps."""

    def fit(self, sample: BinarySample) -> Fit:
        """Estimate the calibration map of a sample."""
        ...
