"""The parts of a reliability diagram, computed from a sample and a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

from calibrant.calibrators.binned import BinnedFit
from calibrant.calibrators.fits import BandedFit
from calibrant.core.arrays import as_float, as_vector, check_same_length
from calibrant.core.parameters import check_choice, generator
from calibrant.maps.binned import BinnedMap
from calibrant.numerics.binning import (
    bin_index,
    exact_interval,
    sample_edges,
    sample_table,
    width_edges,
)
from calibrant.numerics.cluster_dependence import dependence_of
from calibrant.numerics.links import logit
from calibrant.numerics.weighted_points import compress_on_log_grid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from calibrant.calibrators.fits import Fit
    from calibrant.core.array_types import (
        ArrayLike,
        BoolVector,
        FloatMatrix,
        FloatVector,
        Frame,
        Seed,
        Space,
    )
    from calibrant.core.sample import BinarySample
    from calibrant.numerics.binning import BinTable

AxesKind: TypeAlias = Literal["prob", "logit", "auto"]
BandKind: TypeAlias = Literal["point-wise", "simultaneous"]
Limits: TypeAlias = tuple[float, float]

CURVE_GRID = np.concatenate([np.linspace(0, 1, 401), expit(np.linspace(-14, 14, 401))])
"""Where curves are drawn: fine on both kinds of axes."""
BAND_NODES, SMOOTHINGS = 48, 6
"""Places on the axes at which the limits of a band are found, at least, and how often
they are averaged with their neighbours."""
AXES_SPAN = 3.0
"""How long the logit axes are where p + logit(p) / `AXES_LOGIT` is a place."""
N_DOTS, ROWS_PER_DOT = 10, 15
"""At most so many dots beside a curve, of at least so many rows."""
MAX_LEVELS, ROWS_PER_LEVEL = 21, 5
"""Up to so many distinct predictions have a bar each, and a dot if rows suffice."""
FEW_BARS, MANY_BARS, MANY_ROWS = 20, 40, 1000
SPIKE = 0.012
"""Half of the width of the bar of one distinct prediction."""
CLIP = 1e-12
"""Limits of bands nearer to 0 or 1 than this look the same on any axes."""
SPACES: tuple[Space, Space] = ("prob", "logit")
PROB_LIMITS: Limits = (0.0, 1.0)
MIN_LOGIT_AXIS, MIN_LOGITS = 1e-6, 2.5
AXES_LOGIT = -float(logit(np.array(MIN_LOGIT_AXIS)))
"""Logit axes never go nearer to 0 and 1 than the first, and span the second."""
NEAR_END, CROWD = 0.05, 0.9
"""This share of the rows so near to 0, or to 1, is best seen on logit axes."""


@dataclass(frozen=True, eq=False)
class Points:
    """A line through (p, calibrated), in order of p."""

    p: FloatVector
    calibrated: FloatVector

    def frame(self) -> Frame:
        """Return the points as columns."""
        return dict(vars(self))


NO_POINTS = Points(np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class Band:
    """Limits of the true calibration map at predictions, in ascending order."""

    p: FloatVector
    low: FloatVector
    high: FloatVector
    kind: BandKind  # whether the level holds at each prediction, or at all at once
    confidence: float

    def frame(self) -> Frame:
        """Return the limits as columns."""
        return {"p": self.p, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{100 * self.confidence:g} % band, {self.kind}"


def axis_names(task: str, event: str | None) -> tuple[str, str]:
    """Return what axes are called; the event is None where it has no name.

    >>> axis_names("binary", "yes")
    ('Predicted probability of class yes', 'Observed rate of class yes')
    """
    if event is None and task == "confidence":
        return "Confidence", "Accuracy"
    of_class = "" if event is None else f" of class {event or repr(event)}"
    return f"Predicted probability{of_class}", f"Observed rate{of_class}"


def map_points(fit: Fit, p_range: Limits) -> Points:
    """Return the map within a range, on both sides of where it bends or jumps."""
    edges = fit.edges
    p = np.concatenate([CURVE_GRID, edges, np.nextafter(edges[1:-1], 0.0), p_range])
    p = np.unique(np.clip(p, *p_range))
    return Points(p, fit.map.values(p))


def band_of(
    fit: Fit,
    curve: Points,
    kind: BandKind | None,
    confidence: float,
    random_state: Seed,
) -> Band | None:
    """Return the band of a map along its curve, where the family has one.

    Limits are found at some places and joined smoothly: between neighbours, those of
    drawn maps differ by chance alone.
    """
    if kind is None or not isinstance(fit, BandedFit):
        return None
    logits = logit(curve.p, clip=CLIP)
    # Places in which the ends and the middle of both axes have room.
    along = curve.p + logits / AXES_LOGIT
    # As many on the axes, however far predictions reach beyond them.
    count = max(BAND_NODES, int(BAND_NODES * np.ptp(along) / AXES_SPAN))
    at = np.linspace(along[0], along[-1], count)
    nodes = np.interp(at, along, curve.p)
    limits = fit.band(
        nodes,
        confidence,
        simultaneous=kind == "simultaneous",
        random_state=random_state,
    )
    node_logits = logit(nodes, clip=CLIP)
    off = logit(np.stack(limits), clip=CLIP) - node_logits
    offsets = _smoothed(nodes + node_logits / AXES_LOGIT, off, along)
    low, high = expit(logits + offsets)
    low, high = np.minimum(low, curve.calibrated), np.maximum(high, curve.calibrated)
    return Band(curve.p, low, high, kind, confidence)


def _smoothed(nodes: FloatVector, off: FloatMatrix, at: FloatVector) -> FloatMatrix:
    """Return rows of values at nodes, smoothed and interpolated."""
    for _ in range(SMOOTHINGS):
        off[:, 1:-1] = 0.25 * (off[:, :-2] + 2.0 * off[:, 1:-1] + off[:, 2:])
    distinct, places = np.unique(nodes, return_index=True)
    if distinct.size == 1:
        return off[:, : at.size]
    return np.asarray(PchipInterpolator(distinct, off[:, places], axis=1)(at))


def data_range(sample: BinarySample) -> Limits:
    """Return the smallest and the largest prediction."""
    return float(sample.p.min()), float(sample.p.max())


def choose_axes(axes: AxesKind, samples: Sequence[BinarySample]) -> Space:
    """Return the kind of axes; "auto" is logit where nearly all rows are near an end.

    >>> from calibrant.core.sample import BinarySample
    >>> rare = BinarySample(np.array([0.01, 0.02]), np.array([0.0, 1.0]))
    >>> choose_axes("auto", [rare]), choose_axes("prob", [rare])
    ('logit', 'prob')
    """
    check_choice(axes, get_args(AxesKind), name="axes")
    if axes != "auto":
        return axes
    return "logit" if any(map(_is_crowded, samples)) else "prob"


def _is_crowded(sample: BinarySample) -> bool:
    p = sample.p
    sides: tuple[BoolVector, BoolVector] = (p < NEAR_END, p > 1.0 - NEAR_END)
    shares = (np.average(side, weights=sample.weight) for side in sides)
    return bool(max(shares) >= CROWD)


def axis_limits(
    axes: Space, sample: BinarySample, table: BinTable, curve: Points
) -> Limits:
    """Return the ends of both axes: 0 and 1, or about where logits of the data end."""
    if axes == "prob":
        return PROB_LIMITS
    p = sample.p[(sample.p > 0.0) & (sample.p < 1.0)]
    rates = table.label_sum[table.weight > 0.0] / table.weight[table.weight > 0.0]
    rates = rates[(rates > 0.0) & (rates < 1.0)]
    seen = rates.tolist()
    if p.size:
        low, high = np.quantile(p, [0.005, 0.995])
        seen += [low, high, *curve.calibrated[curve.p >= low]]
    ends = logit(np.array([min(seen, default=0.02), max(seen, default=0.98)]))
    spare = max(0.05 * np.ptp(ends), 0.5 * (MIN_LOGITS - np.ptp(ends)))
    low, high = expit(ends + np.array([-spare, spare]))
    return float(max(low, MIN_LOGIT_AXIS)), float(min(high, 1.0 - MIN_LOGIT_AXIS))


def levels_of(sample: BinarySample) -> FloatVector | None:
    """Return the distinct predictions, such as whole tenths, where they are few."""
    points = compress_on_log_grid(sample)
    return points.p if points.p.size <= MAX_LEVELS else None


def level_edges(levels: FloatVector) -> FloatVector:
    """Return edges between neighbouring levels, from 0 to 1."""
    return np.concatenate([[0.0], 0.5 * (levels[:-1] + levels[1:]), [1.0]])


def has_bins(fit: Fit) -> bool:
    """Tell whether the map consists of bins."""
    return isinstance(fit, BinnedFit) or isinstance(fit.map, BinnedMap)


def bin_table(sample: BinarySample, fit: Fit) -> BinTable:
    """Return sums over the bins of a map of the sample; a binned fit has them."""
    return fit.table if isinstance(fit, BinnedFit) else sample_table(sample, fit.edges)


def table_of(sample: BinarySample, fit: Fit) -> BinTable:
    """Return sums over the bins of a map, or over some where the map has none."""
    if has_bins(fit):
        return bin_table(sample, fit)
    levels = levels_of(sample)
    if levels is not None and sample.total >= ROWS_PER_LEVEL * levels.size:
        return sample_table(sample, level_edges(levels))
    least = 2 if sample.total >= 2 * ROWS_PER_LEVEL else 1
    count = int(np.clip(sample.total // ROWS_PER_DOT, least, N_DOTS))
    return sample_table(sample, sample_edges(sample, count))


@dataclass(frozen=True, eq=False)
class Histogram:
    """Rows and events over parts of the axis."""

    left: FloatVector
    right: FloatVector
    weight: FloatVector
    events: FloatVector

    def frame(self) -> Frame:
        """Return the parts as columns."""
        return dict(vars(self))


def histogram_of(
    sample: BinarySample, bins: FloatVector, axes: Space, limits: Limits
) -> Histogram:
    """Return the distribution of predictions: over parts of equal width, or levels.

    For probabilities these are the bins of the map, if they are equally wide.
    """
    levels, edges = levels_of(sample), bins
    if axes == "logit":
        ends = logit(np.array(limits))
        inner = expit(np.linspace(ends[0], ends[1], FEW_BARS + 1)[1:-1])
        edges = np.concatenate([[0.0], inner, [1.0]])
    elif bins.size > 2 and np.array_equal(bins, width_edges(bins.size - 1)):  # noqa: PLR2004
        pass
    elif levels is not None:
        table = sample_table(sample, level_edges(levels))
        left, right = np.clip([levels - SPIKE, levels + SPIKE], 0.0, 1.0)
        return Histogram(left, right, table.weight, table.label_sum)
    else:
        edges = width_edges(MANY_BARS if sample.total >= MANY_ROWS else FEW_BARS)
    table = sample_table(sample, edges)
    return Histogram(edges[:-1], edges[1:], table.weight, table.label_sum)


MIN_HIGHEST_BAR = 0.1
"""Bars of one outcome that are all shorter than this are drawn longer."""


def mirrored_bars(
    rows: FloatVector,
    events: FloatVector,
    factors: Mapping[str, float] | None = None,
) -> dict[str, tuple[FloatVector, str]]:
    """Return the heights of bars of events and of non-events, and what to call them.

    The tallest bar is 1. Both sides have one scale, unless the rarer outcome could not
    be seen: then its bars are longer by a power of ten, which its name says. `factors`
    are those of several diagrams side by side; by default its own.

    >>> bars = mirrored_bars(np.array([100.0, 300.0]), np.array([1.0, 2.0]))
    >>> bars["events"][0].round(2).tolist(), bars["events"][1]
    ([0.34, 0.67], 'events \N{MULTIPLICATION SIGN}100')
    """
    if factors is None:
        factors = bar_factors(rows, events)
    return {
        name: (
            factors[name] * heights,
            name
            if factors[name] == 1.0
            else f"{name} \N{MULTIPLICATION SIGN}{factors[name]:,.0f}",
        )
        for name, heights in _bar_heights(rows, events).items()
    }


def bar_factors(rows: FloatVector, events: FloatVector) -> dict[str, float]:
    """Return by how much bars of each side must be longer to be seen, mostly 1."""
    heights = _bar_heights(rows, events)
    highest = {name: float(bars.max(initial=0.0)) for name, bars in heights.items()}
    return {
        name: float(10.0 ** np.floor(-np.log10(height)))
        if 0.0 < height < MIN_HIGHEST_BAR
        else 1.0
        for name, height in highest.items()
    }


def _bar_heights(rows: FloatVector, events: FloatVector) -> dict[str, FloatVector]:
    """Return bars of events and of non-events, of which the tallest is 1."""
    bars = {"events": events, "non-events": rows - events}
    tallest = max(float(sums.max(initial=0.0)) for sums in bars.values()) or 1.0
    return {name: sums / tallest for name, sums in bars.items()}


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
) -> Points:
    """Pick up to the same number of rows from each bin."""
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


def bin_columns(sample: BinarySample, table: BinTable, confidence: float) -> Frame:
    """Return ends, means, exact interval and weight of each bin that has rows."""
    used, dependence = table.weight > 0.0, dependence_of(sample)
    # How many rows of each bin tell as much as one independent row.
    rows = 1.0 if dependence is None else dependence.bin_factors(table.edges)[used]
    low, high = exact_interval(
        table.label_sum[used] / rows, table.weight[used] / rows, confidence
    )
    predicted, observed = table.mean_prob[used], table.mean_label[used]
    return {
        "left": table.edges[:-1][used],
        "right": table.edges[1:][used],
        "predicted": predicted,
        "observed": observed,
        "low": low,
        "high": high,
        "gap": observed - predicted,
        "weight": table.weight[used],
    }
