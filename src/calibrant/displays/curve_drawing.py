"""The diagram of a curve: map, band, dots with intervals, directions, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.displays.axes import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from calibrant.core.array_types import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen, Style

Corner: TypeAlias = Literal["upper left", "lower right"]
OPPOSITE: dict[Corner, Corner] = {
    "upper left": "lower right",
    "lower right": "upper left",
}
TRUE_MAP, INSTANCE = "true map", "error of one row"
TOO_LOW, TOO_HIGH = "predictions too low", "predictions too high"
DIRECTIONS = {"over": TOO_HIGH, "under": TOO_LOW}
"""What the sides of the diagonal mean, by the part of a diagram that is drawn there."""
SIDES: dict[str, Corner] = {"over": "lower right", "under": "upper left"}
VISIBLE = 0.01
"""A curve nearer to the diagonal than this share of the axes lies on it."""
CORNER_WIDTH, CORNER_HEIGHT = 0.62, 0.3
"""Shares of the axes that statistics in a corner take at most."""
SMALL = 0.88
"""Size of text within the axes, as a share of that beside them."""
LETTER, MARGIN = 0.45, 0.03
"""Width of a letter, in sizes of text, and what is left free beside text."""
LINE = 1.35
"""Distance of lines of text, in sizes of text."""


def draw_curve(
    display: ReliabilityDisplay,
    ax: Axes,
    pen: Pen,
    n_statistics: int,
    *,
    above: bool = False,
) -> None:
    """Draw all parts within the axes, with the statistics in a corner or `above`."""
    x, y = curve_line(display)
    for part, edge in {"over": np.minimum(x, y), "under": np.maximum(x, y)}.items():
        look = {"zorder": 1.5, **direction_look(pen.style, part)}
        pen.draw(part, ax.fill_between, x, x, edge, **look)
    draw_band(display, ax, pen, color=pen.style.ink, alpha=pen.style.band_alpha)
    draw_truth(display, ax, pen)
    look = {"color": pen.style.ink, "linewidth": pen.line(1.1), "zorder": 2.6}
    pen.draw("curve", ax.plot, x, y, **look)
    if pen.shows("bins"):
        draw_dots(display, ax, pen)
    write_corners(display, ax, pen, n_statistics, above=above)


def curve_line(display: ReliabilityDisplay) -> tuple[FloatVector, FloatVector]:
    """Return the curve within the axes."""
    x, y = Axis.of(display).cut(display.curve.p, display.curve.calibrated)
    return x, y


def direction_look(style: Style, part: str) -> dict[str, Any]:
    """Return how the area of one direction, "over" or "under", is filled."""
    colour, hatch = getattr(style, part), getattr(style, f"{part}_hatch")
    look: dict[str, Any] = {"alpha": style.fill_alpha, "linewidth": 0.0}
    if hatch:
        return look | {"facecolor": "none", "edgecolor": colour, "hatch": hatch}
    return look | {"facecolor": colour}


def draw_band(
    display: ReliabilityDisplay, ax: Axes, pen: Pen, *, color: str, alpha: float
) -> None:
    """Draw the band of the map, where it has one."""
    band = display.band
    if band is not None:
        lines = Axis.of(display).cut(band.p, band.low, band.high)
        look = {"color": color, "alpha": alpha, "linewidth": 0.0, "zorder": 1.6}
        pen.draw("band", ax.fill_between, *lines, label=str(band), **look)


def draw_truth(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Draw the true map and the errors of some rows, where they are known."""
    truth, rows, axis = display.true_map, display.instances, Axis.of(display)
    look: dict[str, Any]
    if truth is not None:
        look = {"color": pen.style.truth, "linewidth": pen.line(1.1), "zorder": 2.5}
        look |= {"linestyle": (0, (5, 1)), "label": TRUE_MAP}
        line = axis.cut(truth.p, truth.calibrated)
        pen.draw("true_map", ax.plot, *line, **look)
    if rows is not None:
        x, y = axis.held(rows.p), axis.held(rows.calibrated)
        look = {"color": pen.style.gap, "linewidth": pen.line(0.9), "label": INSTANCE}
        pen.draw("instances", ax.vlines, x, x, y, **look)


def draw_dots(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Draw the mean of each bin within the axes, with the interval of its rate.

    Rates that lie beyond logit axes, such as 0, are triangles at the end.
    """
    bins, axis = display.bins, Axis.of(display)
    start, end = axis.limits
    inside = (bins["predicted"] >= start) & (bins["predicted"] <= end)
    names = ("predicted", "observed", "low", "high")
    x, y, low, high = (axis.held(bins[name][inside]) for name in names)
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": pen.style.ink}
    look |= {"markersize": pen.line(2.9), "elinewidth": pen.line(0.7), "zorder": 2.8}
    look |= {"markeredgecolor": "white", "markeredgewidth": pen.line(0.4)}
    off = np.sign(bins["observed"][inside] - y)
    for side, marker in ((0.0, None), (-1.0, "v"), (1.0, "^")):
        at = off == side
        if at.any():
            bars = [(y - low)[at], (high - y)[at]]
            dots, *_ = pen.draw("bins", ax.errorbar, x[at], y[at], yerr=bars, **look)
            if marker is not None:
                dots.set_marker(marker)


def write_corners(
    display: ReliabilityDisplay,
    ax: Axes,
    pen: Pen,
    n_statistics: int,
    *,
    above: bool = False,
) -> None:
    """Say which side is which, and write the statistics where there is more room."""
    size, corner = SMALL * pen.size, free_corner([display])
    named: list[Corner] = []
    for part in drawn_directions([display]) if pen.shows("directions") else ():
        named.append(SIDES[part])
        look = {"color": getattr(pen.style, part), "fontsize": size}
        text = [DIRECTIONS[part]]
        pen.draw("directions", write_in_corner, ax, text, SIDES[part], **look)
    if pen.shows("statistics"):
        banded = pen.shows("band")
        lines = corner_lines(display, n_statistics, pen.decimals, banded=banded)
        share = size * ax.figure.dpi / 72.0 / ax.get_window_extent().width
        free = {
            place: has_free_corner(display, len(lines) + 1, share, place)
            for place in OPPOSITE
        }
        if free[OPPOSITE[corner]] and not free[corner]:
            corner = OPPOSITE[corner]
        place, skipped = corner, 1.1 if corner in named else 0.0
        if above:
            place, skipped = "upper left", -len(lines) - 0.7
        look = {"color": pen.style.ink, "fontsize": size, "skipped": skipped}
        pen.draw("statistics", write_in_corner, ax, lines, place, **look)
    if display.true_map is not None or display.instances is not None:
        pairs = zip(*ax.get_legend_handles_labels(), strict=True)
        ax.legend(
            handles=[line for line, label in pairs if label in (TRUE_MAP, INSTANCE)],
            loc=OPPOSITE[corner],
            frameon=False,
            fontsize=size,
            borderaxespad=1.8,
        )


def drawn_directions(displays: Sequence[ReliabilityDisplay]) -> list[str]:
    """Return the directions, "under" and "over", in which a curve visibly departs."""
    found: set[str] = set()
    for display in displays:
        found |= directions_of(*map(Axis.of(display).share, curve_line(display)))
    return [part for part in DIRECTIONS if part in found]


def directions_of(across: FloatVector, up: FloatVector) -> set[str]:
    """Return on which sides of the diagonal places on a curve lie.

    Examples
    --------
    >>> directions_of(np.array([0.2, 0.8]), np.array([0.2, 0.7]))
    {'over'}
    """
    rise = (up - across) if up.size else np.zeros(1)
    sides = {"under": rise.max() > VISIBLE, "over": rise.min() < -VISIBLE}
    return {part for part, there in sides.items() if there}


def write_in_corner(
    ax: Axes, lines: list[str], corner: str, *, skipped: float = 0.0, **keywords: Any
) -> None:
    """Write lines into a corner, beyond so many lines that are written there."""
    top = corner == "upper left"
    away = 4.0 + skipped * LINE * float(keywords["fontsize"])
    # Not an outline of letters: it would be set unhinted, and so in other places.
    behind = {"facecolor": "white", "alpha": 0.7, "linewidth": 0.0, "pad": 0.5}
    keywords.setdefault("bbox", behind)
    ax.annotate(
        "\n".join(lines),
        (0.0, 1.0) if top else (1.0, 0.0),
        xycoords="axes fraction",
        xytext=(4.0, -away) if top else (-4.0, away),
        textcoords="offset points",
        ha="left" if top else "right",
        va="top" if top else "bottom",
        linespacing=LINE,
        zorder=2.7,  # below dots and their bars
        **keywords,
    )


def corner_lines(
    display: ReliabilityDisplay,
    n_statistics: int,
    decimals: int = 0,
    *,
    banded: bool = True,
) -> list[str]:
    """Return the first statistics; the last of them also says what the band is."""
    lines = display.statistics.lines(decimals)
    if banded and display.band is not None:
        lines[-1] += f", {display.band.kind} band"
    return lines[:n_statistics]


def has_free_corner(
    display: ReliabilityDisplay, n_statistics: int, size: float, corner: Corner
) -> bool:
    """Tell whether neither the curve nor a bar reaches into statistics in a corner.

    The `size` of text is a share of that of the axes.
    """
    lines = corner_lines(display, n_statistics)
    width = MARGIN + LETTER * size * max(map(len, lines))
    height = MARGIN + LINE * size * n_statistics
    bins, upper = display.bins, corner == "upper left"
    ends = (bins["predicted"], bins["high" if upper else "low"])
    for line in ((display.curve.p, display.curve.calibrated), ends):
        x, y = map(Axis.of(display).share, line)
        x, y = (x, y) if upper else (1.0 - x, 1.0 - y)
        if ((x < width) & (y > 1.0 - height)).any():
            return False
    return True


def free_corner(displays: Sequence[ReliabilityDisplay]) -> Corner:
    """Return the corner in which less is drawn; the upper left one if both are alike.

    A corner begins at the end of both axes.
    """
    upper = lower = 0.0
    for display in displays:
        bins, band = display.bins, display.band
        lines = [(display.curve.p, display.curve.calibrated)]
        lines += [(bins["predicted"], bins[name]) for name in ("low", "high")]
        if band is not None:
            lines += [(band.p, band.low), (band.p, band.high)]
        for line in lines:
            x, y = map(Axis.of(display).share, line)
            upper += float(((x < CORNER_WIDTH) & (y > 1.0 - CORNER_HEIGHT)).mean())
            lower += float(((x > 1.0 - CORNER_WIDTH) & (y < CORNER_HEIGHT)).mean())
    return "upper left" if upper <= lower else "lower right"
