"""``calibrant plot``: a file of predictions to reliability diagrams."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.figures import check_figure_path, write_grid
from calibrant.cli.predictions import check_not_source, read_predictions
from calibrant.cli.progress import progress_bar
from calibrant.core.defaults import DEFAULT_METHOD
from calibrant.core.scales import MAX_DROPPED
from calibrant.exceptions import OptionError


class Kind(StrEnum):
    """What a diagram shows."""

    diagonal = "diagonal"
    centres = "centres"
    bars = "bars"


def plot(
    source: options.Sources,
    out: Annotated[
        Path, typer.Option("--out", help="Where to write: .png, .svg or .pdf.")
    ],
    y: options.LabelColumnUnlessCells = None,
    p: options.ModelColumnsUnlessCells = None,
    task: options.TaskName = None,
    method: options.MethodName = DEFAULT_METHOD,
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="diagonal: filled up to the map; bars: shares of positives; "
            "centres: with dots and lines to the diagonal.",
        ),
    ] = Kind.diagonal,
    axes: Annotated[
        options.AxesScale,
        typer.Option("--axes", help="Probabilities, or logits that show both ends."),
    ] = options.AxesScale.prob,
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram/--no-histogram", help="How predictions are distributed."
        ),
    ] = True,
    by: options.GroupColumns = None,
    model: options.ModelColumn = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    bad_rows: options.BadRowsRule = "error",
    max_dropped: options.MaxDropped = MAX_DROPPED,
    seed: options.RandomSeed = 0,
) -> None:
    """Draw one reliability diagram per model."""
    from calibrant.displays.grid import ReliabilityGrid

    check_figure_path(out)
    check_not_source(source, out)
    if task == "classwise":
        raise OptionError(
            "a diagram shows one event; use --task confidence or a class."
        )
    with progress_bar("drawing"):
        preds = read_predictions(
            source,
            y=y,
            p=p,
            by=by,
            model=model,
            task=task,
            weight=weight,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
            bad_rows=bad_rows,
            max_dropped=max_dropped,
        )
        grid = ReliabilityGrid.from_predictions(
            preds,
            kind=kind.value,
            axes=axes.value,
            method=method,
            histogram=histogram,
            random_state=seed,
        )
        write_grid(grid, out)
