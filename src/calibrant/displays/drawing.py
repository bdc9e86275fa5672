"""Reliability diagrams on matplotlib axes. Nothing is computed here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.core.wording import visible
from calibrant.displays.diagram_data import lowest_logit
from calibrant.exceptions import MissingDependencyError
from calibrant.numerics.links import logit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay

FILL = "#7fb2de"
EDGE = "#1b1b1b"
GAP = "#d1352b"
TRUTH = "#e07b00"
DISTANCE = "distance to the diagonal"
LINES = (TRUE_MAP, INSTANCE) = ("true map", "error of one row")
BAND = "#4a4a4a"
MAX_COLUMNS = 4
MIN_STEP = 0.04
"""Dots nearer than this share of the axis are left out: a map that is a mean of others
has the knots of them all."""
LOGIT_TICKS = (1e-6, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6)
FEWER_TICKS = (1e-4, 0.01, 0.5, 0.99, 0.9999)
MAX_TICKS = 7


def as_drawn(name: str) -> str:
    r"""Return a name as it is: dollar signs are no mathematics, hidden signs written.

    Examples
    --------
    >>> print(as_drawn("cost in $, \x1b[1m$x$"))
    cost in \$, \x1b[1m\$x\$
    """
    return visible(name).replace("$", "\\$")


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
        figure = new_figure(5.2, 6.8 if display.histogram else 5.8)
        ax = _draw_diagram(display, figure.add_subplot(), fill_style)
        _explain(figure, [ax])
        return ax
    _draw_diagram(display, ax, fill_style)
    # Room for colours may be scarce here; ``ax.legend()`` explains them too.
    handles = [h for h in ax.get_legend_handles_labels()[0] if h.get_label() in LINES]
    if handles:
        ax.legend(handles=handles, loc="upper left", frameon=False, fontsize="small")
    return ax


def _draw_diagram(
    display: ReliabilityDisplay, ax: Axes, fill_style: Mapping[str, Any]
) -> Axes:
    low = 0.0 if display.axes == "prob" else lowest_logit(display.outermost)
    if display.axes == "logit":
        use_logit_axes(ax, low)
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
        ax.plot(*_kept(truth.p, truth.calibrated, low), color=TRUTH, label=TRUE_MAP)
    if display.instances is not None:
        lines = display.instances
        _draw_gaps(ax, lines.p, lines.calibrated, low, label=INSTANCE)
    _describe(display, ax, low)
    return ax


def _explain(figure: Figure, axes: Sequence[Axes]) -> None:
    """Say below all diagrams what the colours mean, each once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=min(len(entries), 3 * len(axes)),
        frameon=False,
        fontsize="small",
        handlelength=1.3,
        columnspacing=1.2,
    )


def use_logit_axes(ax: Axes, low: float) -> None:
    """Put both axes on the logit scale, with ticks from `low` to 1 - `low`."""
    ticks = [t for t in LOGIT_TICKS if low <= t <= 1.0 - low]
    if len(ticks) > MAX_TICKS:
        ticks = [t for t in FEWER_TICKS if low <= t <= 1.0 - low]
    ax.set(xscale="logit", yscale="logit")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)


def _kept(
    x: FloatVector, y: FloatVector, low: float
) -> tuple[FloatVector, FloatVector]:
    """Hold points within the axes where these cannot reach 0 and 1."""
    if low == 0.0:
        return x, y
    return np.clip(x, low, 1.0 - low), np.clip(y, low, 1.0 - low)


def _centres(
    display: ReliabilityDisplay, low: float
) -> tuple[FloatVector, FloatVector]:
    """Return the dots of a diagram: bin centres, or some knots if it has no bins."""
    frame = display.frame()
    if display.table is not None:
        return frame["predicted"], frame["observed"]
    place = frame["p"]
    if low > 0.0:
        ends = logit(np.array([low, 1.0 - low]))
        place = (logit(place) - ends[0]) / np.ptp(ends)
    kept: list[int] = []
    for knot, at in enumerate(place.tolist()):
        if not kept or at - place[kept[-1]] >= MIN_STEP:
            kept.append(knot)
    return frame["p"][kept], frame["calibrated"][kept]


def _draw_filling(
    display: ReliabilityDisplay, ax: Axes, low: float, fill_style: Mapping[str, Any]
) -> None:
    style: dict[str, Any] = {"color": FILL, "linewidth": 0.0} | dict(fill_style)
    if display.kind == "diagonal" or display.table is None:
        curve = display.frame("curve")
        x, top = _kept(curve["p"], curve["calibrated"], low)
        ax.fill_between(x, low, top, **{"label": "estimated map", **style})
        ax.fill_between(x, top, x, color=GAP, alpha=0.28, linewidth=0.0, label=DISTANCE)
        if display.table is None:
            ax.plot(x, top, color=EDGE, linewidth=1.0)
    _draw_bars(display, ax, low, style)
    p, height = _centres(display, low)
    if display.kind == "centres":
        filled = display.table is None  # then the distance is in the legend already
        _draw_gaps(ax, p, height, low, label="" if filled else DISTANCE)
    if display.kind != "bars" and p.size:  # no dots would upset the layout
        x, y = _kept(p, height, low)
        style = {"color": GAP, "markersize": 4.0, "clip_on": False, "zorder": 3}
        label = "knots" if display.table is None else "means of the bins"
        ax.plot(x, y, "o", label=label, **style)


def _draw_bars(
    display: ReliabilityDisplay, ax: Axes, low: float, style: Mapping[str, Any]
) -> None:
    bins = display.frame("bins")
    for left, right, height in zip(
        bins["left"], bins["right"], bins["observed"], strict=True
    ):
        x, top = _kept(np.array([left, right]), np.array([height, height]), low)
        if display.kind != "diagonal":
            label = "observed rate" if left == bins["left"][0] else ""
            ax.fill_between(x, low, top, **{"label": label, **style})
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


def _describe(display: ReliabilityDisplay, ax: Axes, low: float) -> None:
    title = f"{display.method}: calibration error = {display.error:.3f}"
    name = None if display.name is None else as_drawn(display.name)
    ax.set_title(title if name is None else f"{name}\n{title}")
    predicted, observed = map(as_drawn, display.axis_labels)
    ax.set_ylabel(observed)
    below = _draw_histogram(display, ax, low) if display.histogram else ax
    below.set_xlabel(predicted)


def _draw_histogram(display: ReliabilityDisplay, ax: Axes, low: float) -> Axes:
    """Draw below the axes how predictions are distributed, and return those axes."""
    below: Axes
    if ax.figure.get_layout_engine() is not None:  # makes room for all that is drawn
        below = ax.inset_axes((0.0, -0.24, 1.0, 0.17), sharex=ax)
    else:  # room is taken from the axes, so that nothing beside them is covered
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        below = make_axes_locatable(ax).append_axes(
            "bottom", size="18%", pad=0.12, sharex=ax
        )
    parts = display.frame("histogram")
    left, right = _kept(parts["left"], parts["right"], low)
    share = parts["weight"] / parts["weight"].sum()
    below.bar(
        left, share, right - left, align="edge", color="0.75", edgecolor=EDGE, lw=0.5
    )
    below.set_ylabel("Share\nof rows")
    below.set_ylim(bottom=0.0)
    ax.tick_params(labelbottom=False)
    below.tick_params(labelbottom=True)
    return below


def draw_grid(
    displays: Sequence[ReliabilityDisplay], fill_style: Mapping[str, Any]
) -> Figure:
    """Draw diagrams in one row, or from five on in several, and return the figure."""
    count = len(displays)
    if count == 1:  # as large as a diagram by itself
        ax = draw_reliability(displays[0], None, fill_style)
        return cast("Figure", ax.figure)
    columns = (
        count if count <= MAX_COLUMNS else min(math.isqrt(count - 1) + 1, MAX_COLUMNS)
    )
    rows = -(-len(displays) // columns)
    height = 4.6 if displays[0].histogram else 4.0
    figure = new_figure(3.8 * columns, height * rows + 0.2)
    axes = [
        _draw_diagram(display, figure.add_subplot(rows, columns, place), fill_style)
        for place, display in enumerate(displays, start=1)
    ]
    _explain(figure, axes)
    return figure
