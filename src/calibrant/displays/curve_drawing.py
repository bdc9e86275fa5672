"""The diagram of a curve: map, band, dots with intervals, directions, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.displays.panels import kept, line_within, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from calibrant.core.array_types import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen, Style

Corner: TypeAlias = Literal["upper left", "lower right"]
TRUE_MAP, INSTANCE = "true map", "error of one row"
TOO_LOW, TOO_HIGH = "predictions too low", "predictions too high"
DIRECTIONS = {"over": TOO_HIGH, "under": TOO_LOW}
"""What the sides of the diagonal mean, by the part of a diagram that is drawn there."""
SIDES: dict[str, Corner] = {"over": "lower right", "under": "upper left"}
VISIBLE = 0.01
"""A curve nearer to the diagonal than this share of the axes lies on it."""
CORNER_WIDTH, CORNER_HEIGHT = 0.62, 0.3
"""Shares of the axes that statistics in a corner take at most."""
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
    _draw_directions(display, ax, pen)
    draw_band(display, ax, pen, color=pen.style.ink, alpha=pen.style.band_alpha)
    draw_truth(display, ax, pen)
    if pen.shows("curve"):
        look = {"color": pen.style.ink, "linewidth": pen.line(1.1), "zorder": 2.6}
        ax.plot(*_curve(display), **pen.keywords("curve", **look))
    if pen.shows("bins"):
        draw_dots(display, ax, pen)
    write_corners(display, ax, pen, n_statistics, above=above)


def _curve(display: ReliabilityDisplay) -> tuple[Any, Any]:
    curve = display.curve
    x, y = line_within(display.limits, curve.p, curve.calibrated)
    return x, y


def _draw_directions(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Fill the gap to the diagonal, in one colour above it and in another below."""
    x, y = _curve(display)
    sides = {"over": np.minimum(x, y), "under": np.maximum(x, y)}
    for part, edge in sides.items():
        if pen.shows(part):
            look = direction_look(pen.style, part)
            ax.fill_between(x, x, edge, zorder=1.5, **pen.keywords(part, **look))


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
    if band is None or not pen.shows("band"):
        return
    x, low, high = line_within(display.limits, band.p, band.low, band.high)
    look: dict[str, Any] = {"color": color, "alpha": alpha, "linewidth": 0.0}
    look |= {"label": str(band), "zorder": 1.6}
    ax.fill_between(x, low, high, **pen.keywords("band", **look))


def draw_truth(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Draw the true map and the errors of some rows, where they are known."""
    truth, lines = display.true_map, display.instances
    if truth is not None and pen.shows("true_map"):
        x, y = line_within(display.limits, truth.p, truth.calibrated)
        look: dict[str, Any] = {"color": pen.style.truth, "linewidth": pen.line(1.1)}
        look |= {"label": TRUE_MAP, "linestyle": (0, (5, 1)), "zorder": 2.5}
        ax.plot(x, y, **pen.keywords("true_map", **look))
    if lines is not None and pen.shows("instances"):
        x, y = kept(lines.p, display.limits), kept(lines.calibrated, display.limits)
        look = {"color": pen.style.gap, "linewidth": pen.line(0.9), "label": INSTANCE}
        ax.vlines(x, x, y, **pen.keywords("instances", **look))


def draw_dots(display: ReliabilityDisplay, ax: Axes, pen: Pen, **changes: Any) -> None:
    """Draw the mean of each bin within the axes, with the interval of its rate.

    Rates that lie beyond logit axes, such as 0, are triangles at the end.
    """
    bins, (start, end) = display.bins, display.limits
    inside = (bins["predicted"] >= start) & (bins["predicted"] <= end)
    names = ("predicted", "observed", "low", "high")
    x, y, low, high = (kept(bins[name][inside], display.limits) for name in names)
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "color": pen.style.ink}
    look |= {"markersize": pen.line(2.9), "elinewidth": pen.line(0.7), "zorder": 2.8}
    look |= {"markeredgecolor": "white", "markeredgewidth": pen.line(0.4)} | changes
    keywords = pen.keywords("bins", **look)
    off = np.sign(bins["observed"][inside] - y)
    for side, marker in ((0.0, keywords["marker"]), (-1.0, "v"), (1.0, "^")):
        at = off == side
        if at.any():
            keywords |= {"marker": marker}
            bars = [(y - low)[at], (high - y)[at]]
            ax.errorbar(x[at], y[at], yerr=bars, **keywords)


def write_corners(
    display: ReliabilityDisplay,
    ax: Axes,
    pen: Pen,
    n_statistics: int,
    *,
    above: bool = False,
) -> None:
    """Say which side is which, and write the statistics where there is more room."""
    sides: dict[Corner, str] = {}
    if pen.shows("directions"):
        sides = {SIDES[part]: part for part in drawn_directions([display])}
    for side, part in sides.items():
        look = {"color": getattr(pen.style, part), "fontsize": pen.size * 0.88}
        text = [DIRECTIONS[part]]
        write_in_corner(ax, text, side, **pen.keywords("directions", **look))
    corner = free_corner([display])
    if pen.shows("statistics"):
        lines = display.statistics.lines(pen.decimals)[:n_statistics]
        size = 0.88 * pen.size * ax.figure.dpi / 72.0 / ax.get_window_extent().width
        other_corner: Corner = "lower right" if corner == "upper left" else "upper left"
        if not has_free_corner(display, len(lines) + 1, size, corner) and (
            has_free_corner(display, len(lines) + 1, size, other_corner)
        ):
            corner = other_corner
        look = {"color": pen.style.ink, "fontsize": pen.size * 0.88}
        keywords = pen.keywords("statistics", **look)
        skipped = 1.1 if corner in sides else 0.0
        if above:
            skipped = -len(lines) - 0.7
        place = "upper left" if above else corner
        write_in_corner(ax, lines, place, skipped=skipped, **keywords)
    if display.true_map is not None or display.instances is not None:
        handles, labels = ax.get_legend_handles_labels()
        wanted = {TRUE_MAP, INSTANCE}
        pairs = zip(handles, labels, strict=True)
        other: Corner = "lower right" if corner == "upper left" else "upper left"
        ax.legend(
            handles=[handle for handle, label in pairs if label in wanted],
            loc=other,
            frameon=False,
            fontsize=pen.size * 0.88,
            borderaxespad=1.8,
        )


def drawn_directions(displays: Sequence[ReliabilityDisplay]) -> list[str]:
    """Return the directions, "under" and "over", in which a curve visibly departs."""
    found: set[str] = set()
    for display in displays:
        curve = display.curve
        p, calibrated = line_within(display.limits, curve.p, curve.calibrated)
        found |= directions_of(places(p, display), places(calibrated, display))
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


def has_free_corner(
    display: ReliabilityDisplay, n_statistics: int, size: float, corner: Corner
) -> bool:
    """Tell whether neither the curve nor a bar reaches into statistics in a corner.

    The `size` of text is a share of that of the axes.
    """
    lines = display.statistics.lines()[:n_statistics]
    width = MARGIN + LETTER * size * max(map(len, lines))
    height = MARGIN + LINE * size * n_statistics
    bins, upper = display.bins, corner == "upper left"
    ends = (bins["predicted"], bins["high" if upper else "low"])
    for p, rate in ((display.curve.p, display.curve.calibrated), ends):
        x, y = places(p, display), places(rate, display)
        x, y = (x, y) if upper else (1.0 - x, 1.0 - y)
        if ((x < width) & (y > 1.0 - height)).any():
            return False
    return True


def free_corner(displays: list[ReliabilityDisplay]) -> Corner:
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
        for p, height in lines:
            x, y = places(p, display), places(height, display)
            inside = (x < CORNER_WIDTH) & (y > 1.0 - CORNER_HEIGHT)
            upper += float(inside.mean())
            inside = (x > 1.0 - CORNER_WIDTH) & (y < CORNER_HEIGHT)
            lower += float(inside.mean())
    return "upper left" if upper <= lower else "lower right"
