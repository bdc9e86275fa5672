"""Reliability diagrams on matplotlib axes. Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.axes import (
    HISTOGRAM_ROOM,
    Axis,
    axes_inches,
    draw_histogram,
    prepare_axes,
)
from calibrant.displays.curve_drawing import (
    LINE,
    SMALL,
    draw_band,
    draw_curve,
    draw_truth,
)
from calibrant.displays.layout import Layout, key_columns, title_of, wrapped
from calibrant.displays.style import SCREEN_WIDTH, Pen, check_width
from calibrant.exceptions import Argument, MissingDependencyError, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import StyleName

NAMED_SHARE = 0.8
"""Share of the room that axes take, with names beside them, that is theirs."""
DISTANCE = "distance to the diagonal"
MIN_STEP = 0.04
"""Dots nearer than this share of the axis are left out: a map that is a mean of others
has the knots of them all."""


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, or say which extra is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError.for_extra(
            "drawing", "matplotlib", "plot"
        ) from None
    return plt.figure(figsize=(width, height), layout="constrained")


def new_panels(layout: Layout, count: int) -> tuple[Figure, list[Axes]]:
    """Return a new figure with the axes of some diagrams."""
    figure = new_figure(layout.width, layout.height)
    figure.set_layout_engine("none")  # all places are known
    return figure, [figure.add_axes(layout.box(k, count)) for k in range(count)]


def axes_and_pen(
    display: ReliabilityDisplay,
    ax: Axes | None,
    style: StyleName,
    width: float | None,
    parts: Mapping[str, Any],
    *,
    below: float = HISTOGRAM_ROOM,
) -> tuple[Axes, Pen]:
    """Return axes for a diagram, new ones by default, and how to draw on them."""
    if ax is not None:
        check_no_width(width)
        return ax, Pen.of(style, axes_inches(ax), parts)
    inches = check_width(SCREEN_WIDTH if width is None else width)
    pen = Pen.of(style, inches, parts, room_below=True)
    look: dict[str, Any] = {"roomy": width is None, "below": below}
    look["entries"] = 0 if display.kind == "curve" else n_entries(display)
    _, (new,) = new_panels(Layout.of([display], inches, 1, pen, **look), 1)
    return new, pen


def check_no_width(width: float | None) -> None:
    """Raise where axes that exist are to be given a width."""
    if width is not None:
        raise OptionError(
            Argument("width"), " is that of a new figure; pass it without ax."
        )


def n_entries(display: ReliabilityDisplay) -> int:
    """Return how many entries the legend of one of the paper's diagrams has at most."""
    known = (display.band, display.true_map, display.instances)
    return 3 + sum(part is not None for part in known)


def draw_reliability(
    display: ReliabilityDisplay,
    ax: Axes | None,
    style: StyleName,
    width: float | None,
    parts: Mapping[str, Any],
) -> Axes:
    """Draw a diagram and return its axes."""
    drawn, pen = axes_and_pen(display, ax, style, width, parts)
    draw_panel(display, drawn, pen)
    if ax is None and display.kind != "curve":
        explain([drawn], pen)
    return drawn


def draw_panel(
    display: ReliabilityDisplay,
    ax: Axes,
    pen: Pen,
    *,
    n_statistics: int = 4,
    above: int = 0,
    factors: Mapping[str, float] | None = None,
) -> None:
    """Draw one diagram with its histogram, and name its axes.

    Statistics are in a corner, or in so many lines `above` the axes. Bars of the
    histogram are longer by `factors`, by default its own.
    """
    prepare_axes(display, ax, pen)
    if display.kind == "curve":
        draw_curve(display, ax, pen, n_statistics, above=above > 0)
    else:
        _draw_binned(display, ax, pen)
    if title := title_of(display, NAMED_SHARE * axes_inches(ax), pen):
        look: dict[str, Any] = {"fontsize": pen.size * 1.1, "color": pen.style.ink}
        if above:
            look["pad"] = 6.0 + above * LINE * pen.size * SMALL
        pen.draw("title", ax.set_title, title, **look)
    name_axes(display, ax, pen)
    if display.histogram:
        draw_histogram(display, ax, pen, factors)


def _draw_binned(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Draw one of the paper's diagrams: filling, bars, dots, lines to the diagonal."""
    if display.kind == "diagonal" or not display.binned:
        _draw_filling(display, ax, pen)
    if display.binned:
        _draw_bars(display, ax, pen)
    draw_band(display, ax, pen, color=pen.style.ink, alpha=0.3)
    x, y = map(Axis.of(display).held, _centres(display))
    look: dict[str, Any]
    if display.kind == "centres":
        look = {"color": pen.style.gap, "linewidth": pen.line(0.9)}
        # Where the map is filled, the distance is in the legend already.
        look["label"] = DISTANCE if display.binned else ""
        pen.draw("gaps", ax.vlines, x, x, y, **look)
    if display.kind != "bars" and x.size:
        look = {"color": pen.style.gap, "markersize": pen.line(3.2)}
        look |= {"linestyle": "none", "marker": "o", "clip_on": False, "zorder": 3}
        look["label"] = "means of the bins" if display.binned else "knots"
        pen.draw("bins", ax.plot, x, y, **look)
    draw_truth(display, ax, pen)


def _centres(display: ReliabilityDisplay) -> tuple[FloatVector, FloatVector]:
    """Return the dots of a diagram: bin centres, or some knots if it has no bins."""
    if display.binned:
        return display.bins["predicted"], display.bins["observed"]
    knots, some = display.knots, list[int]()
    at = Axis.of(display).share(knots.p).tolist()
    for knot, place in enumerate(at):
        if not some or place - at[some[-1]] >= MIN_STEP:
            some.append(knot)
    return knots.p[some], knots.calibrated[some]


def _draw_filling(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    curve, axis = display.frame("curve"), Axis.of(display)
    x, top = axis.held(curve["p"]), axis.held(curve["calibrated"])
    look: dict[str, Any] = {"color": pen.style.fill, "label": "estimated map"}
    pen.draw("fill", ax.fill_between, x, axis.limits[0], top, linewidth=0.0, **look)
    look = {"color": pen.style.gap, "alpha": 0.28, "label": DISTANCE}
    pen.draw("gaps", ax.fill_between, x, top, x, linewidth=0.0, **look)
    if not display.binned:
        _draw_outline(x, top, ax, pen, 0.8)


def _draw_outline(
    x: FloatVector, y: FloatVector, ax: Axes, pen: Pen, width: float
) -> None:
    look = {"color": pen.style.ink, "linewidth": pen.line(width)}
    pen.draw("outline", ax.plot, x, y, **look)


def _draw_bars(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    bins, axis, low = display.bins, Axis.of(display), display.limits[0]
    ends = zip(bins["left"], bins["right"], bins["observed"], strict=True)
    for number, (left, right, height) in enumerate(ends):
        x, top = axis.held([left, right]), axis.held([height, height])
        if display.kind != "diagonal":
            look: dict[str, Any] = {"color": pen.style.fill, "linewidth": 0.0}
            look["label"] = "observed rate" if number == 0 else ""
            pen.draw("fill", ax.fill_between, x, low, top, **look)
        around = np.concatenate([[low], top, [low]])
        _draw_outline(np.repeat(x, 2), around, ax, pen, 0.6)


def name_axes(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Name both axes, in several lines where a name is long."""
    side = NAMED_SHARE * axes_inches(ax)
    predicted, observed = (wrapped(text, side, pen) for text in display.axis_labels)
    ax.set_xlabel(predicted, fontsize=pen.size)
    ax.set_ylabel(observed, fontsize=pen.size)


def explain(axes: Sequence[Axes], pen: Pen) -> None:
    """Say below all diagrams what the colours mean, each once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    draw_key(axes[0].figure, entries, pen)


def draw_key(figure: Any, entries: Mapping[str, Any], pen: Pen) -> None:
    """Draw a legend at the bottom of a figure."""
    if entries:
        figure.legend(
            list(entries.values()),
            list(entries),
            loc="lower center",
            ncols=min(len(entries), key_columns(figure.get_figwidth(), pen)),
            frameon=False,
            fontsize=pen.size * 0.92,
            handlelength=1.4,
            columnspacing=1.4,
        )
