"""The paper's diagrams: bars, bars with centres, and diagonal filling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.curve_drawing import draw_band, draw_truth
from calibrant.displays.panels import kept, places

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.core.array_types import FloatVector
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen

DISTANCE = "distance to the diagonal"
MIN_STEP = 0.04
"""Dots nearer than this share of the axis are left out: a map that is a mean of others
has the knots of them all."""


def draw_binned(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Draw filling, bars, dots and lines to the diagonal, as the kind wants them."""
    if display.kind == "diagonal" or not display.binned:
        _draw_filling(display, ax, pen)
    if display.binned:
        _draw_bars(display, ax, pen)
    draw_band(display, ax, pen, color=pen.style.ink, alpha=0.3)
    p, height = _centres(display)
    if display.kind == "centres" and pen.shows("gaps"):
        # Where the map is filled, the distance is in the legend already.
        _draw_gaps(display, ax, pen, p, height, DISTANCE if display.binned else "")
    if display.kind != "bars" and p.size and pen.shows("bins"):
        x, y = kept(p, display.limits), kept(height, display.limits)
        look: dict[str, Any] = {"color": pen.style.gap, "markersize": pen.line(3.2)}
        look |= {"linestyle": "none", "marker": "o", "clip_on": False, "zorder": 3}
        look["label"] = "means of the bins" if display.binned else "knots"
        ax.plot(x, y, **pen.keywords("bins", **look))
    draw_truth(display, ax, pen)


def _centres(display: ReliabilityDisplay) -> tuple[FloatVector, FloatVector]:
    """Return the dots of a diagram: bin centres, or some knots if it has no bins."""
    if display.binned:
        bins = display.frame("bins")
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
    bins, (low, _) = display.frame("bins"), display.limits
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


def _draw_gaps(
    display: ReliabilityDisplay,
    ax: Axes,
    pen: Pen,
    p: FloatVector,
    height: FloatVector,
    label: str,
) -> None:
    x, end = kept(p, display.limits), kept(height, display.limits)
    look = {"color": pen.style.gap, "linewidth": pen.line(0.9), "label": label}
    ax.vlines(x, x, end, **pen.keywords("gaps", **look))
