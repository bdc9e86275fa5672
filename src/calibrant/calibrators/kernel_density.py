"""Calibration by kernel density estimates of all predictions and of those of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

from calibrant.calibrators.base import EventCalibrator
from calibrant.calibrators.fits import WHOLE_RANGE, CurveFit
from calibrant.core.parameters import check_choice, check_positive
from calibrant.maps.piecewise import map_through
from calibrant.numerics.kernel_density import Bandwidth, BandwidthRows, fit_density

if TYPE_CHECKING:
    from calibrant.core.sample import BinarySample


@dataclass(kw_only=True, eq=False, repr=False)
class KernelDensity(EventCalibrator):
    """The share of events times their density, over the density of all predictions.

    Densities are estimated with a triweight kernel, predictions mirrored at 0 and 1.
    Where no prediction is near, the map is straight between those on either side.

    Parameters
    ----------
    bandwidth : float or "rule"
        Standard deviation of the kernel; or s (2n) ** -0.2, with s the standard
        deviation of the predictions.
    spread : {"all", "events", "others"}
        Of which predictions the rule takes the standard deviation: of all, of those
        of events as in Zhang et al., or of the others as in the paper's experiments.

    References
    ----------
    J. Zhang, B. Kailkhura, T. Y.-J. Han (2020). Mix-n-Match: ensemble and
    compositional methods for uncertainty calibration in deep learning. ICML.
    """

    fitted_by: ClassVar[str] = "none"
    bandwidth: float | Literal["rule"] = "rule"
    spread: BandwidthRows = "all"

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.spread, get_args(BandwidthRows), name="spread")
        if self.bandwidth != "rule":
            check_positive(self.bandwidth, name="bandwidth")

    def fit_event(self, sample: BinarySample) -> CurveFit:
        """Estimate the calibration map of a sample."""
        bandwidth = Bandwidth(self.bandwidth, self.spread)
        map_ = map_through(*fit_density(sample, bandwidth))
        return CurveFit(map_, 1, WHOLE_RANGE, bandwidth.refitted)
