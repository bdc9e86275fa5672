"""The figures of the paper that are made of synthetic data or of formulas.

Each function gives a matplotlib figure; `FIGURES` has them by name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.drawing import (
    EDGE,
    GAP,
    LOGIT_TICKS,
    TRUTH,
    new_figure,
)
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.experiments.shapes import OTHER_SHAPES, PAPER_SHAPES, find_shape
from calibrant.experiments.synthetic import draw_truth, mixed, mixing_amount, sample
from calibrant.experiments.truths import KnownSample
from calibrant.maps.beta import BetaMap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DERIVATES = (0.03, 0.07)
"""Expected errors of the two derivates that are drawn beside each shape."""

COMPARED = ("es15", "es-sweep", "es-cv", "pl")
COMPARED_ROWS, COMPARED_ERROR = 10_000, 0.1
EXAMPLE_SHAPE, EXAMPLE_ROWS, EXAMPLE_SEED = "beta2", 3000, 0
INSTANCES = 50
BETA_EXAMPLE = BetaMap(0.3, 1.4, 0.0)


def base_shapes(shapes: Sequence[str] = PAPER_SHAPES) -> Figure:
    """Draw the true calibration map of each shape and of two of its derivates.

    Shapes lead from c to p, so that c stands upright and derivates are mixed with the
    diagonal sideways.
    """
    figure = new_figure(3.1 * len(shapes), 3.6)
    c = np.linspace(0.0, 1.0, 2001)
    for place, shape in enumerate(shapes, start=1):
        ax = figure.add_subplot(1, len(shapes), place)
        ax.plot(find_shape(shape)(c), c, color=TRUTH, linewidth=2.0, label="shape")
        for error, style in zip(DERIVATES, ("--", ":"), strict=True):
            amount = mixing_amount(shape, error)
            p = mixed(find_shape(shape), amount, c)
            ax.plot(p, c, style, color=GAP, label=f"derivate {error:g}")
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
    y, c = draw_truth(EXAMPLE_ROWS, EXAMPLE_SEED)
    return KnownSample(find_shape(EXAMPLE_SHAPE)(c), y, c)


def truth_and_classical() -> Figure:
    """Draw the true map with errors of instances, and the classical diagram."""
    data = example()
    figure = new_figure(7.6, 4.6)
    _draw_truth(figure.add_subplot(1, 2, 1), data, "true error")
    ReliabilityDisplay.from_predictions(
        data.y,
        data.p,
        method="ew15",
        kind="centres",
        ax=figure.add_subplot(1, 2, 2),
    )
    return figure


def chosen_pieces() -> Figure:
    """Draw diagrams whose bins or pieces are cross-validated, on the same data."""
    figure = new_figure(11.2, 4.6)
    _draw_methods(figure, example(), ("es-cv", "pl", "pl3"), 0)
    return figure


def beta_map() -> Figure:
    """Draw a beta map between probabilities, and between logits (appendix E.2).

    Between logits it comes near to two straight lines, of slopes a and b.
    """
    figure = new_figure(7.6, 4.0)
    x = np.linspace(-7.0, 7.0, 1401)
    p = 1.0 / (1.0 + np.exp(-x))
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    grid = np.linspace(0.0, 1.0, 1001)
    left.plot(grid, BETA_EXAMPLE(grid), color=TRUTH, linewidth=2.0)
    told = f"a = {BETA_EXAMPLE.a:g}, b = {BETA_EXAMPLE.b:g}"
    _frame_axes(left, f"beta map, {told}")
    right.plot(p, BETA_EXAMPLE(p), color=TRUTH, linewidth=2.0, label="beta map")
    for slope, style in ((BETA_EXAMPLE.a, "--"), (BETA_EXAMPLE.b, ":")):
        line = 1.0 / (1.0 + np.exp(-slope * x))
        right.plot(p, line, style, color=GAP, label=f"slope {slope:g}")
    right.plot(p, p, "--", color=EDGE, linewidth=1.0)
    ends = (float(p[0]), float(p[-1]))
    right.set(
        xscale="logit", yscale="logit", xlim=ends, ylim=ends, title="between logits"
    )
    right.set_aspect("equal")
    ticks = [tick for tick in LOGIT_TICKS if ends[0] <= tick <= ends[1]]
    for axis in (right.xaxis, right.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
    right.set_xlabel("Predicted probability")
    right.legend(loc="upper left", frameon=False, fontsize="small")
    return figure


def _frame_axes(ax: Axes, title: str) -> None:
    ax.plot([0.0, 1.0], [0.0, 1.0], "--", color=EDGE, linewidth=1.0)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal", title=title)
    ax.set(xlabel="Predicted probability", ylabel="Calibrated probability")


def _draw_truth(ax: Axes, data: KnownSample, title: str) -> None:
    """Draw the true map, and how far off some rows, spread evenly, are."""
    order = np.argsort(data.p, kind="stable")
    p, c = data.p[order], data.c[order]
    picked = ((np.arange(INSTANCES) + 0.5) / INSTANCES * p.size).astype(int)
    ax.plot(p, c, color=TRUTH, linewidth=2.0, label="true map")
    ax.vlines(
        p[picked], p[picked], c[picked], color=GAP, lw=1.2, label="error of an instance"
    )
    _frame_axes(ax, f"{title} = {np.abs(p - c).mean():.3f}")
    ax.legend(loc="upper left", frameon=False, fontsize="small")


def _draw_methods(
    figure: Figure, data: KnownSample, methods: Sequence[str], before: int
) -> None:
    for place, method in enumerate(methods, start=before + 1):
        ax = figure.add_subplot(1, before + len(methods), place)
        options: dict[str, Any] = {"method": method, "true_map": data.c}
        display = ReliabilityDisplay.from_predictions(data.y, data.p, **options)
        display.plot(ax)


FIGURES: dict[str, Callable[[], Figure]] = {
    "base_shapes": base_shapes,
    "other_shapes": partial(base_shapes, OTHER_SHAPES),
    "truth_and_classical": truth_and_classical,
    "chosen_pieces": chosen_pieces,
    "beta_map": beta_map,
    **{f"comparison_{shape}": partial(comparison, shape) for shape in PAPER_SHAPES},
}
"""All figures by name."""
