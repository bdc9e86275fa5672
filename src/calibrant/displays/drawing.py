"""Reliability diagrams on matplotlib axes. Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.core.parameters import check_choice
from calibrant.displays.binned_drawing import draw_binned
from calibrant.displays.curve_drawing import draw_curve
from calibrant.displays.layout import Layout, key_columns
from calibrant.displays.names import title_of, wrapped
from calibrant.displays.panels import axes_inches, draw_histogram, prepare_axes
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
    display: ReliabilityDisplay, ax: Axes, pen: Pen, *, n_statistics: int = 4
) -> Axes:
    """Draw one diagram with its histogram, and name its axes."""
    prepare_axes(display, ax, pen)
    if display.kind == "curve":
        draw_curve(display, ax, pen, n_statistics)
    else:
        draw_binned(display, ax, pen)
    _draw_title(display, ax, pen)
    name_axes(display, ax, pen)
    if display.histogram:
        draw_histogram(display, ax, pen)
    return ax


def name_axes(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Name both axes, in several lines where a name is long."""
    side = NAMED_SHARE * axes_inches(ax)
    predicted, observed = (wrapped(text, side, pen) for text in display.axis_labels)
    ax.set_xlabel(predicted, fontsize=pen.size)
    ax.set_ylabel(observed, fontsize=pen.size)


def _draw_title(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    text = title_of(display, NAMED_SHARE * axes_inches(ax), pen)
    if text and pen.shows("title"):
        keywords = pen.keywords("title", fontsize=pen.size * 1.1, color=pen.style.ink)
        ax.set_title(text, **keywords)


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
