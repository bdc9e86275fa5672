"""Reliability diagrams on matplotlib axes. Nothing is computed here."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.core.parameters import check_choice
from calibrant.core.wording import visible
from calibrant.displays.binned_drawing import draw_binned
from calibrant.displays.curve_drawing import draw_curve
from calibrant.displays.panels import (
    HISTOGRAM_ROOM,
    axes_inches,
    draw_histogram,
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
PAD = 0.06
"""Inches that constrained layout leaves around everything."""


def as_drawn(name: str) -> str:
    r"""Return a name as it is: dollar signs are no mathematics, hidden signs written.

    Examples
    --------
    >>> print(as_drawn("cost in $, \x1b[1m$x$"))
    cost in \$, \x1b[1m\$x\$
    """
    return visible(name).replace("$", "\\$")


def shortened(name: str, longest: int) -> str:
    r"""Return a name as a figure shows it: on one line, not too long, as it is.

    Both ends are kept, since names of models often differ at the end.

    Examples
    --------
    >>> shortened("a very long name of a model, v2", 13), shortened("$x$", 12)
    ('a very…el, v2', '\\$x\\$')
    """
    line = " ".join(name.split())
    if len(line) > longest:
        end = (longest - 1) // 2
        line = f"{line[: longest - 1 - end]}…{line[len(line) - end :]}"
    return as_drawn(line)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, or say which extra is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError.for_extra(
            "drawing", "matplotlib", "plot"
        ) from None
    return plt.figure(figsize=(width, height), layout="constrained")


def make_pen(style: StyleName, inches: float, parts: Mapping[str, Any]) -> Pen:
    """Return how to draw a diagram of some width."""
    for part, keywords in parts.items():
        check_choice(part, PARTS, name="part")
        if not (keywords is None or keywords is False or isinstance(keywords, dict)):
            raise OptionError(
                Argument(part),
                " must be a dict of matplotlib keywords, or False to leave the part "
                f"out; got {keywords!r}.",
            )
    return Pen(find_style(style), text_size(inches), dict(parts))


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
    pen = make_pen(style, inches, parts)
    titled = display.name is not None or display.kind != "curve"
    figure = new_figure(inches, diagram_height(inches, pen, display, titled=titled))
    ax = draw_panel(display, figure.add_subplot(), pen)
    if display.kind != "curve":
        explain(figure, [ax], pen)
    return ax


def check_no_width(width: float | None) -> None:
    """Raise where axes that exist are to be given a width."""
    if width is not None:
        raise OptionError(
            Argument("width"), " is that of a new figure; pass it without ax."
        )


def diagram_height(
    width: float, pen: Pen, display: ReliabilityDisplay, *, titled: bool
) -> float:
    """Return how high a diagram is in inches, so that no room is left over."""
    line = pen.size / 72.0
    side = width - 4.6 * line - 2 * PAD
    below = HISTOGRAM_ROOM * side if display.histogram else 0.0
    legend = 4.0 if display.kind != "curve" else 0.0
    extra = 1.2 * (2 if display.kind != "curve" else 1) if titled else 0.0
    lines = 3.7 + (0.7 + extra if titled else 0.0) + legend
    return side + below + lines * line + 2 * PAD


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


def title_of(display: ReliabilityDisplay, inches: float, pen: Pen) -> str:
    """Return the name of a diagram; for the paper's kinds also its error."""
    lines = [] if display.name is None else [wrapped(display.name, inches, pen)]
    if display.kind != "curve":
        error = f"{display.method}: error {display.statistics.error_text()}"
        lines.append(wrapped(error, inches, pen))
    return "\n".join(lines)


def wrapped(text: str, inches: float, pen: Pen) -> str:
    """Return text that is not wider than so many inches, in up to three lines."""
    characters = max(int(inches * 72.0 / (0.6 * pen.size)), 12)
    lines = textwrap.wrap(text, characters, max_lines=3, placeholder=" …")
    return "\n".join(map(as_drawn, lines))


def explain(figure: Figure, axes: Sequence[Axes], pen: Pen) -> None:
    """Say below all diagrams what the colours mean, each once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries = dict(zip(labels, handles, strict=True)) | entries
    widest = max((len(label) for label in entries), default=0) + 6
    room = figure.get_figwidth() * 72.0 / (0.52 * pen.size)
    columns = max(int(room / widest), 1)
    if not entries:
        return
    figure.legend(
        entries.values(),
        entries.keys(),
        loc="outside lower center",
        ncols=int(np.clip(len(entries), 1, columns)),
        frameon=False,
        fontsize=pen.size * 0.92,
        handlelength=1.3,
        columnspacing=1.2,
    )


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes belong to."""
    return cast("Figure", ax.figure)
