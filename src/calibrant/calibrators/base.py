"""Families of calibration maps: what they are, how they are fitted, what that gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from calibrant.core.threads import one_blas_thread

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample, ClassSample
    from calibrant.maps.base import CalibrationMap
    from calibrant.maps.multiclass import MulticlassMap
    from calibrant.numerics.resampling import BootstrapCells

SampleT = TypeVar("SampleT")
SampleT_contra = TypeVar("SampleT_contra", contravariant=True)
FitT = TypeVar("FitT")
FitT_co = TypeVar("FitT_co", covariant=True)


class ErrorFit(Protocol):
    """An estimate of the calibration error, perhaps without a map."""

    @property
    def n_pieces(self) -> int:
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
        """Return the error for each row of cell weights, the family refitted."""
        ...


class Fit(ErrorFit, Protocol):
    """A fitted family: the map, and the calibration error that it implies."""

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
    """A fitted multi-class family.

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


class Fittable(Protocol[SampleT_contra, FitT_co]):
    """Hyper-parameters of a family of calibration maps."""

    def fit(self, sample: SampleT_contra) -> FitT_co:
        """Estimate the map of a sample."""
        ...


if TYPE_CHECKING:
    Family = Fittable[BinarySample, Fit]
    MulticlassFamily = Fittable[ClassSample, MulticlassFit]


def fit_family(family: Fittable[SampleT, FitT], sample: SampleT) -> FitT:
    """Fit a family to a sample, its linear algebra, if any, in one thread.

    Everything in the library fits families through this function.
    """
    if not getattr(family, "solves_equations", True):
        return family.fit(sample)
    with one_blas_thread():
        return family.fit(sample)
