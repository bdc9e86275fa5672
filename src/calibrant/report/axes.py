"""Where numbers lie on a drawing: axes of probabilities and of logits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@dataclass(frozen=True)
class Axes:
    """Both axes of a diagram.

    Attributes
    ----------
    scale : {"prob", "logit"}
        What is equally spaced.
    low : float
        Logit axes reach from `low` to 1 - `low`.
    """

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
        return [(tick, _short(tick)) for tick in inside]

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


def _short(tick: float) -> str:
    """Return the name of a tick, 1e-06 as that is shorter.

    Examples
    --------
    >>> _short(0.001), _short(1e-6), _short(0.99999)
    ('0.001', '1e-6', '0.99999')
    """
    return f"{tick:g}".replace("e-0", "e-") if tick < 0.001 else f"{tick:.6g}"  # noqa: PLR2004
