"""Colours, line widths and sizes that figures and reports share.

The colours are those of Okabe and Ito, which people with any common form of colour
blindness can distinguish. In the grey style, directions differ by hatching and curves
by their dashes, so that nothing is lost in print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant.core.parameters import check_choice, check_positive
from calibrant.exceptions import Argument, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

StyleName: TypeAlias = Literal["colour", "grey"]
Dashes: TypeAlias = str | tuple[int, tuple[float, ...]]

ONE_COLUMN, TWO_COLUMNS = 3.5, 7.0
"""Inches that journals give to a figure."""
MIN_WIDTH, MAX_WIDTH = 2.0, 40.0
SCREEN_WIDTH = 4.6
"""Inches of a diagram by default."""
SOLID = "-"


@dataclass(frozen=True)
class Style:
    """Colours of the parts of a diagram."""

    ink: str = "#1f2530"  # curves and dots
    soft: str = "#566070"  # axes and text
    light: str = "#e6e6e3"  # grid lines
    over: str = "#d55e00"  # where predictions are too high
    under: str = "#0072b2"  # and too low
    over_hatch: str = ""
    under_hatch: str = ""
    fill_alpha: float = 0.3  # opacity of these areas
    band_alpha: float = 0.14
    events: str = "#3d4654"  # both sides of the histogram
    non_events: str = "#b3b8bf"
    fill: str = "#a9cbe6"  # of the paper's diagrams: below the map
    gap: str = "#d55e00"  # distances to the diagonal
    truth: str = "#009e73"  # the true map
    # curves of several models in one diagram, and their line styles
    series: tuple[str, ...] = (
        "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1f2530",
        "#7f7f7f",
    )  # fmt: skip
    dashes: tuple[Dashes, ...] = (SOLID,)
    outlined: bool = False  # whether several bands are thin lines, not areas
    # decisions that need no model: treating all, and treating none
    always: Dashes = (0, (4.0, 2.0))
    never: Dashes = (0, (1.0, 1.5))

    def look(self, number: int, *, solid_first: bool = False) -> tuple[str, Dashes]:
        """Return colour and line style of a model."""
        number += self.dashes.index(SOLID) if solid_first else 0
        series, dashes = self.series, self.dashes
        return series[number % len(series)], dashes[number % len(dashes)]


COLOUR = Style()
GREY = Style(
    ink="#000000",
    soft="#404040",
    light="#e4e4e4",
    over="#6a6a6a",
    under="#6a6a6a",
    under_hatch="\\\\\\\\\\\\",  # across the diagonal, along which such areas lie
    fill_alpha=0.55,
    band_alpha=0.16,
    events="#404040",
    non_events="#b5b5b5",
    fill="#d9d9d9",
    gap="#555555",
    truth="#000000",
    series=("#707070", "#000000", "#505050", "#8c8c8c"),
    dashes=(
        (0, (4.0, 1.6)),
        SOLID,
        (0, (1.2, 1.2)),
        (0, (6.0, 1.5, 1.2, 1.5)),
        (0, (8.0, 2.0)),
    ),
    outlined=True,
    always=SOLID,
    never=(0, (1.0, 4.0)),
)
STYLES: dict[StyleName, Style] = {"colour": COLOUR, "grey": GREY}


def find_style(name: StyleName) -> Style:
    """Return the style of that name."""
    return STYLES[check_choice(name, STYLES, name="style")]


def check_width(width: float) -> float:
    """Return a width in inches in which text still fits."""
    inches = check_positive(width, name="width")
    if not MIN_WIDTH <= inches <= MAX_WIDTH:
        raise OptionError(
            Argument("width"),
            f" must be {MIN_WIDTH:g} to {MAX_WIDTH:g} inches; got {width!r}. One "
            f"column of a journal has {ONE_COLUMN:g}, two have {TWO_COLUMNS:g}.",
        )
    return inches


def text_size(width: float) -> float:
    """Return the points of text in a diagram of so many inches: 7 in one column.

    >>> round(text_size(3.5), 1), round(text_size(7.0), 1)
    (7.0, 9.9)
    """
    return min(max(7.0 * math.sqrt(width / ONE_COLUMN), 6.0), 10.0)


PARTS = (
    "curve", "band", "bins", "over", "under", "diagonal", "grid", "events",
    "non_events", "statistics", "directions", "title", "true_map", "instances", "fill",
    "outline", "gaps",
)  # fmt: skip
"""What can be restyled or left out."""


@dataclass(frozen=True)
class Pen:
    """A style, the size of text, and what the user changed."""

    style: Style
    size: float  # points of text
    changes: Mapping[str, Any]  # matplotlib's keywords by part; False leaves it out
    room_below: bool = False  # whether there is room for a histogram below the axes
    decimals: int = 0  # of errors, at least, so that diagrams of a figure agree

    @classmethod
    def of(
        cls,
        style: StyleName,
        inches: float,
        changes: Mapping[str, Any],
        *,
        room_below: bool = False,
    ) -> Pen:
        """Return how to draw a diagram of some width."""
        for part, keywords in changes.items():
            check_choice(part, PARTS, name="part")
            if not (
                keywords is None or keywords is False or isinstance(keywords, dict)
            ):
                raise OptionError(
                    Argument(part),
                    " must be a dict of matplotlib keywords, or False to leave the "
                    f"part out; got {keywords!r}.",
                )
        return cls(find_style(style), text_size(inches), changes, room_below)

    def shows(self, part: str) -> bool:
        """Tell whether a part is to be drawn."""
        return self.changes.get(part) is not False

    def draw(
        self, part: str, method: Callable[..., Any], *data: Any, **look: Any
    ) -> Any:
        """Draw a part unless it is left out: with our keywords, then the user's."""
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        if not self.shows(part):
            return None
        changed = normalize_kwargs(self.changes.get(part) or {}, Line2D)
        return method(*data, **(look | changed))

    def line(self, width: float) -> float:
        """Return the width of a line that suits the size of text."""
        return width * self.size / 7.0
