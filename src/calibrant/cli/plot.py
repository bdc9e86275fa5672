"""``calibrant plot``: a file of predictions to reliability diagrams."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.columns import listed, models, reading
from calibrant.cli.figures import check_figure_path, write_grid
from calibrant.exceptions import OptionError


class Kind(StrEnum):
    """What a diagram shows."""

    diagonal = "diagonal"
    centres = "centres"
    bars = "bars"


def plot(
    source: options.Source,
    y: options.LabelColumn,
    p: options.ModelColumns,
    out: Annotated[
        Path, typer.Option("--out", help="Where to write: .png, .svg or .pdf.")
    ],
    task: options.TaskName = None,
    method: options.MethodName = "es15",
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="diagonal: filled up to the map; bars: shares of positives; "
            "centres: with dots and lines to the diagonal.",
        ),
    ] = Kind.diagonal,
    axes: Annotated[
        options.Holds,
        typer.Option("--axes", help="Probabilities, or logits that show both ends."),
    ] = options.Holds.prob,
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram/--no-histogram", help="How predictions are distributed."
        ),
    ] = True,
    by: options.GroupColumns = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = options.Holds.prob,
    seed: options.RandomSeed = 0,
) -> None:
    """Draw reliability diagrams of predictions in a file, a diagram a model."""
    from calibrant.displays.tables import reliability_of_table
    from calibrant.engines.memory import open_table

    check_figure_path(out)
    if task == "classwise":
        raise OptionError(
            "a diagram shows one event; use --task confidence or a class."
        )
    table = open_table(source)
    wanted: dict[str, Any] = {
        **reading(table, y, task, pos_label, labels),
        "input_scale": scale.value,
        "scale": axes.value,
        "kind": kind.value,
    }
    grid = reliability_of_table(
        table,
        y=y,
        p=models(p, task),
        by=listed(by),
        sample_weight=weight,
        method=method,
        histogram=histogram,
        random_state=seed,
        **wanted,
    )
    write_grid(grid, out)
