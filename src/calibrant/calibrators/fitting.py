"""The one place where families are fitted, whoever asks for it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from calibrant.core.threads import one_blas_thread

SampleT = TypeVar("SampleT")
SampleT_contra = TypeVar("SampleT_contra", contravariant=True)
FitT = TypeVar("FitT")
FitT_co = TypeVar("FitT_co", covariant=True)


class Fittable(Protocol[SampleT_contra, FitT_co]):
    """A family of one event or of all classes."""

    def fit(self, sample: SampleT_contra) -> FitT_co:
        """Estimate the map of a sample."""
        ...


def fit_family(family: Fittable[SampleT, FitT], sample: SampleT) -> FitT:
    """Fit a family to a sample, its linear algebra in one thread.

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.core.sample import BinarySample
    >>> from calibrant.calibrators.registry import find_method
    >>> p, y = cb.datasets.load_binary("forest")
    >>> fit_family(find_method("es5").build(), BinarySample(p, y)).pieces
    5
    """
    with one_blas_thread():
        return family.fit(sample)
