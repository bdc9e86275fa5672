"""Errors of several models with intervals, and which differ significantly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from calibrant.displays.drawing import EDGE, GAP, as_drawn, new_figure
from calibrant.exceptions import OptionError
from calibrant.measures.comparison import Comparison, compare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import ArrayLike, FloatMatrix, Frame
    from calibrant.predictions.predictions import Predictions


MAX_NAME = 24
MAX_COLUMN_NAME = 14
MIN_WIDTH = 2.6
"""Inches that the title of the pairs takes."""
BETTER, WORSE = "#3b7fbf", GAP
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

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, ax: Axes | None = None
    ) -> ComparisonDisplay:
        """Return the figure of a comparison; drawn at once where `ax` is given.

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
        if not isinstance(comparison, Comparison):
            raise OptionError(
                "comparison must be what compare returned; got "
                f"{type(comparison).__name__}. Pass predictions to from_predictions."
            )
        if comparison.groups:
            raise OptionError(
                "a figure shows one comparison; pass one of its groups, such as "
                "comparison.groups[0]."
            )
        display = cls(comparison)
        if ax is not None:
            display.plot(ax)
        return display

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike | Predictions,
        y_prob: Mapping[str, ArrayLike] | None = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> ComparisonDisplay:
        """Compare models; drawn at once where `ax` is given.

        Parameters
        ----------
        y_true : array-like of shape (n,), dict or Predictions
            Labels, as `compare` takes them; or `Predictions` of several models.
        y_prob : dict
            Predictions of each model by its name.
        ax : matplotlib Axes, optional
            Draw onto these axes now; otherwise call `plot`.
        **options
            Options of `compare`, such as `method` and `confidence`.

        Returns
        -------
        ComparisonDisplay
            With `plot` and `frame`.

        Examples
        --------
        >>> import calibrant as cb
        >>> forest, y = cb.datasets.load_binary("forest")
        >>> network, y = cb.datasets.load_binary("network")
        >>> display = cb.ComparisonDisplay.from_predictions(
        ...     y, {"forest": forest, "network": network}, method="es15"
        ... )
        >>> display.frame()["model"].tolist()
        ['network', 'forest']
        """
        return cls.from_comparison(compare(y_true, y_prob, **options), ax=ax)

    def frame(self) -> Frame:
        """Return one row per model, best first: what is drawn on the left."""
        return self.comparison.frame()

    def matrix(self) -> FloatMatrix:
        """Return how probable it is that row's model is better than column's.

        Models stand in the order of `frame`; the diagonal is NaN.
        """
        place = {s.model: i for i, s in enumerate(self.comparison.standings)}
        matrix = np.full((len(place), len(place)), np.nan)
        for pair in self.comparison.differences:
            a, b = place[pair.model_a], place[pair.model_b]
            matrix[a, b], matrix[b, a] = pair.probability, 1.0 - pair.probability
        return matrix

    def figure(self) -> Figure:
        """Draw on a new figure and return it."""
        return cast("Figure", self.plot().figure)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw errors with intervals, best on top, and beside them the pairs.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; the pairs take the right part of it. By default a new
            figure.

        Returns
        -------
        matplotlib Axes
            The axes of the errors; ``ax.figure.savefig(...)`` writes it.
        """
        count = len(self.comparison.standings)
        if ax is None:
            width = max(0.52 * count, MIN_WIDTH)
            figure = new_figure(6.2 + width, 2.1 + 0.42 * count)
            ax, beside = figure.subplots(1, 2, sharey=True, width_ratios=(3.2, width))
        else:
            from mpl_toolkits.axes_grid1 import make_axes_locatable

            # The right part of the axes, so that nothing else is covered.
            beside = make_axes_locatable(ax).append_axes(
                "right", size="80%", pad=0.15, sharey=ax
            )
        _draw_errors(self, ax)
        _draw_pairs(self, beside)
        ax.set_ylim(count - 0.5, -0.5)
        return ax

    def __repr__(self) -> str:
        return f"<ComparisonDisplay of {len(self.comparison.standings)} models>"

    def __str__(self) -> str:
        return str(self.comparison)


def _draw_errors(display: ComparisonDisplay, ax: Axes) -> None:
    frame, comparison = display.frame(), display.comparison
    rows = np.arange(frame["value"].size)
    ax.hlines(rows, frame["low"], frame["high"], color=EDGE, linewidth=1.6)
    ax.plot(frame["value"], rows, "o", color=BETTER, markersize=6.0, zorder=3)
    ax.axvline(0.0, color=EDGE, linestyle="--", linewidth=1.0)
    names = [
        f"{shortened(model, MAX_NAME)}   {rank}"
        for model, rank in zip(frame["model"], frame["rank"], strict=True)
    ]
    ax.set_yticks(rows, names)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    method, task = frame["method"][0], frame["task"][0]
    event = "" if task == "binary" else f", {shortened(str(task), MAX_COLUMN_NAME)}"
    power = "" if comparison.alpha == 1.0 else f", alpha = {comparison.alpha:g}"
    ax.set_xlabel(f"Calibration error ({method}{event}{power})")
    level = f"{100 * comparison.confidence:g}%"
    ax.set_title(
        f"Errors with {level} intervals\n(rank beside the name)", fontsize="medium"
    )


def _draw_pairs(display: ComparisonDisplay, ax: Axes) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    matrix = display.matrix()
    models = [standing.model for standing in display.comparison.standings]
    distinct = {
        frozenset((pair.model_a, pair.model_b))
        for pair in display.comparison.differences
        if pair.distinct
    }
    colours = LinearSegmentedColormap.from_list("", [WORSE, "#f7f7f7", BETTER])
    ax.imshow(
        matrix, cmap=colours, vmin=-0.3, vmax=1.3, aspect="auto", interpolation="none"
    )
    for (row, column), probability in np.ndenumerate(matrix):
        if row != column:
            bold = frozenset((models[row], models[column])) in distinct
            ax.text(
                column,
                row,
                _format_share(probability),
                ha="center",
                va="center",
                fontsize="small",
                fontweight="bold" if bold else "normal",
            )
    names = [shortened(model, MAX_COLUMN_NAME) for model in models]
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    ax.tick_params(length=0, labelleft=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(
        "Probability that the row's model\nis better calibrated (bold: significant)",
        fontsize="medium",
    )


def _format_share(probability: float) -> str:
    if probability >= SURE:
        return "1"
    if probability <= 1.0 - SURE:
        return "0"
    digits = 2 if 0.01 <= probability <= 0.99 else 3  # noqa: PLR2004
    return f"{probability:.{digits}f}".lstrip("0")


def shortened(name: str, longest: int) -> str:
    r"""Return a name as a figure shows it: on one line, not too long, as it is.

    Both ends are kept, since names of models often differ at the end.

    Examples
    --------
    >>> shortened("a very long name of a model, v2", 13), shortened("$x$", 12)
    ('a very…el, v2', '\\$x\\$')
    """
    line = " ".join(name.split())
    if len(line) > longest:
        end = (longest - 1) // 2
        line = f"{line[: longest - 1 - end]}…{line[len(line) - end :]}"
    return as_drawn(line)
