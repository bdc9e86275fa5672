"""Several diagrams in a figure: side by side without an empty cell, or as one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.displays.axes import (
    HISTOGRAM_GAP,
    Axis,
    axes_below,
    name_bars,
    prepare_axes,
)
from calibrant.displays.curve_drawing import (
    DIRECTIONS,
    SMALL,
    curve_line,
    direction_look,
    draw_band,
    drawn_directions,
    free_corner,
    has_free_corner,
)
from calibrant.displays.diagram_data import bar_factors
from calibrant.displays.drawing import (
    axes_and_pen,
    draw_key,
    draw_panel,
    draw_reliability,
    explain,
    n_entries,
    name_axes,
    new_panels,
)
from calibrant.displays.layout import Layout, named_rows, names_apart, shortened
from calibrant.displays.style import TWO_COLUMNS, Pen, check_width
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import StyleName

MIN_PANEL, WIDE_PANEL = 1.35, 2.2
"""Inches: the narrowest diagram, and one in which slope and intercept fit."""
COLUMNS = (4, 3, 5)
"""Numbers of columns of many diagrams, the first that leaves fewest cells empty."""
MAX_CURVES, MAX_BANDS, MAX_NAMED = 8, 3, 2
"""Curves of one diagram; with more than the second, bands would hide each other, and
with more than the third, names beside curves would hide other curves."""
MIN_DISTANCE = 0.07
"""Share of the axis that a curve must keep from others for its name to stand there."""
STRIP = 0.085
"""Height of the distribution of one model, as a share of the diagram."""
LABEL_PLACES = np.linspace(0.2, 0.8, 121)
MAX_NAME = 16


def draw_grid(
    displays: Sequence[ReliabilityDisplay],
    row_length: int,
    style: StyleName,
    width: float | None,
    parts: Mapping[str, Any],
) -> Figure:
    """Draw diagrams in rows, of that length if it is not 0, and return the figure."""
    first = displays[0]
    if len(displays) == 1:  # as large as a diagram by itself
        return cast("Figure", draw_reliability(first, None, style, width, parts).figure)
    given = None if width is None else check_width(width)
    columns = n_columns(len(displays), given, row_length)
    inches = given or max(TWO_COLUMNS, 2.2 * columns)
    panel, curves = inches / columns, first.kind == "curve"
    pen = Pen.of(style, panel, parts, room_below=True)
    pen = replace(pen, decimals=_decimals(displays))
    n_statistics = 3 if panel >= WIDE_PANEL else 2
    size = SMALL * pen.size / 72.0 / (0.85 * panel)
    free = all(
        has_free_corner(one, n_statistics, size, free_corner([one])) for one in displays
    )
    above = 0 if free or not curves else n_statistics
    entries = 4 if curves else n_entries(first)
    layout = Layout.of(displays, inches, columns, pen, entries=entries, above=above)
    figure, panels = new_panels(layout, len(displays))
    # Directions of curves stand in the key below.
    quiet = replace(pen, changes={"directions": False, **parts}) if curves else pen
    look: dict[str, Any] = {"n_statistics": n_statistics, "above": above}
    look["factors"] = _shared_factors(displays)
    for display, ax in zip(displays, panels, strict=True):
        draw_panel(display, ax, quiet, **look)
    _name_outer_axes(panels, columns)
    if curves:
        draw_key(figure, _curve_entries(displays, pen), pen)
    else:
        explain(panels, pen)
    return figure


def n_columns(count: int, width: float | None, row_length: int = 0) -> int:
    """Return the length of rows if it fits, or what leaves the last row fullest.

    >>> [n_columns(count, None) for count in (2, 4, 5, 6, 7, 10, 24)]
    [2, 4, 3, 3, 4, 5, 4]
    >>> n_columns(6, 3.5), n_columns(12, None, row_length=6)
    (2, 6)
    """
    room = COLUMNS[-1] if width is None else max(int(width / MIN_PANEL), 1)
    if row_length and (width is None or row_length <= room):
        return row_length
    if count <= min(room, COLUMNS[0]):
        return count
    fitting = [c for c in COLUMNS if c <= room and c < count] or [room]
    return max(fitting, key=lambda c: (count % c or c) / c)


def _shared_factors(displays: Sequence[ReliabilityDisplay]) -> dict[str, float]:
    """Return the factors of bars that suit all diagrams, so that they are alike."""
    shown = [one.frame("histogram") for one in displays if one.histogram]
    own = [bar_factors(parts["weight"], parts["events"]) for parts in shown]
    return {name: min(one[name] for one in own) for name in (own[0] if own else ())}


def _name_outer_axes(panels: Sequence[Axes], columns: int) -> None:
    """Name axes and ticks only where no neighbour names the same."""
    named = named_rows(len(panels), columns)
    for place, ax in enumerate(panels):
        row, column = divmod(place, columns)
        if column > 0:
            ax.tick_params(axis="y", labelleft=False)
            ax.set_ylabel("")
        if not named[row]:
            ax.set_xlabel("")
            for child in (ax, *ax.child_axes):
                child.tick_params(axis="x", labelbottom=False)


def _curve_entries(displays: Sequence[ReliabilityDisplay], pen: Pen) -> dict[str, Any]:
    """Return what a key says of colours, dots and bands of curves."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    style, band = pen.style, displays[0].band
    level = f"{100 * displays[0].statistics.confidence:g} %"
    dot: dict[str, Any] = {"color": style.ink, "marker": "o", "markersize": 3.0}
    entries: dict[str, Any] = {
        DIRECTIONS[part]: Patch(**direction_look(style, part))
        for part in drawn_directions(displays)
    }
    entries[f"bins, {level} intervals"] = Line2D([], [], lw=pen.line(0.7), **dot)
    if band is not None:
        entries[str(band)] = Patch(color=style.ink, alpha=style.band_alpha, lw=0.0)
    return entries


def draw_overlay(
    displays: Sequence[ReliabilityDisplay],
    ax: Axes | None,
    style: StyleName,
    width: float | None,
    parts: Mapping[str, Any],
) -> Axes:
    """Draw all curves into one diagram and return its axes."""
    if len(displays) > MAX_CURVES:
        raise OptionError(
            f"one diagram shows at most {MAX_CURVES} curves; got {len(displays)}. "
            "Draw one diagram each instead: without --overlay, or by plot() in Python."
        )
    names = names_apart([one.name or "" for one in displays], MAX_NAME)
    displays = [
        replace(one, name=name) for one, name in zip(displays, names, strict=True)
    ]
    first, strips = displays[0], STRIP * len(displays)
    unnamed = replace(first, name=None, kind="curve")
    below = strips + HISTOGRAM_GAP
    ax, pen = axes_and_pen(unnamed, ax, style, width, parts, below=below)
    pen = replace(pen, decimals=_decimals(displays))
    prepare_axes(first, ax, pen)
    for number, display in enumerate(displays):
        colour, dashes = pen.style.look(number)
        if len(displays) <= MAX_BANDS:
            draw_band(display, ax, pen, color=colour, alpha=pen.style.band_alpha)
        look: dict[str, Any] = {"color": colour, "linestyle": dashes, "zorder": 2.6}
        look |= {"linewidth": pen.line(1.3), "label": _numbers(display, pen)}
        pen.draw("curve", ax.plot, *curve_line(display), **look)
    _name_curves(displays, ax, pen)
    name_axes(first, ax, pen)
    if first.histogram:
        _draw_strips(displays, ax, pen, strips)
    return ax


def _decimals(displays: Sequence[ReliabilityDisplay]) -> int:
    return max(display.statistics.decimals for display in displays)


def _numbers(display: ReliabilityDisplay, pen: Pen) -> str:
    return f"{_short_name(display)}: {display.statistics.error_text(pen.decimals)}"


def _short_name(display: ReliabilityDisplay) -> str:
    return shortened(display.name or "", MAX_NAME)


def _name_curves(displays: Sequence[ReliabilityDisplay], ax: Axes, pen: Pen) -> None:
    """Write names beside two curves where both have room, and errors in a corner.

    Of more curves, names would stand on other curves; they stand in the key.
    """
    from matplotlib.patheffects import withStroke

    spots = label_spots(displays)
    named = len(displays) <= MAX_NAMED and None not in spots
    spots = spots if named else []
    halo = [withStroke(linewidth=2, foreground="white")]
    for number, (display, spot) in enumerate(zip(displays, spots, strict=False)):
        if spot is not None:
            x, y, above = spot
            ax.annotate(
                _short_name(display),
                (x, y),
                xycoords="axes fraction",
                xytext=(-3.0, 2.0) if above else (3.0, -2.0),
                textcoords="offset points",
                ha="right" if above else "left",
                va="bottom" if above else "top",
                fontsize=pen.size,
                fontweight="bold",
                color=pen.style.look(number)[0],
                path_effects=halo,
                zorder=4,
            )
    if pen.shows("statistics") or not named:
        level = f"{100 * displays[0].statistics.confidence:g} %"
        lines = [line for line in ax.lines if ": " in str(line.get_label())]
        shown = pen.shows("statistics")
        band, title = displays[0].band, f"calibration error [{level} interval]"
        if ax.collections and band is not None:
            title += f"\n{band.kind} bands"
        labels = [_numbers(one, pen) if shown else _short_name(one) for one in displays]
        ax.legend(
            handles=lines,
            labels=labels[: len(lines)],  # curves may be left out
            labelcolor="linecolor" if named else None,
            title=title if shown else None,
            loc=free_corner(list(displays)),
            framealpha=0.8,
            edgecolor="none",
            alignment="left",
            fontsize=pen.size * SMALL,
            title_fontsize=pen.size * SMALL,
            handlelength=0.0 if named else 1.8,
            handletextpad=0.0 if named else 0.6,
            borderaxespad=0.4,
        )


def label_spots(
    displays: Sequence[ReliabilityDisplay],
) -> list[tuple[float, float, bool] | None]:
    """Return where each curve is farthest from others, and whether it is above them.

    In shares of the axes; None for a curve that is nowhere far enough.
    """
    heights = []
    for display in displays:
        curve = (display.curve.p, display.curve.calibrated)
        x, y = map(Axis.of(display).share, curve)
        heights.append(np.interp(LABEL_PLACES, x, y, left=np.nan, right=np.nan))
    spots: list[tuple[float, float, bool] | None] = []
    for number, own in enumerate(heights):
        rest = [line for k, line in enumerate(heights) if k != number]
        others = np.array(rest or [LABEL_PLACES])  # a single curve: the diagonal
        apart = np.where(np.isnan(others), np.inf, np.abs(others - own)).min(axis=0)
        # Where another curve has no predictions, the diagonal stands for it.
        above = own > np.where(np.isnan(others), LABEL_PLACES, others).mean(axis=0)
        inside = np.where(above, own < 1.0 - MIN_DISTANCE, own > MIN_DISTANCE)
        apart = np.where(inside, apart, 0.0)  # NaN is not inside
        at = int(np.argmax(apart))
        if apart[at] < MIN_DISTANCE:
            spots.append(None)
            continue
        spots.append((float(LABEL_PLACES[at]), float(own[at]), bool(above[at])))
    return spots


def _draw_strips(
    displays: Sequence[ReliabilityDisplay], ax: Axes, pen: Pen, share: float
) -> None:
    """Draw how the predictions of each model are distributed, in a strip for each."""
    below = axes_below(ax, pen, share)
    for number, display in enumerate(displays):
        parts, axis = display.frame("histogram"), Axis.of(display)
        left, right = axis.held(parts["left"]), axis.held(parts["right"])
        height = 0.85 * parts["weight"] / parts["weight"].max()
        floor = -1.0 - number
        look: dict[str, Any] = {"align": "edge", "color": pen.style.look(number)[0]}
        below.bar(left, height, right - left, bottom=floor, linewidth=0.0, **look)
        below.axhline(floor, color=pen.style.soft, linewidth=pen.line(0.4))
        top = 1.0 - (number + 0.08) / len(displays)
        name = _short_name(display)
        name_bars(below, name, top, (left, right, height), pen)
    below.set_ylim(-len(displays) - 0.02, 0.0)
