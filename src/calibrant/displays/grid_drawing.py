"""Small multiples: several diagrams side by side, without an empty cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from calibrant.displays.curve_drawing import TOO_HIGH, TOO_LOW, direction_look
from calibrant.displays.drawing import (
    draw_key,
    draw_panel,
    draw_reliability,
    explain,
    make_pen,
    n_entries,
    new_panels,
)
from calibrant.displays.layout import Layout, named_rows
from calibrant.displays.style import TWO_COLUMNS, check_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen, StyleName

MIN_PANEL, WIDE_PANEL = 1.35, 2.2
"""Inches: the narrowest diagram, and one in which slope and intercept fit."""
COLUMNS = (4, 3, 5)
"""Numbers of columns of many diagrams, the first that leaves fewest cells empty."""


def draw_grid(
    displays: Sequence[ReliabilityDisplay],
    style: StyleName,
    width: float | None,
    parts: Mapping[str, Any],
) -> Figure:
    """Draw diagrams in rows and return the figure."""
    if len(displays) == 1:  # as large as a diagram by itself
        ax = draw_reliability(displays[0], None, style, width, parts)
        return cast("Figure", ax.figure)
    given = None if width is None else check_width(width)
    columns = n_columns(len(displays), given)
    inches = given or max(TWO_COLUMNS, 2.2 * columns)
    pen = make_pen(style, inches / columns, parts, room_below=True)
    curves = displays[0].kind == "curve"
    entries = 4 if curves else n_entries(displays[0])
    layout = Layout.of(displays, inches, columns, pen, entries=entries)
    figure, panels = new_panels(layout, len(displays))
    n_statistics = 3 if inches / columns >= WIDE_PANEL else 2
    quiet = _without_directions(pen) if curves else pen
    for display, ax in zip(displays, panels, strict=True):
        draw_panel(display, ax, quiet, n_statistics=n_statistics)
    _name_outer_axes(panels, columns)
    if curves:
        _draw_key(figure, displays, pen)
    else:
        explain(figure, panels, pen)
    return figure


def n_columns(count: int, width: float | None) -> int:
    """Return the number of columns that leaves the last row fullest.

    Examples
    --------
    >>> [n_columns(count, None) for count in (2, 4, 5, 6, 7, 10, 24)]
    [2, 4, 3, 3, 4, 5, 4]
    >>> n_columns(6, 3.5)
    2
    """
    room = COLUMNS[-1] if width is None else max(int(width / MIN_PANEL), 1)
    if count <= min(room, COLUMNS[0]):
        return count
    fitting = [c for c in COLUMNS if c <= room and c < count] or [room]
    return max(fitting, key=lambda c: (count % c or c) / c)


def _without_directions(pen: Pen) -> Pen:
    """Return a pen for small diagrams, whose directions stand in the key below."""
    return replace(pen, changes={"directions": False, **pen.changes})


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


def _draw_key(figure: Figure, displays: Sequence[ReliabilityDisplay], pen: Pen) -> None:
    """Say below all diagrams what colours, dots and bands are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    style, band = pen.style, displays[0].band
    level = f"{100 * displays[0].statistics.confidence:g} %"
    dot: dict[str, Any] = {"color": style.ink, "marker": "o", "markersize": 3.0}
    handles: dict[str, Any] = {
        TOO_HIGH: Patch(**direction_look(style, "over")),
        TOO_LOW: Patch(**direction_look(style, "under")),
        f"bins, {level} intervals": Line2D([], [], linewidth=pen.line(0.7), **dot),
    }
    if band is not None:
        handles[str(band)] = Patch(color=style.ink, alpha=style.band_alpha, lw=0.0)
    draw_key(figure, handles, pen)
