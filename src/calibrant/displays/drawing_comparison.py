"""Comparisons of models on matplotlib axes. Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.displays.drawing import EDGE, GAP, new_figure
from calibrant.displays.names import as_drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.displays.comparison import ComparisonDisplay

LONGEST_NAME = 24
LONGEST_COLUMN = 14
NARROWEST = 2.6
"""Inches that the title of the pairs takes."""
BETTER, WORSE = "#3b7fbf", GAP
SURE = 0.9995
"""From here on, three digits would say 1."""


def draw_comparison(display: ComparisonDisplay, ax: Axes | None) -> Axes:
    """Draw errors and pairs, and return the axes of the errors."""
    count = len(display.comparison.standings)
    if ax is None:
        width = max(0.52 * count, NARROWEST)
        figure = new_figure(6.2 + width, 2.1 + 0.42 * count)
        ax, beside = figure.subplots(1, 2, sharey=True, width_ratios=(3.2, width))
    else:
        beside = _axes_beside(ax)
    _draw_errors(display, ax)
    _draw_pairs(display, beside)
    ax.set_ylim(count - 0.5, -0.5)
    return ax


def _axes_beside(ax: Axes) -> Axes:
    """Take the right part of the axes, so that nothing else is covered."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    beside: Axes = make_axes_locatable(ax).append_axes(
        "right", size="80%", pad=0.15, sharey=ax
    )
    return beside


def _draw_errors(display: ComparisonDisplay, ax: Axes) -> None:
    frame, found = display.frame(), display.comparison
    rows = np.arange(frame["value"].size)
    ax.hlines(rows, frame["low"], frame["high"], color=EDGE, linewidth=1.6)
    ax.plot(frame["value"], rows, "o", color=BETTER, markersize=6.0, zorder=3)
    ax.axvline(0.0, color=EDGE, linestyle="--", linewidth=1.0)
    names = [
        f"{shortened(model, LONGEST_NAME)}   {rank}"
        for model, rank in zip(frame["model"], frame["rank"], strict=True)
    ]
    ax.set_yticks(rows, names)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    method, task = frame["method"][0], frame["task"][0]
    event = "" if task == "binary" else f", {shortened(str(task), LONGEST_COLUMN)}"
    power = "" if found.alpha == 1.0 else f", alpha = {found.alpha:g}"
    ax.set_xlabel(f"Calibration error ({method}{event}{power})")
    ax.set_title(
        f"Errors with {100 * found.confidence:g}% intervals\n(rank beside the name)",
        fontsize="medium",
    )


def _draw_pairs(display: ComparisonDisplay, ax: Axes) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    matrix = display.matrix()
    apart = _significantly_different(display)
    colours = LinearSegmentedColormap.from_list("", [WORSE, "#f7f7f7", BETTER])
    ax.imshow(
        matrix, cmap=colours, vmin=-0.3, vmax=1.3, aspect="auto", interpolation="none"
    )
    for (row, column), probability in np.ndenumerate(matrix):
        if np.isfinite(probability):
            ax.text(
                column,
                row,
                _shown(probability),
                ha="center",
                va="center",
                fontsize="small",
                fontweight="bold" if apart[row, column] else "normal",
            )
    standings = display.comparison.standings
    names = [shortened(s.model, LONGEST_COLUMN) for s in standings]
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    ax.tick_params(length=0, labelleft=False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_title(
        "Probability that the row's model\nis better calibrated (bold: significant)",
        fontsize="medium",
    )


def _significantly_different(display: ComparisonDisplay) -> np.ndarray:
    place = {s.model: i for i, s in enumerate(display.comparison.standings)}
    apart = np.zeros((len(place), len(place)), dtype=bool)
    for pair in display.comparison.differences:
        a, b = place[pair.model_a], place[pair.model_b]
        apart[a, b] = apart[b, a] = pair.distinct
    return apart


def _shown(probability: float) -> str:
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
