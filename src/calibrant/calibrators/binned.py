"""Binned maps: a fixed number of bins, or one chosen from the data."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, get_args

import numpy as np

from calibrant.calibrators.base import BRIER, EventCalibrator
from calibrant.core.array_types import Spacing, Tops
from calibrant.core.parameters import check_choice, check_count, check_positive
from calibrant.exceptions import TooFewRowsError
from calibrant.maps.binned import BinnedMap
from calibrant.numerics.bin_counts import cross_validated_losses, sweep
from calibrant.numerics.binning import (
    DEBIASED_ALPHAS,
    BinTable,
    binned_error,
    debiased_binned_error,
    sample_edges,
    sample_table,
    width_edges,
)
from calibrant.numerics.cross_validation import ROUNDING, folded_rows, simplest_within
from calibrant.numerics.resampling import errors_over_bins
from calibrant.numerics.scores import mean_gap
from calibrant.numerics.sorted_rows import sorted_rows

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.resampling import BootstrapCells


@dataclass(frozen=True, eq=False)
class BinnedFit:
    """A fitted binned map with the sums that it came from.

    Attributes
    ----------
    table : BinTable
        Sums per bin.
    tops : {"slope-1", "flat"}
        Shape of the top of a bin.
    losses : ndarray or None
        Cross-validated Brier score for 1, 2, ... bins, where bins were chosen so.
    """

    table: BinTable
    tops: Tops
    losses: FloatVector | None = None

    @property
    def map(self) -> BinnedMap:
        """Return the estimated calibration map."""
        return BinnedMap.of_table(self.table, self.tops)

    @property
    def edges(self) -> FloatVector:
        """Return the edges of the bins."""
        return self.table.edges

    @property
    def n_pieces(self) -> int:
        """Return the number of bins."""
        return self.table.weight.size

    def debiases(self, alpha: float) -> bool:
        """Tell whether the paper's debiasing applies."""
        return self.tops == "slope-1" and alpha in DEBIASED_ALPHAS

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:
        """Return the binned calibration error.

        With slope-1 tops the distance to the diagonal is the same everywhere in a
        bin (Theorem 2 of the paper), so the sums per bin suffice.
        """
        if self.tops == "slope-1":
            table = self.table
            measure = debiased_binned_error if debias else binned_error
            return float(
                measure(table.weight, table.prob, table.label_sum, alpha=alpha)
            )
        return mean_gap(self.map.values(sample.p), sample.p, sample.weight, alpha)

    def resampled_errors(
        self, cells: BootstrapCells, weights: FloatMatrix, *, alpha: float, debias: bool
    ) -> FloatVector:
        """Return the error for each row of cell weights, over the same bins."""
        return errors_over_bins(
            cells, weights, self.edges, self.tops, alpha=alpha, debias=debias
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Bins(EventCalibrator):
    """Bins, whatever their number."""

    fitted_by: ClassVar[str] = BRIER
    spacing: Spacing = "size"
    tops: Tops = "slope-1"

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.spacing, get_args(Spacing), name="spacing")
        check_choice(self.tops, get_args(Tops), name="tops")
        for name, least in {"bins": 1, "max_bins": 1, "folds": 2}.items():
            check_count(getattr(self, name, least), name=name, least=least)

    @abstractmethod
    def choose_bins(self, sample: BinarySample) -> tuple[int, FloatVector | None]:
        """Return the number of bins, and cross-validated losses if it was chosen so."""

    def fit_event(self, sample: BinarySample) -> BinnedFit:
        """Estimate the calibration map of a sample."""
        n_bins, losses = self.choose_bins(sample)
        by_width = self.spacing == "width"
        edges = width_edges(n_bins) if by_width else sample_edges(sample, n_bins)
        return BinnedFit(sample_table(sample, edges), self.tops, losses)


@dataclass(kw_only=True, eq=False, repr=False)
class Binned(Bins):
    """A given number of bins.

    Parameters
    ----------
    spacing : {"size", "width"}
        Bins with equal numbers of rows, or of equal width.
    tops : {"slope-1", "flat"}
        Tops parallel to the diagonal, whose mean distance to it is the classical
        ECE; or flat tops at the observed rate.
    bins : int
        Number of bins, from 1 to the number of rows.
    """

    solves_equations: ClassVar[bool] = False
    bins: int = 15

    def choose_bins(self, sample: BinarySample) -> tuple[int, None]:
        """Return the given number; raise where there are fewer rows."""
        if self.bins > sample.total * (1.0 + ROUNDING):
            prefix = "es" if self.spacing == "size" else "ew"
            fewer = max(int(sample.total) // 5, 1)
            rows = "1 row" if sample.total == 1.0 else f"{sample.total:g} rows"
            remedy = f" Use fewer bins, for example {prefix}{fewer} or {prefix}-cv."
            raise TooFewRowsError(
                f"bins must not exceed the number of rows; got {self.bins} bins for "
                f"{rows}." + (remedy if fewer > 1 else "")
            )
        return self.bins, None


@dataclass(kw_only=True, eq=False, repr=False)
class CrossValidatedBins(Bins):
    """The number of bins with the smallest cross-validated Brier score.

    Parameters
    ----------
    spacing : {"size", "width"}
        Bins with equal numbers of rows, or of equal width.
    tops : {"slope-1", "flat"}
        Tops parallel to the diagonal, or flat tops at the observed rate.
    max_bins : int
        The largest number of bins tried.
    folds : int
        Number of folds.
    tolerance : float
        The fewest bins are chosen whose loss is within this share of the smallest.
    random_state : int, generator or None
        Shuffles rows into folds. Rows are sorted first, so that the result does not
        depend on their order.
    """

    max_bins: int = 40
    folds: int = 10
    tolerance: float = 1e-3
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        super().check_parameters()
        if self.tolerance:
            check_positive(self.tolerance, name="tolerance")

    def choose_bins(self, sample: BinarySample) -> tuple[int, FloatVector]:
        """Return the fewest bins with nearly the smallest loss."""
        losses = self._losses(sample)
        return 1 + simplest_within(losses, self.tolerance), losses

    def _losses(self, sample: BinarySample) -> FloatVector:
        if sample.n_data == 1:  # nothing to hold out, and nothing to choose
            return np.zeros(1)
        ordered, fold = folded_rows(sample, self.folds, self.random_state)
        fewest_fitted = fold.size - int(np.bincount(fold).max())
        return cross_validated_losses(
            ordered,
            fold,
            max_bins=min(self.max_bins, fewest_fitted),
            spacing=self.spacing,
            tops=self.tops,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SweptBins(Bins):
    """The largest number of bins before the observed rates first decrease.

    Parameters
    ----------
    spacing : {"size", "width"}
        Bins with equal numbers of rows, or of equal width.
    tops : {"slope-1", "flat"}
        Tops parallel to the diagonal, or flat tops at the observed rate.
    max_bins : int
        Where to stop even if the rates still increase, as they always do for separable
        classes.
    """

    max_bins: int = 1000

    def choose_bins(self, sample: BinarySample) -> tuple[int, None]:
        """Return the most bins that keep the observed rates in order."""
        max_bins = min(self.max_bins, int(sample.total))
        ordered = sorted_rows(sample)
        return sweep(ordered, max_bins=max_bins, spacing=self.spacing), None
