"""Several curves in one diagram: models, groups, or before and after a repair."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.curve_drawing import draw_band, free_corner
from calibrant.displays.drawing import (
    check_no_width,
    make_pen,
    name_axes,
    new_panels,
)
from calibrant.displays.layout import Layout
from calibrant.displays.names import shortened
from calibrant.displays.panels import (
    HISTOGRAM_GAP,
    axes_below,
    axes_inches,
    kept,
    move_names_below,
    name_bars,
    places,
    prepare_axes,
    quiet_frame,
)
from calibrant.displays.style import SCREEN_WIDTH, Dashes, check_width
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from calibrant.core.array_types import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen, StyleName

MAX_CURVES, MAX_BANDS = 8, 3
"""Curves of one diagram; with more than the second, bands would hide each other."""
MIN_DISTANCE = 0.07
"""Share of the axis that a curve must keep from others for its name to stand there."""
STRIP = 0.085
"""Height of the distribution of one model, as a share of the diagram."""
LABEL_PLACES = np.linspace(0.2, 0.8, 121)
MAX_NAME = 16


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
            "Draw them side by side with plot."
        )
    first, strips = displays[0], STRIP * len(displays)
    if ax is None:
        inches = check_width(SCREEN_WIDTH if width is None else width)
        pen = make_pen(style, inches, parts, room_below=True)
        unnamed = replace(first, name=None, kind="curve")
        below = strips + HISTOGRAM_GAP
        layout = Layout.of(
            [unnamed], inches, 1, pen, entries=0, roomy=width is None, below=below
        )
        _, (ax,) = new_panels(layout, 1)
    else:
        check_no_width(width)
        pen = make_pen(style, axes_inches(ax), parts)
    prepare_axes(first, ax, pen)
    for number, display in enumerate(displays):
        banded = len(displays) <= MAX_BANDS
        _draw_line(display, ax, pen, number, banded=banded)
    _name_curves(displays, ax, pen)
    name_axes(first, ax, pen)
    if first.histogram:
        _draw_strips(displays, ax, pen, strips)
    return ax


def _look(pen: Pen, number: int) -> tuple[str, Dashes]:
    """Return colour and dashes of a curve."""
    series, dashes = pen.style.series, pen.style.dashes
    return series[number % len(series)], dashes[number % len(dashes)]


def _draw_line(
    display: ReliabilityDisplay, ax: Axes, pen: Pen, number: int, *, banded: bool
) -> None:
    colour, dashes = _look(pen, number)
    if banded:
        draw_band(display, ax, pen, color=colour, alpha=pen.style.band_alpha)
    if pen.shows("curve"):
        x = kept(display.curve.p, display.limits)
        y = kept(display.curve.calibrated, display.limits)
        look: dict[str, Any] = {"color": colour, "linestyle": dashes}
        look |= {"linewidth": pen.line(1.3), "zorder": 2.6, "label": _numbers(display)}
        ax.plot(x, y, **pen.keywords("curve", **look))


def _numbers(display: ReliabilityDisplay) -> str:
    name = shortened(display.name or "", MAX_NAME)
    return f"{name}: {display.statistics.error_text()}"


def _name_curves(displays: Sequence[ReliabilityDisplay], ax: Axes, pen: Pen) -> None:
    """Write names beside the curves where all have room, and errors in a corner."""
    from matplotlib.patheffects import withStroke

    spots = label_spots(displays)
    halo = [withStroke(linewidth=2, foreground="white")]
    for number, (display, spot) in enumerate(zip(displays, spots, strict=True)):
        if spot is not None:
            x, y, above = spot
            ax.annotate(
                shortened(display.name or "", MAX_NAME),
                (x, y),
                xycoords="axes fraction",
                xytext=(-3.0, 2.0) if above else (3.0, -2.0),
                textcoords="offset points",
                ha="right" if above else "left",
                va="bottom" if above else "top",
                fontsize=pen.size,
                fontweight="bold",
                color=_look(pen, number)[0],
                path_effects=halo,
                zorder=4,
            )
    if pen.shows("statistics"):
        level = f"{100 * displays[0].statistics.confidence:g} %"
        lines = [line for line in ax.lines if ": " in str(line.get_label())]
        named = None not in spots
        ax.legend(
            handles=lines,
            labelcolor="linecolor" if named else None,
            title=f"calibration error [{level} interval]",
            loc=free_corner(list(displays)),
            framealpha=0.8,
            edgecolor="none",
            alignment="left",
            fontsize=pen.size * 0.88,
            title_fontsize=pen.size * 0.88,
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
    heights = [_height_at(display, LABEL_PLACES) for display in displays]
    spots: list[tuple[float, float, bool] | None] = []
    for number, own in enumerate(heights):
        rest = [line for k, line in enumerate(heights) if k != number]
        others = np.array(rest or [LABEL_PLACES])  # a single curve: the diagonal
        apart = np.where(np.isnan(others), np.inf, np.abs(others - own)).min(axis=0)
        above = own > np.nanmean(others, axis=0)
        inside = np.where(above, own < 1.0 - MIN_DISTANCE, own > MIN_DISTANCE)
        apart = np.where(inside, apart, 0.0)  # NaN is not inside
        at = int(np.argmax(apart))
        if apart[at] < MIN_DISTANCE:
            spots.append(None)
            continue
        spots.append((float(LABEL_PLACES[at]), float(own[at]), bool(above[at])))
    return spots


def _height_at(display: ReliabilityDisplay, at: FloatVector) -> FloatVector:
    """Return how high a curve is at places on the axis; NaN beyond its ends."""
    x = places(display.curve.p, display)
    y = places(display.curve.calibrated, display)
    return np.interp(at, x, y, left=np.nan, right=np.nan)


def _draw_strips(
    displays: Sequence[ReliabilityDisplay], ax: Axes, pen: Pen, share: float
) -> None:
    """Draw how the predictions of each model are distributed, in a strip for each."""
    below = axes_below(ax, pen, share)
    quiet_frame(below, pen)
    for number, display in enumerate(displays):
        parts = display.frame("histogram")
        left, right = (kept(parts[end], display.limits) for end in ("left", "right"))
        height = 0.85 * parts["weight"] / parts["weight"].max()
        floor = -1.0 - number
        look: dict[str, Any] = {"align": "edge", "color": _look(pen, number)[0]}
        below.bar(left, height, right - left, bottom=floor, linewidth=0.0, **look)
        below.axhline(floor, color=pen.style.soft, linewidth=pen.line(0.4))
        top = 1.0 - (number + 0.08) / len(displays)
        name = shortened(display.name or "", MAX_NAME)
        name_bars(below, name, top, (left, right, height), pen)
    below.set(ylim=(-len(displays) - 0.02, 0.0), yticks=[])
    for side in ("top", "left", "right", "bottom"):
        below.spines[side].set_visible(False)
    move_names_below(ax, below, pen, share)
