"""The numbers of the page's diagrams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit

from calibrant.calibrators.smooth_fits import SmoothFit
from calibrant.checks.formatting import decimals_to_distinguish
from calibrant.displays.diagram_data import bin_columns, bin_factors, logit_edges
from calibrant.maps.binned import BinnedMap
from calibrant.numerics.binning import tabulate, width_edges
from calibrant.numerics.links import logit
from calibrant.numerics.weighted_points import compress_on_log_grid
from calibrant.report.json_numbers import counts, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from calibrant.calibrators.fits import Fit
    from calibrant.core.array_types import FloatVector
    from calibrant.core.sample import BinarySample

GRID = 81
"""Points of a curve, on each kind of axes."""
HISTOGRAM_BINS = 40
NEAR_END, CROWD = 0.05, 0.9
"""This share of the rows so near to 0, or to 1, is best seen on logit axes."""
MIN_LOGIT_AXIS = 1e-6
"""Logit axes never go nearer to 0 and 1 than this."""


def diagram_of(
    sample: BinarySample, fits: Mapping[str, Fit], *, confidence: float
) -> dict[str, Any]:
    """Return curves, bins and histograms of one event, by fits of some methods.

    Keys: "low", where logit axes begin; "axes", "prob" or, for rare events, "logit",
    which show more; "curves", one per method without bins (limits "low" and "high" of a
    smooth one hold at each point, "whole_low" and "whole_high" at all at once);
    "bins", one per binned method; "histogram", by "prob" and "logit". Nothing in it
    belongs to a single row, unless bins hold one only.
    """
    low, p = nearest_end(sample.p), sample.p
    crowded = max((p < NEAR_END).mean(), (p > 1.0 - NEAR_END).mean()) >= CROWD
    curves, bins = [], []
    for name, fit in fits.items():
        if isinstance(fit.map, BinnedMap):
            bins.append(_bins(name, fit, sample, confidence))
        else:
            curves.append(_curve(name, fit, sample, low, confidence))
    return {
        "low": low,
        "axes": "logit" if crowded else "prob",
        "curves": curves,
        "bins": bins,
        "histogram": _histograms(sample, low),
    }


def on_same_axes(
    panels: list[dict[str, Any]], samples: Sequence[BinarySample]
) -> list[dict[str, Any]]:
    """Return diagrams of several events on the same axes, the widest of them."""
    low = min(panel["low"] for panel in panels)
    axes = "logit" if any(p["axes"] == "logit" for p in panels) else "prob"
    return [
        panel | {"low": low, "axes": axes, "histogram": _histograms(sample, low)}
        for panel, sample in zip(panels, samples, strict=True)
    ]


def nearest_end(p: FloatVector) -> float:
    """Return where logit axes begin: about the smallest distance of rows to 0 or 1."""
    near = np.minimum(p, 1.0 - p)
    inner = near[near > 0.0]
    if inner.size == 0:
        return 0.01
    few = float(np.quantile(inner, 0.005))
    return float(f"{np.clip(few / 1.5, MIN_LOGIT_AXIS, 0.05):.1g}")


def _curve(
    name: str, fit: Fit, sample: BinarySample, low: float, confidence: float
) -> dict[str, Any]:
    """Return a map and its bands within the predictions, fine on both axes."""
    first, last = float(sample.p.min()), float(sample.p.max())
    ends = logit(np.clip([first, last], low / 4, 1.0 - low / 4))
    grid = np.concatenate(
        [
            np.linspace(first, last, GRID),
            expit(np.linspace(ends[0], ends[1], GRID)),
            fit.edges,
            np.nextafter(fit.edges, 0.0),
        ]
    )
    p = np.unique(np.clip(grid, first, last))
    curve = {"method": name, "p": numbers(p), "calibrated": numbers(fit.map.values(p))}
    if isinstance(fit, SmoothFit):
        below, above = fit.band(p, confidence)
        curve |= {"low": numbers(below), "high": numbers(above)}
        below, above = fit.band(p, confidence, simultaneous=True)
        curve |= {"whole_low": numbers(below), "whole_high": numbers(above)}
    return curve


def _bins(
    name: str, fit: Fit, sample: BinarySample, confidence: float
) -> dict[str, Any]:
    table = tabulate(sample.p, sample.y, sample.weight, fit.edges)
    bins = bin_columns(table, confidence, bin_factors(sample, fit.edges))
    ends = zip(bins["left"].tolist(), bins["right"].tolist(), strict=True)
    return {
        "method": name,
        "left": numbers(bins["left"]),
        "right": numbers(bins["right"]),
        "decimals": [decimals_to_distinguish(a, b) for a, b in ends],
        "predicted": numbers(bins["predicted"]),
        "observed": numbers(bins["observed"]),
        "low": numbers(bins["low"]),
        "high": numbers(bins["high"]),
        "rows": counts(bins["weight"]),
    }


def _histograms(sample: BinarySample, low: float) -> dict[str, Any]:
    cells = compress_on_log_grid(sample)
    edges = {
        "prob": width_edges(HISTOGRAM_BINS),
        "logit": logit_edges((low, 1.0 - low), HISTOGRAM_BINS),
    }
    histograms = {}
    for scale, edge in edges.items():
        table = tabulate(cells.p, cells.label_sum / cells.weight, cells.weight, edge)
        histograms[scale] = {
            "edges": numbers(table.edges),
            "rows": counts(table.weight),
        }
    return histograms
