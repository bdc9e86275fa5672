"""The parts of a reliability diagram, computed from a sample and a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.special import expit

from calibrant.calibrators.fits import BandedFit
from calibrant.core.arrays import as_float, as_vector, check_same_length
from calibrant.core.parameters import check_choice, check_fraction, generator
from calibrant.numerics.binning import BinTable, bin_index, tabulate, width_edges
from calibrant.numerics.links import logit

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.calibrators.fits import Fit
    from calibrant.core.array_types import (
        ArrayLike,
        FloatVector,
        Frame,
        Seed,
        Space,
    )
    from calibrant.core.sample import BinarySample

CURVE_GRID = np.concatenate([np.linspace(0, 1, 401), expit(np.linspace(-14, 14, 401))])
"""Where curves are drawn: fine on both kinds of axes."""

HISTOGRAM_BINS = 20
MIN_LOGIT_AXIS = 1e-6
"""Logit axes never go nearer to 0 and 1 than this."""

BandKind: TypeAlias = Literal["point-wise", "simultaneous"]


@dataclass(frozen=True, eq=False)
class Points:
    """A line through (p, calibrated), in order of p."""

    p: FloatVector
    calibrated: FloatVector

    def frame(self) -> Frame:
        """Return the points as columns."""
        return {"p": self.p, "calibrated": self.calibrated}


NO_POINTS = Points(np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class Band:
    """Limits of the true calibration map.

    Attributes
    ----------
    p, low, high : ndarray
        Limits at predictions, in ascending order, where the sample has any.
    kind : {"point-wise", "simultaneous"}
        Whether the level `confidence` holds at each prediction, or at all at once.
    """

    p: FloatVector
    low: FloatVector
    high: FloatVector
    kind: BandKind
    confidence: float

    def frame(self) -> Frame:
        """Return the limits as columns."""
        return {"p": self.p, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{100 * self.confidence:g} % band, {self.kind}"


def axis_names(task: str, event: str | None) -> tuple[str, str]:
    """Return what axes are called; the event is None where it has no name.

    Examples
    --------
    >>> axis_names("binary", "yes")
    ('Predicted probability of class yes', 'Observed rate of class yes')
    """
    if event is None and task == "confidence":
        return "Confidence", "Accuracy"
    of_class = "" if event is None else f" of class {event or repr(event)}"
    return f"Predicted probability{of_class}", f"Observed rate{of_class}"


def map_points(fit: Fit, grid: FloatVector) -> Points:
    """Return the map on a grid, and at both sides of where it bends or jumps."""
    edges = fit.edges
    p = np.unique(np.concatenate([grid, edges, np.nextafter(edges[1:-1], 0.0)]))
    return Points(p, fit.map.values(p))


def band_of(
    sample: BinarySample,
    fit: Fit,
    curve: Points,
    kind: BandKind | None,
    confidence: float,
    random_state: Seed,
) -> Band | None:
    """Return the band of a map along its curve, where the family has one."""
    if kind is not None:
        check_choice(kind, get_args(BandKind), name="band")
    check_fraction(confidence, name="confidence")
    if kind is None or not isinstance(fit, BandedFit):
        return None
    p = curve.p[(curve.p >= sample.p.min()) & (curve.p <= sample.p.max())]
    low, high = fit.band(
        p, confidence, simultaneous=kind == "simultaneous", random_state=random_state
    )
    return Band(p, low, high, kind, confidence)


def outermost(p: FloatVector) -> float:
    """Return the mean distance to 0 or 1 of the outer twentieth of the rows."""
    size = max(p.size // 20, 1)
    low, high = np.partition(p, size - 1)[:size], np.partition(-p, size - 1)[:size]
    return float(min(low.mean(), 1.0 + high.mean()))


def lowest_logit(outermost: float) -> float:
    """Return where logit axes begin: about at the outermost rows."""
    return float(np.clip(outermost / 2.0, MIN_LOGIT_AXIS, 0.05))


def logit_edges(low: float, n_bins: int) -> FloatVector:
    """Return edges of bins of equal width on logit axes that begin at `low`."""
    end = float(logit(np.array(low)))
    inner = expit(np.linspace(end, -end, n_bins + 1)[1:-1])
    return np.concatenate([[0.0], inner, [1.0]])


def histogram_of(sample: BinarySample, fit: Fit, axes: Space) -> BinTable:
    """Return the distribution of predictions over parts of the axis, equally wide.

    For probabilities these are the bins of the map, if they are equally wide.
    """
    n_bins = fit.edges.size - 1
    equal_width = n_bins > 1 and np.array_equal(fit.edges, width_edges(n_bins))
    edges = fit.edges if equal_width else width_edges(HISTOGRAM_BINS)
    if axes == "logit":
        edges = logit_edges(lowest_logit(outermost(sample.p)), HISTOGRAM_BINS)
    return tabulate(sample.p, sample.y, sample.weight, edges)


def true_points(
    true_map: Callable[[FloatVector], FloatVector] | ArrayLike, sample: BinarySample
) -> Points:
    """Return the true map, given as a function or as a value for each row."""
    if callable(true_map):
        grid = np.linspace(0.0, 1.0, 513)
        return Points(grid, np.asarray(true_map(grid), dtype=np.float64))
    values = as_float(as_vector(true_map, name="true_map"), name="true_map")
    check_same_length(y_prob=sample.p, true_map=values)
    order = np.argsort(sample.p, kind="stable")
    return Points(sample.p[order], values[order])


def picked_instances(
    sample: BinarySample,
    fit: Fit,
    truth: Points | None,
    count: int,
    random_state: Seed,
) -> Points | None:
    """Pick up to the same number of rows from each bin."""
    if count == 0:
        return None
    shuffled = generator(random_state).permutation(sample.n)
    in_bin = bin_index(sample.p[shuffled], fit.edges)
    by_bin = np.argsort(in_bin, kind="stable")
    starts = np.searchsorted(in_bin[by_bin], in_bin[by_bin], side="left")
    turn = np.arange(sample.n) - starts
    picked = shuffled[by_bin[np.argsort(turn, kind="stable")[:count]]]
    p = np.sort(sample.p[picked])
    if truth is not None:
        return Points(p, np.interp(p, truth.p, truth.calibrated))
    return Points(p, fit.map.values(p))


def bin_columns(table: BinTable | None) -> Frame:
    """Return the ends, means and weight of each bin that has rows, as columns."""
    if table is None:
        empty = np.empty(0)
        table = BinTable(empty, empty, empty, empty)
    columns = {
        "left": table.edges[:-1],
        "right": table.edges[1:],
        "predicted": table.mean_prob,
        "observed": table.mean_label,
        "gap": table.mean_label - table.mean_prob,
        "weight": table.weight,
    }
    used = table.weight > 0.0
    return {name: values[used] for name, values in columns.items()}
