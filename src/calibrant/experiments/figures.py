"""The figures of the paper that show synthetic data, each as a matplotlib figure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.drawing import new_figure
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.displays.style import COLOUR
from calibrant.experiments.assessment import KnownSample
from calibrant.experiments.synthetic import (
    OTHER_SHAPES,
    PAPER_SHAPES,
    draw_labels,
    find_shape,
    mixing_amount,
    predictions,
    sample,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGE, GAP, TRUTH = COLOUR.ink, COLOUR.gap, COLOUR.truth
MIXED_ERRORS = (0.03, 0.07)
"""Expected errors of the two mixtures that are drawn beside each shape."""

COMPARED = ("es15", "es-sweep", "es-cv", "pl")
COMPARED_ROWS, COMPARED_ERROR = 10_000, 0.1
EXAMPLE_SHAPE, EXAMPLE_ROWS, EXAMPLE_SEED = "beta2", 3000, 0
INSTANCES = 50


def base_shapes(shapes: Sequence[str] = PAPER_SHAPES) -> Figure:
    """Draw the true calibration map of each shape and of two mixtures with identity.

    A shape maps c to p, so c is on the vertical axis, and shapes are mixed with the
    diagonal horizontally.
    """
    figure = new_figure(3.1 * len(shapes), 3.6)
    c = np.linspace(0.0, 1.0, 2001)
    for place, shape in enumerate(shapes, start=1):
        ax = figure.add_subplot(1, len(shapes), place)
        ax.plot(find_shape(shape)(c), c, color=TRUTH, linewidth=2.0, label="shape")
        for error, style in zip(MIXED_ERRORS, ("--", ":"), strict=True):
            p = predictions(shape, mixing_amount(shape, error), c)
            ax.plot(p, c, style, color=GAP, label=f"mixed, error {error:g}")
        _frame_axes(ax, shape)
        ax.legend(loc="upper left", frameon=False, fontsize="x-small")
    return figure


def comparison(shape: str) -> Figure:
    """Draw the true map and four reliability diagrams of one data set.

    Appendix E.1: 10,000 rows, expected error 0.1; binned diagrams with tops of slope 1.
    """
    data = KnownSample(*sample(shape, COMPARED_ERROR, COMPARED_ROWS, 0))
    figure = new_figure(3.6 * (1 + len(COMPARED)), 4.6)
    first = figure.add_subplot(1, 1 + len(COMPARED), 1)
    _draw_truth(first, data, f"{shape}: true error")
    _draw_methods(figure, data, COMPARED, 1)
    return figure


def example() -> KnownSample:
    """Return the sample of the paper's first figures: the shape itself, 3,000 rows."""
    y, c = draw_labels(EXAMPLE_ROWS, EXAMPLE_SEED)
    return KnownSample(find_shape(EXAMPLE_SHAPE)(c), y, c)


def truth_and_classical() -> Figure:
    """Draw the true map with errors of instances, and the classical diagram."""
    data = example()
    figure = new_figure(7.6, 4.6)
    _draw_truth(figure.add_subplot(1, 2, 1), data, "true error")
    ax = figure.add_subplot(1, 2, 2)
    ReliabilityDisplay.from_predictions(
        data.y, data.p, method="ew15", kind="centres", ax=ax
    )
    return figure


def chosen_pieces() -> Figure:
    """Draw diagrams whose bins or pieces are cross-validated, on the same data."""
    figure = new_figure(11.2, 4.6)
    _draw_methods(figure, example(), ("es-cv", "pl", "pl3"), 0)
    return figure


def _frame_axes(ax: Axes, title: str) -> None:
    ax.plot([0.0, 1.0], [0.0, 1.0], "--", color=EDGE, linewidth=1.0)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", title=title)
    ax.set(xlabel="Predicted probability", ylabel="Calibrated probability")


def _draw_truth(ax: Axes, data: KnownSample, title: str) -> None:
    """Draw the true map, and the errors of some evenly spaced rows."""
    order = np.argsort(data.p, kind="stable")
    p, c = data.p[order], data.c[order]
    picked = ((np.arange(INSTANCES) + 0.5) / INSTANCES * p.size).astype(int)
    ax.plot(p, c, color=TRUTH, linewidth=2.0, label="true map")
    ax.vlines(
        p[picked], p[picked], c[picked], color=GAP, lw=1.2, label="error of one row"
    )
    _frame_axes(ax, f"{title} = {np.abs(p - c).mean():.3f}")
    ax.legend(loc="upper left", frameon=False, fontsize="small")


def _draw_methods(
    figure: Figure, data: KnownSample, methods: Sequence[str], before: int
) -> None:
    for place, method in enumerate(methods, start=before + 1):
        ax = figure.add_subplot(1, before + len(methods), place)
        options: dict[str, Any] = {"method": method, "true_map": data.c}
        options["kind"] = "diagonal"
        display = ReliabilityDisplay.from_predictions(data.y, data.p, **options)
        display.plot(ax)


FIGURES: dict[str, Callable[[], Figure]] = {
    "base_shapes": base_shapes,
    "other_shapes": partial(base_shapes, OTHER_SHAPES),
    "truth_and_classical": truth_and_classical,
    "chosen_pieces": chosen_pieces,
    **{f"comparison_{shape}": partial(comparison, shape) for shape in PAPER_SHAPES},
}
"""All figures of the paper by name."""
