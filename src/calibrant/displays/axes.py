"""The axes of diagrams: their scale, ticks, frame, and the histogram below."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import logit

from calibrant.displays.diagram_data import mirrored_bars

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes

    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector, Space
    from calibrant.displays.diagram_data import Limits
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen

LOGIT_TICKS = (
    1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999,
    0.9999, 1 - 1e-5, 1 - 1e-6,
)  # fmt: skip
FEWER_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
FEWEST_TICKS = (1e-6, 1e-4, 0.01, 0.5, 0.99, 0.9999)
MAX_TICKS = 7
MARGIN = 0.02
"""Share of probability axes beyond 0 and 1, so that dots there are whole."""
HISTOGRAM_GAP, HISTOGRAM_HEIGHT = 0.03, 0.17
HISTOGRAM_ROOM = HISTOGRAM_GAP + HISTOGRAM_HEIGHT
"""Share of the height of the diagram that the histogram below it takes."""
NAMED_BARS, HIGH_BARS = 2.0, 0.5
"""Ends of bars' axis where they leave room for their name, and bars that it covers."""
TITLE_ROOM = 1.2
"""How far below the histogram's bottom names of ticks reach, in sizes of text."""


@dataclass(frozen=True)
class Axis:
    """Either axis of a diagram: both are alike."""

    space: Space
    limits: Limits

    @classmethod
    def of(cls, display: ReliabilityDisplay) -> Axis:
        """Return the axis of a diagram."""
        return cls(display.axes, display.limits)

    def held(self, values: ArrayLike) -> FloatVector:
        """Hold points within the axes; those of logits cannot reach 0 and 1."""
        return np.clip(np.asarray(values, dtype=np.float64), *self.limits)

    def share(self, values: ArrayLike) -> FloatVector:
        """Return how far along the axis values lie, 0 to 1.

        >>> Axis("logit", (0.1, 0.9)).share([0.1, 0.5, 2])
        array([0. , 0.5, 1. ])
        """
        start, end = self._ends
        at = self._scaled(self.held(values))
        return np.asarray((at - start) / (end - start))[()]

    def _scaled(self, values: FloatVector) -> FloatVector:
        """Return values on the scale of the axis; no limit of logits is 0 or 1."""
        return np.asarray(logit(values)) if self.space == "logit" else values

    @cached_property
    def _ends(self) -> FloatVector:
        return self._scaled(np.array(self.limits))

    def cut(self, p: FloatVector, *heights: FloatVector) -> tuple[FloatVector, ...]:
        """Return the part of lines over p within the axes, cut where the axes end.

        Holding points beyond the axes instead would draw a line along their edge.

        Examples
        --------
        >>> p, height = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.4, 0.8])
        >>> x, y = Axis("logit", (0.3, 0.6)).cut(p, height)
        >>> x.tolist(), y.round(2).tolist()
        ([0.3, 0.5, 0.6], [0.3, 0.4, 0.5])
        """
        start, end = self.limits
        inside = (p >= start) & (p <= end)
        low = [start] if p.min() < start < p.max() else []
        high = [end] if p.min() < end < p.max() else []

        def part(line: FloatVector) -> FloatVector:
            first, last = (np.interp(at, p, line) for at in (low, high))
            return np.concatenate([first, line[inside], last])

        return (part(p), *(self.held(part(line)) for line in heights))

    def cut_shares(self, curves: Iterable[Iterable[FloatVector]]) -> list[FloatMatrix]:
        """Return how far along both axes the part of each curve lies within them.

        A curve is p, and one or more lines of heights over it.
        """
        return [np.asarray(self.share(np.stack(self.cut(*lines)))) for lines in curves]

    @cached_property
    def ticks(self) -> list[tuple[float, str]]:
        """Return the ticks and their names.

        >>> [name for _, name in Axis("logit", (2e-4, 0.3)).ticks]
        ['0.001', '0.01', '0.05', '0.1', '0.2']
        """
        if self.space == "prob":
            return [(tick / 5.0, f"{tick / 5.0:.1f}") for tick in range(6)]
        low, high = self.limits
        ticks: list[float] = []
        for some in (LOGIT_TICKS, FEWER_TICKS, FEWEST_TICKS):
            ticks = [tick for tick in some if low <= tick <= high]
            if len(ticks) <= MAX_TICKS:
                break
        return [(tick, f"{tick:.6g}".replace("e-0", "e-")) for tick in ticks]

    @cached_property
    def tick_shares(self) -> FloatVector:
        """Return how far along the axis the ticks lie."""
        return self.share([tick for tick, _ in self.ticks])


def axes_inches(ax: Axes) -> float:
    """Return the inches that axes have across, with room for names beside them."""
    return float(ax.get_window_extent().width / ax.figure.dpi / 0.8)


def prepare_axes(display: ReliabilityDisplay, ax: Axes, pen: Pen) -> None:
    """Set limits, ticks, grid and frame, and draw the diagonal."""
    low, high = display.limits
    spare = MARGIN if display.axes == "prob" and display.kind == "curve" else 0.0
    if display.axes == "logit":
        ax.set(xscale="logit", yscale="logit")
    ticks, names = zip(*Axis.of(display).ticks, strict=True)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, names)
        axis.set_ticks([], minor=True)
    ends = (low - spare, high + spare)
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    quiet_frame(ax, pen)
    soft, line = pen.style.soft, np.linspace(low, high, 513)
    pen.draw("grid", ax.grid, color=pen.style.light, linewidth=pen.line(0.5))
    look: dict[str, Any] = {"color": soft, "linewidth": pen.line(0.7), "zorder": 1.8}
    pen.draw("diagonal", ax.plot, line, line, linestyle=(0, (4, 3)), **look)


def quiet_frame(ax: Axes, pen: Pen) -> None:
    """Draw a thin frame and short ticks, with text of our size."""
    ax.set_axisbelow(True)
    ax.spines[:].set(color=pen.style.soft, linewidth=pen.line(0.5))
    ax.tick_params(color=pen.style.soft, width=pen.line(0.5), length=pen.line(2.0))
    ax.tick_params(labelsize=pen.size * 0.92, labelcolor=pen.style.ink)


def axes_below(ax: Axes, pen: Pen, share: float = HISTOGRAM_HEIGHT) -> Axes:
    """Return axes below others, with the same horizontal axis, which is named there."""
    if pen.room_below:
        box = (0.0, -HISTOGRAM_GAP - share, 1.0, share)
        below = ax.inset_axes(box, sharex=ax)
    else:  # room is taken from the axes, so that nothing beside them is covered
        from mpl_toolkits.axes_grid1 import make_axes_locatable

        sizes = {"size": f"{share:.0%}", "pad": f"{HISTOGRAM_GAP:.0%}"}
        below = make_axes_locatable(ax).append_axes("bottom", sharex=ax, **sizes)
    quiet_frame(below, pen)
    below.set_yticks([])
    below.spines[:].set_visible(False)
    # Layout engines see only the names of the upper axes: they stay, without colour.
    unseen = {"labelbottom": False} if pen.room_below else {"labelcolor": "none"}
    ax.tick_params(axis="x", length=0, **unseen)
    below.tick_params(labelbottom=True)
    _move_label_below(ax, pen, share)
    return below


def _move_label_below(ax: Axes, pen: Pen, share: float) -> None:
    """Put the label below the histogram; ``ax.set_xlabel`` still renames it."""
    from matplotlib.transforms import ScaledTranslation

    down = (pen.line(2.0) + (TITLE_ROOM + 0.7) * pen.size) / 72.0
    shift = ScaledTranslation(0.0, -down, ax.figure.dpi_scale_trans)
    # Not in coordinates of what is below: layout engines ask before it is in place.
    bottom = -HISTOGRAM_GAP - share
    ax.xaxis.set_label_coords(0.5, bottom, transform=ax.transAxes + shift)
    ax.xaxis.label.set_verticalalignment("top")


def draw_histogram(
    display: ReliabilityDisplay,
    ax: Axes,
    pen: Pen,
    factors: Mapping[str, float] | None = None,
) -> None:
    """Draw events upwards and non-events downwards; `factors` as in `mirrored_bars`."""
    below, axis = axes_below(ax, pen), Axis.of(display)
    parts = display.frame("histogram")
    left, right = axis.held(parts["left"]), axis.held(parts["right"])
    sides = mirrored_bars(parts["weight"], parts["events"], factors)
    ends = [-1.1, 1.1]
    for (side, (height, text)), sign in zip(sides.items(), (1.0, -1.0), strict=True):
        part = side.replace("-", "_")
        look = {"color": getattr(pen.style, part), "linewidth": 0.0, "align": "edge"}
        pen.draw(part, below.bar, left, sign * height, right - left, **look)
        if pen.shows(part):
            va, bars = "top" if sign > 0.0 else "bottom", (left, right, height)
            covered = name_bars(below, text, 0.5 + 0.45 * sign, bars, pen, va=va)
            ends.append(sign * (NAMED_BARS if covered > HIGH_BARS else 1.1))
    below.set_ylim(min(ends), max(ends))
    below.axhline(0.0, color=pen.style.soft, linewidth=pen.line(0.4))


def name_bars(
    below: Axes,
    text: str,
    height: float,
    bars: tuple[FloatVector, FloatVector, FloatVector],
    pen: Pen,
    *,
    va: str = "top",
) -> float:
    """Write what bars are where they are lowest: left, right or between.

    Return how high the bars are there, 0 to 1.
    """
    from matplotlib.patheffects import withStroke

    to_axes = (below.transData + below.transAxes.inverted()).transform
    left, right = (to_axes(np.column_stack([e, 0 * e]))[:, 0] for e in bars[:2])
    half = 0.012 * len(text) + 0.01

    def tallest(middle: float) -> float:
        near = (right > middle - half) & (left < middle + half)
        return round(float(bars[2][near].max(initial=0.0)), 1)

    # At the right end if there is room, at the left end, or between bars.
    middles = [0.99 - half, 0.01 + half, *np.arange(0.2, 0.81, 0.05).tolist()]
    middle = min(middles, key=tallest)
    below.text(
        middle,
        height,
        text,
        transform=below.transAxes,
        ha="center",
        va=va,
        fontsize=pen.size * 0.85,
        color=pen.style.soft,
        path_effects=[withStroke(linewidth=1.5, foreground="white")],
    )
    return tallest(middle)
