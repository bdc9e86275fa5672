"""Diagrams as SVG, drawn from the numbers of a summary. Text is always escaped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from calibrant.core.array_types import Space

LEFT, TOP, SIDE = 60.0, 12.0, 356.0
"""The square of the diagram within the drawing."""
WIDTH, HEIGHT = 430.0, 492.0
BARS_TOP, BARS_HEIGHT = 382.0, 54.0
"""Where the histogram stands."""
SCALES: tuple[Space, Space] = ("prob", "logit")
DIGIT, GAP = 7.4, 8.0
"""How wide a digit is where text is largest, and what names keep between them."""
PROB_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
LOWER_TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1)
LOGIT_TICKS = (*LOWER_TICKS, 0.5, *(1.0 - tick for tick in reversed(LOWER_TICKS)))
RIGHT, BOTTOM = LEFT + SIDE, TOP + SIDE
DIAGONAL = f'<path class="diagonal" d="M{LEFT:g},{BOTTOM:g}L{RIGHT:g},{TOP:g}"/>'
MAX_TICK_NAME = 7
"""Signs of a tick's name that fit left of the square."""
MAX_CURVES = 20
"""The style sheet has a switch for so many; more could not be distinguished."""


@dataclass(frozen=True)
class Axes:
    """Both axes of a diagram; on the logit scale they reach from `low` to 1 - `low`."""

    scale: Space
    low: float

    def share(self, value: float) -> float:
        """Return how far along the axis a value lies, 0 to 1.

        Examples
        --------
        >>> Axes("prob", 0.01).share(0.25), Axes("logit", 0.01).share(0.5)
        (0.25, 0.5)
        """
        if self.scale == "prob":
            return value
        held = min(max(value, self.low), 1.0 - self.low)
        end = math.log(self.low / (1.0 - self.low))
        return 0.5 - 0.5 * math.log(held / (1.0 - held)) / end

    def x(self, value: float) -> float:
        """Return the place from the left."""
        return LEFT + SIDE * self.share(value)

    def y(self, value: float) -> float:
        """Return the place from the top."""
        return TOP + SIDE * (1.0 - self.share(value))

    def line(self, points: Iterable[tuple[float, float]]) -> str:
        """Return points as those of an SVG path, without the first letter."""
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the values that are named, and their names."""
        if self.scale == "prob":
            return [(tick, f"{tick:g}") for tick in PROB_TICKS]
        inside = [t for t in LOGIT_TICKS if self.low <= t <= 1.0 - self.low]
        return [(tick, f"{tick:.6g}".replace("e-0", "e-")) for tick in inside]

    def named_across(self) -> list[tuple[float, str]]:
        """Return the ticks whose names fit beside each other, from the middle on.

        Examples
        --------
        >>> [name for _, name in Axes("logit", 1e-6).named_across()]
        ['1e-6', '0.0001', '0.01', '0.5', '0.99', '0.9999']
        """
        ticks = sorted(self.ticks(), key=lambda tick: abs(self.share(tick[0]) - 0.5))
        kept: list[tuple[float, str]] = []
        ends: list[tuple[float, float]] = []
        for tick, name in ticks:
            half = 0.5 * DIGIT * len(name)
            left, right = self.x(tick) - half, self.x(tick) + half
            free = all(right + GAP <= a or b + GAP <= left for a, b in ends)
            if free and left >= 0.0 and right <= WIDTH:
                kept.append((tick, name))
                ends.append((left, right))
        return sorted(kept)


def reliability_svg(panel: Mapping[str, Any], identity: str, title: str) -> Markup:
    """Return the diagram of one event: curves, bins and histogram, on both axes."""

    def inside(axes: Axes) -> str:
        layers = [_histogram(panel["histogram"][axes.scale], axes), DIAGONAL]
        for number, curve in enumerate(panel["curves"]):
            layers.append(_curve(curve, axes, number, identity))
        for number, bins in enumerate(panel["bins"], start=len(panel["curves"])):
            layers.append(_bins(bins, axes, number))
        return "".join(layers)

    return _svg(identity, title, panel["axis_labels"], panel["low"], inside)


def overview_svg(models: Sequence[Mapping[str, Any]], identity: str) -> Markup:
    """Return the curves of several models in one diagram."""
    shown = enumerate(models[:MAX_CURVES])
    drawn = [(k, model["diagrams"][0]) for k, model in shown if model["diagrams"]]
    low = min(panel["low"] for _, panel in drawn)
    labels = drawn[0][1]["axis_labels"]

    def inside(axes: Axes) -> str:
        lines = [DIAGONAL]
        for number, panel in drawn:
            for curve in panel["curves"][:1]:
                path = axes.line(zip(curve["p"], curve["calibrated"], strict=True))
                lines.append(
                    f'<path class="curve l{number} c{number % 8}" d="M{path}"/>'
                )
        return "".join(lines)

    return _svg(identity, "Maps of all models", labels, low, inside, bars=False)


def interval_svg(
    value: float | None, low: float | None, high: float | None, most: float
) -> Markup:
    """Return a dot with its interval, from 0 to `most`, for a cell of a table."""
    if value is None or most <= 0.0:
        return Markup("")
    width = 110.0

    def x(number: float) -> float:
        return 4.0 + (width - 8.0) * min(max(number, 0.0), most) / most

    line = ""
    if low is not None and high is not None:
        line = f'<path class="whisker" d="M{x(low):.1f},7H{x(high):.1f}"/>'
    return Markup(  # noqa: S704  (numbers only)
        f'<svg class="spark" viewBox="0 0 {width:g} 14" width="{width:g}" height="14" '
        f'aria-hidden="true"><path class="zero" d="M4,1V13"/>{line}'
        f'<circle class="dot" cx="{x(value):.1f}" cy="7" r="3"/></svg>'
    )


def _svg(
    identity: str,
    title: str,
    axis_labels: Sequence[str],
    low: float,
    inside: Callable[[Axes], str],
    *,
    bars: bool = True,
) -> Markup:
    """Return a diagram with what is `inside` the axes of each scale."""
    height = HEIGHT if bars else BOTTOM + 48.0
    below = BARS_TOP + BARS_HEIGHT if bars else BOTTOM
    clips = "".join(  # above and below the diagonal: too low, and too high
        f'<clipPath id="{identity}-{side}"><polygon points="{corner} {RIGHT},{TOP} '
        f'{LEFT},{BOTTOM}"/></clipPath>'
        for side, corner in (("above", f"{LEFT},{TOP}"), ("below", f"{RIGHT},{BOTTOM}"))
    )
    scales = "".join(
        f'<g class="on-{axes.scale}">{_frame(axes, below)}{inside(axes)}</g>'
        for axes in (Axes(scale, low) for scale in SCALES)
    )
    across, up = axis_labels
    names = (
        f'<text class="name" x="{(LEFT + RIGHT) / 2:g}" y="{height - 8.0:g}" '
        f'text-anchor="middle">{escape(across)}</text>'
        f'<text class="name" transform="translate(11,{(TOP + BOTTOM) / 2:g}) '
        f'rotate(-90)" text-anchor="middle">{escape(up)}</text>'
    )
    return Markup(  # noqa: S704  (what users wrote is escaped)
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}" data-low="{low:g}">'
        f"<defs>{clips}</defs>{scales}{names}"
        f'<g class="pointer" visibility="hidden"><path class="guide"/>'
        f'<circle class="spot" r="4.5"/></g></svg>'
    )


def _frame(axes: Axes, bottom: float) -> str:
    """Return grid lines and their names, those across below `bottom`."""
    lines, names = [], []
    for value, name in axes.ticks():
        x, y = axes.x(value), axes.y(value)
        lines.append(f"M{x:.1f},{TOP:g}V{BOTTOM:g}M{LEFT:g},{y:.1f}H{RIGHT:g}")
        if len(name) > MAX_TICK_NAME:
            continue
        names.append(
            f'<text class="tick" x="{LEFT - 6:g}" y="{y + 4:.1f}" '
            f'text-anchor="end">{name}</text>'
        )
    names += [
        f'<text class="tick across" x="{axes.x(value):.1f}" y="{bottom + 16:g}" '
        f'text-anchor="middle">{name}</text>'
        for value, name in axes.named_across()
    ]
    return f'<path class="grid" d="{"".join(lines)}"/>{"".join(names)}'


def _curve(curve: Mapping[str, Any], axes: Axes, number: int, identity: str) -> str:
    points = list(zip(curve["p"], curve["calibrated"], strict=True))
    line = axes.line(points)
    back = axes.line((p, p) for p, _ in reversed(points))
    # Only the first map fills the gap to the diagonal; two fillings hide each other.
    gaps = [
        f'<path class="{kind}" clip-path="url(#{identity}-{side})" '
        f'd="M{line} {back}Z"/>'
        for kind, side in (("too-low", "above"), ("too-high", "below"))
        if number == 0
    ]
    band = ""
    if "low" in curve:
        upper = axes.line(zip(curve["p"], curve["high"], strict=True))
        lower = axes.line(reversed(list(zip(curve["p"], curve["low"], strict=True))))
        band = f'<path class="band" d="M{upper} {lower}Z"/>'
    return (
        f'<g class="l{number} m{number}">{"".join(gaps)}{band}'
        f'<path class="curve" d="M{line}"/></g>'
    )


def _bins(bins: Mapping[str, Any], axes: Axes, number: int) -> str:
    drawn = []
    for p, y, low, high in zip(
        bins["predicted"], bins["observed"], bins["low"], bins["high"], strict=True
    ):
        x = f"{axes.x(p):.1f}"
        drawn.append(
            f'<path class="whisker" d="M{x},{axes.y(low):.1f}V{axes.y(high):.1f}"/>'
            f'<circle class="dot" cx="{x}" cy="{axes.y(y):.1f}" r="3.2"/>'
        )
    return f'<g class="l{number} m{number}">{"".join(drawn)}</g>'


def _histogram(histogram: Mapping[str, Any], axes: Axes) -> str:
    edges, rows = histogram["edges"], histogram["rows"]
    most = max(rows)
    base = BARS_TOP + BARS_HEIGHT
    bars = []
    for left, right, count in zip(edges, edges[1:], rows, strict=False):
        if not count:
            continue
        x, end = axes.x(left), axes.x(right)
        height = max(BARS_HEIGHT * count / most, 0.75)
        bars.append(
            f"M{x + 0.4:.1f},{base:g}V{base - height:.1f}H{end - 0.4:.1f}V{base:g}Z"
        )
    floor = f'<path class="floor" d="M{LEFT:g},{base:g}H{RIGHT:g}"/>'
    return f'<g class="bars"><path class="bar" d="{"".join(bars)}"/>{floor}</g>'
