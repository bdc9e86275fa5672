"""Small multiples: several diagrams side by side, without an empty cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.displays.curve_drawing import TOO_HIGH, TOO_LOW, direction_look
from calibrant.displays.drawing import (
    draw_panel,
    draw_reliability,
    explain,
    figure_of,
    make_pen,
    new_figure,
    title_of,
    wrapped,
)
from calibrant.displays.panels import HISTOGRAM_ROOM
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
        return figure_of(draw_reliability(displays[0], None, style, width, parts))
    given = None if width is None else check_width(width)
    columns = n_columns(len(displays), given)
    inches = given or max(TWO_COLUMNS, 2.2 * columns)
    pen = make_pen(style, inches / columns, parts)
    layout = Layout.of(displays, inches, columns, pen)
    figure = new_figure(inches, layout.height)
    figure.set_layout_engine("none")  # all places are known
    count = len(displays)
    panels = [figure.add_axes(layout.box(place, count)) for place in range(count)]
    n_statistics = 3 if inches / columns >= WIDE_PANEL else 2
    quiet = pen if displays[0].kind != "curve" else _without_directions(pen)
    for display, ax in zip(displays, panels, strict=True):
        draw_panel(display, ax, quiet, n_statistics=n_statistics)
    _name_outer_axes(panels, columns)
    if displays[0].kind == "curve":
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


@dataclass(frozen=True)
class Layout:
    """Where diagrams stand in a figure, in inches.

    Attributes
    ----------
    width, side, left, gap : float
        Of the figure and of each square; what is left of the first, and between two.
    columns : int
        Diagrams in a full row.
    heads, feet : tuple of float
        What is above the squares of each row, and below them.
    key : float
        What is below everything.
    """

    width: float
    side: float
    left: float
    gap: float
    columns: int
    heads: tuple[float, ...]
    feet: tuple[float, ...]
    key: float

    @classmethod
    def of(
        cls,
        displays: Sequence[ReliabilityDisplay],
        width: float,
        columns: int,
        pen: Pen,
    ) -> Layout:
        """Return a layout in which all names have room."""
        line, first = pen.size / 72.0, displays[0]
        gap = 1.5 * line
        room = (width - 6.0 * line - gap * (columns - 1)) / columns
        names = [wrapped(text, room, pen).count("\n") for text in first.axis_labels]
        left = (4.6 + 1.2 * names[1]) * line
        side = (width - left - 1.4 * line - gap * (columns - 1)) / columns
        titles = [_lines(title_of(display, side, pen)) for display in displays]
        starts = range(0, len(displays), columns)
        heads = [(0.9 + 1.5 * max(titles[s : s + columns])) * line for s in starts]
        named = _named_rows(len(displays), columns)
        foot = HISTOGRAM_ROOM * side if first.histogram else 0.0
        named_foot = foot + (4.0 + 1.2 * names[0]) * line
        feet = [named_foot if here else foot + 0.8 * line for here in named]
        key = (1.2 + 1.6 * _key_rows(width, first, pen)) * line
        return cls(width, side, left, gap, columns, tuple(heads), tuple(feet), key)

    @property
    def height(self) -> float:
        """Return the height of the figure."""
        squares = self.side * len(self.heads)
        return sum(self.heads) + squares + sum(self.feet) + self.key

    def box(self, place: int, count: int) -> tuple[float, float, float, float]:
        """Return the square of a diagram as shares of the figure.

        Diagrams of a last row that is not full are centred.
        """
        row, column = divmod(place, self.columns)
        missing = self.columns - min(count - row * self.columns, self.columns)
        x = self.left + (column + 0.5 * missing) * (self.side + self.gap)
        above = sum(self.heads[: row + 1]) + sum(self.feet[:row]) + row * self.side
        y = self.height - above - self.side
        sizes = (x / self.width, y / self.height)
        return (*sizes, self.side / self.width, self.side / self.height)


def _lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _named_rows(count: int, columns: int) -> list[bool]:
    """Tell which rows name their ticks: the last, and one above a row not full.

    Examples
    --------
    >>> _named_rows(5, 3), _named_rows(6, 3)
    ([True, True], [False, True])
    """
    rows = -(-count // columns)
    named = rows - 2 if count % columns else rows - 1
    return [row >= named for row in range(rows)]


def _without_directions(pen: Pen) -> Pen:
    """Return a pen for small diagrams, whose directions stand in the key below."""
    return type(pen)(pen.style, pen.size, {"directions": False, **pen.changes})


def _name_outer_axes(panels: Sequence[Axes], columns: int) -> None:
    """Name axes and ticks only where no neighbour names the same."""
    named = _named_rows(len(panels), columns)
    for place, ax in enumerate(panels):
        row, column = divmod(place, columns)
        if column > 0:
            ax.tick_params(axis="y", labelleft=False)
            ax.set_ylabel("")
        if not named[row]:
            ax.set_xlabel("")
            for child in (ax, *ax.child_axes):
                child.tick_params(axis="x", labelbottom=False)


def _key_columns(width: float, pen: Pen) -> int:
    return max(int(width * 72.0 / (15.0 * pen.size)), 1)


def _key_rows(width: float, display: ReliabilityDisplay, pen: Pen) -> int:
    entries = 4 if display.band is not None else 3
    return -(-entries // min(_key_columns(width, pen), entries))


def _draw_key(figure: Figure, displays: Sequence[ReliabilityDisplay], pen: Pen) -> None:
    """Say below all diagrams what colours, dots and bands are."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    style, band = pen.style, displays[0].band
    level = f"{100 * displays[0].statistics.confidence:g} %"
    dot: dict[str, Any] = {"color": style.ink, "marker": "o", "markersize": 3.0}
    handles: dict[str, Patch | Line2D] = {
        TOO_HIGH: Patch(**direction_look(style, "over")),
        TOO_LOW: Patch(**direction_look(style, "under")),
        f"bins, {level} intervals": Line2D([], [], linewidth=pen.line(0.7), **dot),
    }
    if band is not None:
        handles[str(band)] = Patch(color=style.ink, alpha=style.band_alpha, lw=0.0)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="lower center",
        ncols=min(len(handles), _key_columns(figure.get_figwidth(), pen)),
        frameon=False,
        fontsize=pen.size * 0.92,
        handlelength=1.4,
        columnspacing=1.4,
    )
