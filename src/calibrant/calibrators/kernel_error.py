"""The kernel calibration error: an estimate of the error without a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from calibrant.core.parameters import check_choice, check_positive
from calibrant.core.sample import ClassSample
from calibrant.exceptions import OptionError, TooFewRowsError
from calibrant.numerics.binning import width_edges
from calibrant.numerics.class_probabilities import class_probabilities
from calibrant.numerics.kernel_error import (
    OUTCOME_FACTORS,
    ErrorKernel,
    KernelName,
    OutcomeKernelName,
    median_distance,
)

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector
    from calibrant.core.sample import BinarySample, Sized
    from calibrant.numerics.resampling import BootstrapCells

MIN_ROWS = 2
MAX_CELLS = 1024
CELLS_PER_BANDWIDTH = 8


@dataclass(frozen=True)
class KernelFit:
    """The kernel of a sample, and the error that it implies; there is no map."""

    kernel: ErrorKernel

    @property
    def n_pieces(self) -> int:
        """Return 0: there are neither bins nor pieces."""
        return 0

    @property
    def edges(self) -> FloatVector:
        """Return ends of cells in which rows may be taken together."""
        cells = np.ceil(CELLS_PER_BANDWIDTH / self.kernel.bandwidth)
        return width_edges(int(min(cells, MAX_CELLS)))

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Tell that the bias is known: pairs of a row with itself make all of it."""
        return True

    def error(
        self,
        sample: BinarySample | ClassSample,
        *,
        alpha: float,  # noqa: ARG002
        debias: bool,
    ) -> float:
        """Return the squared error, whatever `alpha`."""
        check_two_rows(sample, debias=debias)
        if isinstance(sample, ClassSample):
            p = class_probabilities(sample.scores, sample.scale)
            return self.kernel.class_error(
                p, sample.column, sample.weight, debias=debias
            )
        weight = sample.weights
        share = sample.y[None, :]
        return float(self.kernel.errors(sample.p, share, weight, debias=debias)[0])

    def resampled_errors(
        self,
        cells: BootstrapCells,
        weights: FloatMatrix,
        *,
        alpha: float,  # noqa: ARG002
        debias: bool,
    ) -> FloatVector:
        """Return the error for each row of cell weights, with the same kernel."""
        return self.kernel.errors(cells.p, cells.y, weights, debias=debias)


@dataclass(frozen=True, kw_only=True)
class KernelError:
    """Kernels of predictions and labels (Widmann, Lindsten, Zachariah 2019).

    Attributes
    ----------
    kernel : {"rbf", "laplace"}
        Kernel of predictions: exp(-d^2 / 2h^2) or exp(-d / h) for a distance d.
    bandwidth : float or "median"
        The h of the kernel; "median" takes the median distance between rows.
    outcome_kernel : {"rbf", "white", "linear"}
        Kernel of labels. It only multiplies the error: by 2 - 2 exp(-1/2), by 2, or
        by 1.
    """

    fitted_by: ClassVar[str] = "-"
    kernel: KernelName = "rbf"
    bandwidth: float | Literal["median"] = 1.0
    outcome_kernel: OutcomeKernelName = "rbf"

    def __post_init__(self) -> None:
        check_choice(self.kernel, get_args(KernelName), name="kernel")
        check_choice(self.outcome_kernel, OUTCOME_FACTORS, name="outcome_kernel")
        if isinstance(self.bandwidth, str) and self.bandwidth != "median":
            raise OptionError(
                f'bandwidth must be a number above 0 or "median"; got '
                f"{self.bandwidth!r}."
            )
        if not isinstance(self.bandwidth, str):
            check_positive(self.bandwidth, name="bandwidth")

    def fit_sample(self, sample: BinarySample | ClassSample) -> KernelFit:
        """Settle the bandwidth."""
        if self.bandwidth == "median":
            if isinstance(sample, ClassSample):
                raise OptionError(
                    'bandwidth="median" is for one event; pass a number for the whole '
                    "vector, whose distances are from 0 to 1."
                )
            width = median_distance(sample.p, sample.weight)
        else:
            width = float(self.bandwidth)
        factor = OUTCOME_FACTORS[self.outcome_kernel]
        return KernelFit(ErrorKernel(self.kernel, width, factor))

    fit_event = fit_classes = fit_sample


def check_two_rows(sample: Sized, *, debias: bool) -> None:
    """Raise where there is no pair of rows to be unbiased about."""
    if debias and sample.total < MIN_ROWS:
        raise TooFewRowsError(
            f"the unbiased kernel error needs at least {MIN_ROWS} rows; got "
            f"{sample.total:g}. Without debiasing (debias=False, or "
            f'estimator="biased") one is enough.'
        )
