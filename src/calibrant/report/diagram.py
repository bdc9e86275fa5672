"""The numbers of the page's diagrams: those that figures are drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.formatting import decimals_to_distinguish
from calibrant.displays.curve_drawing import free_corner
from calibrant.displays.diagram_data import (
    PROB_LIMITS,
    SPACES,
    axis_limits,
    band_of,
    bin_columns,
    bin_table,
    data_range,
    has_bins,
    histogram_of,
    map_points,
)
from calibrant.displays.reliability import display_of_sample
from calibrant.numerics.links import logit
from calibrant.report.json_numbers import counts, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.calibrators.fits import Fit
    from calibrant.core.array_types import BoolVector, FloatVector, Frame, Seed
    from calibrant.core.sample import BinarySample
    from calibrant.displays.diagram_data import Limits
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.measures.estimate import Estimate

FINE = 90.0
"""Points of a curve that share a place on axes of so many places are drawn once."""


def diagrams_of(
    samples: Sequence[BinarySample],
    fits: Sequence[Mapping[str, Fit]],
    estimates: Sequence[Estimate],
    *,
    confidence: float,
    seed: Seed,
) -> list[dict[str, Any]]:
    """Return diagrams of events on the same axes, by fits of some methods to each.

    Keys: "axes", "prob" or, for rare events, "logit", which show more; "limits" of
    both; "statistics", lines of text, and their "corner"; "curves", one per method
    without bins (limits "low" and "high" of the first hold at each point, "whole_low"
    and "whole_high" at all at once); "bins", first those of the figure, then one per
    binned method; "histogram", by "prob" and "logit". Nothing in it belongs to a
    single row, unless bins hold one only.
    """
    displays = [
        display_of_sample(
            sample,
            method=next(iter(own)),
            axes="auto",
            confidence=confidence,
            random_state=seed,
            fitted=(next(iter(own.values())), estimate),
        )
        for sample, own, estimate in zip(samples, fits, estimates, strict=True)
    ]
    ends = np.array(
        [
            axis_limits("logit", sample, display.table, display.curve)
            for sample, display in zip(samples, displays, strict=True)
        ]
    )
    limits = {"prob": PROB_LIMITS, "logit": (ends[:, 0].min(), ends[:, 1].max())}
    axes = "logit" if any(one.axes == "logit" for one in displays) else "prob"
    ends_of_all = {space: numbers(limit) for space, limit in limits.items()}
    return [
        {
            "axes": axes,
            "limits": ends_of_all,
            "statistics": display.statistics.lines(),
            "corner": free_corner([display]),
            **_maps(display, sample, own, seed),
            "histogram": _histograms(sample, next(iter(own.values())), limits),
        }
        for sample, own, display in zip(samples, fits, displays, strict=True)
    ]


def _maps(
    display: ReliabilityDisplay,
    sample: BinarySample,
    fits: Mapping[str, Fit],
    seed: Seed,
) -> dict[str, Any]:
    """Return the maps without bins, and the bins of the others."""
    binned = {n: fit for n, fit in fits.items() if has_bins(fit)}
    others = {n: fit for n, fit in fits.items() if n not in binned}
    return {
        "curves": _curves(display, sample, others, seed),
        "bins": _all_bins(display, sample, binned),
    }


def _curves(
    display: ReliabilityDisplay,
    sample: BinarySample,
    fits: Mapping[str, Fit],
    seed: Seed,
) -> list[dict[str, Any]]:
    """Return maps without bins; the first method's is that of the figure."""
    level, curves = display.statistics.confidence, []
    for name, fit in fits.items():
        own = name == display.method
        points = display.curve if own else map_points(fit, data_range(sample))
        columns = points.frame()
        if own and display.band is not None:
            whole = band_of(fit, points, "simultaneous", level, seed)
            columns |= {"low": display.band.low, "high": display.band.high}
            if whole is not None:
                columns |= {"whole_low": whole.low, "whole_high": whole.high}
        curves.append({"method": name, **curve_numbers(columns)})
    return curves


def _all_bins(
    display: ReliabilityDisplay, sample: BinarySample, fits: Mapping[str, Fit]
) -> list[dict[str, Any]]:
    """Return the bins of the figure, then those of other methods with bins."""
    level, n_bins = display.statistics.confidence, display.bins["left"].size
    few = f"{n_bins} bin{'s' * (n_bins > 1)}"
    bins = {display.method if display.binned else few: display.bins}
    for name, fit in fits.items():
        if name != display.method:
            bins[name] = bin_columns(sample, bin_table(sample, fit), level)
    decimals = [
        list(map(decimals_to_distinguish, own["left"].tolist(), own["right"].tolist()))
        for own in bins.values()
    ]
    named = zip(bins.items(), decimals, strict=True)
    return [_bins(name, columns, digits) for (name, columns), digits in named]


def curve_numbers(columns: Frame) -> dict[str, Any]:
    """Return the columns of a curve, without points that look the same on any axes."""
    kept = _distinct(columns["p"], columns["calibrated"])
    return {name: numbers(values[kept]) for name, values in columns.items()}


def _distinct(p: FloatVector, calibrated: FloatVector) -> BoolVector:
    places = [p, calibrated, *(logit(v, clip=1e-6) / 28.0 for v in (p, calibrated))]
    steps = [np.diff(np.floor(FINE * v), prepend=-np.inf) != 0.0 for v in places]
    kept: BoolVector = np.any(steps, axis=0)
    # Both sides of a jump are kept, and the last point.
    return kept | np.append(kept[1:], True) & (np.diff(calibrated, append=2.0) > 0.02)  # noqa: PLR2004


def _bins(name: str, bins: Frame, decimals: list[int]) -> dict[str, Any]:
    drawn = ("left", "right", "predicted", "observed", "low", "high")
    return {
        "method": name,
        **{column: numbers(bins[column]) for column in drawn},
        "decimals": decimals,
        "rows": counts(bins["weight"]),
    }


def _histograms(
    sample: BinarySample, fit: Fit, limits: Mapping[str, Limits]
) -> dict[str, Any]:
    histograms = {
        space: histogram_of(sample, fit.edges, space, limits[space]) for space in SPACES
    }
    return {
        space: {
            "left": numbers(one.left),
            "right": numbers(one.right),
            "rows": counts(one.weight),
            "events": counts(one.events),
        }
        for space, one in histograms.items()
    }
