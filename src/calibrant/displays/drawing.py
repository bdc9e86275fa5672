"""Reliability diagrams on matplotlib axes. Nothing is computed here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant._typing import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay

FILL = "#7fb2de"
EDGE = "#1b1b1b"
GAP = "#d1352b"
TRUTH = "#e07b00"
BAND = "#4a4a4a"
AXES = {
    "binary": ("Predicted probability", "Share of positives"),
    "confidence": ("Confidence", "Accuracy"),
}
MOST_COLUMNS = 4
NEAREST_LOGIT = 1e-6
"""Logit axes never go nearer to 0 and 1 than this."""
LOGIT_TICKS = (1e-6, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, or say which extra is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError.for_extra(
            "drawing", "matplotlib", "plot"
        ) from None
    return plt.figure(figsize=(width, height), layout="constrained")


def draw_reliability(
    display: ReliabilityDisplay, ax: Axes | None, fill_style: Mapping[str, Any]
) -> Axes:
    """Draw a diagram and return its axes."""
    if ax is None:
        ax = new_figure(5.0, 6.2 if display.histogram else 5.2).add_subplot()
    low = _lowest(display)
    if display.scale == "logit":
        _use_logit_axes(ax, low)
    ax.set(xlim=(low, 1.0 - low), ylim=(low, 1.0 - low), aspect="equal")

    _draw_filling(display, ax, low, fill_style)
    grid = np.linspace(0.0, 1.0, 513)
    ax.plot(*_kept(grid, grid, low), color=EDGE, linestyle="--", linewidth=1.0)
    if display.band is not None:
        band = display.band
        x, bottom = _kept(band.p, band.low, low)
        _, top = _kept(band.p, band.high, low)
        ax.fill_between(
            x, bottom, top, color=BAND, alpha=0.3, linewidth=0.0, label=str(band)
        )
    if display.true_map is not None:
        truth = display.true_map
        ax.plot(*_kept(truth.p, truth.calibrated, low), color=TRUTH, label="true map")
    if display.instances is not None:
        lines = display.instances
        _draw_gaps(ax, lines.p, lines.calibrated, low, label="error of an instance")
    _describe(display, ax)
    return ax


def _use_logit_axes(ax: Axes, low: float) -> None:
    ticks = [t for t in LOGIT_TICKS if low <= t <= 1.0 - low]
    ax.set(xscale="logit", yscale="logit")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)


def _lowest(display: ReliabilityDisplay) -> float:
    """Return the lower limit of the axes: for logits, about the outermost rows."""
    if display.scale == "prob":
        return 0.0
    return float(np.clip(display.outermost / 2.0, NEAREST_LOGIT, 0.05))


def _kept(
    x: FloatVector, y: FloatVector, low: float
) -> tuple[FloatVector, FloatVector]:
    """Hold points within the axes where these cannot reach 0 and 1."""
    if low == 0.0:
        return x, y
    return np.clip(x, low, 1.0 - low), np.clip(y, low, 1.0 - low)


def _centres(display: ReliabilityDisplay) -> tuple[FloatVector, FloatVector]:
    """Return the dots of a diagram: bin centres, or knots where there are no bins."""
    frame = display.frame()
    if display.table is None:
        return frame["p"], frame["calibrated"]
    return frame["predicted"], frame["observed"]


def _draw_filling(
    display: ReliabilityDisplay, ax: Axes, low: float, fill_style: Mapping[str, Any]
) -> None:
    style: dict[str, Any] = {"color": FILL, "linewidth": 0.0} | dict(fill_style)
    if display.kind == "diagonal" or display.table is None:
        curve = display.frame("curve")
        x, top = _kept(curve["p"], curve["calibrated"], low)
        ax.fill_between(x, low, top, **style)
        ax.fill_between(x, top, x, color=GAP, alpha=0.28, linewidth=0.0)
        if display.table is None:
            ax.plot(x, top, color=EDGE, linewidth=1.0)
    _draw_bars(display, ax, low, style)
    p, height = _centres(display)
    if display.kind == "centres":
        _draw_gaps(ax, p, height, low)
    if display.kind != "bars" and p.size:  # no dots would upset the layout
        x, y = _kept(p, height, low)
        ax.plot(x, y, "o", color=GAP, markersize=4.0, clip_on=False, zorder=3)


def _draw_bars(
    display: ReliabilityDisplay, ax: Axes, low: float, style: Mapping[str, Any]
) -> None:
    bins = display.frame("bins")
    for left, right, height in zip(
        bins["left"], bins["right"], bins["observed"], strict=True
    ):
        x, top = _kept(np.array([left, right]), np.array([height, height]), low)
        if display.kind != "diagonal":
            ax.fill_between(x, low, top, **style)
        outline = np.concatenate([[low], top, [low]])
        ax.plot(np.repeat(x, 2), outline, color=EDGE, linewidth=0.8)


def _draw_gaps(
    ax: Axes,
    p: FloatVector,
    calibrated: FloatVector,
    low: float,
    label: str = "",
) -> None:
    x, end = _kept(p, calibrated, low)
    ax.vlines(x, x, end, color=GAP, linewidth=1.2, label=label)


def _describe(display: ReliabilityDisplay, ax: Axes) -> None:
    title = f"{display.method}: raw ECE = {display.error:.3f}"
    ax.set_title(title if display.name is None else f"{display.name}\n{title}")
    predicted, observed = AXES.get(
        display.event,
        (f"Predicted probability of {display.event}", f"Share of {display.event}"),
    )
    ax.set_ylabel(observed)
    below = _draw_histogram(display, ax) if display.histogram else ax
    below.set_xlabel(predicted)
    handles, _ = ax.get_legend_handles_labels()
    if handles:
        ax.legend(loc="upper left", frameon=False, fontsize="small")


def _draw_histogram(display: ReliabilityDisplay, ax: Axes) -> Axes:
    below = _axes_below(ax)
    parts = display.frame("histogram")
    left, right = _kept(parts["left"], parts["right"], _lowest(display))
    share = parts["weight"] / parts["weight"].sum()
    below.bar(
        left, share, right - left, align="edge", color="0.75", edgecolor=EDGE, lw=0.5
    )
    below.set_ylabel("Share\nof rows")
    below.set_ylim(bottom=0.0)
    ax.tick_params(labelbottom=False)
    below.tick_params(labelbottom=True)
    return below


def _axes_below(ax: Axes) -> Axes:
    if ax.figure.get_layout_engine() is not None:  # makes room for all that is drawn
        return ax.inset_axes((0.0, -0.24, 1.0, 0.17), sharex=ax)
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    # Otherwise room is taken from the axes, so that nothing beside them is covered.
    below: Axes = make_axes_locatable(ax).append_axes(
        "bottom", size="18%", pad=0.12, sharex=ax
    )
    return below


def draw_grid(
    displays: Sequence[ReliabilityDisplay], fill_style: Mapping[str, Any]
) -> Figure:
    """Draw diagrams in one row, or from five on in several, and return the figure."""
    count = len(displays)
    columns = (
        count if count <= MOST_COLUMNS else min(math.isqrt(count - 1) + 1, MOST_COLUMNS)
    )
    rows = -(-len(displays) // columns)
    height = 4.6 if displays[0].histogram else 4.0
    figure = new_figure(3.8 * columns, height * rows)
    for place, display in enumerate(displays, start=1):
        draw_reliability(display, figure.add_subplot(rows, columns, place), fill_style)
    return figure
