"""Errors of several models with intervals, and which differ significantly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.axes import axes_inches, quiet_frame
from calibrant.displays.drawing import check_no_width, new_figure
from calibrant.displays.layout import shortened
from calibrant.displays.style import TWO_COLUMNS, Pen, check_width
from calibrant.exceptions import OptionError
from calibrant.measures.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.core.array_types import FloatMatrix, Frame
    from calibrant.displays.style import StyleName

MAX_NAME = 24
MAX_COLUMN_NAME = 14
SIDE_BY_SIDE = 5.0
"""From this many inches on, pairs stand beside the errors, else below them."""
CELL = 0.42
"""Inches of a row, in text of 9 points."""
SURE = 0.9995
"""From here on, three digits would say 1."""


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonDisplay:
    """A comparison as a figure: errors with intervals, and a matrix of pairs.

    Attributes
    ----------
    comparison : Comparison
        What is drawn; made by `compare`.

    See Also
    --------
    compare : makes comparisons.

    Examples
    --------
    >>> import calibrant as cb
    >>> forest, y = cb.datasets.load_binary("forest")
    >>> network, y = cb.datasets.load_binary("network")
    >>> found = cb.compare(y, {"forest": forest, "network": network}, method="es15")
    >>> cb.ComparisonDisplay.from_comparison(found).matrix()
    array([[nan,  1.],
           [ 0., nan]])
    """

    comparison: Comparison

    def __post_init__(self) -> None:
        if not isinstance(self.comparison, Comparison):
            raise OptionError(
                "comparison must be what compare returned; got "
                f"{type(self.comparison).__name__}."
            )
        if self.comparison.groups:
            raise OptionError(
                "a figure shows one comparison; pass one of its groups, such as "
                "comparison.groups[0]."
            )

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, ax: Axes | None = None
    ) -> ComparisonDisplay:
        """Return the figure of a comparison; drawn at once if `ax` is given.

        Parameters
        ----------
        comparison : Comparison
            What `compare` returned, of all rows.
        ax : matplotlib Axes, optional
            Draw onto these axes now; otherwise call `plot`.

        Returns
        -------
        ComparisonDisplay
            With `plot` and `frame`.

        See Also
        --------
        compare : which of several models is better calibrated.

        Examples
        --------
        >>> import calibrant as cb
        >>> forest, y = cb.datasets.load_binary("forest")
        >>> network, y = cb.datasets.load_binary("network")
        >>> found = cb.compare(y, {"forest": forest, "network": network}, method="es15")
        >>> display = cb.ComparisonDisplay.from_comparison(found)
        >>> display.frame()["model"].tolist()
        ['network', 'forest']
        """
        display = cls(comparison)
        if ax is not None:
            display.plot(ax)
        return display

    def frame(self) -> Frame:
        """Return one row per model, best first: what is drawn on the left."""
        return self.comparison.frame()

    def matrix(self) -> FloatMatrix:
        """Return how probable it is that a row's model is better than a column's.

        Models are in the order of `frame`; the diagonal is NaN.
        """
        place = {s.model: i for i, s in enumerate(self.comparison.standings)}
        matrix = np.full((len(place), len(place)), np.nan)
        for pair in self.comparison.differences:
            a, b = place[pair.model_a], place[pair.model_b]
            matrix[a, b], matrix[b, a] = pair.probability, 1.0 - pair.probability
        return matrix

    def plot(
        self,
        ax: Axes | None = None,
        *,
        style: StyleName = "colour",
        width: float | None = None,
    ) -> Axes:
        """Draw errors with intervals, best on top, and beside them the pairs.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; the pairs take the right part of it. By default a new
            figure.
        style : {"colour", "grey"}
            Colours that are safe for colour-blind readers, or greys for print.
        width : float, optional
            Inches of a new figure: 7 for two columns of a journal, 3.5 for one, in
            which the pairs stand below the errors.

        Returns
        -------
        matplotlib Axes
            The axes of the errors; ``ax.figure.savefig(...)`` writes it.
        """
        if ax is None:
            inches = check_width(TWO_COLUMNS if width is None else width)
            beside = inches >= SIDE_BY_SIDE
            pen = Pen.of(style, 0.7 * inches if beside else inches, {})
            ax, pairs = self._new_axes(inches, pen, beside=beside)
        else:
            from mpl_toolkits.axes_grid1 import make_axes_locatable

            check_no_width(width)
            pen = Pen.of(style, 0.7 * axes_inches(ax), {})
            # The right part of the axes, so that nothing else is covered.
            divider = make_axes_locatable(ax)
            pairs = divider.append_axes("right", size="80%", pad=0.15, sharey=ax)
            beside = True
        _draw_errors(self, ax, pen)
        _draw_pairs(self, pairs, pen, named=not beside)
        last = len(self.comparison.standings) - 0.5
        for panel in (ax, pairs):
            panel.set_ylim(last, -0.5)
        return ax

    def _new_axes(self, width: float, pen: Pen, *, beside: bool) -> tuple[Axes, Axes]:
        """Return axes of a new figure: of the errors, and of the pairs."""
        count, line = len(self.comparison.standings), pen.size / 72.0
        longest = max(len(s.model) for s in self.comparison.standings)
        names = 0.6 * min(longest, MAX_COLUMN_NAME) * line
        rows = max(count * CELL * pen.size / 9.0, 8.0 * line)
        if beside:
            figure = new_figure(width, rows + names + 5.0 * line)
            return tuple(figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.0)))
        figure = new_figure(width, 2.0 * rows + names + 10.0 * line)
        return tuple(figure.subplots(2, 1))

    def __repr__(self) -> str:
        return f"<ComparisonDisplay of {len(self.comparison.standings)} models>"

    def __str__(self) -> str:
        return str(self.comparison)


def _draw_errors(display: ComparisonDisplay, ax: Axes, pen: Pen) -> None:
    frame, comparison = display.frame(), display.comparison
    rows = np.arange(frame["value"].size)
    ink, dots = pen.style.ink, pen.style.under
    ax.hlines(rows, frame["low"], frame["high"], color=ink, linewidth=pen.line(1.0))
    ax.plot(
        frame["value"],
        rows,
        "o",
        color=dots,
        markersize=pen.line(4.0),
        zorder=3,
        clip_on=False,
    )
    names = [
        f"{shortened(model, MAX_NAME)}   {rank}"
        for model, rank in zip(frame["model"], frame["rank"], strict=True)
    ]
    ax.set_yticks(rows, names)
    quiet_frame(ax, pen)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=pen.style.light, linewidth=pen.line(0.5))
    ax.set_xlim(left=0.0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    method, task = frame["method"][0], frame["task"][0]
    event = "" if task == "binary" else f", {shortened(str(task), MAX_COLUMN_NAME)}"
    power = "" if comparison.alpha == 1.0 else f", alpha = {comparison.alpha:g}"
    label = f"Calibration error ({method}{event}{power})"
    ax.set_xlabel(label, fontsize=pen.size)
    level = f"{100 * comparison.confidence:g} %"
    title = f"Errors with {level} intervals\n(rank beside the name)"
    ax.set_title(title, fontsize=pen.size)


def _draw_pairs(display: ComparisonDisplay, ax: Axes, pen: Pen, *, named: bool) -> None:
    """Draw the matrix of pairs; rows are named where no errors stand beside them."""
    from matplotlib.colors import LinearSegmentedColormap

    matrix, style = display.matrix(), pen.style
    models = [standing.model for standing in display.comparison.standings]
    distinct = {
        frozenset((pair.model_a, pair.model_b))
        for pair in display.comparison.differences
        if pair.distinct
    }
    ends = [style.over, "#f7f7f7", style.under]
    if style.over == style.under:  # without colours, the better the darker
        ends = ["#ffffff", "#f0f0f0", style.under]
    colours = LinearSegmentedColormap.from_list("", ends)
    ax.imshow(
        matrix, cmap=colours, vmin=-0.5, vmax=1.5, aspect="auto", interpolation="none"
    )
    for (row, column), probability in np.ndenumerate(matrix):
        if row != column:
            bold = frozenset((models[row], models[column])) in distinct
            weight = "bold" if bold else "normal"
            text = _format_share(probability)
            look: dict[str, Any] = {"ha": "center", "va": "center", "color": style.ink}
            look |= {"fontsize": pen.size * 0.92, "fontweight": weight}
            ax.text(column, row, text, **look)
    names = [shortened(model, MAX_COLUMN_NAME) for model in models]
    quiet_frame(ax, pen)
    ax.set_xticks(range(len(names)), names, rotation=90)
    if named:
        ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0, labelleft=named)
    ax.spines[:].set_visible(False)
    title = "Probability that the row's model\nis better calibrated (bold: significant)"
    ax.set_title(title, fontsize=pen.size)


def _format_share(probability: float) -> str:
    if probability >= SURE:
        return "1"
    if probability <= 1.0 - SURE:
        return "0"
    digits = 2 if 0.01 <= probability <= 0.99 else 3  # noqa: PLR2004
    return f"{probability:.{digits}f}".lstrip("0")
