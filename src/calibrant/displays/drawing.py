"""Reliability diagrams on matplotlib axes. Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.parameters import check_choice
from calibrant.displays.curve_drawing import LINE, draw_band, draw_curve, draw_truth
from calibrant.displays.layout import Layout, key_columns, title_of, wrapped
from calibrant.displays.panels import (
    axes_inches,
    draw_histogram,
    kept,
    places,
    prepare_axes,
)
from calibrant.displays.style import (
    SCREEN_WIDTH,
    Pen,
    check_width,
    find_style,
    text_size,
)
from calibrant.exceptions import Argument, MissingDependencyError, OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import StyleName

PARTS = (
    "curve", "band", "bins", "over", "under", "diagonal", "grid", "events",
    "non_events", "statistics", "directions", "title", "true_map", "instances", "fill",
    "outline", "gaps",
)  # fmt: skip
"""What can be restyled or left out."""
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


def make_pen(
    style: StyleName,
    inches: float,
    parts: Mapping[str, Any],
    *,
    room_below: bool = False,
) -> Pen:
    """Return how to draw a diagram of some width."""
    for part, keywords in parts.items():
        check_choice(part, PARTS, name="part")
        if not (keywords is None or keywords is False or isinstance(keywords, dict)):
            raise OptionError(
                Argument(part),
                " must be a dict of matplotlib keywords, or False to leave the part "
                f"out; got {keywords!r}.",
            )
    return Pen(find_style(style), text_size(inches), dict(parts), room_below)


def draw_reliability(
    display: ReliabilityDisplay,
    ax: Axes | None,
    style: StyleName,
    width: float | None,
    parts: Mapping[str, Any],
) -> Axes:
    """Draw a diagram and return its axes."""
    if ax is not None:
        check_no_width(width)
        pen = make_pen(style, axes_inches(ax), parts)
        return draw_panel(display, ax, pen)
    inches = check_width(SCREEN_WIDTH if width is None else width)
    pen = make_pen(style, inches, parts, room_below=True)
    entries = 0 if display.kind == "curve" else n_entries(display)
    layout = Layout.of([display], inches, 1, pen, entries=entries, roomy=width is None)
    figure, (ax,) = new_panels(layout, 1)
    draw_panel(display, ax, pen)
    if display.kind != "curve":
        explain(figure, [ax], pen)
    return ax


def n_entries(display: ReliabilityDisplay) -> int:
    """Return how many entries the legend of one of the paper's diagrams has at most."""
    known = (display.band, display.true_map, display.instances)
    return 3 + sum(part is not None for part in known)


def new_panels(layout: Layout, count: int) -> tuple[Figure, list[Axes]]:
    """Return a new figure with the axes of some diagrams."""
    figure = new_figure(layout.width, layout.height)
    figure.set_layout_engine("none")  # all places are known
    return figure, [figure.add_axes(layout.box(k, count)) for k in range(count)]


def check_no_width(width: float | None) -> None:
    """Raise where axes that exist are to be given a width."""
    if width is not None:
        raise OptionError(
            Argument("width"), " is that of a new figure; pass it without ax."
        )


def draw_panel(
    display: ReliabilityDisplay,
    ax: Axes,
    pen: Pen,
    *,
    n_statistics: int = 4,
    above: int = 0,
    factors: Mapping[str, float] | None = None,
) -> Axes:
    """Draw one diagram with its histogram, and name its axes.

    Statistics are in a corner, or in so many lines `above` the axes. Bars of the
    histogram are longer by `factors`, by default its own.
    """
    prepare_axes(display, ax, pen)
    if display.kind == "curve":
        draw_curve(display, ax, pen, n_statistics, above=above > 0)
    else:
        _draw_binned(display, ax, pen)
    title = title_of(display, NAMED_SHARE * axes_inches(ax), pen)
    if title and pen.shows("title"):
        look = {"fontsize": pen.size * 1.1, "color": pen.style.ink}
        if above:
            look["pad"] = 6.0 + above * LINE * pen.size * 0.88
        ax.set_title(title, **pen.keywords("title", **look))
    name_axes(display, ax, pen)
    if display.histogram:
        draw_histogram(display, ax, pen, factors)
    return ax


def _draw_binned(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Draw one of the paper's diagrams: filling, bars, dots, lines to the diagonal."""
    if display.kind == "diagonal" or not display.binned:
        _draw_filling(display, ax, pen)
    if display.binned:
        _draw_bars(display, ax, pen)
    draw_band(display, ax, pen, color=pen.style.ink, alpha=0.3)
    x, y = (kept(values, display.limits) for values in _centres(display))
    look: dict[str, Any]
    if display.kind == "centres" and pen.shows("gaps"):
        look = {"color": pen.style.gap, "linewidth": pen.line(0.9)}
        # Where the map is filled, the distance is in the legend already.
        look["label"] = DISTANCE if display.binned else ""
        ax.vlines(x, x, y, **pen.keywords("gaps", **look))
    if display.kind != "bars" and x.size and pen.shows("bins"):
        look = {"color": pen.style.gap, "markersize": pen.line(3.2)}
        look |= {"linestyle": "none", "marker": "o", "clip_on": False, "zorder": 3}
        look["label"] = "means of the bins" if display.binned else "knots"
        ax.plot(x, y, **pen.keywords("bins", **look))
    draw_truth(display, ax, pen)


def _centres(display: ReliabilityDisplay) -> tuple[FloatVector, FloatVector]:
    """Return the dots of a diagram: bin centres, or some knots if it has no bins."""
    if display.binned:
        bins = display.bins
        return bins["predicted"], bins["observed"]
    knots = display.knots
    at = places(knots.p, display).tolist()
    some: list[int] = []
    for knot, place in enumerate(at):
        if not some or place - at[some[-1]] >= MIN_STEP:
            some.append(knot)
    return knots.p[some], knots.calibrated[some]


def _draw_filling(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    curve = display.frame("curve")
    x, top = (kept(curve[name], display.limits) for name in ("p", "calibrated"))
    if pen.shows("fill"):
        look = {"color": pen.style.fill, "linewidth": 0.0, "label": "estimated map"}
        ax.fill_between(x, display.limits[0], top, **pen.keywords("fill", **look))
    if pen.shows("gaps"):
        look = {"color": pen.style.gap, "alpha": 0.28, "linewidth": 0.0}
        gaps = pen.keywords("gaps", **look, label=DISTANCE)
        ax.fill_between(x, top, x, **gaps)
    if not display.binned and pen.shows("outline"):
        ax.plot(x, top, **_outline(pen, 0.8))


def _outline(pen: Pen, width: float) -> dict[str, Any]:
    look = {"color": pen.style.ink, "linewidth": pen.line(width)}
    return pen.keywords("outline", **look)


def _draw_bars(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    bins, (low, _) = display.bins, display.limits
    ends = zip(bins["left"], bins["right"], bins["observed"], strict=True)
    for number, (left, right, height) in enumerate(ends):
        x = kept(np.array([left, right]), display.limits)
        top = kept(np.array([height, height]), display.limits)
        if display.kind != "diagonal" and pen.shows("fill"):
            look = {"color": pen.style.fill, "linewidth": 0.0}
            label = "observed rate" if number == 0 else ""
            ax.fill_between(x, low, top, **pen.keywords("fill", **look, label=label))
        if pen.shows("outline"):
            around = np.concatenate([[low], top, [low]])
            ax.plot(np.repeat(x, 2), around, **_outline(pen, 0.6))


def name_axes(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Name both axes, in several lines where a name is long."""
    side = NAMED_SHARE * axes_inches(ax)
    predicted, observed = (wrapped(text, side, pen) for text in display.axis_labels)
    ax.set_xlabel(predicted, fontsize=pen.size)
    ax.set_ylabel(observed, fontsize=pen.size)


def explain(figure: Figure, axes: Sequence[Axes], pen: Pen) -> None:
    """Say below all diagrams what the colours mean, each once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    draw_key(figure, entries, pen)


def draw_key(figure: Figure, entries: dict[str, Any], pen: Pen) -> None:
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
