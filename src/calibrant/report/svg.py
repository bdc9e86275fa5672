"""Diagrams as SVG, drawn from the numbers of a summary. Text is always escaped.

They look like the figures of `calibrant.displays`, in the colours of the style sheet.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from calibrant.displays.axes import Axis
from calibrant.displays.curve_drawing import DIRECTIONS, directions_of
from calibrant.displays.diagram_data import PROB_LIMITS, SPACES, mirrored_bars
from calibrant.report.page import unbroken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from calibrant.core.array_types import ArrayLike, FloatMatrix, FloatVector, Space

LEFT, TOP, SIDE = 60.0, 12.0, 356.0
"""The square of the diagram within the drawing."""
WIDTH, HEIGHT = 430.0, 500.0
BARS_MIDDLE, BARS_HEIGHT = 414.0, 32.0
"""Where the histogram stands: events above the middle, others below."""
DIGIT, GAP = 7.4, 8.0
"""How wide a digit is where text is largest, and what names keep between them."""
LINE = 15.0
"""Distance of lines of text."""
RIGHT, BOTTOM = LEFT + SIDE, TOP + SIDE
MIDDLE = LEFT + 0.5 * SIDE
DIAGONAL = f'<path class="diagonal" d="M{LEFT:g},{BOTTOM:g}L{RIGHT:g},{TOP:g}"/>'
MAX_TICK_NAME = 7
"""Signs of a tick's name that fit left of the square."""
MAX_CURVES = 20
"""More could not be distinguished."""
SWITCHES = "\n".join(
    f".diagram:has(.t{k}:not(:checked)) .l{k} {{ display: none; }}"
    for k in range(MAX_CURVES)
)
"""Style by which the boxes beside a diagram show and hide its curves."""
DECISION_HEIGHT = 240.0
DECISION_STEPS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Distances of net benefits that are named.

A net benefit is at most 1, the share of events."""
PASSES, TOLERANCE = 6, 0.05
"""How often every second point of a line is left out that lies so near to the line
between its neighbours."""
CURVE_LINES = ("p", "calibrated", "low", "high")
"""Columns of a curve that are drawn."""
BIN_COLUMNS = ("predicted", "observed", "low", "high")
SPARK = 110.0
"""Width of the picture of an interval in a table."""


class Axes(Axis):
    """Both axes of a diagram, and where they are in the drawing."""

    @classmethod
    def of_panel(cls, panel: Mapping[str, Any], space: Space | None = None) -> Axes:
        """Return the axes of a panel, of its own kind by default."""
        space = space or panel["axes"]
        return cls(space, panel["limits"][space])

    def x(self, values: ArrayLike) -> FloatVector:
        """Return places from the left."""
        return LEFT + SIDE * self.share(values)

    def curve_places(
        self, curves: Iterable[Mapping[str, Any]]
    ) -> list[dict[str, FloatVector]]:
        """Return where curves and bands are drawn: their parts within the axes."""
        each = [
            {name: np.array(curve[name]) for name in CURVE_LINES if name in curve}
            for curve in curves
        ]
        shares = self.cut_shares(lines.values() for lines in each)
        return [
            dict(zip(lines, _places(share), strict=True))
            for lines, share in zip(each, shares, strict=True)
        ]

    @cached_property
    def tick_places(self) -> FloatVector:
        """Return the places of the ticks from the left."""
        return LEFT + SIDE * self.tick_shares

    def named_across(self) -> list[tuple[float, str]]:
        """Return the places and names that fit beside each other, from the middle on.

        >>> [name for _, name in Axes("logit", (1e-6, 1 - 1e-6)).named_across()]
        ['1e-6', '0.0001', '0.01', '0.5', '0.99', '0.9999']
        """
        names = [name for _, name in self.ticks]
        named = zip(self.tick_places.tolist(), names, strict=True)
        kept: list[tuple[float, str]] = []
        ends: list[tuple[float, float]] = []
        for x, name in sorted(named, key=lambda one: abs(one[0] - MIDDLE)):
            left, right = x - 0.5 * DIGIT * len(name), x + 0.5 * DIGIT * len(name)
            free = all(right + GAP <= a or b + GAP <= left for a, b in ends)
            if free and left >= 0.0 and right <= WIDTH:
                kept.append((x, name))
                ends.append((left, right))
        return sorted(kept)


def _places(shares: FloatMatrix) -> FloatMatrix:
    """Return places from the left of the first row, from the top of others."""
    return np.concatenate([LEFT + SIDE * shares[:1], BOTTOM - SIDE * shares[1:]])


def path_points(x: FloatVector, y: FloatVector) -> str:
    """Return points as those of an SVG path, without any that a line passes through.

    >>> path_points(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0, 0.0]))
    '0.0,0.0 2.0,2.0 3.0,0.0'
    """
    points = np.column_stack([x, y])
    for _ in range(PASSES):
        before, middle, after = points[:-2:2], points[1:-1:2], points[2::2]
        chord, apart = after - before, middle - before
        length = np.maximum(np.square(chord).sum(axis=1), TOLERANCE**2)
        along = np.clip((apart * chord).sum(axis=1) / length, 0.0, 1.0)
        off = np.hypot(*(apart - along[:, np.newaxis] * chord).T)
        kept = np.ones(len(points), dtype=bool)
        kept[1:-1:2] = off > TOLERANCE
        points = points[kept]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points.tolist())


def reliability_svg(panel: Mapping[str, Any], identity: str, title: str) -> Markup:
    """Return the diagram of one event: curves, bins and histogram, on both axes."""

    def inside(axes: Axes) -> str:
        curves = axes.curve_places(panel["curves"])
        layers = [_histogram(panel["histogram"][axes.space], axes), DIAGONAL]
        for number, curve in enumerate(curves):
            layers.append(_curve(curve, number, identity))
        layers += _bins(panel["bins"], axes, len(curves))
        return "".join([*layers, _corners(panel, curves)])

    return _svg(identity, title, panel, inside)


def mini_svg(panel: Mapping[str, Any], identity: str) -> Markup:
    """Return a small diagram without names, for the verdict; what it says is beside."""
    axes = Axes.of_panel(panel)
    curves = axes.curve_places(panel["curves"][:1])
    layers = [_curve(curve, 0, identity) for curve in curves]
    if not layers:
        layers = _bins(panel["bins"][:1], axes, 0)
    return Markup(  # noqa: S704  (numbers only)
        f'<svg class="mini" viewBox="{LEFT - 3:g} {TOP - 3:g} {SIDE + 6:g} '
        f'{SIDE + 6:g}" aria-hidden="true"><defs>{_clips(identity)}</defs>'
        f'<rect class="border" x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" '
        f'height="{SIDE:g}"/>{DIAGONAL}{"".join(layers)}</svg>'
    )


def overview_svg(models: Sequence[Mapping[str, Any]], identity: str) -> Markup:
    """Return the curves of several models in one diagram."""
    shown = enumerate(models[:MAX_CURVES])
    drawn = [(k, model["diagrams"][0]) for k, model in shown if model["diagrams"]]
    return _lines_svg(
        "Calibration curves of all models",
        [panel for _, panel in drawn],
        [
            (f"l{number}", f"c{number % 8}", panel["curves"][0])
            for number, panel in drawn
            if panel["curves"]
        ],
        identity,
    )


def repair_svg(
    panel: Mapping[str, Any], after: Mapping[str, Any], identity: str, title: str
) -> Markup:
    """Return the curve of predictions before a repair, and of those after it."""
    lines = [("", "before", panel["curves"][0]), ("", "after", after)]
    return _lines_svg(title, [panel], lines, identity)


def _lines_svg(
    title: str,
    panels: Sequence[Mapping[str, Any]],
    lines: Sequence[tuple[str, str, Mapping[str, Any]]],
    identity: str,
) -> Markup:
    """Return lines, each with the classes of its group and of itself, on one diagram.

    The axes span those of all panels.
    """

    def span(scale: str) -> list[float]:
        ends = list(zip(*(one["limits"][scale] for one in panels), strict=True))
        return [min(ends[0]), max(ends[1])]

    def inside(axes: Axes) -> str:
        curves = axes.curve_places(curve for _, _, curve in lines)
        drawn = [
            f'<g class="{group}">{_band(curve, f"band {own}")}'
            f'<path class="curve {own}" d="M'
            f'{path_points(curve["p"], curve["calibrated"])}"/></g>'
            for (group, own, _), curve in zip(lines, curves, strict=True)
            if curve["p"].size
        ]
        return "".join([DIAGONAL, *drawn])

    limits = {scale: span(scale) for scale in SPACES}
    return _svg(identity, title, {**panels[0], "limits": limits}, inside, bars=False)


def decision_svg(decisions: Mapping[str, Any], title: str) -> Markup:
    """Return net benefits by threshold, of models and of acting always.

    Curves end where no model flags any row, and bands where their own model does not.
    """
    across, bottom = Axes("prob", PROB_LIMITS), TOP + DECISION_HEIGHT
    models = [curve for curve in decisions["curves"] if not curve["always"]]
    always = [curve for curve in decisions["curves"] if curve["always"]]
    drawn_to = max(curve["flagged"] for curve in models) or None
    bands = [curve["high"][: curve["flagged"]] for curve in models]
    highest = max(0.0, *(max(band, default=0.0) for band in bands)) or 1.0
    step = next(s for s in DECISION_STEPS if highest <= 6.0 * s)

    def y(values: ArrayLike) -> FloatVector:
        return TOP + DECISION_HEIGHT * (1.05 - np.asarray(values) / highest) / 1.2

    x = across.x(decisions["thresholds"])

    def line(values: Sequence[float], end: int | None = drawn_to) -> str:
        return path_points(x[:end], y(values[:end]))

    def band(curve: Mapping[str, Any], number: int) -> str:
        end = curve["flagged"]
        if not end:
            return ""
        back = " ".join(reversed(line(curve["low"], end).split()))
        limits = f"M{line(curve['high'], end)} {back}Z"
        return f'<path class="band c{number % 8}" d="{limits}"/>'

    drawn = "".join(
        f"{band(curve, number)}"
        f'<path class="curve c{number % 8}" d="M{line(curve["net_benefit"])}"/>'
        for number, curve in enumerate(models)
    )
    dashed = "".join(
        f'<path class="{f"curve always c{number}" if always[1:] else "diagonal"}" '
        f'd="M{line(curve["net_benefit"])}"/>'
        for number, curve in enumerate(always)
    )
    ticks = [step * k for k in range(7) if step * k <= 1.05 * highest]
    grid = "".join(f"M{LEFT:g},{y(tick):.1f}H{RIGHT:g}" for tick in ticks)
    names = [_tick_beside(float(y(tick)), f"{tick:g}") for tick in ticks]
    names += [
        _text("tick", name, x, bottom + 16.0, "middle")
        for x, name in across.named_across()
    ]
    return Markup(  # noqa: S704  (numbers, and an escaped title)
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {bottom + 46:g}" role="img" '
        f'aria-label="{escape(title)}"><defs><clipPath id="decision-area"><rect '
        f'x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" height="{DECISION_HEIGHT:g}"/>'
        f'</clipPath></defs><path class="grid" d="{grid}"/>'
        f'<g clip-path="url(#decision-area)">{drawn}{dashed}</g>'
        f'<path class="floor" d="M{LEFT:g},{y(0.0):.1f}H{RIGHT:g}"/>{"".join(names)}'
        f"{_axis_names('Threshold', 'Net benefit', bottom, bottom + 40.0)}</svg>"
    )


def interval_svg(
    value: float | None, low: float | None, high: float | None, maximum: float
) -> Markup:
    """Return a dot with its interval, from 0 to `maximum`, for a cell of a table."""
    if value is None or maximum <= 0.0:
        return Markup("")

    def x(number: float) -> float:
        return 4.0 + (SPARK - 8.0) * min(max(number, 0.0), maximum) / maximum

    line = ""
    if low is not None and high is not None:
        line = f'<path class="whisker" d="M{x(low):.1f},7H{x(high):.1f}"/>'
    return Markup(  # noqa: S704  (numbers only)
        f'<svg class="spark" viewBox="0 0 {SPARK:g} 14" width="{SPARK:g}" height="14" '
        f'aria-hidden="true"><path class="zero" d="M4,0V14"/>{line}'
        f'<circle class="dot" cx="{x(value):.1f}" cy="7" r="3"/></svg>'
    )


def _clips(identity: str) -> str:
    """Return the areas above and below the diagonal: too low, and too high."""
    return "".join(
        f'<clipPath id="{identity}-{side}"><polygon points="{corner} {RIGHT},{TOP} '
        f'{LEFT},{BOTTOM}"/></clipPath>'
        for side, corner in (("above", f"{LEFT},{TOP}"), ("below", f"{RIGHT},{BOTTOM}"))
    )


def _svg(
    identity: str,
    title: str,
    panel: Mapping[str, Any],
    inside: Callable[[Axes], str],
    *,
    bars: bool = True,
) -> Markup:
    """Return a diagram with what is `inside` the axes of each scale."""
    height = HEIGHT if bars else BOTTOM + 48.0
    below = BARS_MIDDLE + BARS_HEIGHT if bars else BOTTOM
    scales = "".join(
        f'<g class="on-{axes.space}">{_frame(axes, below)}{inside(axes)}</g>'
        for axes in (Axes.of_panel(panel, scale) for scale in SPACES)
    )
    across, up = panel["axis_labels"]
    names = _axis_names(across, up, BOTTOM, height - 8.0)
    low, high = panel["limits"]["logit"]
    return Markup(  # noqa: S704  (what users wrote is escaped)
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(title)}" data-low="{low:.17g}" data-high="{high:.17g}">'
        f"<defs>{_clips(identity)}</defs>{scales}{names}"
        f'<g class="pointer" visibility="hidden"><path class="guide"/>'
        f'<circle class="spot" r="4.5"/></g></svg>'
    )


def _frame(axes: Axes, bottom: float) -> str:
    """Return grid lines and their names, those across below `bottom`."""
    lines, names = [], []
    for x, (_, name) in zip(axes.tick_places.tolist(), axes.ticks, strict=True):
        y = TOP + RIGHT - x  # both axes are the same
        lines.append(f"M{x:.1f},{TOP:g}V{BOTTOM:g}M{LEFT:g},{y:.1f}H{RIGHT:g}")
        if len(name) > MAX_TICK_NAME:
            continue
        names.append(_tick_beside(y, name))
    names += [
        _text("tick across", name, x, bottom + 16.0, "middle")
        for x, name in axes.named_across()
    ]
    return f'<path class="grid" d="{"".join(lines)}"/>{"".join(names)}'


def _directions(curves: Sequence[Mapping[str, FloatVector]]) -> set[str]:
    """Return the directions in which the first curve departs, both without curves."""
    if not curves:
        return set(DIRECTIONS)
    across, up = curves[0]["p"] - LEFT, BOTTOM - curves[0]["calibrated"]
    return directions_of(across / SIDE, up / SIDE)


def _corners(
    panel: Mapping[str, Any], curves: Sequence[Mapping[str, FloatVector]]
) -> str:
    """Say which side is which, and write the statistics where there is more room."""
    statistics = [unbroken(line) for line in panel["statistics"]]
    low = statistics if panel["corner"] == "lower right" else []
    high = [] if low else statistics
    upper, lower = [("said", line) for line in high], [("said", line) for line in low]
    drawn = _directions(curves)
    if "under" in drawn:
        upper.insert(0, ("said under", DIRECTIONS["under"]))
    if "over" in drawn:
        lower.append(("said over", DIRECTIONS["over"]))
    lower.reverse()
    texts = [
        _text(kind, line, LEFT + 8.0, TOP + LINE * (1 + k), "start")
        for k, (kind, line) in enumerate(upper)
    ]
    texts += [
        _text(kind, line, RIGHT - 8.0, BOTTOM - 8.0 - LINE * k, "end")
        for k, (kind, line) in enumerate(lower)
    ]
    return "".join(texts)


def _text(kind: str, line: str, x: float, y: float, anchor: str) -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(line)}</text>"
    )


def _tick_beside(y: float, name: str) -> str:
    """Return the name of a tick left of the square."""
    return _text("tick", name, LEFT - 6.0, y + 4.0, "end")


def _axis_names(across: str, up: str, bottom: float, below: float) -> str:
    """Return the names of both axes: one below, one left of what ends at `bottom`."""
    return _text("name", across, MIDDLE, below, "middle") + (
        f'<text class="name" transform="translate(11,{(TOP + bottom) / 2:g}) '
        f'rotate(-90)" text-anchor="middle">{escape(up)}</text>'
    )


def _curve(curve: Mapping[str, FloatVector], number: int, identity: str) -> str:
    if not curve["p"].size:  # all of it lies beyond the axes
        return ""
    line, ends = path_points(curve["p"], curve["calibrated"]), curve["p"][[-1, 0]]
    back = path_points(ends, TOP + RIGHT - ends)  # along the diagonal
    # Only the first map fills the gap to the diagonal; two fillings hide each other.
    gaps = [
        f'<path class="{kind}" clip-path="url(#{identity}-{side})" '
        f'd="M{line} {back}Z"/>'
        for kind, side in (("too-low", "above"), ("too-high", "below"))
        if number == 0
    ]
    return (
        f'<g class="l{number} m{number}">{"".join(gaps)}{_band(curve, "band")}'
        f'<path class="curve" d="M{line}"/></g>'
    )


def _band(curve: Mapping[str, FloatVector], kind: str) -> str:
    if "low" not in curve:
        return ""
    upper = path_points(curve["p"], curve["high"])
    lower = path_points(curve["p"][::-1], curve["low"][::-1])
    return f'<path class="{kind}" d="M{upper} {lower}Z"/>'


def _bins(methods: Sequence[Mapping[str, Any]], axes: Axes, first: int) -> list[str]:
    """Return the dots of each method with its bins, numbered from `first` on."""
    if not methods:
        return []
    columns = [np.array([bins[name] for name in BIN_COLUMNS]) for bins in methods]
    boundaries = np.cumsum([column.shape[1] for column in columns])[:-1]
    places = np.split(_places(axes.share(np.hstack(columns))), boundaries, axis=1)
    low, high = axes.limits
    drawn = []
    for number, (column, place) in enumerate(zip(columns, places, strict=True), first):
        shown = (column[0] >= low) & (column[0] <= high)
        dots = [
            f'<path class="whisker" d="M{x:.1f},{bottom:.1f}V{top:.1f}"/>'
            f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3.4"/>'
            for x, y, bottom, top in place[:, shown].T
        ]
        drawn.append(f'<g class="l{number} m{number}">{"".join(dots)}</g>')
    return drawn


def _histogram(histogram: Mapping[str, Any], axes: Axes) -> str:
    """Return events upwards and others downwards."""
    sides = mirrored_bars(np.array(histogram["rows"]), np.array(histogram["events"]))
    left, right = axes.x([histogram["left"], histogram["right"]])
    bars = []
    for (name, (share, text)), sign in zip(sides.items(), (-1.0, 1.0), strict=True):
        used = share > 0.0
        height = sign * np.maximum(BARS_HEIGHT * share, 0.75)
        boxes = [
            f"M{a:.1f},{BARS_MIDDLE:g}v{up:.1f}H{b:.1f}V{BARS_MIDDLE:g}Z"
            for a, b, up in zip(
                left[used] + 0.3, right[used] - 0.3, height[used], strict=True
            )
        ]
        bars.append(f'<path class="bar {name}" d="{"".join(boxes)}"/>')
        y = BARS_MIDDLE + sign * (BARS_HEIGHT - 4.0) + (4.0 if sign < 0.0 else 2.0)
        bars.append(_text("said", text, *_free_side(0.5 * (left + right), share, y)))
    floor = f'<path class="floor" d="M{LEFT:g},{BARS_MIDDLE:g}H{RIGHT:g}"/>'
    return f'<g class="bars">{"".join(bars)}{floor}</g>'


def _free_side(x: FloatVector, sums: FloatVector, y: float) -> tuple[float, float, str]:
    """Return where to write what bars are: where they are lowest."""

    def tallest(start: float, end: float) -> float:
        over = (x >= LEFT + start * SIDE) & (x <= LEFT + end * SIDE)
        return float(sums[over].max(initial=0.0))

    places = {
        (RIGHT - 4.0, "end"): tallest(0.75, 1.0),
        (MIDDLE, "middle"): tallest(0.36, 0.64),
        (LEFT + 4.0, "start"): tallest(0.0, 0.25),
    }
    place, anchor = min(places, key=lambda place: places[place])
    return place, y, anchor
