"""Where diagrams and their names stand in a figure, so that nothing is cut off."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from calibrant.core.wording import visible
from calibrant.displays.axes import HISTOGRAM_ROOM, Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.style import Pen


def as_drawn(name: str) -> str:
    r"""Return a name as it is: dollar signs are no mathematics, hidden signs written.

    >>> print(as_drawn("cost in $, \x1b[1m$x$"))
    cost in \$, \x1b[1m\$x\$
    """
    return visible(name).replace("$", "\\$")


def shortened(name: str, longest: int) -> str:
    r"""Return a name as a figure shows it: on one line, not too long, as it is.

    Both ends are kept, since names of models often differ at the end.

    >>> shortened("a very long name of a model, v2", 13), shortened("$x$", 12)
    ('a very…el, v2', '\\$x\\$')
    """
    line = " ".join(name.split())
    if len(line) > longest:
        end = (longest - 1) // 2
        line = f"{line[: longest - 1 - end]}…{line[len(line) - end :]}"
    return as_drawn(line)


def names_apart(names: Sequence[str], longest: int) -> list[str]:
    """Return names without what they all begin and end with, if some are too long.

    Examples
    --------
    >>> names_apart(["resnet110_c10_before_ts", "resnet110_c10_after_ts"], 16)
    ['…before…', '…after…']
    >>> names_apart(["before", "after"], 16)
    ['before', 'after']
    """
    if max(map(len, names)) <= longest:
        return list(names)
    start, end = _shared_start(names), _shared_start([name[::-1] for name in names])
    cut = [name[start : len(name) - end] for name in names]
    if not all(cut):
        return list(names)
    return [f"{'…' * bool(start)}{name}{'…' * bool(end)}" for name in cut]


def _shared_start(names: Sequence[str]) -> int:
    """Return how many letters of whole words all names begin with."""
    columns = enumerate(zip(*names, strict=False))
    alike = takewhile(lambda column: len(set(column[1])) == 1, columns)
    ends = [place + 1 for place, signs in alike if not signs[0].isalnum()]
    return max(ends, default=0)


def title_of(display: ReliabilityDisplay, inches: float, pen: Pen) -> str:
    """Return the name of a diagram; for the paper's kinds also its error."""
    lines = [] if display.name is None else [wrapped(display.name, inches, pen)]
    if display.kind != "curve":
        error = f"{display.method}: error {display.statistics.error_text(pen.decimals)}"
        lines.append(wrapped(error, inches, pen))
    return "\n".join(lines)


def wrapped(text: str, inches: float, pen: Pen) -> str:
    """Return text that is not wider than so many inches, in up to three lines."""
    characters = max(int(inches * 72.0 / (0.6 * pen.size)), 12)
    lines = textwrap.wrap(text, characters, max_lines=3, placeholder=" …")
    return "\n".join(map(as_drawn, lines))


@dataclass(frozen=True)
class Layout:
    """Where diagrams stand in a figure, in inches."""

    width: float  # of the figure
    side: float  # of each square
    left: float  # what is left of the first
    gap: float  # between two
    columns: int  # diagrams in a full row
    heads: tuple[float, ...]  # what is above the squares of each row
    feet: tuple[float, ...]  # and below them
    key: float  # what is below everything

    @classmethod
    def of(  # noqa: PLR0913
        cls,
        displays: Sequence[ReliabilityDisplay],
        width: float,
        columns: int,
        pen: Pen,
        *,
        entries: int,
        roomy: bool = False,
        above: int = 0,
        below: float = HISTOGRAM_ROOM,
    ) -> Layout:
        """Return a layout in which all names have room.

        `entries` are those of the key, `above` the lines between titles and squares,
        `below` is the share of a square that is drawn below it, and a roomy layout has
        room for a title in any case.
        """
        line, first = pen.size / 72.0, displays[0]
        # Without a margin, names of ticks reach beyond the ends of the axes.
        gap = (1.5 if first.kind == "curve" else 3.0) * line
        room = 0.9 * (width - 6.0 * line - gap * (columns - 1)) / columns
        names = [wrapped(text, room, pen).count("\n") for text in first.axis_labels]
        ticks = max(len(name) for _, name in Axis.of(first).ticks)
        left = (2.9 + 0.58 * ticks + 1.25 * names[1]) * line
        side = (width - left - 1.4 * line - gap * (columns - 1)) / columns
        titles = [_lines(title_of(display, 0.98 * side, pen)) for display in displays]
        titles = [max(lines, int(roomy)) for lines in titles]
        starts = range(0, len(displays), columns)
        over = 0.9 + 1.2 * above
        heads = [(over + 1.5 * max(titles[s : s + columns])) * line for s in starts]
        named = named_rows(len(displays), columns)
        foot = below * side if first.histogram else 0.0
        named_foot = foot + (4.0 + 1.25 * names[0]) * line
        feet = [named_foot if here else foot + 0.8 * line for here in named]
        key_rows = -(-entries // key_columns(width, pen))
        key = (1.2 + 1.6 * key_rows) * line if entries else 0.0
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


def named_rows(count: int, columns: int) -> list[bool]:
    """Tell which rows name their ticks: the last, and one above a row not full.

    >>> named_rows(5, 3), named_rows(6, 3)
    ([True, True], [False, True])
    """
    rows = -(-count // columns)
    named = rows - 2 if count % columns else rows - 1
    return [row >= named for row in range(rows)]


def key_columns(width: float, pen: Pen) -> int:
    """Return how many entries of a key stand side by side."""
    return max(int(width * 72.0 / (15.0 * pen.size)), 1)
