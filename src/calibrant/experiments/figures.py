"""The figures of the paper that show synthetic data or formulas, and orders of models.

Each function returns a matplotlib figure; `FIGURES` has those without data by name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.displays.drawing import new_figure
from calibrant.displays.panels import use_logit_axes
from calibrant.displays.reliability import ReliabilityDisplay
from calibrant.displays.style import COLOUR
from calibrant.experiments.assessment import KnownSample
from calibrant.experiments.study_tables import calibrator_orders
from calibrant.experiments.synthetic import (
    OTHER_SHAPES,
    PAPER_SHAPES,
    draw_labels,
    find_shape,
    mixing_amount,
    predictions,
    sample,
)
from calibrant.maps.beta import BetaMap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.core.array_types import Frame

EDGE, GAP, TRUTH = COLOUR.ink, COLOUR.gap, COLOUR.truth
MIXED_ERRORS = (0.03, 0.07)
"""Expected errors of the two mixtures that are drawn beside each shape."""

COMPARED = ("es15", "es-sweep", "es-cv", "pl")
COMPARED_ROWS, COMPARED_ERROR = 10_000, 0.1
EXAMPLE_SHAPE, EXAMPLE_ROWS, EXAMPLE_SEED = "beta2", 3000, 0
INSTANCES = 50
BETA_EXAMPLE = BetaMap(0.3, 1.4, 0.0)

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
PANEL_WIDTH, LINE_HEIGHT, PANEL_COLUMNS, LEGEND_COLUMNS = 3.4, 0.24, 3, 3


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


def beta_map() -> Figure:
    """Draw a beta map on probability axes, and on logit axes (appendix E.2).

    On logit axes it approaches two straight lines, of slopes a and b.
    """
    figure = new_figure(7.6, 4.0)
    left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    grid = np.linspace(0.0, 1.0, 1001)
    left.plot(grid, BETA_EXAMPLE(grid), color=TRUTH, linewidth=2.0)
    _frame_axes(left, f"beta map, a = {BETA_EXAMPLE.a:g}, b = {BETA_EXAMPLE.b:g}")
    x = np.linspace(-7.0, 7.0, 1401)
    p = 1.0 / (1.0 + np.exp(-x))
    right.plot(p, BETA_EXAMPLE(p), color=TRUTH, linewidth=2.0, label="beta map")
    for slope, style in ((BETA_EXAMPLE.a, "--"), (BETA_EXAMPLE.b, ":")):
        line = 1.0 / (1.0 + np.exp(-slope * x))
        right.plot(p, line, style, color=GAP, label=f"slope {slope:g}")
    right.plot(p, p, "--", color=EDGE, linewidth=1.0)
    use_logit_axes(right, (float(p[0]), float(p[-1])))
    right.set(xlim=p[[0, -1]], ylim=p[[0, -1]], aspect="equal")
    right.set(title="between logits", xlabel="Predicted probability")
    right.legend(loc="upper left", frameon=False, fontsize="small")
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


def ordering_figure(rows: Frame) -> Figure:
    """Draw how each evaluator orders the calibrators of each model.

    One panel per model, one line per evaluator; calibrators from the smallest
    estimated error on the left to the largest on the right, one colour each.
    """
    from matplotlib.patches import Patch

    orders = calibrator_orders(rows)
    n_methods = len({method for order in orders.values() for method in order})
    down = -(-len(orders) // PANEL_COLUMNS)
    across = min(len(orders), PANEL_COLUMNS)
    height = LINE_HEIGHT * n_methods + 1.0
    figure = new_figure(PANEL_WIDTH * across, height * down + 0.8)
    lines = [line for order in orders.values() for line in order.values()]
    names = sorted({name for line in lines for name in line})
    colours = {n: COLOURS[i % len(COLOURS)] for i, n in enumerate(names)}
    for place, (model, order) in enumerate(orders.items(), start=1):
        _draw_orders(figure.add_subplot(down, across, place), model, order, colours)
    figure.legend(
        handles=[Patch(color=colours[name], label=name) for name in names],
        loc="outside lower center",
        ncols=LEGEND_COLUMNS,
        frameon=False,
    )
    return figure


def _draw_orders(
    ax: Axes, model: str, order: dict[str, list[str]], colours: dict[str, str]
) -> None:
    for line, names in enumerate(order.values()):
        ax.barh(
            [line] * len(names),
            [0.94] * len(names),
            left=np.arange(len(names)) + 0.03,
            height=0.8,
            color=[colours[name] for name in names],
        )
    ax.set_yticks(range(len(order)), list(order))
    ax.set_xticks([])
    ax.invert_yaxis()
    ax.set_title(model, fontsize="medium")
    ax.set_xlabel("least to largest error", fontsize="small")
    for side in ax.spines.values():
        side.set_visible(False)


FIGURES: dict[str, Callable[[], Figure]] = {
    "base_shapes": base_shapes,
    "other_shapes": partial(base_shapes, OTHER_SHAPES),
    "truth_and_classical": truth_and_classical,
    "chosen_pieces": chosen_pieces,
    "beta_map": beta_map,
    **{f"comparison_{shape}": partial(comparison, shape) for shape in PAPER_SHAPES},
}
"""All figures of the paper by name."""
